"""Kinds of servers: how, and to which hosts, Nova can move a server is determined once for all
servers with equal flavors, images, devices and hosts."""

import functools
from collections.abc import Hashable
from collections.abc import Mapping
from typing import NamedTuple

from kronos_nova.inventory import devices as pci_devices
from kronos_nova.inventory import numa
from kronos_nova.objects.movability import NO_DEVICES
from kronos_nova.objects.movability import Devices
from kronos_nova.objects.movability import Where
from kronos_nova.objects.movability import movability
from kronos_nova.objects.requirements import requirements
from kronos_nova.objects.snapshot import Aggregate
from kronos_nova.objects.snapshot import Movability
from kronos_nova.objects.snapshot import Requirements

POWERED_STATUSES = frozenset(('ACTIVE', 'PAUSED'))
"""Statuses in which Nova checks a server's power state before a live migration."""


class Facts(NamedTuple):
    """Facts about a server, most of which only Nova's database has.

    power_state : None where it is not known
    cpu_model : the named model of the guest's processors, empty for none
    topology : the NUMA cells of the server
    requested : the PCI devices that the server needs
    """

    devices: Devices = NO_DEVICES
    power_state: int | None = None
    cpu_model: str = ''
    topology: numa.Topology = numa.NO_TOPOLOGY
    requested: pci_devices.Requested = pci_devices.NOTHING


NO_FACTS = Facts()


@functools.cache
def facts_of_power(power_state: int | None) -> Facts:
    """Return the Facts of a server of which only the power state is known. Calls with the same
    power state return the same object."""
    return Facts(power_state=power_state)


class Kinds:
    """A cache of how servers can be moved and what they require, for each kind of server."""

    def __init__(self):
        self._known: dict[Hashable, tuple[Movability, Requirements]] = {}
        self._wheres: dict[tuple[int | None, int | None], Where] = {}

    def where(self, oldest_service: int | None, hypervisor_version: int | None) -> Where:
        """Return the Where of the servers on a host, which has the versions of its nova-compute and
        hypervisor. Calls with the same values return the same object."""
        key = oldest_service, hypervisor_version
        if key not in self._wheres:
            self._wheres[key] = Where(oldest_service=oldest_service,
                                      hypervisor_version=hypervisor_version)
        return self._wheres[key]

    def decide(self, kind: Hashable, extra_specs: Mapping[str, str], image: Mapping[str, str],
               resources: Mapping[str, int], status: str, where: Where, facts: Facts = NO_FACTS,
               has_launched: bool = True, member_of: tuple[tuple[str, ...], ...] = ()
               ) -> tuple[Movability, Requirements]:
        """Return how a server can be moved, and what it requires.

        :param kind: equal for servers with equal extra specs and image properties
        :param where, facts: equal values have to be the same object
        """
        power = facts.power_state if status in POWERED_STATUSES else None
        key = (kind, tuple(resources), id(where), id(facts), power, has_launched, member_of)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = (
                movability(extra_specs, image, resources, facts.devices, where, has_launched,
                           power),
                requirements(extra_specs, image, member_of, facts.cpu_model))
        return found


def zone_members(aggregates: list[Aggregate]) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Return {availability zone: ((uuids of its aggregates),)}, the ``member_of`` of a server that
    is pinned to the zone: its host has to be in one of these aggregates."""
    found: dict[str, list[str]] = {}
    for aggregate in aggregates:
        if aggregate.availability_zone:
            found.setdefault(aggregate.availability_zone, []).append(aggregate.uuid)
    return {zone: (tuple(sorted(uuids)),) for zone, uuids in found.items()}
