"""Who holds what in the whole cloud, read provider by provider."""

import collections
import dataclasses
from collections.abc import Mapping

from kronos_nova.placement.allocations import Allocations
from kronos_nova.placement.client import PlacementClient


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """``roots`` is {provider: root of its tree}, ``consumers`` {uuid: what it holds}."""

    roots: Mapping[str, str]
    sharing: frozenset[str]
    consumers: Mapping[str, Allocations]

    def on_tree(self, allocations: Allocations, root: str) -> Allocations:
        """The part of ``allocations`` on the tree of ``root``."""
        return {uuid: held for uuid, held in allocations.items() if self.roots.get(uuid) == root}

    def shared(self, allocations: Allocations) -> Allocations:
        """The part of ``allocations`` on sharing providers."""
        return {uuid: held for uuid, held in allocations.items() if uuid in self.sharing}


def read(client: PlacementClient) -> Holdings:
    """One request a provider. What changes meanwhile is seen half: judge again before acting."""
    roots = client.roots()
    consumers = collections.defaultdict(dict)
    for provider in roots:
        for uuid, amounts in client.held_on(provider).items():
            consumers[uuid][provider] = amounts
    return Holdings(roots=roots, sharing=client.sharing(), consumers=dict(consumers))
