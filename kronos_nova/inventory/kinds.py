"""A cache of the movability of servers (the way in which Nova can move a server) and of their
requirements on a host.

The results are computed once for all servers with equal flavors, images and devices, if the
versions of nova-compute and hypervisor are also equal.
"""

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
"""Statuses of servers whose power state Nova checks before a live migration."""


class Facts(NamedTuple):
    """The facts about a server that determine its movability and its requirements. Most of these
    facts are only in Nova's database.

    power_state : power state of the server; None if unknown
    cpu_model : named CPU model of the guest; '' if there is none
    topology : NUMA cells that the server requests and uses
    requested : PCI devices that the server requests
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
    """A cache of the movability and the requirements of each kind of server."""

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[Movability, Requirements]] = {}
        self._wheres: dict[tuple[int | None, int | None], Where] = {}

    def where(self, oldest_service: int | None, hypervisor_version: int | None) -> Where:
        """Return a Where with the version of the oldest nova-compute in a cell and the version of a
        host's hypervisor. Calls with the same versions return the same object."""
        key = oldest_service, hypervisor_version
        if key not in self._wheres:
            self._wheres[key] = Where(oldest_service=oldest_service,
                                      hypervisor_version=hypervisor_version)
        return self._wheres[key]

    def decide(self, kind: Hashable, extra_specs: Mapping[str, str], image: Mapping[str, str],
               resources: Mapping[str, int], status: str, where: Where, facts: Facts = NO_FACTS,
               has_launched: bool = True, member_of: tuple[tuple[str, ...], ...] = ()
               ) -> tuple[Movability, Requirements]:
        """Return the Movability of a server (the way in which Nova can move it), and its
        Requirements on a host.

        :param kind: value that is equal for servers with equal extra specs and image properties
        :param where, facts: objects that the cache compares by identity. Equal values have to be
            the same object, as :meth:`where` and :func:`facts_of_power` ensure
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
    """Return {availability zone: ``member_of``} for servers that are pinned to a zone.
    ``member_of`` is a tuple with one element: the tuple of the uuids of the zone's aggregates. The
    host of a pinned server has to be in one of these aggregates."""
    found: dict[str, list[str]] = {}
    for aggregate in aggregates:
        if aggregate.availability_zone:
            found.setdefault(aggregate.availability_zone, []).append(aggregate.uuid)
    return {zone: (tuple(sorted(uuids)),) for zone, uuids in found.items()}
