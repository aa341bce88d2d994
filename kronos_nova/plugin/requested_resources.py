"""Resources that an instance requests from placement, by class, as Nova's scheduler counts them."""

import json
from typing import Any

import nova.conf
from nova import exception as nova_exception
from nova import objects
from nova import utils
from nova.scheduler import utils as scheduler_utils
from oslo_log import log as logging

from kronos_nova.plugin import candidates
from kronos_nova.plugin.audit_tables import Asking
from kronos_nova.plugin.nova_types import Instance
from kronos_nova.plugin.nova_types import RequestContext
from kronos_nova.plugin.nova_types import RequestSpec

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)


MOST_KINDS = 10_000
"""Maximum number of combinations of flavor and image whose requested resources are kept in memory.
Raised, a process takes more memory; lowered, the resources are computed again more often. Not
measured."""


UNREADABLE = (nova_exception.NovaException, AttributeError, LookupError, TypeError, ValueError)
"""Errors that Nova raises for records that it cannot read, such as records that only an older
release accepted."""


class Counter:
    """A calculator of the resources that instances request, from the instances' own records only.
    The result is computed once for all instances with the same flavor and image."""

    def __init__(self) -> None:
        # by flavor, image, and whether the server boots from a volume
        self._counted: dict[tuple[str, tuple[tuple[str, str], ...], bool], dict[str, int]] = {}

    def __call__(self, asking: Asking) -> dict[str, int] | None:
        """Return {resource class: amount} that an instance requests. Return None if ports or
        devices request resources that are not in the records, or if the records cannot be read.

        :param asking: kronos_nova.plugin.audit_tables.Asking
        """
        try:
            return self._count(asking)
        except UNREADABLE as error:
            LOG.debug('The resources that instance %s requests cannot be computed: %s',
                      asking.row.uuid, error)
            return None

    def _count(self, asking: Asking) -> dict[str, int] | None:
        if _has_devices(asking) or _has_ports_that_ask(asking):
            return None
        key = asking.row.flavor, asking.image, not asking.row.image_ref
        if key not in self._counted:
            if len(self._counted) >= MOST_KINDS:
                self._counted.clear()
            self._counted[key] = _amounts(_spec(*key))
        return self._counted[key]


def exactly(context: RequestContext, instance: Instance) -> tuple[dict[str, int], ...]:
    """Return the possible amounts of an instance's allocation, as a tuple of {resource class:
    amount}. In most cases, the tuple has one item. For an instance with pinned processors, it has
    two: one with PCPU, and one with VCPU for a host that does not report PCPU."""
    spec = candidates.spec_of(context, instance)
    request = scheduler_utils.ResourceRequest.from_request_spec(spec)
    if not request.cpu_pinning_requested:
        return (request.merged_resources(),)
    # A host that does not report PCPU yet has given VCPU for pinned processors.
    return request.merged_resources(), _amounts(spec, enable_pinning_translate=False)


def _amounts(spec: RequestSpec, **kwargs: Any) -> dict[str, int]:
    return scheduler_utils.ResourceRequest.from_request_spec(spec, **kwargs).merged_resources()


def _spec(flavor: str, image: tuple[tuple[str, str], ...], is_volume_backed: bool) -> RequestSpec:
    """Return a RequestSpec made from an instance's flavor and image."""
    return objects.RequestSpec(
        flavor=objects.Flavor.obj_from_primitive(json.loads(flavor)['cur']),
        image=objects.ImageMeta.from_dict(utils.get_image_from_system_metadata(dict(image))),
        is_bfv=is_volume_backed, requested_resources=[],
        request_level_params=objects.RequestLevelParams())


def _has_devices(asking: Asking) -> bool:
    return (CONF.filter_scheduler.pci_in_placement
            and bool(json.loads(asking.row.pci_requests or '[]')))


def _has_ports_that_ask(asking: Asking) -> bool:
    """Return whether the instance has bound ports that request resources. Such a port is recognised
    by its binding profile, which names the providers of the port's allocation."""
    return any((vif.get('profile') or {}).get('allocation')
               for vif in json.loads(asking.network_info or '[]'))
