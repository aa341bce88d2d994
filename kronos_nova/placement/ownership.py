"""Ownership of allocations when an instance moves from one host to another.

=============================================  =====================================
held on                                        is
=============================================  =====================================
the provider tree of the source                the source's
a sharing provider that the destination        shared: it stays with the instance
reaches
a sharing provider that it does not reach      the source's
any other provider                             left over from something else
=============================================  =====================================

Once the migration has the source's part, the instance's allocations are the destination's. They are
shared where they lie on a sharing provider and the migration has nothing of their resource class.
"""

import contextlib
import dataclasses
from collections.abc import Iterable

from kronos_nova.placement import errors
from kronos_nova.placement.allocations import Allocations
from kronos_nova.placement.allocations import off
from kronos_nova.placement.allocations import on
from kronos_nova.placement.client import PlacementClient


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The allocations of an instance before its move, by owner as in the table above."""

    source: Allocations
    shared: Allocations
    left_over: Allocations


def parts(client: PlacementClient, held: Allocations, source_tree: Iterable[str],
          destination: str) -> Parts:
    """Split the allocations of an instance by owner.

    Placement is asked about sharing providers only where the instance has allocations outside
    ``source_tree``.

    :param destination: the root provider of the host that it moves to
    """
    elsewhere = off(held, source_tree)
    sharing = on(elsewhere, client.sharing()) if elsewhere else {}
    shared = on(sharing, reached(client, sharing, destination))
    return Parts(source={**on(held, source_tree), **off(sharing, shared)}, shared=shared,
                 left_over=off(elsewhere, sharing))


def reached(client: PlacementClient, sharing: Iterable[str], root: str) -> frozenset[str]:
    """Return the providers of ``sharing`` that serve the tree of ``root``: those in an aggregate
    with one of the tree's providers."""
    found = set()
    for uuid in sharing:
        with contextlib.suppress(errors.NotFound):  # it was deleted a moment ago
            if client.in_tree_and_aggregates(root, client.aggregates(uuid)):
                found.add(uuid)
    return frozenset(found)


def before_move(instance: Allocations, on_source: Allocations,
                sharing: Iterable[str]) -> Allocations:
    """Return the allocations that an instance had before its move began.

    :param instance: allocations of the instance now
    :param on_source: allocations of its migration, or its own ones on the source
    :param sharing: the sharing providers
    """
    shared = without_classes(on(instance, sharing), classes(on_source))
    return {**shared, **on_source}


def classes(allocations: Allocations) -> frozenset[str]:
    """Return the resource classes of ``allocations``."""
    return frozenset(name for held in allocations.values() for name in held)


def totals(allocations: Allocations) -> dict[str, int]:
    """Return {resource class: amount} of ``allocations``, over all providers."""
    amounts = {}
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
    """Merge two allocations. Where both have an amount of a resource class on a provider, that of
    ``others`` counts."""
    return {uuid: {**allocations.get(uuid, {}), **others.get(uuid, {})}
            for uuid in {**allocations, **others}}
