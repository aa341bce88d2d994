"""Nova's records of a small cloud, as they would be, and the providers of its hosts.

Hosts ``a`` and ``b`` share a storage pool, ``c`` has one of its own, ``d`` has local disks; each
has a nested provider of virtual GPUs.
"""

import dataclasses

from oslo_utils import uuidutils

from kronos_nova.objects import migration_status
from kronos_nova.placement import ownership
from kronos_nova.placement import records
from tests.functional.placement import base

HOSTS = ('a', 'b', 'c', 'd')
POOLS = {'a': 'pool', 'b': 'pool', 'c': 'other pool'}
SHARING = 'MISC_SHARES_VIA_AGGREGATE'
# Long enough for any operation to end, longer than AuditLimits.grace.
SETTLED = 3600.0
# What Nova's records say of an instance's migrations without being asked for one: a day of them.
RECENT = 86400.0


@dataclasses.dataclass(frozen=True, slots=True)
class Flavor:
    vcpus: int
    disk_gb: int
    vgpus: int = 0


@dataclasses.dataclass(slots=True, kw_only=True, eq=False)
class Move:
    uuid: str = dataclasses.field(default_factory=uuidutils.generate_uuid)
    kind: str
    source: str
    destination: str
    flavor: Flavor
    status: str = 'accepted'
    is_rolled_back: bool = False
    changed: float


@dataclasses.dataclass(slots=True, kw_only=True, eq=False)
class Server:
    uuid: str = dataclasses.field(default_factory=uuidutils.generate_uuid)
    host: str
    flavor: Flavor
    vm_state: str = 'active'
    task_state: str | None = None
    is_deleted: bool = False
    changed: float
    moves: list[Move] = dataclasses.field(default_factory=list)

    @property
    def move(self) -> Move | None:
        """The move in progress."""
        last = self.moves[-1] if self.moves else None
        return None if last is None or last.status in migration_status.ENDED else last


class Cloud:
    """Nova's records, by the port that an audit asks; ``now`` is its clock, in seconds.

    ``providers`` is {name: uuid}: a host, ``<host> gpu``, and the pools.
    """

    def __init__(self, service: base.PlacementTestCase):
        self.providers = {}
        self._furnish(service)
        self.clear()

    def clear(self):
        self.servers, self.now = [], 0.0

    def _furnish(self, service):
        aggregates = {pool: uuidutils.generate_uuid() for pool in set(POOLS.values())}
        for pool, aggregate in aggregates.items():
            self.providers[pool] = service.provider(
                {'DISK_GB': 12}, aggregates=[aggregate], traits=[SHARING])
        for host in HOSTS:
            pool = POOLS.get(host)
            inventory = {'VCPU': 6, 'MEMORY_MB': 8192} | ({} if pool else {'DISK_GB': 12})
            self.providers[host] = service.provider(
                inventory, aggregates=[aggregates[pool]] if pool else ())
            self.providers[f'{host} gpu'] = service.provider(
                {'VGPU': 2}, parent=self.providers[host])

    def wanted(self, host, flavor):
        """The allocations of an instance on a host, and on the storage that it reaches."""
        held = {self.providers[host]: {'VCPU': flavor.vcpus, 'MEMORY_MB': 512}}
        disk = held.setdefault(self.providers[POOLS.get(host, host)], {})
        disk['DISK_GB'] = flavor.disk_gb
        if flavor.vgpus:
            held[self.providers[f'{host} gpu']] = {'VGPU': flavor.vgpus}
        return held

    def touch(self, *things):
        for thing in things:
            thing.changed = self.now

    # The port

    def read(self):
        moves = [(server, move) for server in self._alive() for move in server.moves
                 if move.status not in migration_status.ENDED]
        return records.Records(
            hosts={self.providers[host]: host for host in HOSTS},
            instances={server.uuid: self._instance(server) for server in self._alive()},
            migrations={move.uuid: self._migration(server, move) for server, move in moves})

    def migrations(self, uuids):
        return {move.uuid: self._migration(server, move) for server in self.servers
                for move in server.moves if move.uuid in uuids}

    def deleted(self, uuids):
        return frozenset(server.uuid for server in self.servers
                         if server.is_deleted and server.uuid in uuids)

    def building(self, uuids):
        return frozenset()

    def histories(self, wanted):
        alive = {server.uuid: self._instance(server) for server in self._alive()}
        return {uuid: records.InstanceHistory(
            instance=alive.get(uuid),
            migrations=tuple(self._migration(server, move) for server in self.servers
                             for move in server.moves if server.uuid == uuid and (
                                 move.status not in migration_status.ENDED or move.uuid in also
                                 or self.now - move.changed < RECENT)))
                for uuid, also in wanted.items()}

    def asks_for(self, instance_uuid):
        return tuple(self._instance(server).asks_for for server in self._alive()
                     if server.uuid == instance_uuid)

    def candidates(self, instance_uuid, kept):
        return [ownership.without_classes(self.wanted(server.host, server.flavor),
                                          ownership.classes(kept))
                for server in self._alive() if server.uuid == instance_uuid]

    def _alive(self):
        return [server for server in self.servers if not server.is_deleted]

    def _instance(self, server):
        return records.InstanceRecord(
            uuid=server.uuid, root=self.providers[server.host], host=server.host, cell='cell1',
            project_id=base.PROJECT, user_id=base.USER, vm_state=server.vm_state,
            task_state=server.task_state, settled_for=self.now - server.changed,
            asks_for=ownership.totals(self.wanted(server.host, server.flavor)))

    def _migration(self, server, move):
        return records.Migration(
            uuid=move.uuid, instance_uuid=server.uuid, kind=move.kind, status=move.status,
            source=move.source, destination=move.destination, is_source_up=True,
            settled_for=self.now - move.changed)
