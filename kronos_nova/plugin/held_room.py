"""Room on hosts that is reserved for certain future servers. nova-scheduler must not give this room
to other servers."""

import collections
from collections.abc import Iterable
from collections.abc import Sequence

from nova import objects
from nova.virt import hardware

from kronos_nova.objects.hold import Hold
from kronos_nova.objects.shape import Shape
from kronos_nova.plugin import reserved_resources
from kronos_nova.plugin.nova_types import HostState
from kronos_nova.plugin.nova_types import InstanceNUMATopology
from kronos_nova.plugin.nova_types import NUMATopology
from kronos_nova.plugin.nova_types import RequestSpec

EXPECTED = {
    'nova.virt.hardware:numa_fit_instance_to_host': (
        'host_topology', 'instance_topology', 'provider_mapping', 'limits', 'pci_requests',
        'pci_stats'),
    'nova.virt.hardware:numa_usage_from_instance_numa': (
        'host_topology', 'instance_topology', 'free'),
    'nova.virt.hardware:numa_get_constraints': ('flavor', 'image_meta'),
}


class HeldRoom:
    """The reserved room on each host. A hold reserves room for a number of future servers of one
    flavor.

    Memory, disk, VCPUs and the NUMA topology of a host are checked. Nova's own function checks the
    topology. Custom resources and devices of a host are not checked, because nova-scheduler does
    not know them.
    """

    def __init__(self, holds: Iterable[Hold] = ()):
        self._by_host: dict[str, list[tuple[Hold, int]]] = collections.defaultdict(list)
        for hold in holds:
            for host, count in hold.left().items():
                self._by_host[host].append((hold, count))

    def leaves_room(self, host: HostState, spec: RequestSpec) -> bool:
        """Return whether a host still has its reserved room after the server of ``spec`` is started
        there. If a hold reserves room for servers of this flavor and project, the server may use
        that room: the hold then needs room for one server less."""
        kept = self._by_host.get(host.host, ())
        if not kept:
            return True
        shapes, is_guest = [], False
        for hold, count in kept:
            if not is_guest and hold.is_for(spec.flavor.name, spec.project_id or ''):
                count, is_guest = count - 1, True
            shapes += [hold.shape] * count
        if is_guest and not shapes:
            return True
        return _fit(host, spec, shapes)


def _fit(host: HostState, spec: RequestSpec, shapes: Sequence[Shape]) -> bool:
    """Return whether a host has room for the server of ``spec`` together with one server of each of
    ``shapes``."""
    flavor, topology = spec.flavor, host.numa_topology
    disk = 0 if spec.is_bfv else flavor.root_gb
    asked = collections.Counter(
        MEMORY_MB=flavor.memory_mb, DISK_GB=disk + flavor.ephemeral_gb + flavor.swap // 1024,
        VCPU=flavor.vcpus - _pinned(spec.numa_topology))
    for shape in shapes:
        asked.update({name: shape.resources.get(name, 0) for name in asked})
    reserved = reserved_resources.amounts(host.stats)
    # As Nova reports them: what is used includes what is reserved.
    reported = {
        'MEMORY_MB': (host.total_usable_ram_mb, host.total_usable_ram_mb - host.free_ram_mb,
                      host.ram_allocation_ratio),
        'DISK_GB': (host.total_usable_disk_gb, host.total_usable_disk_gb - host.free_disk_mb / 1024,
                    host.disk_allocation_ratio),
        'VCPU': (host.vcpus_total, host.vcpus_used - _on_dedicated(topology),
                 host.cpu_allocation_ratio)}
    if any(asked[name] > (total - reserved[name]) * ratio - (used - reserved[name])
           for name, (total, used, ratio) in reported.items() if asked[name]):
        return False
    needs = [spec.numa_topology, *map(_topology, shapes)]
    limits = objects.NUMATopologyLimits(cpu_allocation_ratio=host.cpu_allocation_ratio,
                                        ram_allocation_ratio=host.ram_allocation_ratio)
    for need in filter(None, needs):
        if topology is None:
            return False
        # Nova's function changes the topology that it is given, so it gets a copy.
        placed = hardware.numa_fit_instance_to_host(topology, need.obj_clone(), None, limits=limits)
        if placed is None:
            return False
        topology = hardware.numa_usage_from_instance_numa(topology, placed)
    return True


def _on_dedicated(topology: NUMATopology | None) -> int:
    """Return the number of a host's processors that are used by pinned servers and are reserved for
    pinned servers. Nova counts the VCPUs of these servers as used, but does not count these
    processors among the VCPUs of the host."""
    cells = () if topology is None else topology.cells
    return sum(len(cell.pinned_cpus - cell.cpuset) for cell in cells)


def _pinned(topology: InstanceNUMATopology | None) -> int:
    """Return the number of the VCPUs of a server that are pinned to processors."""
    return sum(len(cell.pcpuset) for cell in topology.cells) if topology else 0


def _topology(shape: Shape) -> InstanceNUMATopology | None:
    """Return the NUMA cells that a server of a shape (flavor) needs; None if the server needs no
    NUMA cells."""
    flavor = objects.Flavor(vcpus=shape.vcpus, memory_mb=shape.memory_mb,
                            extra_specs=dict(shape.extra_specs))
    return hardware.numa_get_constraints(flavor, objects.ImageMeta.from_dict({}))
