"""The allocations of a move: the migration has those on the source, the instance those on the
destination.

:func:`start` gives the allocations on the source to the migration, and allocations on the
destination to the instance. :func:`revert` gives the allocations on the source back to the
instance. Each function sends one ``POST /allocations``, and is harmless when repeated. When a move
succeeds, nova-compute deletes the migration's allocations. Both functions are for live and cold
migrations and for resizes, to another host or on the same host. On the same host, placement checks
the old and the new amounts against ``max_unit`` separately.

:mod:`~kronos_nova.placement.ownership` says to whom an allocation belongs. Allocations on providers
that both hosts share stay with the instance and are counted once; leftovers of earlier moves are
removed. :func:`revert` also repairs a *doubled* instance, which has the allocations of source and
destination both, such as after an evacuation.
"""

import dataclasses
from collections.abc import Callable
from collections.abc import Mapping

from oslo_log import log as logging

from kronos_nova.placement import errors
from kronos_nova.placement import ownership
from kronos_nova.placement.allocations import INSTANCE
from kronos_nova.placement.allocations import MIGRATION
from kronos_nova.placement.allocations import Allocations
from kronos_nova.placement.allocations import AllocationSet
from kronos_nova.placement.allocations import Consumer
from kronos_nova.placement.allocations import on
from kronos_nova.placement.client import PlacementClient

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Parties:
    """The two consumers of a move and the root providers of its two hosts (uuids).

    ``is_live`` is false for cold migrations and resizes. Nova alone carries these out, and the
    migration then has all allocations that the instance had. ``source_overwrites`` is true where
    the nova-compute of the source reverts a failed move as Nova does, and replaces all allocations
    of the instance by those of the migration. The migration then has to hold the allocations on
    sharing providers too. ``source_tree`` are the providers of the source, if the caller has just
    read them.
    """

    instance: str
    migration: str
    source: str
    destination: str | None = None
    project_id: str
    user_id: str
    is_live: bool = True
    source_overwrites: bool = False
    source_tree: frozenset[str] | None = None

    @property
    def consumers(self) -> tuple[str, str]:
        return self.instance, self.migration


def start(client: PlacementClient, move: Parties, destination: Allocations) -> AllocationSet | None:
    """Give the source's allocations to the migration, and ``destination`` to the instance.

    It may be called again with another ``destination``, which replaces the first. ``destination``
    may include sharing providers; its amounts replace those that the instance held there. An
    instance without allocations on the source gets ``destination`` as well.

    :raises InsufficientInventory: nothing was changed
    :raises SourceRefused: nothing was changed, and no destination would be accepted
    :raises ConcurrentUpdate, PlacementUnavailable: after all attempts
    """
    source = client.tree(move.source) if move.source_tree is None else move.source_tree
    left = {}

    def change(held: Mapping[str, Consumer]) -> AllocationSet:
        instance, migration = _parties(move, held)
        before = instance.allocations
        if migration.allocations:
            before = ownership.before_move(before, migration.allocations, client.sharing())
        parts = ownership.parts(client, before, source, move.destination)
        _warn_of_leftovers(move, parts.left_over)
        for_migration = {**parts.source, **(parts.shared if move.source_overwrites else {})}
        left.clear()
        left.update(for_migration)
        return AllocationSet.from_consumers(
            migration.holding(for_migration),
            instance.holding(ownership.merged(parts.shared, destination)),
        ).changed_from(held.values())

    try:
        return client.replace(move.consumers, change)
    except errors.InsufficientInventory as error:
        for why in _refused_at_source(client, left):
            raise errors.SourceRefused(
                problem=f'placement refuses every move of instance {move.instance}: {why}. Correct '
                        'the inventory of its host, or resize the instance.') from error
        raise


def _refused_at_source(client, allocations):
    """Yield the reasons why placement does not let the migration take over the amounts of its
    instance. Placement checks amounts whenever they are written, and the limits of the source may
    have changed."""
    for provider, amounts in allocations.items():
        limits = client.inventories(provider)
        for name, amount in amounts.items():
            limit = limits.get(name)
            if limit is None:
                yield f'provider {provider} has no {name} any more'
            elif amount > limit['max_unit']:
                yield (f'it holds {amount} of {name} on provider {provider}, whose max_unit is '
                       f'{limit["max_unit"]}')
            elif amount < limit['min_unit'] or amount % limit['step_size']:
                yield (f'it holds {amount} of {name} on provider {provider}, whose min_unit is '
                       f'{limit["min_unit"]} and step_size {limit["step_size"]}')


def revert(client: PlacementClient, move: Parties, is_gone: Callable[[], bool],
           before: Allocations | None = None) -> AllocationSet | None:
    """Undo a failed move: the instance holds again what it held on the source, the migration
    nothing.

    ``before`` are the allocations of the instance before :func:`start`, needed only where a resize
    changed the amount on a sharing provider; None where the caller does not know them. ``is_gone``
    returns whether the instance was deleted. It is called after each reading, and a deleted
    instance gets nothing back.

    :raises NothingToMove: neither consumer holds anything on the source; nothing was changed
    :raises InsufficientInventory: the source's inventory shrank meanwhile; nothing was changed
    :raises ConcurrentUpdate, PlacementUnavailable: after all attempts
    """
    source = client.tree(move.source)
    sharing = client.sharing()

    def change(held: Mapping[str, Consumer]) -> AllocationSet:
        instance, migration = _parties(move, held)
        if is_gone():
            restored = {}
        elif before is not None:
            restored = before
        else:
            restored = _restored(move, held, source, sharing)
        return AllocationSet.from_consumers(
            migration.holding({}), instance.holding(restored)).changed_from(held.values())

    return client.replace(move.consumers, change)


def _restored(move, held, source, sharing):
    instance, migration = (held[uuid].allocations for uuid in move.consumers)
    if migration and not move.is_live:
        return migration
    on_source = migration or on(instance, source)
    if not on_source:
        raise errors.NothingToMove(
            problem=f'neither instance {move.instance} nor migration {move.migration} has '
                    f'allocations on {move.source}')
    return ownership.before_move(instance, on_source, sharing)


def _parties(move: Parties, held: Mapping[str, Consumer]) -> tuple[Consumer, Consumer]:
    owner = {'project_id': move.project_id, 'user_id': move.user_id}
    return (dataclasses.replace(held[move.instance], consumer_type=INSTANCE, **owner),
            dataclasses.replace(held[move.migration], consumer_type=MIGRATION, **owner))


def _warn_of_leftovers(move: Parties, allocations: Allocations) -> None:
    if allocations:
        LOG.warning('Instance %s: its migration removed leftover allocations that belong neither '
                    'to the source host nor to a sharing provider: %s', move.instance, allocations)
