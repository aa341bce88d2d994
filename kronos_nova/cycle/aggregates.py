"""The aggregates that Kronos plans (the scope), with their hosts and instances. Aggregates that
share hosts are planned together."""

import collections
import dataclasses
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import TypeVar

from oslo_config import cfg

from kronos_nova import exception
from kronos_nova.cycle.requests import BALANCING
from kronos_nova.cycle.requests import PlanRequest
from kronos_nova.objects.snapshot import UNASSIGNED
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Instance
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.objects.snapshot import is_supported

if TYPE_CHECKING:
    import numpy as np

    from kronos_nova.cycle.problem import MovesInFlight


_T = TypeVar('_T')


def aggregates_in_scope(conf: cfg.ConfigOpts) -> list[str]:
    """Return the names of the aggregates to balance. These are the aggregates that ``[kronos]
    aggregates`` names and, with ``include_unassigned_hosts``, the pool of unassigned hosts."""
    pool = [UNASSIGNED] if conf.kronos.include_unassigned_hosts else []
    return [*dict.fromkeys(conf.kronos.aggregates), *pool]


def refuse_empty_scope(conf: cfg.ConfigOpts) -> None:
    """Raise an error if the options name no aggregate to balance and do not include the pool of
    unassigned hosts.

    :raises ConfigurationError: there is nothing to plan for
    """
    if not aggregates_in_scope(conf):
        raise exception.ConfigurationError(
            what='[kronos] aggregates',
            problem='names no aggregate, so that there is nothing to balance',
            remedy='Name the aggregates to balance, or set include_unassigned_hosts.')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """One aggregate, or the pool of unassigned hosts, in one evaluation. Hosts are sorted by name,
    and instances by uuid. If an earlier plan of this cycle moves an instance, the instance is
    listed on the destination of the move. ``request`` is the purpose of the plan: it decides which
    hosts may take instances, and which hosts are emptied."""

    name: str
    hosts: tuple[Host, ...]
    instances: tuple[Instance, ...]
    request: PlanRequest = BALANCING

    @property
    def available(self) -> 'np.ndarray':
        """bool (H,): True for hosts that may take instances."""
        import numpy as np  # commands that only name aggregates do not need it
        return np.array([self.request.takes(host) for host in self.hosts], dtype=bool)

    @property
    def emptied(self) -> 'np.ndarray':
        """bool (H,): True for hosts that the plan is to empty."""
        import numpy as np  # imported late, as above
        return np.array([self.request.empties(host) for host in self.hosts], dtype=bool)

    @property
    def host_names(self) -> tuple[str, ...]:
        return tuple(host.name for host in self.hosts)

    @property
    def vm_host(self) -> 'np.ndarray':
        """intp (V,): position of each instance's host in ``hosts``."""
        import numpy as np  # imported late, as above
        index = {name: position for position, name in enumerate(self.host_names)}
        return np.array([index[instance.host] for instance in self.instances], dtype=np.intp)


class ScopeIndex:
    """An index of a snapshot, which finds the hosts and instances of one aggregate. The index lists
    the hosts of each aggregate, except hosts whose hypervisor is not supported. The index also
    lists the instances of each host, with their moves and server groups. One index is made in each
    cycle. A search of the whole snapshot for each aggregate would take quadratic time."""

    def __init__(self, snapshot: Snapshot, request: PlanRequest = BALANCING):
        self._snapshot, self._request = snapshot, request
        hosts = {host.name: host for host in snapshot.hosts
                 if is_supported(host.hypervisor_type)}
        inside = {name for aggregate in snapshot.aggregates for name in aggregate.hosts}
        self._hosts = {
            aggregate.name: [hosts[name] for name in set(aggregate.hosts) if name in hosts]
            for aggregate in snapshot.aggregates}
        self._hosts[UNASSIGNED] = [host for name, host in hosts.items() if name not in inside]
        self._aggregates_of = _positions(aggregate.hosts for aggregate in snapshot.aggregates)
        self._groups_of = _positions(group.members for group in snapshot.server_groups)
        self._moves_of = _positions((move.instance_uuid, move.destination)
                                    for move in snapshot.moves_under_way)
        self._guests = collections.defaultdict(list)
        self._instances = {}
        for instance in snapshot.instances:
            self._guests[instance.host].append(instance)
            self._instances[instance.uuid] = instance

    def scope(self, name: str, planned: 'MovesInFlight') -> Scope:
        """Return the Scope of an aggregate: its hosts and instances.

        :param planned: the moves planned so far in this cycle; an instance with such a move is
            listed on the destination
        :raises ConfigurationError: there is no aggregate of that name
        """
        if name not in self._hosts:
            raise exception.ConfigurationError(
                what=f'aggregate "{name}"', problem='there is no aggregate of that name',
                remedy='Correct [kronos] aggregates, or create the aggregate')
        hosts = tuple(sorted(self._hosts[name], key=lambda host: host.name))
        names = {host.name for host in hosts}
        stayed = (instance for host in hosts for instance in self._guests[host.name]
                  if instance.uuid not in planned.moved)
        came = (planned.place(self._instances[uuid])
                for uuid, host in planned.moved.items() if host in names)
        return Scope(name=name, hosts=hosts, request=self._request, instances=tuple(
            sorted((*stayed, *came), key=lambda instance: instance.uuid)))

    def around(self, scope: Scope) -> Snapshot:
        """Return the part of the snapshot that concerns a scope, without the moves that this cycle
        has planned. The part has the hosts and instances of ``scope``, with their aggregates and
        server groups. It also has the moves in progress from or to these hosts, with the moved
        instances."""
        whole = self._snapshot
        uuids = {instance.uuid: None for instance in scope.instances}
        moves = _chosen(whole.moves_under_way, self._moves_of, (*uuids, *scope.host_names))
        uuids |= {move.instance_uuid: None for move in moves
                  if move.instance_uuid in self._instances}
        return dataclasses.replace(
            whole, hosts=scope.hosts,
            instances=tuple(self._instances[uuid] for uuid in uuids), moves_under_way=moves,
            aggregates=_chosen(whole.aggregates, self._aggregates_of, scope.host_names),
            server_groups=_chosen(whole.server_groups, self._groups_of, uuids))


def _positions(names_of_each: Iterable[Iterable[str]]) -> dict[str, list[int]]:
    """Return {name: positions of the collections that contain the name}."""
    found = collections.defaultdict(list)
    for position, names in enumerate(names_of_each):
        for name in names:
            found[name].append(position)
    return found


def _chosen(values: Sequence[_T], positions: Mapping[str, list[int]],
            names: Iterable[str]) -> tuple[_T, ...]:
    """Return the ``values`` that belong to any of ``names``, in their original order.

    :param positions: {name: positions of the values that belong to the name}
    """
    found = {position for name in names for position in positions.get(name, ())}
    return tuple(values[position] for position in sorted(found))


def planning_units(names: Iterable[str], hosts_of: Mapping[str, Collection[str]]
                   ) -> dict[str, frozenset[str]]:
    """Return {name of an aggregate: names of the aggregates in its unit}. A unit is a set of
    aggregates that have to be planned together, because they share hosts.

    A unit is planned, locked and put into cooldown as a whole. Two aggregates that have a host in
    common belong to one unit. Aggregates that are connected through other aggregates belong to one
    unit as well. An aggregate that has no hosts or is not known is a unit of its own.

    :param hosts_of: {name of an aggregate: names of its hosts}
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


def _reached(start: str, neighbours: Mapping[str, set[str]]) -> frozenset[str]:
    reached, waiting = {start}, [start]
    while waiting:
        new = neighbours[waiting.pop()] - reached
        reached |= new
        waiting += new
    return frozenset(reached)
