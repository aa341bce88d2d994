"""Failure domains: racks, rooms and other groups of hosts that fail together.

An operator states the domains of hosts as metadata of aggregates. ``[kronos] failure_domain_key``
lists the metadata keys.
"""

import collections
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from kronos_nova import exception
from kronos_nova.objects.snapshot import Aggregate
from kronos_nova.objects.snapshot import Host

APART = 'kronos:apart'
"""Key of server metadata that requests different failure domains for the members of the server's
group. The value is a level of failure domains, such as ``rack``. If the value begins with
:data:`SOFT`, the request is only a preference."""
SOFT = 'soft-'

Place = tuple[str, ...]
"""A failure domain as a tuple: the names of the larger domains around it, then its own name. So
rack r1 of room a differs from rack r1 of room b."""


def stated(aggregates: Iterable[Aggregate],
           keys: Sequence[str]) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the failure domains of each host by the metadata of its aggregates.

    A host has one domain at each level, or several domains if its aggregates contradict each other.

    :param keys: metadata keys, one for each level. The key of the level with the largest domains is
        the first
    :returns: {host: {level: names of domains, sorted}}
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
    """Return the failure domain of each host at each level, as {host: {level: name of the domain}}.

    If the aggregates of a host contradict each other, the first domain in sorted order is used.

    :param keys: metadata keys, as for :func:`stated`
    """
    return {host: {key: values[0] for key, values in levels.items()}
            for host, levels in stated(aggregates, keys).items()}


def place(host: Host, level: str) -> Place | None:
    """Return the failure domain of a host at a level; None if the host has no domain at this
    level."""
    if level not in host.domains:
        return None
    levels = list(host.domains)
    return tuple(host.domains[each] for each in levels[:levels.index(level) + 1])


def counts(hosts: Iterable[Host]) -> tuple[tuple[str, int], ...]:
    """Return, for each level, the number of failure domains that contain at least one of the hosts.
    The result has pairs of (level, number). The level with the largest domains is the first."""
    found: dict[str, set[Place]] = collections.defaultdict(set)
    for host in hosts:
        levels = tuple(host.domains)
        for number, level in enumerate(levels, 1):
            found[level].add(tuple(host.domains[each] for each in levels[:number]))
    return tuple((level, len(places)) for level, places in found.items())


def hosts_in(hosts: Iterable[Host], domain: str) -> list[str]:
    """Return the sorted names of the hosts in a failure domain. The list is empty if there is no
    such domain.

    :param domain: the domain, such as ``rack=r3``, or ``room=a,rack=r3`` for rack r3 of room a
    """
    wanted = [tuple(part.strip() for part in each.partition('=')[::2])
              for each in domain.split(',')]
    return sorted(host.name for host in hosts if all(
        host.domains.get(level) == name for level, name in wanted))


def needed_hosts_in(hosts: Iterable[Host], domain: str) -> list[str]:
    """Return the sorted names of the hosts in a failure domain, as :func:`hosts_in` does.

    :raises RequestRefused: no host is in this domain
    """
    found = hosts_in(hosts, domain)
    if not found:
        raise exception.RequestRefused(
            what=f'failure domain {domain}', problem='has no host',
            remedy='Write a domain as LEVEL=NAME, such as rack=r3. LEVEL is a key of [kronos] '
                   'failure_domain_key; NAME is the value of this key in the metadata of an '
                   'aggregate.')
    return found


def names(domains: Mapping[str, str]) -> str:
    """Return the failure domains of a host as text, such as ``room=a, rack=r3``, the largest domain
    first."""
    return ', '.join(f'{level}={name}' for level, name in domains.items())
