"""Allocation candidates of a host that the filters of Nova's scheduler accept.

Some of Nova's filters check each allocation candidate of a host, not only the host. For example,
the PCI device of a candidate may be in a NUMA node where the instance does not fit. When Kronos
asks the scheduler for a host, the scheduler makes no claim and does not return the candidates that
its filters accepted. So Kronos runs the filters once more for the chosen host.
"""

import functools
from collections.abc import Callable

import nova.conf
from nova.scheduler import filters
from nova.scheduler import host_manager
from nova.scheduler.filters import numa_topology_filter
from nova.scheduler.filters import pci_passthrough_filter
from oslo_log import log as logging

from kronos_nova.plugin.candidates import Candidate
from kronos_nova.plugin.nova_types import ComputeNode
from kronos_nova.plugin.nova_types import HostState
from kronos_nova.plugin.nova_types import RequestSpec

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

EXPECTED = {
    'nova.scheduler.filters:CandidateFilterMixin.filter_candidates': (
        'self', 'host_state', 'filter_func'),
    'nova.scheduler.host_manager:HostState.__init__': ('self', 'host', 'node', 'cell_uuid'),
    'nova.scheduler.host_manager:HostState.update': (
        'self', 'compute', 'service', 'aggregates', 'inst_dict'),
}

# A conductor's nova.conf need not name the scheduler's filters. These two judge as nova-compute
# will when it claims.
ALWAYS = (numa_topology_filter.NUMATopologyFilter, pci_passthrough_filter.PciPassthroughFilter)


def left_over(candidates: list[Candidate], spec: RequestSpec,
              node: Callable[[], ComputeNode]) -> list[Candidate]:
    """Return the ``candidates`` that all filters accept, in the same order.

    If the filters accept no candidate, all candidates are returned: the scheduler has chosen the
    host, perhaps with fewer filters than this process has, and nova-compute makes the last check.
    If there is only one candidate, or if the server needs neither NUMA cells nor PCI devices, all
    candidates are returned without a check.

    :param spec: the RequestSpec
    :param node: callable that returns the ComputeNode of the host
    """
    if len(candidates) < 2 or not (spec.numa_topology or _asks_for_devices(spec)):
        return candidates
    state = _state(node())
    state.allocation_candidates = [
        {'candidate': each, 'mappings': each.mappings} for each in candidates]
    if not all(each.host_passes(state, spec) for each in _filters()):
        return candidates
    return [each['candidate'] for each in state.allocation_candidates]


def _asks_for_devices(spec: RequestSpec) -> bool:
    return bool(spec.pci_requests and spec.pci_requests.requests)


def _state(node: ComputeNode) -> HostState:
    state = host_manager.HostState(node.host, node.hypervisor_hostname, None)
    state.update(compute=node)
    return state


@functools.cache
def _filters() -> list[filters.BaseHostFilter]:
    """Return one filter of each class that checks allocation candidates. The filters are created
    once and used for all hosts, because Nova's filters have no state."""
    try:
        known = filters.HostFilterHandler().get_matching_classes(
            CONF.filter_scheduler.available_filters)
    except ImportError as error:
        LOG.warning('Some filters of [filter_scheduler] available_filters cannot be imported in '
                    'this service. Allocation candidates are therefore checked only by Nova\'s own '
                    'filters: %s', error)
        known = []
    enabled = [each for each in known if each.__name__ in CONF.filter_scheduler.enabled_filters
               and issubclass(each, filters.CandidateFilterMixin)]
    return [each() for each in dict.fromkeys((*ALWAYS, *enabled))]
