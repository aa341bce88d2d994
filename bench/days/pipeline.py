"""Kronos as it runs, but for the clock and Nova: its cycle, its journal in a control database, its
dispatcher and executor, over no broker."""

import datetime
import math

import numpy as np

from bench import installation
from bench.days import scenario as scenarios
from kronos_nova.cooldown import PastMove
from kronos_nova.cycle import evaluation
from kronos_nova.cycle import options as engine_options
from kronos_nova.db import engine as db_engine
from kronos_nova.db import journal
from kronos_nova.db import migrate
from kronos_nova.drain.progress import HostDrains
from kronos_nova.executor import compute
from kronos_nova.executor.options import ExecutorOptions
from kronos_nova.objects import metrics
from kronos_nova.objects import snapshot
from kronos_nova.policies import loader
from tests.unit.executor.fakes_executor import Worker

POLICIES = """
policies:
- {{name: cpu, mode: spread, weight: 1.0, threshold: {threshold},
   max_migrations_per_cycle: {budget}, imbalance_query: hosts, vm_profile_query: servers}}
"""
AHEAD = POLICIES.replace('servers}', 'servers,\n   forecast: {{}}}')
RELIEVE = """
policies:
- {{name: cpu, mode: relieve, weight: 1.0, high: 0.9, target: 0.8,
   max_migrations_per_cycle: {budget}, imbalance_query: hosts, vm_profile_query: servers}}
"""
BUDGET = 10
"""Moves of a plan of all these policies."""
BEGIN = datetime.datetime(2026, 1, 5, tzinfo=datetime.UTC)
PROVIDED = 'VCPU', 'MEMORY_MB'


def with_budget(moves: int) -> str:
    """Return the content of a policies file with a budget of ``moves``."""
    return POLICIES.replace('{budget}', str(moves))


class Kronos:
    """Looks after a world as the options of nova.conf say.

    :param policies: the policies file, with a place for the threshold
    :param overrides: of ``[kronos]``, what is not at its default
    """

    largest = math.inf

    def __init__(self, name: str, threshold: float, policies: str = POLICIES, **overrides):
        self.name, self._file = name, policies
        self._threshold, self._overrides = threshold, overrides

    def begin(self, world):
        # In memory: a file is opened for each transaction, which takes a fifth of a day's time.
        engine = db_engine.create_engine('sqlite://')
        migrate.sync(engine, migrate.CONTROL)
        self._engine, database, conf = engine, db_engine.Database(engine), self._conf()
        self.world, self._cloud = world, self._seen(world)
        self._rules = evaluation.CycleRules.from_conf(conf)
        self._options = engine_options.from_conf(conf)
        self._interval = conf.kronos.evaluation_interval
        self._policies = loader.parse(
            self._file.format(threshold=self._threshold, budget=BUDGET))
        self._ports = self._made_ports(database)
        self._worker = Worker(self._ports.journal, self._cloud, self._ports.cooldowns,
                              ExecutorOptions.from_conf(conf), self._cloud.utcnow)

    def _seen(self, world):
        return Cloud(world)

    def _made_ports(self, database):
        return evaluation.CyclePorts.over(
            database, journal.Journal(database, 'bench'), inventory=self._cloud,
            metrics=self._cloud, history=self._cloud.history, requesters=(HostDrains,))

    def _conf(self):
        # The search ends by its effort, so that the same day has the same plans.
        fixed = {'automation': 'auto', 'include_unassigned_hosts': True,
                 'planning_time_limit': 3600.0}
        return installation.conf(**fixed | self._overrides)

    def evaluate(self):
        now = self._cloud.utcnow()
        if self._ports.cycles.begin(snapshot.UNASSIGNED, 'bench', now, self._interval):
            evaluation.Cycle(self._ports, self._policies, self._options, self._rules,
                             self._cloud.utcnow).run()

    def tick(self):
        """Return whether anything is to be done yet."""
        if not self._ports.journal.aggregates_with_open_plans():
            return False
        self._worker.tick()
        return True

    def end(self):
        self._engine.dispose()


class Cloud:
    """A world as Nova, placement and Prometheus report it; servers are called by their numbers."""

    def __init__(self, world):
        self.world = world
        scenario = world.scenario
        self.hosts = [f'host{number:04d}' for number in range(scenario.hosts)]
        self.vms = [f'00000000-0000-4000-8000-{number:012d}' for number in
                    range(len(scenario.vcpus))]
        self._number = {name: number for names in (self.hosts, self.vms)
                        for number, name in enumerate(names)}
        self._lost = set()

    def utcnow(self):
        return BEGIN + datetime.timedelta(seconds=self.world.now)

    def _unix(self, seconds):
        return BEGIN.timestamp() + seconds

    # What a cycle reads.

    def read(self, scopes=None, moves=()):
        return snapshot.Snapshot(
            taken_at=self.utcnow().isoformat(),
            hosts=tuple(self._host(number) for number in range(len(self.hosts))),
            instances=tuple(self._instance(int(vm)) for vm in self.world.present))

    def names_elsewhere(self, attribute, names):
        return set()

    def _host(self, number):
        scenario = self.world.scenario
        return snapshot.Host(
            name=self.hosts[number], uuid=self.hosts[number], service=self._service(number),
            inventory={'MEMORY_MB': snapshot.ResourceInventory(total=scenario.memory_mb),
                       'VCPU': snapshot.ResourceInventory(total=scenario.cores,
                                                          allocation_ratio=scenarios.VCPU_RATIO)})

    def _service(self, number):
        state = self.world.states[number]
        return snapshot.Service(
            state='down' if state == scenarios.DOWN else 'up',
            status='disabled' if state == scenarios.DISABLED else 'enabled')

    def _instance(self, vm):
        scenario, name = self.world.scenario, self.vms[vm]
        vcpus, memory_mb = int(scenario.vcpus[vm]), int(scenario.vm_memory_mb[vm])
        return snapshot.Instance(
            uuid=name, name=name, display_name=name, host=self.hosts[self.world.place[vm]],
            project_id='bench', status='ACTIVE', vcpus=vcpus, memory_mb=memory_mb, disk_gb=0,
            task_state='migrating' if vm in self.world.migrations else None,
            resources=dict(zip(PROVIDED, (vcpus, memory_mb), strict=True)))

    def query(self, query):
        hosts, servers = self.world.seen()
        at = self._unix(self.world.now)
        if query.kind == metrics.VM_PROFILE:
            return metrics.Vector(tuple(
                metrics.Sample({'uuid': self.vms[vm]}, float(servers[vm]), at)
                for vm in self.world.present))
        return metrics.Vector(tuple(metrics.Sample({'host': name}, float(value), at)
                                    for name, value in zip(self.hosts, hosts, strict=True)))

    def query_range(self, query, times):
        """Return the means of whole hours. Those before the beginning are from the earlier days of
        the scenario."""
        hours = np.arange(times.first, times.last + 1, times.step)
        table = np.stack([self.world.mean_of_hour(int((hour - BEGIN.timestamp()) // 3600) - 1)
                          for hour in hours], axis=1)
        return metrics.Matrix(tuple(
            metrics.Series({'uuid': name}, tuple(
                (at, value) for at, value in zip(hours.tolist(), row, strict=True)
                if not math.isnan(value)))
            for name, row in zip(self.vms, table.tolist(), strict=True)))

    def history(self, since):
        return [PastMove(instance_uuid=self.vms[vm], source=self.hosts[source],
                         destination=self.hosts[destination], ended_at=self._unix(ended_at))
                for ended_at, vm, source, destination in self.world.ended
                if BEGIN + datetime.timedelta(seconds=ended_at) >= since]

    # What an executor asks of Nova.

    def instance(self, uuid):
        vm = self._number[uuid]
        if self.world.place[vm] < 0:
            return None
        return compute.InstanceState(
            host=self.hosts[self.world.place[vm]], status='ACTIVE',
            task_state='migrating' if vm in self.world.migrations else None)

    def service(self, host):
        return self._service(self._number[host])

    def hold_room(self, move):
        pass

    def release_room(self, move, has_moved):
        pass

    def live_migrate(self, move):
        vm, destination = self._number[move.instance_uuid], self._number[move.destination]
        if self.world.may_start(vm, destination):
            self.world.start(vm, destination)
        else:
            self._lost.add(move.uuid)

    def migration(self, move):
        vm = self._number[move.instance_uuid]
        if vm in self.world.migrations:
            status = 'running'
        elif (move.uuid not in self._lost
              and self.world.place[vm] == self._number[move.destination]):
            status = 'completed'
        else:
            status = 'error'
        return compute.MigrationState(uuid=move.uuid, status=status, was_started=True)

    def abort(self, move):
        return False
