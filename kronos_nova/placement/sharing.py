"""Requests for allocation candidates of one host, some of whose resources are on sharing providers.

Placement leaves sharing providers out of the answer to a request that names a tree. If the tree
alone has no candidate, sharing providers are therefore requested by their uuids, in every possible
combination.
"""

import itertools
from collections.abc import Iterator
from collections.abc import Mapping

from kronos_nova.placement import ownership
from kronos_nova.placement.allocations import Allocations
from kronos_nova.placement.client import PlacementClient

# Suffix of the request groups for a sharing provider. Nova's own suffixes are numbers, or ids of
# the ports and devices that need a group.
_SHARED_GROUP = '_KRONOS_SHARED'


def ways_to_share(client: PlacementClient, wanted: Mapping[str, int],
                  root: str) -> Iterator[tuple[dict[str, int], Allocations]]:
    """Yield every way in which sharing providers can supply some of the ``wanted`` resources. Each
    way is a pair: the resources that remain for the host's own providers, and {uuid of a sharing
    provider: resources that it supplies}.

    :param wanted: {resource class: amount}
    :param root: root provider of the host
    """
    pools = {uuid: client.inventories(uuid)
             for uuid in ownership.reached(client, client.sharing(), root)}
    choices = [[(name, None), *((name, uuid) for uuid in sorted(pools) if name in pools[uuid])]
               for name in sorted(wanted) if any(name in offered for offered in pools.values())]
    for way in itertools.product(*choices):
        sources = {name: uuid for name, uuid in way if uuid is not None}
        if sources:
            yield ({name: amount for name, amount in wanted.items() if name not in sources},
                   {pool: {name: wanted[name] for name in sources if sources[name] == pool}
                    for pool in sources.values()})


def query(from_pools: Allocations) -> str:
    """Return the part of a query for allocation candidates that requests resources from sharing
    providers. The part begins with ``&``.

    :param from_pools: {uuid of a sharing provider: {resource class: amount}}
    """
    return ''.join(
        f'&resources{_SHARED_GROUP}{number}={_listed(amounts)}'
        f'&in_tree{_SHARED_GROUP}{number}={pool}'
        for number, (pool, amounts) in enumerate(sorted(from_pools.items())))


def _listed(amounts: Mapping[str, int]) -> str:
    return ','.join(f'{name}:{amount}' for name, amount in sorted(amounts.items()))
