"""The changes of allocations that a move of an instance needs.

:func:`start` makes the migration the consumer of the allocations on the source, and gives the
instance allocations on the destination. :func:`revert` gives the allocations on the source back to
the instance. Each function sends one ``POST /allocations``, and a second call does no harm. When a
move succeeds, nova-compute deletes the migration's allocations. Both functions are for live and
cold migrations and for resizes, to another host or on the same host. In a resize on the same host,
the migration has the old amounts and the instance has the new amounts. So placement does not
compare the sum of both with ``max_unit``.

:mod:`~kronos_nova.placement.ownership` determines the owner of each allocation. Allocations on
sharing providers that serve both hosts stay with the instance, so that they are not allocated
twice. Leftovers of earlier moves are removed. :func:`revert` also repairs an instance that has
allocations on the source and on the destination, such as after an evacuation.
"""

import dataclasses
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping

from oslo_log import log as logging

from kronos_nova.placement import errors
from kronos_nova.placement import ownership
from kronos_nova.placement.allocations import INSTANCE
from kronos_nova.placement.allocations import MIGRATION
from kronos_nova.placement.allocations import Allocations
from kronos_nova.placement.allocations import AllocationSet
from kronos_nova.placement.allocations import Consumer
from kronos_nova.placement.allocations import off
from kronos_nova.placement.allocations import on
from kronos_nova.placement.client import PlacementClient

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Parties:
    """The two consumers of a move and the root providers of its two hosts, by uuid.

    ``is_live`` is false for cold migrations and resizes. Nova itself begins these moves, and gives
    the migration all allocations that the instance had before.

    ``source_overwrites`` is true if the nova-compute of the source reverts a failed move by Nova's
    own code. This code replaces all allocations of the instance by those of the migration, so the
    instance would lose its allocations on sharing providers. If ``source_overwrites`` is true,
    :func:`start` therefore gives these allocations to the migration as well.

    ``destination`` is None if it is not known; :func:`start` needs it. ``source_tree`` are the
    providers of the source; None if the caller has not read them.
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
    """Give the allocations on the source to the migration, and ``destination`` to the instance.

    A second call with another ``destination`` replaces the allocations of the first call.
    ``destination`` may include sharing providers. An amount in ``destination`` then replaces the
    amount that the instance has of the same resource class on the same provider. An instance
    without allocations on the source gets ``destination`` as well.

    :raises InsufficientInventory: the destination has no room; nothing was changed
    :raises SourceRefused: nothing was changed, and placement would refuse any destination
    :raises ConcurrentUpdate, PlacementUnavailable: the last error, after all attempts
    """
    source = client.tree(move.source) if move.source_tree is None else move.source_tree
    root = move.destination
    assert root is not None
    left: dict[str, Mapping[str, int]] = {}

    def change(held: Mapping[str, Consumer]) -> AllocationSet:
        instance, migration = _parties(move, held)
        before = instance.allocations
        if migration.allocations:
            before = ownership.before_move(before, migration.allocations, client.sharing())
        parts = ownership.parts(client, before, source, root)
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


def _refused_at_source(client: PlacementClient, allocations: Allocations) -> Iterator[str]:
    """Yield the reasons why placement refuses to give the instance's own amounts to the migration.
    Placement checks amounts against the limits of the provider whenever the amounts are written. If
    the limits of the source have changed, placement may refuse amounts that are allocated
    already."""
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
           before: Allocations | None = None, claimed: Allocations | None = None,
           evacuated_to: Collection[str] = ()) -> AllocationSet | None:
    """Undo the changes of allocations after a failed move. The instance gets back its allocations
    on the source, and the migration has no allocations.

    ``before`` are the allocations of the instance before :func:`start`; None if the caller does not
    know them. ``before`` is needed only if a resize has changed an amount on a sharing provider.
    ``is_gone`` is called after each reading of the consumers, and returns whether the instance was
    deleted. A deleted instance gets no allocations back.

    ``claimed`` are the allocations that :func:`start` gave to the instance; None if the caller does
    not know them. Further allocations of the instance were made by an evacuation during the move,
    and are kept. ``evacuated_to`` are the providers of the host to which the instance was evacuated
    during the move. The allocations of the instance there are kept, too.

    :raises NothingToMove: neither consumer has allocations on the source; nothing was changed
    :raises InsufficientInventory: the source's inventory has become too small; nothing was changed
    :raises ConcurrentUpdate, PlacementUnavailable: the last error, after all attempts
    """
    source = client.tree(move.source)
    sharing = client.sharing()

    def change(held: Mapping[str, Consumer]) -> AllocationSet:
        instance, migration = _parties(move, held)
        if is_gone():
            restored = {}
        else:
            own = held[move.instance].allocations
            restored = {**on(own, evacuated_to), **_added(own, claimed, source | sharing),
                        **(_restored(move, held, source, sharing) if before is None else before)}
        return AllocationSet.from_consumers(
            migration.holding({}), instance.holding(restored)).changed_from(held.values())

    return client.replace(move.consumers, change)


def _added(held: Allocations, claimed: Allocations | None,
           others: Collection[str]) -> Allocations:
    """Return the allocations in ``held`` that exceed ``claimed``, without those on the providers
    ``others``. Return {} if ``claimed`` is None."""
    left = {} if claimed is None else {
        uuid: {name: amount - claimed.get(uuid, {}).get(name, 0) for name, amount in each.items()}
        for uuid, each in off(held, others).items()}
    positive = {uuid: {name: amount for name, amount in each.items() if amount > 0}
                for uuid, each in left.items()}
    return {uuid: each for uuid, each in positive.items() if each}


def _restored(move: Parties, held: Mapping[str, Consumer], source: Collection[str],
              sharing: Collection[str]) -> Allocations:
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
    instance, migration = (
        dataclasses.replace(held[uuid], consumer_type=kind, project_id=move.project_id,
                            user_id=move.user_id)
        for uuid, kind in ((move.instance, INSTANCE), (move.migration, MIGRATION)))
    return instance, migration


def _warn_of_leftovers(move: Parties, allocations: Allocations) -> None:
    if allocations:
        LOG.warning('Instance %s: its migration removed leftover allocations that belong neither '
                    'to the source host nor to a sharing provider: %s', move.instance, allocations)
