"""Conversion between Nova's usage dicts and the amounts of claims."""

from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

from nova import objects
from nova.virt import hardware
from oslo_serialization import jsonutils

from kronos_nova.objects.claim import Amount
from kronos_nova.plugin.nova_types import ComputeNode
from kronos_nova.plugin.nova_types import Instance
from kronos_nova.plugin.nova_types import InstanceNUMATopology
from kronos_nova.plugin.nova_types import Migration
from kronos_nova.plugin.nova_types import PciDevice
from kronos_nova.plugin.nova_types import PciDevTracker
from kronos_nova.plugin.nova_types import ProviderTree
from kronos_nova.units import MIB_PER_GIB


def to_amount(usage: Mapping[str, Any], devices: Iterable[PciDevice]) -> Amount:
    """Convert a usage dict of Nova's resource tracker to an Amount. Swap is rounded down to whole
    GiB, as in Nova.

    :param devices: PciDevices of the instance
    """
    topology = usage.get('numa_topology')
    # Nova rounds swap down to whole GiB.
    disk_gb = (usage.get('root_gb', 0) + usage.get('ephemeral_gb', 0) +
               usage.get('swap', 0) // MIB_PER_GIB)
    return Amount(vcpus=usage.get('vcpus', 0), memory_mb=usage['memory_mb'], disk_gb=disk_gb,
                  pci=tuple(sorted({device.address for device in devices})),
                  numa_topology=topology and _text(topology))


def _text(topology: InstanceNUMATopology) -> str:
    """Return the JSON of an InstanceNUMATopology without its list of changed fields, whose order
    differs from one call to the next."""
    saved = topology.obj_clone()
    saved.obj_reset_changes(recursive=True)
    return jsonutils.dumps(saved.obj_to_primitive())


def to_usage(amount: Amount) -> dict[str, Any]:
    """Convert an Amount to a usage dict of Nova's resource tracker."""
    topology = amount.numa_topology and objects.InstanceNUMATopology.obj_from_primitive(
        jsonutils.loads(amount.numa_topology))
    return {'vcpus': amount.vcpus, 'memory_mb': amount.memory_mb, 'root_gb': amount.disk_gb,
            'numa_topology': topology}


def check_cells(compute_node: ComputeNode, amount: Amount) -> None:
    """Check that Nova can count the NUMA topology of ``amount`` on a node.

    :raises Exception: the topology cannot be counted; the error may be of any type, because a
        topology from the store may contain anything
    """
    topology = to_usage(amount)['numa_topology']
    if topology and compute_node.numa_topology:
        hardware.numa_usage_from_instance_numa(
            objects.NUMATopology.obj_from_db_obj(compute_node.numa_topology), topology)


def used(compute_node: ComputeNode) -> tuple[int | None, ...]:
    """Return (VCPUs, MiB of memory, GiB of disk) that a ComputeNode reports as used. A value is
    None if the ComputeNode does not have it."""
    return tuple(getattr(compute_node, name) if compute_node.obj_attr_is_set(name) else None
                 for name in ('vcpus_used', 'memory_mb_used', 'local_gb_used'))


def devices_of(pci_tracker: PciDevTracker | None, uuid: str) -> list[PciDevice]:
    """Return the PciDevices that an instance has on this host, without a call to the conductor."""
    if not pci_tracker:
        return []
    return [*pci_tracker.claims.get(uuid, ()), *pci_tracker.allocations.get(uuid, ())]


def is_way_back(migration: Migration, instance: Instance, host: str, node: str) -> bool:
    """Return True if Nova counts, on this node, the resources that a migrating instance had before
    the migration. Return False if Nova counts the resources of the instance after the migration.

    A migration may change the resources of an instance. On the source, Nova counts the resources
    before the migration; on the destination, those after the migration. During a resize within the
    node, Nova counts the instance with its present flavor, and the migration with the flavor that
    the instance does not have at present. The result is then True if this other flavor is the old
    one, and False if it is the new one.
    """
    arrives = (migration.dest_compute, migration.dest_node) == (host, node)
    leaves = (migration.source_compute, migration.source_node) == (host, node)
    if arrives and leaves:
        return instance['instance_type_id'] != migration.old_instance_type_id
    return not arrives


def has_assigned_resources(provider_tree: ProviderTree) -> bool:
    """Return whether any provider assigns individual resources, such as namespaces of persistent
    memory. Claims do not record individual resources."""
    return any(provider_tree.data(uuid).resources
               for uuid in provider_tree.get_provider_uuids())
