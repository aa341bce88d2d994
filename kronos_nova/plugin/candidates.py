"""What an instance may hold on one host, by placement's allocation candidates."""

from nova import objects
from nova.compute import utils as compute_utils
from nova.network import neutron
from nova.scheduler import utils as scheduler_utils

from kronos_nova.placement.allocations import Allocations
from kronos_nova.placement.client import PlacementClient


def on_host(client: PlacementClient, spec, root: str, held: Allocations) -> list[dict]:
    """Allocation requests for the instance of ``spec`` (a RequestSpec) on the tree of ``root``.

    :param held: what it holds on sharing providers and keeps; that is not asked for again, as
        placement leaves sharing providers out where a tree is named
    """
    spec = without_resources(spec, held)
    request = scheduler_utils.ResourceRequest.from_request_spec(spec)
    found = client.candidates(_query(request, root))
    if not found and request.cpu_pinning_requested:
        # A host that does not report PCPU yet; the scheduler asks a second time as well.
        request = scheduler_utils.ResourceRequest.from_request_spec(
            spec, enable_pinning_translate=False)
        found = client.candidates(_query(request, root))
    return found


def without_resources(spec, allocations: Allocations):
    """A copy of ``spec`` that does not ask for the resource classes in ``allocations``."""
    if not allocations:
        return spec
    spec = spec.obj_clone()
    nothing = {f'resources:{name}': '0' for held in allocations.values() for name in held}
    spec.flavor.extra_specs = {**(spec.flavor.extra_specs or {}), **nothing}
    return spec


def spec_of(context, instance):
    """The RequestSpec of an instance as it is now, with what its ports and devices need."""
    spec = objects.RequestSpec.get_by_instance_uuid(context, instance.uuid)
    spec.flavor = instance.flavor
    spec.requested_resources, spec.request_level_params = (
        neutron.API().get_requested_resource_for_instance(context, instance.uuid))
    spec.generate_request_groups_from_pci_requests()
    compute_utils.heal_reqspec_is_bfv(context, spec, instance)
    return spec


def _query(request, root):
    request.get_request_group(None).in_tree = root
    if request.get_num_of_suffixed_groups() >= 2 and not request.group_policy:
        request.group_policy = 'none'
    return request.to_querystring()
