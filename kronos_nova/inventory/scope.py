"""The set of hosts that an evaluation has to read."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping

from kronos_nova import plural
from kronos_nova.objects.snapshot import UNASSIGNED
from kronos_nova.objects.snapshot import Aggregate
from kronos_nova.objects.snapshot import MoveUnderWay


class HostScope:
    """A set of host names, which supports ``in``.

    :param aggregates: all aggregates of the cloud
    :param scopes: names of the aggregates whose hosts are in the set. UNASSIGNED adds the hosts in
        no aggregate. None for every host
    :param also: names of further hosts in the set
    """

    def __init__(self, aggregates: Iterable[Aggregate], scopes: Collection[str] | None,
                 also: frozenset[str] = frozenset()):
        self._aggregates, self._scopes, self._also = tuple(aggregates), scopes, also
        self._assigned = {host for each in self._aggregates for host in each.hosts}
        self._chosen = also.union(*(each.hosts for each in self._aggregates
                                    if scopes is not None and each.name in scopes))

    def __contains__(self, host: str) -> bool:
        if self._scopes is None:
            return True
        return host in self._chosen or (UNASSIGNED in self._scopes and host not in self._assigned)

    @property
    def names(self) -> frozenset[str] | None:
        """The names of the hosts in the set. None if the set includes every host, or the hosts in
        no aggregate, because their names are not known before all hosts of the cloud are listed."""
        if self._scopes is None or UNASSIGNED in self._scopes:
            return None
        return self._chosen

    def with_ends_of(self, moves: Iterable[MoveUnderWay]) -> 'HostScope':
        """Return a copy of the set that also has the other host of each move from or to a host in
        the set."""
        if self._scopes is None:
            return self
        ends = frozenset(end for move in moves if move.source in self or move.destination in self
                         for end in (move.source, move.destination))
        return HostScope(self._aggregates, self._scopes, self._also | ends)


def unread(aggregates: Iterable[Aggregate], hosts: Mapping[str, str]) -> dict[str, str]:
    """Return {aggregate: sentence for an operator} for each aggregate with hosts that could not be
    read. UNASSIGNED stands for the hosts in no aggregate.

    :param hosts: {name of an unread host: reason}
    """
    parts = {each.name: hosts.keys() & set(each.hosts) for each in aggregates}
    parts[UNASSIGNED] = hosts.keys() - {host for each in aggregates for host in each.hosts}
    return {name: f'{len(left)} of its hosts could not be read and '
                  f'{plural.agreeing(len(left), "are")} left out: '
                  f'{", ".join(sorted({hosts[host] for host in left}))}'
            for name, left in parts.items() if left}


def within(aggregates: Iterable[Aggregate], hosts: Collection[str]) -> tuple[Aggregate, ...]:
    """Return copies of the aggregates, without the hosts that are not in ``hosts``."""
    return tuple(Aggregate(
        name=each.name, uuid=each.uuid, availability_zone=each.availability_zone,
        metadata=each.metadata, hosts=tuple(host for host in each.hosts if host in hosts))
        for each in aggregates)
