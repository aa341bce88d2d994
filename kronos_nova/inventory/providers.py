"""The resource provider trees of hosts, and the providers that they share, read from placement."""

import collections
import dataclasses
from collections.abc import Mapping
from concurrent import futures

from kronos_nova import exception
from kronos_nova.inventory import shape
from kronos_nova.placement import errors
from kronos_nova.placement.client import PlacementClient

# Placement has no way to ask for all providers' inventories at once.
PARALLEL_READS = 8


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Trees:
    """What placement knows of some hosts.

    of : root provider uuid to its tree, itself included
    sharing : by uuid, the providers that share what they have with some of the hosts
    """

    of: Mapping[str, list[shape.Provider]]
    sharing: Mapping[str, shape.SharingProvider]


def read_trees(client: PlacementClient, roots: set[str]) -> Trees:
    """
    :param client: asked from several threads
    :param roots: root provider uuids of the hosts
    :raises InventoryError: placement cannot be read, or does not know one of them
    """
    try:
        return _read_trees(client, roots)
    except errors.RequestRefused as error:
        raise exception.InventoryError(
            problem=f'{error} (has the user that asks the admin role?)') from error
    except exception.PlacementError as error:
        raise exception.InventoryError(problem=str(error)) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise exception.InventoryError(
            problem=f'placement\'s answer lacks what its API promises: {error!r}') from error


def _read_trees(client, roots):
    uuids = {uuid: root for uuid, root in client.roots().items() if root in roots}
    trees = collections.defaultdict(list)
    with futures.ThreadPoolExecutor(PARALLEL_READS) as pool:
        providers = pool.map(lambda uuid: _provider(client, uuid), uuids)
        for root, provider in zip(uuids.values(), providers, strict=True):
            trees[root].append(provider)
    missing = sorted(roots - trees.keys())
    if missing:
        raise exception.InventoryError(
            problem=f'placement knows no resource provider {", ".join(missing[:5])}'
                    f'{" and others" if len(missing) > 5 else ""} that Nova has a hypervisor '
                    'for; has its nova-compute ever reported?')
    sharing = {uuid: shape.SharingProvider(
        provider=_provider(client, uuid),
        roots=client.roots_in(client.aggregates(uuid)) & roots - {uuid})
        for uuid in sorted(client.sharing())}
    return Trees(of=trees, sharing={uuid: found for uuid, found in sharing.items() if found.roots})


def _provider(client, uuid):
    return shape.Provider(inventories=client.inventories(uuid), held=client.held_on(uuid))
