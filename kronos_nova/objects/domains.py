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
"""Server metadata: the level of failure domains by which the members of the server's group are
apart, such as ``rack``; after :data:`SOFT` as a preference."""
SOFT = 'soft-'

Place = tuple[str, ...]
"""A domain with the larger ones that it is in: rack r1 of room a is not rack r1 of room b."""


def stated(aggregates: Iterable[Aggregate],
           keys: Sequence[str]) -> dict[str, dict[str, tuple[str, ...]]]:
    """Collect what the aggregates of each host say, sorted: one domain a level, unless they
    contradict each other.

    :param keys: of the metadata, the largest domains first
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
    """Map each host to its domain of every level that its aggregates state.

    Where aggregates contradict each other, the domain that sorts first holds.

    :param keys: as for :func:`stated`
    """
    return {host: {key: values[0] for key, values in levels.items()}
            for host, levels in stated(aggregates, keys).items()}


def place(host: Host, level: str) -> Place | None:
    """Return the domain of a host, None where it has none of that level."""
    if level not in host.domains:
        return None
    levels = list(host.domains)
    return tuple(host.domains[each] for each in levels[:levels.index(level) + 1])


def counts(hosts: Iterable[Host]) -> tuple[tuple[str, int], ...]:
    """Return (level, number of domains) of some hosts, the largest domains first."""
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
    """Write the domains of a host in a line, the largest first."""
    return ', '.join(f'{level}={name}' for level, name in domains.items())
