"""Failure domains: racks, rooms and other parts of a cloud that fail as a whole.

An operator states them as metadata of aggregates. ``[kronos] failure_domain_key`` names the keys.
"""

import collections
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from kronos_nova.objects.snapshot import Aggregate
from kronos_nova.objects.snapshot import Host

APART = 'kronos:apart'
"""Key of server metadata: the level of failure domains, such as ``rack``, at which the members of
the server's group are kept apart. With the prefix :data:`SOFT` it is a preference."""
SOFT = 'soft-'

Place = tuple[str, ...]
"""A failure domain, preceded by the larger ones around it: rack r1 of room a is not rack r1 of room
b."""


def stated(aggregates: Iterable[Aggregate],
           keys: Sequence[str]) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return {host: {level: domains that the metadata of its aggregates state, sorted}}. There is
    one domain a level, unless aggregates contradict each other.

    :param keys: keys of the metadata (levels), the largest domains first
    """
    found: dict[str, dict[str, set[str]]] = collections.defaultdict(dict)
    for aggregate in aggregates:
        for key in keys:
            value = aggregate.metadata.get(key, '').strip()
            for host in aggregate.hosts if value else ():
                found[host].setdefault(key, set()).add(value)
    return {host: {key: tuple(sorted(values[key])) for key in keys if key in values}
            for host, values in found.items()}


def domains_of_hosts(aggregates: Iterable[Aggregate],
                     keys: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return {host: {level: its domain}}, as the metadata of its aggregates state.

    Where aggregates contradict each other, the first domain in sorted order is used.

    :param keys: as for :func:`stated`
    """
    return {host: {key: values[0] for key, values in levels.items()}
            for host, levels in stated(aggregates, keys).items()}


def place(host: Host, level: str) -> Place | None:
    """Return the domain of a host at a level; None where it has none."""
    if level not in host.domains:
        return None
    levels = list(host.domains)
    return tuple(host.domains[each] for each in levels[:levels.index(level) + 1])


def counts(hosts: Iterable[Host]) -> tuple[tuple[str, int], ...]:
    """Return (level, number of domains) of the domains of some hosts, the largest domains first."""
    found: dict[str, set[Place]] = collections.defaultdict(set)
    for host in hosts:
        levels = tuple(host.domains)
        for number, level in enumerate(levels, 1):
            found[level].add(tuple(host.domains[each] for each in levels[:number]))
    return tuple((level, len(places)) for level, places in found.items())


def hosts_in(hosts: Iterable[Host], domain: str) -> list[str]:
    """Return the names of the hosts of a failure domain, sorted; none where there is no such
    domain.

    :param domain: such as ``rack=r3``; ``room=a,rack=r3`` is rack r3 of room a
    """
    wanted = [tuple(part.strip() for part in each.partition('=')[::2])
              for each in domain.split(',')]
    return sorted(host.name for host in hosts if all(
        host.domains.get(level) == name for level, name in wanted))


def names(domains: Mapping[str, str]) -> str:
    """Return a text with the domains of a host, the largest first."""
    return ', '.join(f'{level}={name}' for level, name in domains.items())
