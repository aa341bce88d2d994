"""The resource provider trees of hosts, read from placement."""

import collections
from collections.abc import Callable
from concurrent import futures

from kronos_nova import exception
from kronos_nova.inventory import shape

# Placement has no way to ask for all providers' inventories at once.
PARALLEL_READS = 8


def read_trees(get: Callable[[str], dict], roots: set[str]) -> dict[str, list[shape.Provider]]:
    """Root provider uuid -> its tree, itself included.

    :param get: the JSON that placement answers to a GET of a path; called from several threads
    :param roots: root provider uuids of the hosts
    :raises InventoryError: placement does not know one of them
    """
    uuids = {p['uuid']: p['root_provider_uuid']
             for p in get('/resource_providers')['resource_providers']
             if p['root_provider_uuid'] in roots}
    trees = collections.defaultdict(list)
    with futures.ThreadPoolExecutor(PARALLEL_READS) as pool:
        providers = pool.map(lambda uuid: _read(get, uuid), uuids)
        for root, provider in zip(uuids.values(), providers, strict=True):
            trees[root].append(provider)
    missing = sorted(roots - trees.keys())
    if missing:
        raise exception.InventoryError(
            problem=f'placement knows no resource provider {", ".join(missing[:5])}'
                    f'{" and others" if len(missing) > 5 else ""} that Nova has a hypervisor '
                    'for; has its nova-compute ever reported?')
    return trees


def _read(get, uuid):
    path = f'/resource_providers/{uuid}'
    return shape.Provider(inventories=get(f'{path}/inventories')['inventories'],
                          allocations=get(f'{path}/allocations')['allocations'])
