"""Providers on a host from which an instance's ports and devices are allocated.

Which they are was settled when the instance was placed: Neutron and the hypervisor go by it. To
hold the like on another provider would promise that one twice.
"""

import collections

from nova import objects

from kronos_nova.plugin.candidates import Candidate


def agreeing(context, instance, found: list[Candidate], tree: frozenset[str]) -> list[Candidate]:
    """Return the candidates of ``found`` in which each port and each device stays on its provider,
    in order.

    What lies on no provider of ``tree``, the host's, says nothing about where it is to lie there.
    """
    bound = {requester: providers for requester, providers in _bound(context, instance).items()
             if providers.keys() <= tree}
    return [each for each in found if all(
        _chosen(each, requester) in (providers, {}) for requester, providers in bound.items())]


def _chosen(candidate, requester):
    """Return the Counter of the providers that a candidate has for a port, or for a request of
    devices. Each of these is a request group with a numbered suffix."""
    return collections.Counter(
        provider for group, providers in candidate.mappings.items()
        if group.startswith(requester) for provider in providers)


def _bound(context, instance):
    """Return {requester: Counter of its providers}."""
    found = collections.defaultdict(collections.Counter)
    for vif in instance.get_network_info():
        allocation = (vif['profile'] or {}).get('allocation')
        # Without Neutron's extension for groups the allocation of a port is its one provider.
        groups = allocation if isinstance(allocation, dict) else {vif['id']: allocation}
        for group, provider in groups.items():
            if provider:
                found[group][provider] += 1
    for device in objects.PciDeviceList.get_by_instance_uuid(context, instance.uuid):
        if device.request_id and 'rp_uuid' in device.extra_info:
            found[device.request_id][device.extra_info['rp_uuid']] += 1
    return found
