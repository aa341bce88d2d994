"""Aggregates that share hosts: what one does to a host, the others see."""

import collections
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping


def units(names: Iterable[str], hosts_of: Mapping[str, Collection[str]]) -> dict[str, frozenset]:
    """Which aggregates are planned, locked and cooled together.

    Two that have a host in common are one unit, and so are those that are connected through
    others. An aggregate without hosts, or one that is not known, is a unit of its own.

    :param hosts_of: names of the hosts of each aggregate
    :returns: each name to the names of its unit
    """
    names = tuple(names)
    of_host = collections.defaultdict(list)
    for name in names:
        for host in hosts_of.get(name, ()):
            of_host[host].append(name)
    neighbours = {name: {other for host in hosts_of.get(name, ()) for other in of_host[host]}
                  for name in names}
    found = {}
    for name in names:
        if name not in found:
            unit = _reached(name, neighbours)
            found.update(dict.fromkeys(unit, unit))
    return found


def _reached(start, neighbours):
    reached, waiting = {start}, [start]
    while waiting:
        new = neighbours[waiting.pop()] - reached
        reached |= new
        waiting += new
    return frozenset(reached)
