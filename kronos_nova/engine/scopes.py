"""Which hosts and instances belong to an aggregate, looked up and not searched for."""

import collections
import dataclasses

from kronos_nova import exception
from kronos_nova.engine.build import Scope
from kronos_nova.engine.in_flight import MovesInFlight
from kronos_nova.objects import nova_facts
from kronos_nova.objects.snapshot import UNASSIGNED
from kronos_nova.objects.snapshot import Snapshot


class Scopes:
    """The hosts of a snapshot that Kronos can do anything with, by aggregate, what runs there by
    host, and what else has to do with them.

    Made once a cycle: to look through everything for each aggregate costs the square of the cloud.
    """

    def __init__(self, snapshot: Snapshot):
        self._snapshot = snapshot
        hosts = {host.name: host for host in snapshot.hosts
                 if nova_facts.is_supported(host.hypervisor_type)}
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

    def scope(self, name: str, planned: MovesInFlight) -> Scope:
        """
        :param planned: the moves of this cycle so far; instances are where these leave them
        :raises ConfigurationError: there is no aggregate of that name
        """
        if name not in self._hosts:
            raise exception.ConfigurationError(
                what=f'aggregate "{name}"', problem='there is no aggregate of that name',
                remedy='Correct [kronos] aggregates, or create it')
        hosts = tuple(sorted(self._hosts[name], key=lambda host: host.name))
        names = {host.name for host in hosts}
        stayed = (instance for host in hosts for instance in self._guests[host.name]
                  if instance.uuid not in planned.moved)
        came = (planned.place(self._instances[uuid])
                for uuid, host in planned.moved.items() if host in names)
        return Scope(name=name, hosts=hosts, instances=tuple(
            sorted((*stayed, *came), key=lambda instance: instance.uuid)))

    def around(self, scope: Scope) -> Snapshot:
        """Of the snapshot what has to do with the hosts and instances of ``scope``: they
        themselves, where they are before any move of this cycle; the moves under way of or to
        them, with their instances; the aggregates and server groups that they are in.
        """
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


def _positions(names_of_each):
    """{name: the positions of those that have it}"""
    found = collections.defaultdict(list)
    for position, names in enumerate(names_of_each):
        for name in names:
            found[name].append(position)
    return found


def _chosen(values, positions, names):
    """Those of ``values`` that have any of ``names``, in their order."""
    found = {position for name in names for position in positions.get(name, ())}
    return tuple(values[position] for position in sorted(found))
