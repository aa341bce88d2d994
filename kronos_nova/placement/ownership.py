"""Ownership of the allocations of an instance that moves from one host to another.

=============================================  =====================================
an allocation on                               belongs to
=============================================  =====================================
the provider tree of the source                the source
a sharing provider that serves the             both hosts (shared); it stays with
destination                                    the instance
a sharing provider that does not serve the     the source
destination
any other provider                             neither host: it is left over
=============================================  =====================================

Once a move has begun, the migration has the allocations of the source, and the instance has the
allocations of the destination. An allocation of the instance is shared if it is on a sharing
provider and the migration has no allocation of its resource class.
"""

import contextlib
import dataclasses
from collections.abc import Collection
from collections.abc import Iterable

from kronos_nova.placement import errors
from kronos_nova.placement.allocations import Allocations
from kronos_nova.placement.allocations import off
from kronos_nova.placement.allocations import on
from kronos_nova.placement.client import PlacementClient


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The allocations of an instance before its move, in three parts.

    source : allocations that belong to the source of the move
    shared : allocations on sharing providers that serve the destination; these allocations stay
        with the instance
    left_over : allocations that belong to neither of the two hosts
    """

    source: Allocations
    shared: Allocations
    left_over: Allocations


def parts(client: PlacementClient, held: Allocations, source_tree: Collection[str],
          destination: str) -> Parts:
    """Split the allocations ``held`` of an instance into three parts: allocations that belong to
    the source of its move, allocations that both hosts share, and allocations that belong to
    neither host.

    Sharing providers are read from placement only if the instance has allocations outside
    ``source_tree``.

    :param source_tree: providers of the source
    :param destination: root provider of the host to which the instance moves
    """
    elsewhere = off(held, source_tree)
    sharing = on(elsewhere, client.sharing()) if elsewhere else {}
    shared = on(sharing, reached(client, sharing, destination))
    return Parts(source={**on(held, source_tree), **off(sharing, shared)}, shared=shared,
                 left_over=off(elsewhere, sharing))


def reached(client: PlacementClient, sharing: Iterable[str], root: str) -> frozenset[str]:
    """Return those providers in ``sharing`` that serve the tree of ``root``. A sharing provider
    serves a tree if one aggregate contains both the sharing provider and a provider of the tree."""
    found = set()
    for uuid in sharing:
        with contextlib.suppress(errors.NotFound):  # it was deleted a moment ago
            if client.in_tree_and_aggregates(root, client.aggregates(uuid)):
                found.add(uuid)
    return frozenset(found)


def before_move(instance: Allocations, on_source: Allocations,
                sharing: Collection[str]) -> Allocations:
    """Return the allocations that an instance had before its move began. These are ``on_source``,
    and the present allocations of the instance on sharing providers. A resource class that is in
    ``on_source`` is left out of the allocations on sharing providers.

    :param instance: present allocations of the instance
    :param on_source: allocations of the migration; or, if the migration has none, the instance's
        allocations on the source
    :param sharing: uuids of the sharing providers
    """
    shared = without_classes(on(instance, sharing), classes(on_source))
    return {**shared, **on_source}


def classes(allocations: Allocations) -> frozenset[str]:
    """Return the names of all resource classes in ``allocations``."""
    return frozenset(name for held in allocations.values() for name in held)


def totals(allocations: Allocations) -> dict[str, int]:
    """Return {resource class: total amount in ``allocations``}, over all providers."""
    amounts: dict[str, int] = {}
    for held in allocations.values():
        for name, amount in held.items():
            amounts[name] = amounts.get(name, 0) + amount
    return amounts


def without_classes(allocations: Allocations, names: Iterable[str]) -> Allocations:
    """Return ``allocations`` without the resource classes ``names``."""
    left = {uuid: {name: amount for name, amount in held.items() if name not in names}
            for uuid, held in allocations.items()}
    return {uuid: held for uuid, held in left.items() if held}


def merged(allocations: Allocations, others: Allocations) -> Allocations:
    """Return two allocations merged into one. If both have an amount of a resource class on a
    provider, the amount in ``others`` is used."""
    return {uuid: {**allocations.get(uuid, {}), **others.get(uuid, {})}
            for uuid in {**allocations, **others}}
