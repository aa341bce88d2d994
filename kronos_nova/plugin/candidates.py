"""Allocation candidates of an instance on one host, and the requests to placement for them."""

import dataclasses
from collections.abc import Iterable
from collections.abc import Mapping

from nova import objects
from nova.compute import utils as compute_utils
from nova.network import neutron
from nova.scheduler import utils as scheduler_utils
from nova.virt import hardware
from oslo_serialization import jsonutils

from kronos_nova.objects.dry_run import Before
from kronos_nova.placement import ownership
from kronos_nova.placement import sharing
from kronos_nova.placement.allocations import Allocations
from kronos_nova.placement.client import PlacementClient
from kronos_nova.plugin.nova_types import Instance
from kronos_nova.plugin.nova_types import RequestContext
from kronos_nova.plugin.nova_types import RequestSpec
from kronos_nova.plugin.nova_types import ResourceRequest


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One set of allocations that an instance may have on a host.

    ``mappings`` is {request group: uuids of its providers}. ``shared_classes`` has the resource
    classes that come from sharing providers.
    """

    allocations: Allocations
    mappings: Mapping[str, list[str]]
    shared_classes: frozenset[str] = frozenset()

    def to_request(self) -> str:
        """Return the candidate as JSON text, for the field ``allocation_request`` of Nova's
        Selection."""
        return jsonutils.dumps({
            'allocations': {uuid: {'resources': held} for uuid, held in self.allocations.items()},
            'mappings': self.mappings})


def on_host(client: PlacementClient, spec: RequestSpec, root: str,
            held: Allocations) -> list[Candidate]:
    """Return the allocation candidates of an instance on one host. Sharing providers are used only
    if the host's own providers have no candidate.

    :param spec: RequestSpec of the instance
    :param root: uuid of the host's root provider
    :param held: allocations on sharing providers that the instance keeps, which are not requested
        again
    """
    spec = without_classes(spec, ownership.classes(held))
    request = scheduler_utils.ResourceRequest.from_request_spec(spec)
    found = _find(client, request, root)
    if not found and request.cpu_pinning_requested:
        # The host may not report PCPU yet. Nova's scheduler makes this second request as well.
        found = _find(client, scheduler_utils.ResourceRequest.from_request_spec(
            spec, enable_pinning_translate=False), root)
    return found


def without_classes(spec: RequestSpec, names: Iterable[str]) -> RequestSpec:
    """Return a copy of ``spec`` that does not request the resource classes ``names``."""
    return _with_amounts(spec, dict.fromkeys(names, 0))


def _with_amounts(spec: RequestSpec, amounts: Mapping[str, int]) -> RequestSpec:
    """Return a copy of ``spec`` that requests other amounts of some resource classes.

    :param amounts: {resource class: amount to request}
    """
    if not amounts:
        return spec
    spec = spec.obj_clone()
    spec.flavor.extra_specs = {**(spec.flavor.extra_specs or {}), **{
        f'resources:{name}': str(amount) for name, amount in amounts.items()}}
    return spec


def in_later_room(spec: RequestSpec, before: Before) -> RequestSpec:
    """Return a copy of ``spec`` that requests smaller amounts of VCPUs, memory and disk. The
    amounts that earlier moves of the plan will free on the destination are subtracted. So only the
    rest has to be free now. A request for dedicated CPUs is not reduced."""
    amounts = _amounts_of_flavor(spec)
    return _with_amounts(spec, {name: amount for name, amount in before.wanted(amounts).items()
                                if amount < amounts[name]})


def without_room(spec: RequestSpec) -> RequestSpec:
    """Return a copy of ``spec`` that requests one VCPU, no memory and no disk. With such a request,
    the scheduler's answer shows whether filters and traits permit a host, almost regardless of its
    free room. A request for dedicated CPUs is not reduced."""
    return _with_amounts(spec, {name: int(name == 'VCPU') for name in _amounts_of_flavor(spec)})


def _amounts_of_flavor(spec: RequestSpec) -> dict[str, int]:
    """Return {resource class: amount} for the VCPUs, memory and disk of the flavor. Dedicated CPUs
    are left out. Classes that a ``resources:`` extra spec sets are left out as well."""
    flavor = spec.flavor
    given = flavor.extra_specs or {}
    amounts = {'MEMORY_MB': flavor.memory_mb, 'DISK_GB': (
        flavor.root_gb + flavor.ephemeral_gb + -(-flavor.swap // 1024))}
    if not scheduler_utils.ResourceRequest.from_request_spec(spec).cpu_pinning_requested:
        amounts['VCPU'] = flavor.vcpus
    return {name: amount for name, amount in amounts.items()
            if amount and f'resources:{name}' not in given}


def without_groups(spec: RequestSpec, held: Allocations) -> RequestSpec:
    """Remove from ``spec`` the requests of ports and devices that ``held`` covers, and return
    ``spec``. A request is covered if ``held`` has all of its resource classes."""
    names = ownership.classes(held)
    spec.requested_resources = [group for group in spec.requested_resources
                                if not group.resources.keys() <= names]
    return spec


def spec_of(context: RequestContext, instance: Instance) -> RequestSpec:
    """Return the RequestSpec of an instance in its present state, with the resources that its ports
    and devices request."""
    spec = objects.RequestSpec.get_by_instance_uuid(context, instance.uuid)
    spec = with_flavor_of(instance, spec)
    spec.requested_resources, spec.request_level_params = (
        neutron.API().get_requested_resource_for_instance(context, instance.uuid))
    spec.generate_request_groups_from_pci_requests()
    compute_utils.heal_reqspec_is_bfv(context, spec, instance)
    return spec


def with_flavor_of(instance: Instance, spec: RequestSpec) -> RequestSpec:
    """Set in ``spec`` the flavor of an instance and the fields that depend on the flavor. Return
    ``spec``.

    After a resize that failed in prep_resize, Nova's RequestSpec still has the flavor, the NUMA
    topology and the PCI requests of the resize. The records of the instance have the right values.
    """
    if spec.flavor.id != instance.flavor.id:
        spec.numa_topology = hardware.numa_get_constraints(instance.flavor, instance.image_meta)
        spec.pci_requests = instance.pci_requests
    spec.flavor = instance.flavor
    return spec


def _find(client: PlacementClient, request: ResourceRequest, root: str) -> list[Candidate]:
    """Return the candidates for a request in the provider tree of ``root``. If the tree alone has
    no candidate, sharing providers are requested as well."""
    group = request.get_request_group(None)
    group.in_tree = root
    found = _ask(client, request, {})
    if found or not group.resources:
        return found
    for own, from_pools in sharing.ways_to_share(client, dict(group.resources), root):
        group.resources = own
        found += _ask(client, request, from_pools)
    return found


def _ask(client: PlacementClient, request: ResourceRequest,
         from_pools: Allocations) -> list[Candidate]:
    """Request allocation candidates from placement, and return them.

    :param from_pools: {uuid of a sharing provider: {resource class: amount}}, requested in addition
        to ``request``
    """
    if request.get_num_of_suffixed_groups() + len(from_pools) >= 2 and not request.group_policy:
        request.group_policy = 'none'
    return [Candidate(
        allocations={uuid: each['resources'] for uuid, each in found['allocations'].items()},
        mappings=found['mappings'], shared_classes=ownership.classes(from_pools))
        for found in client.candidates(request.to_querystring() + sharing.query(from_pools))]
