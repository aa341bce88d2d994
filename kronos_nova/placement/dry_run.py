"""Dry runs of moves by placement. A dry run checks whether a destination has room for an instance
now.

The dry runs of this module are for processes outside Nova. A dry run makes only one of the checks
of Nova's scheduler: the query for allocation candidates on the destination's tree. The query covers
room in every resource class, ``min_unit``, ``max_unit`` and ``step_size``, and the traits that the
flavor requires or forbids. The filters of the scheduler (NUMA, PCI, isolation, images and others)
cannot be called from outside. Nova calls the filters when it starts the live migration.
"""

import collections
import functools
from collections.abc import Mapping
from typing import Any
from urllib import parse

from oslo_log import log as logging

from kronos_nova import exception
from kronos_nova.objects.dry_run import AGREED
from kronos_nova.objects.dry_run import NO_ROOM_YET
from kronos_nova.objects.dry_run import NOTHING_BEFORE
from kronos_nova.objects.dry_run import ROOM
from kronos_nova.objects.dry_run import Before
from kronos_nova.objects.dry_run import DryRun
from kronos_nova.objects.dry_run import Verdict
from kronos_nova.objects.plan import PlannedMove
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Instance
from kronos_nova.placement import errors
from kronos_nova.placement import ownership
from kronos_nova.placement import sharing
from kronos_nova.placement.allocations import off
from kronos_nova.placement.allocations import on
from kronos_nova.placement.client import PlacementClient

LOG = logging.getLogger(__name__)

TRAIT = 'trait:'


class PlacementDryRun:
    """A :class:`~kronos_nova.objects.dry_run.DryRun` that asks placement for allocation candidates.

    The query asks for the amounts that were allocated to the instance when the instance was read,
    on its host's own providers. Amounts on sharing providers are added if the destination does not
    use these providers.
    """

    def __init__(self, client: PlacementClient):
        self._client = client

    def __call__(self, move: PlannedMove, instance: Instance, destination: Host,
                 before: Before = NOTHING_BEFORE) -> Verdict:
        try:
            return self._ask(instance, destination, before)
        except exception.PlacementError as error:
            LOG.warning('The move of instance %s could not be checked with placement before it was '
                        'planned: %s', instance.uuid, error)
            return Verdict(unasked=f'placement could not be asked: {error}',
                           is_silent=isinstance(error, errors.OF_EVERY_REQUEST))

    def _ask(self, instance: Instance, destination: Host, before: Before) -> Verdict:
        amounts = before.wanted(self._amounts(instance, destination))
        wanted = {name: amount for name, amount in amounts.items() if amount}
        if not wanted or self._has_candidate(instance, destination, wanted):
            return Verdict(without=ROOM) if before.leaving else AGREED
        if before.leaving:
            return Verdict(unasked=NO_ROOM_YET)
        listed = ', '.join(f'{amount} {name}' for name, amount in amounts.items())
        traits = _traits(instance)
        return Verdict(refused=f'placement has no candidate for {listed}'
                               f'{" with " + ", ".join(traits) if traits else ""} on '
                               f'{destination.name}')

    def _amounts(self, instance: Instance, destination: Host) -> dict[str, int]:
        """Return {resource class: amount} that the instance needs on the destination."""
        amounts: collections.Counter[str] = collections.Counter(instance.resources)
        if instance.shared_resources:
            held = self._client.consumer(instance.uuid).allocations
            pools = on(held, self._client.sharing())
            amounts.update(ownership.totals(off(pools, ownership.reached(
                self._client, pools, destination.uuid))))
        return amounts

    def _has_candidate(self, instance: Instance, destination: Host,
                       wanted: Mapping[str, int]) -> bool:
        """Return True if placement has an allocation candidate on the destination, else False.
        Sharing providers are used only if the destination's own providers have no candidate."""
        return bool(self._client.candidates(_query(instance, destination, wanted))) or any(
            self._client.candidates(_query(instance, destination, own, from_pools))
            for own, from_pools in sharing.ways_to_share(self._client, wanted, destination.uuid)
            if own) or self._has_candidate_in_parts(instance, destination, wanted)

    def _has_candidate_in_parts(self, instance: Instance, destination: Host,
                                wanted: Mapping[str, int]) -> bool:
        """Return True if placement has an allocation candidate for an instance that has amounts of
        one resource class on several providers, such as the bandwidth of two ports. Each of these
        amounts may be on a provider of its own; no provider has to have their sum."""
        held = self._client.consumer(instance.uuid).allocations
        split = {name for name in wanted if sum(name in amounts for amounts in held.values()) > 1}
        own = {name: amount for name, amount in wanted.items() if name not in split}
        if not split or not own:
            return False
        parts = [{name: amounts[name] for name in sorted(split & amounts.keys())}
                 for _uuid, amounts in sorted(held.items()) if split & amounts.keys()]
        return bool(self._client.candidates(_query(instance, destination, own) + ''.join(
            f'&resources_KRONOS_PART{number}={_listed(part)}'
            f'&in_tree_KRONOS_PART{number}={destination.uuid}'
            for number, part in enumerate(parts)) + '&group_policy=none'))


def from_connection(connection: Any) -> DryRun:
    """Return a dry run that uses a connection of openstacksdk. The connection is not used before
    the first dry run."""
    made = functools.cache(lambda: PlacementDryRun(PlacementClient(connection.placement)))
    return lambda *asked: made()(*asked)


def _query(instance: Instance, destination: Host, wanted: Mapping[str, int],
           from_pools: Mapping[str, Mapping[str, int]] | None = None) -> str:
    """Return the query for allocation candidates on the destination.

    :param wanted: {resource class: amount} that the destination's own providers supply
    :param from_pools: {uuid of a sharing provider: {resource class: amount}}
    """
    query = {'resources': _listed(wanted), 'in_tree': destination.uuid, 'limit': 1}
    if traits := _traits(instance):
        query['required'] = ','.join(traits)
    if len(from_pools or ()) > 1:
        query['group_policy'] = 'none'
    return parse.urlencode(query, safe=':,!') + sharing.query(from_pools or {})


def _listed(amounts: Mapping[str, int]) -> str:
    return ','.join(f'{name}:{amount}' for name, amount in sorted(amounts.items()))


def _traits(instance: Instance) -> list[str]:
    """Return the traits of the flavor as in queries of placement, with ``!`` before a forbidden
    trait."""
    marks = {'required': '', 'forbidden': '!'}
    return sorted(marks[value] + key.removeprefix(TRAIT)
                  for key, value in instance.flavor_extra_specs.items()
                  if key.startswith(TRAIT) and value in marks)
