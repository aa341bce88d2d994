"""The allocations of all consumers in the cloud, read provider by provider."""

import collections
import contextlib
import dataclasses
import functools
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from concurrent import futures

from kronos_nova.placement import errors
from kronos_nova.placement.allocations import Allocations
from kronos_nova.placement.allocations import off
from kronos_nova.placement.client import PlacementClient
from kronos_nova.placement.ownership import classes

PARALLEL_READS = 8
"""Number of resource providers whose allocations an audit reads at the same time. Each provider
needs a request of its own, because placement cannot return the allocations of several providers
together. Raised, placement gets more requests at once; lowered, an audit takes longer. Not
measured."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """The provider trees in placement, and the allocations of all consumers.

    roots : {uuid of a provider: uuid of the root of its tree}
    sharing : {uuid of a sharing provider: roots of the trees that it serves}
    consumers : {uuid of a consumer: its allocations}
    """

    roots: Mapping[str, str]
    sharing: Mapping[str, frozenset[str]]
    consumers: Mapping[str, Allocations]

    def on_tree(self, allocations: Allocations, root: str) -> Allocations:
        """Return the part of ``allocations`` on providers in the tree of ``root``."""
        return {uuid: held for uuid, held in allocations.items() if self.roots.get(uuid) == root}

    def shared(self, allocations: Allocations, root: str) -> Allocations:
        """Return those of ``allocations`` that a host uses on sharing providers. All allocations on
        sharing providers that serve the host now are included.

        A sharing provider may have served the host only in the past. An allocation on such a
        provider is included if two conditions are met:

        * Some of ``allocations`` are on the host's own providers.
        * None of the allocation's resource classes is allocated on the host's own providers or on
          sharing providers that serve the host now.
        """
        own = self.on_tree(allocations, root)
        elsewhere = off(allocations, own)
        near = {uuid: held for uuid, held in elsewhere.items()
                if root in self.sharing.get(uuid, ())}
        if not own:
            return near
        here = classes({**own, **near})
        return {**near, **{uuid: held for uuid, held in off(elsewhere, near).items()
                           if self._may_share(uuid) and not here & held.keys()}}

    def _may_share(self, provider: str) -> bool:
        return provider in self.sharing or self.roots.get(provider) == provider

    def knows(self, allocations: Allocations) -> bool:
        """Return True if all providers of ``allocations`` existed when the holdings were read; else
        False."""
        return allocations.keys() <= self.roots.keys()


def untracked(items: Iterable, description: str, total: int) -> Iterable:
    """Return ``items`` unchanged. The function replaces ``rich.progress.Progress.track`` if no
    progress is displayed."""
    return items


def read(client: PlacementClient, track: Callable[..., Iterable] = untracked) -> Holdings:
    """Read the allocations on all providers. Several providers are read at the same time.

    A change that is made during the reading may be only partly in the result. So a fault that is
    found in the result has to be examined again before its repair.

    :param track: function that displays the progress, with the parameters and result of
        :func:`untracked`
    """
    providers = read_providers(client)
    consumers: dict[str, dict[str, Mapping[str, int]]] = collections.defaultdict(dict)
    amounts_by_value: dict[tuple[tuple[str, int], ...], Mapping[str, int]] = {}
    with futures.ThreadPoolExecutor(PARALLEL_READS) as pool:
        answers = track(pool.map(functools.partial(_held_on, client), providers.roots),
                        total=len(providers.roots),
                        description='Resource providers')
        for provider, held in zip(providers.roots, answers, strict=True):
            for uuid, amounts in held.items():
                # Thousands of consumers have the amounts of some dozen flavors, which are stored
                # once.
                kept = amounts_by_value.setdefault(tuple(sorted(amounts.items())), amounts)
                consumers[uuid][provider] = kept
    return dataclasses.replace(providers, consumers=dict(consumers))


def _held_on(client: PlacementClient, provider: str) -> Mapping[str, Mapping[str, int]]:
    """Return the allocations on a provider. If the provider was deleted since the providers were
    listed, the result is empty, because placement deletes only providers without allocations."""
    with contextlib.suppress(errors.NotFound):
        return client.held_on(provider)
    return {}


def read_providers(client: PlacementClient) -> Holdings:
    """Read the provider trees and the sharing providers, but no allocations. ``consumers`` of the
    result is empty."""
    sharing = {}
    for uuid in client.sharing():
        with contextlib.suppress(errors.NotFound):
            sharing[uuid] = client.roots_in(client.aggregates(uuid))
    return Holdings(roots=client.roots(), sharing=sharing, consumers={})
