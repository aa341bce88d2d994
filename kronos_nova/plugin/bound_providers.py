"""Resource providers of a host from which an instance's ports and PCI devices are allocated.

Neutron and the hypervisor use the providers that were chosen when the instance was placed. If the
instance had its allocation on another provider, the provider in use would seem free, and could be
allocated a second time.
"""

import collections
from collections.abc import Mapping

from nova import objects

from kronos_nova.plugin.candidates import Candidate
from kronos_nova.plugin.nova_types import Instance
from kronos_nova.plugin.nova_types import RequestContext


def agreeing(context: RequestContext, instance: Instance, found: list[Candidate],
             tree: frozenset[str]) -> list[Candidate]:
    """Return the candidates of ``found`` that keep each port and each PCI device on its present
    provider, in the order of ``found``.

    A port or device is ignored if one of its present providers is not in ``tree``.

    :param tree: uuids of the host's providers
    """
    bound = {requester: providers for requester, providers in _bound(context, instance).items()
             if providers.keys() <= tree}
    return [each for each in found if all(
        _chosen(each, requester) in (providers, {}) for requester, providers in bound.items())]


def _chosen(candidate: Candidate, requester: str) -> collections.Counter[str]:
    """Return the providers that a candidate uses for one port or one PCI request, as a Counter of
    their uuids.

    :param requester: prefix of the names of the request groups of the port or PCI request
    """
    return collections.Counter(
        provider for group, providers in candidate.mappings.items()
        if group.startswith(requester) for provider in providers)


def _bound(context: RequestContext, instance: Instance) -> Mapping[str, collections.Counter[str]]:
    """Return the providers from which each port and each PCI device of an instance is allocated.

    :returns: {request group of a port, or id of a PCI request: Counter of provider uuids}
    """
    found: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for vif in instance.get_network_info():
        allocation = (vif['profile'] or {}).get('allocation')
        # Without Neutron's extension for groups, the value is the uuid of the port's only provider.
        groups = allocation if isinstance(allocation, dict) else {vif['id']: allocation}
        for group, provider in groups.items():
            if provider:
                found[group][provider] += 1
    for device in objects.PciDeviceList.get_by_instance_uuid(context, instance.uuid):
        if device.request_id and 'rp_uuid' in device.extra_info:
            found[device.request_id][device.extra_info['rp_uuid']] += 1
    return found
