"""Which hosts and instances belong to an aggregate, looked up and not searched for."""

import collections

from kronos_nova import exception
from kronos_nova.engine.build import Scope
from kronos_nova.engine.under_way import MovesUnderWay
from kronos_nova.objects import nova_facts
from kronos_nova.objects.snapshot import UNASSIGNED
from kronos_nova.objects.snapshot import Snapshot


class Scopes:
    """The hosts of a snapshot that Kronos can do anything with, by aggregate, and what runs there
    by host.

    Made once a cycle: to look through everything for each aggregate costs the square of the cloud.
    """

    def __init__(self, snapshot: Snapshot):
        hosts = {host.name: host for host in snapshot.hosts
                 if nova_facts.is_supported(host.hypervisor_type)}
        inside = {name for aggregate in snapshot.aggregates for name in aggregate.hosts}
        self._hosts = {
            aggregate.name: [hosts[name] for name in set(aggregate.hosts) if name in hosts]
            for aggregate in snapshot.aggregates}
        self._hosts[UNASSIGNED] = [host for name, host in hosts.items() if name not in inside]
        self._guests = collections.defaultdict(list)
        self._instances = {}
        for instance in snapshot.instances:
            self._guests[instance.host].append(instance)
            self._instances[instance.uuid] = instance

    def scope(self, name: str, planned: MovesUnderWay) -> Scope:
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
