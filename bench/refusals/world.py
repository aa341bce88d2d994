"""The cloud of the days bench, with servers of kinds, where Nova's filters judge each move."""

import collections
import dataclasses
import datetime

import numpy as np

from bench.days import pipeline
from bench.days import scenario as scenarios
from bench.days import world
from bench.refusals import kinds
from bench.refusals.judge import Judge
from kronos_nova.executor import compute
from kronos_nova.inventory.kinds import Facts
from kronos_nova.inventory.kinds import Kinds
from kronos_nova.inventory.numa import NO_TOPOLOGY
from kronos_nova.objects import snapshot
from kronos_nova.objects.dry_run import AGREED
from kronos_nova.objects.dry_run import CHANGES_YET
from kronos_nova.objects.dry_run import NO_ROOM_YET
from kronos_nova.objects.dry_run import NOTHING_BEFORE
from kronos_nova.objects.dry_run import ROOM
from kronos_nova.objects.dry_run import Before
from kronos_nova.objects.dry_run import Verdict
from kronos_nova.objects.movability import Devices

SERVICE = 70
"""Version of nova-compute."""
OLDER = 'conductor: a hypervisor that is not older'
"""The check of Nova's LiveMigrationTask on the two hosts."""
QUARANTINE = 86400
"""Seconds, ``instance_quarantine_seconds`` by default."""


@dataclasses.dataclass(kw_only=True)
class Counts:
    """Counts of a strategy's questions and refusals.

    cycles : evaluations that planned
    questions : asked of the scheduler before a move
    requests : of migrations to the scheduler
    refused : {what was lacking: refused requests}
    left_alone : uuids of servers that ever were in quarantine
    """

    cycles: int = 0
    questions: int = 0
    requests: int = 0
    refused: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    left_alone: set[str] = dataclasses.field(default_factory=set)


class MixedWorld(world.World):
    """:param judge: of the moves; the servers begin where it lets them be"""

    def __init__(self, scenario, threshold: float, judge: Judge):
        super().__init__(scenario, threshold)
        self.judge = judge
        self._came: list[list[int]] = [[] for _host in range(scenario.hosts)]
        self.place[:] = -1
        there = np.flatnonzero(scenario.place >= 0)
        # Those that few hosts can hold first, and the large ones first.
        rare = [judge.mix.kinds[vm] is kinds.PLAIN for vm in there]
        for vm in there[np.lexsort((-scenario.vm_memory_mb[there], rare))]:
            self._schedule(int(vm))

    def residents(self, host: int) -> tuple[int, ...]:
        """Return the servers of a host in the order in which they came, and those that are
        migrating to it."""
        coming = {vm for vm, each in self.migrations.items() if each.destination == host}
        came = self._came[host]
        came[:] = [vm for vm in came if self.place[vm] == host or vm in coming]
        here = coming.union(np.flatnonzero(self.place == host).tolist())
        came += sorted(here.difference(came))
        return tuple(came)

    def lack(self, vm: int, host: int, before: Before = NOTHING_BEFORE,
             is_whole: bool = True) -> str:
        """Return Nova's present reason against a server on a host; '' for none. See
        :meth:`Judge.lack`."""
        return self.judge.lack(vm, host, self.residents(host), before, is_whole)

    def _schedule(self, vm):
        """Put a server on the host with most free memory of those that take it; nowhere if there is
        none."""
        self.place[vm] = -1
        for host in np.argsort(-np.where(self.available, self.free_mb(), -np.inf), kind='stable'):
            if self.available[host] and not self.lack(vm, int(host)):
                self.place[vm] = host
                break


class Cloud(pipeline.Cloud):
    """A mixed world as Nova, placement and Prometheus show it."""

    def __init__(self, world: MixedWorld, counts: Counts):
        super().__init__(world)
        self._counts, self._kinds, self._faults, self._topologies = counts, Kinds(), {}, {}
        self._where = self._kinds.where(SERVICE, kinds.NEW)
        self._facts = {has_numa: Facts(devices=Devices(has_numa=has_numa))
                       for has_numa in (False, True)}

    def _host(self, number):
        room = self.world.judge.room(number)
        machine = self.world.judge.mix.machines[number]
        cells, topologies = self.world.judge.cells(number, self.world.residents(number))
        self._topologies |= {vm: each for vm, each in topologies.items()
                             if self.world.place[vm] == number}
        return dataclasses.replace(
            super()._host(number), cells=cells, traits=machine.traits, hypervisor_type='QEMU',
            hypervisor_version=machine.qemu, inventory={
                name: snapshot.ResourceInventory(total=amount)
                for name, amount in room.items() if amount})

    def _instance(self, vm):
        kind = self.world.judge.mix.kinds[vm]
        amounts = self.world.judge.amounts(vm)
        facts = self._facts[kind.carried_by in ('topology', 'pinned cores')]
        live, requires = self._kinds.decide(
            kind.name, kind.extra_specs, kind.image, amounts, 'ACTIVE', self._where, facts)
        has = self._topologies.get(vm, NO_TOPOLOGY)
        return dataclasses.replace(
            super()._instance(vm), resources=amounts, live=live, requires=requires,
            cells=has.cells, on_cells=has.on_cells, on_pages=has.on_pages,
            flavor=snapshot.Flavor(name=f'{kind.name}.{amounts["MEMORY_MB"]}'),
            flavor_extra_specs=kind.extra_specs,
            image=snapshot.Image(id=kind.name, properties=kind.image))

    def ask(self, move, instance, destination, before=NOTHING_BEFORE) -> Verdict:
        """Answer as :class:`kronos_nova.plugin.dry_run.SchedulerDryRun` does."""
        self._counts.questions += 1
        lack = self._lack(move, before)
        if not lack:
            return Verdict(without=ROOM) if before.leaving else AGREED
        if before.leaving and lack.startswith('placement'):
            lack = self._lack(move, before, is_whole=False)
            if lack.startswith('placement'):
                return Verdict(unasked=NO_ROOM_YET)
            if not lack:
                return Verdict(without=ROOM)
        if any(self.world.judge.is_counted(self._number[each.uuid]) for each in before.leaving):
            return Verdict(unasked=CHANGES_YET)
        return Verdict(refused=lack)

    def _lack(self, move, before=NOTHING_BEFORE, is_whole=True) -> str:
        vm, host = (self._number[name] for name in (move.instance_uuid, move.destination))
        return self.world.lack(vm, host, before, is_whole)

    def live_migrate(self, move):
        """Start a migration unless Nova's filters or its conductor refuse it."""
        self._counts.requests += 1
        source, destination = (self.world.judge.mix.machines[self._number[name]].qemu
                               for name in (move.source, move.destination))
        # The scheduler does not compare them, and is asked before.
        lack = self._lack(move) or (OLDER if destination < source else '')
        if lack:
            self._counts.refused[lack] += 1
            self._faults[move.uuid] = lack
        else:
            super().live_migrate(move)

    def migration(self, move):
        fault = self._faults.get(move.uuid)
        if fault is None:
            return super().migration(move)
        return compute.MigrationState(uuid=move.uuid, status='error', was_started=False,
                                      fault=f'No valid host was found: {fault}')


class CloudBefore(Cloud):
    """A mixed world whose scheduler is asked as it was before requirements were known.

    Each server is asked about by itself, in the state of the moment. Moves that wait for others are
    not asked about.
    """

    def _host(self, number):
        return dataclasses.replace(super()._host(number), cells=None)

    def _instance(self, vm):
        # An answer holds for servers of one project.
        return dataclasses.replace(super()._instance(vm), project_id=f'bench{vm}')

    def ask(self, move, instance, destination, before=NOTHING_BEFORE) -> Verdict:
        if move.depends_on:
            return Verdict(unasked=NO_ROOM_YET)
        return super().ask(move, instance, destination)


class Kronos(pipeline.Kronos):
    """:param counts: what is asked and refused is counted there"""

    cloud_class: type[Cloud] = Cloud

    def __init__(self, name: str, threshold: float, counts: Counts, **overrides):
        super().__init__(name, threshold, **overrides)
        self.counts = counts

    def _seen(self, world):
        return self.cloud_class(world, self.counts)

    def _made_ports(self, database):
        return dataclasses.replace(super()._made_ports(database), dry_run=self._cloud.ask)

    def evaluate(self):
        self.counts.cycles += 1
        super().evaluate()
        self.counts.left_alone |= self._ports.cooldowns.quarantined(self._cloud.utcnow()).keys()


class KronosBefore(Kronos):
    """Kronos before requirements were known, with ``host_checks`` empty; see :class:`CloudBefore`.

    A refused start is a failure of the server, which is in quarantine after all tries.
    """

    cloud_class = CloudBefore

    def evaluate(self):
        now = self._cloud.utcnow()
        since = now - datetime.timedelta(seconds=scenarios.STEP)
        for uuid, hosts in self._ports.journal.refused_since(since).items():
            self._ports.cooldowns.quarantine(uuid, QUARANTINE, ', '.join(hosts.values()), now)
        super().evaluate()
