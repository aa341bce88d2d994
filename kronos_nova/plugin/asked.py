"""How much of each resource class an instance asks placement for, as Nova's scheduler counts it."""

import nova.conf
from nova import objects
from nova.scheduler import utils as scheduler_utils

from kronos_nova.plugin import candidates

CONF = nova.conf.CONF

# What :class:`Counter` looks at.
ATTRIBUTES = ['flavor', 'info_cache', 'pci_requests', 'system_metadata']


class Counter:
    """Counts what instances ask for by their own records alone, each kind of them once."""

    def __init__(self):
        self._counted = {}

    def __call__(self, instance):
        """{resource class: amount}; None where ports or devices ask for more than that tells."""
        if _has_devices(instance) or _has_ports_that_ask(instance):
            return None
        key = _kind(instance)
        if key not in self._counted:
            spec = objects.RequestSpec(
                flavor=instance.flavor, image=instance.image_meta, is_bfv=not instance.image_ref,
                requested_resources=[], request_level_params=objects.RequestLevelParams())
            self._counted[key] = _amounts(spec)
        return self._counted[key]


def exactly(context, instance):
    """All that is right: (``{resource class: amount}``, ...)."""
    spec = candidates.spec_of(context, instance)
    request = scheduler_utils.ResourceRequest.from_request_spec(spec)
    if not request.cpu_pinning_requested:
        return (request.merged_resources(),)
    # A host that does not report PCPU yet gave VCPU for them.
    return request.merged_resources(), _amounts(spec, enable_pinning_translate=False)


def _amounts(spec, **kwargs):
    return scheduler_utils.ResourceRequest.from_request_spec(spec, **kwargs).merged_resources()


def _has_devices(instance):
    return bool(instance.pci_requests and instance.pci_requests.requests and (
        CONF.filter_scheduler.pci_in_placement))


def _has_ports_that_ask(instance):
    """A bound port says on which providers its part lies."""
    cache = instance.info_cache
    return bool(cache) and any((vif.get('profile') or {}).get('allocation')
                               for vif in cache.network_info or ())


def _kind(instance):
    flavor = instance.flavor
    image = tuple(sorted(item for item in instance.system_metadata.items()
                         if item[0].startswith('image_')))
    return (flavor.vcpus, flavor.memory_mb, flavor.root_gb, flavor.ephemeral_gb, flavor.swap,
            tuple(sorted((flavor.extra_specs or {}).items())), image, not instance.image_ref)
