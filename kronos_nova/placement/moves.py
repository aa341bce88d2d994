"""The allocations of a move: the migration holds the source's, the instance the destination's.

Two steps, each one ``POST /allocations``, each harmless when repeated: :func:`start` splits,
:func:`revert` gives the source's back. When a move succeeds, nova-compute deletes what the
migration holds. They hold for live and cold migrations and for resizes, to another host and to the
same one, where the old and the new amounts are judged against ``max_unit`` apart.

Whose an allocation is, :mod:`~kronos_nova.placement.ownership` says: what both hosts share stays
with the instance all along and is counted once, and what is left over from earlier moves goes.
:func:`revert` also takes a *doubled* instance, which holds source and destination both, as before
migrations had allocations of their own and as after evacuations.
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

    ``is_live`` tells a live migration from the moves that Nova alone carries out, in which the
    migration holds all that the instance held. ``source_overwrites`` says that the source's
    nova-compute is Nova's own: where the move fails it gives the instance what the migration holds
    in place of everything else, so that the migration has to hold what is shared as well.
    ``source_tree`` are the providers of the source, where the caller has just asked for them.
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

    Once started it may be called again with another ``destination``, which replaces the first.
    ``destination`` may name sharing providers too; what it says of them replaces what the instance
    held there. An instance that holds nothing on the source gets ``destination`` all the same.

    :raises InsufficientInventory: nothing was changed
    :raises SourceRefused: nothing was changed, and no destination does
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
    """Yield why a migration may not hold what its instance holds: placement judges amounts again
    whenever they are written, and the limits of the source may have changed since."""
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

    ``before`` is what the instance held before :func:`start`, where the caller still knows: needed
    only where a resize changed the amount on a sharing provider. ``is_gone`` returns whether the
    instance was deleted meanwhile. It is asked after each reading, and nothing is written then.

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
            problem=f'neither instance {move.instance} nor migration {move.migration} holds '
                    f'anything on {move.source}')
    return ownership.before_move(instance, on_source, sharing)


def _parties(move: Parties, held: Mapping[str, Consumer]) -> tuple[Consumer, Consumer]:
    owner = {'project_id': move.project_id, 'user_id': move.user_id}
    return (dataclasses.replace(held[move.instance], consumer_type=INSTANCE, **owner),
            dataclasses.replace(held[move.migration], consumer_type=MIGRATION, **owner))


def _warn_of_leftovers(move: Parties, allocations: Allocations) -> None:
    if allocations:
        LOG.warning('Instance %s held allocations that belong neither to its host nor to a sharing '
                    'provider; they are removed with its move: %s', move.instance, allocations)
