"""Two workers over aggregates that share hosts: real locks, a real control database, and placement.

Run it for long with ``python -m tests.functional.engine.shared_rounds --rounds 200 [--mariadb]``.
Each round both workers plan at the same time, then some of the moves are carried out as the
conductor does it, by one POST of both consumers; some stay in progress for rounds. Now and then a
host joins an aggregate or leaves it.
"""

import argparse
import collections
import contextlib
import dataclasses
import datetime
import pathlib
import random
import tempfile
import threading
import time
import uuid

from oslo_config import cfg
from placement import conf as placement_conf
from placement import direct

from kronos_nova import conf as kronos_conf
from kronos_nova.cycle import evaluation
from kronos_nova.cycle import options
from kronos_nova.db import cycles
from kronos_nova.db import engine as db_engine
from kronos_nova.db import journal
from kronos_nova.db import migrate
from kronos_nova.db import switches
from kronos_nova.engine import cycle_scheduler
from kronos_nova.engine import locks
from kronos_nova.engine import planning_client
from kronos_nova.inventory import providers
from kronos_nova.inventory import scope
from kronos_nova.inventory import shape
from kronos_nova.objects import metrics
from kronos_nova.objects import move as moves
from kronos_nova.objects import snapshot
from kronos_nova.objects import transitions
from kronos_nova.objects.automation import Defaults
from kronos_nova.placement import errors
from kronos_nova.placement.allocations import INSTANCE
from kronos_nova.placement.allocations import MIGRATION
from kronos_nova.placement.allocations import AllocationSet
from kronos_nova.placement.allocations import Consumer
from kronos_nova.placement.client import PlacementClient
from kronos_nova.policies import loader

INTERVAL = 300
POLICIES = loader.parse("""
policies:
- {name: cpu, mode: spread, weight: 1.0, threshold: 0.02, max_migrations_per_cycle: 6,
   imbalance_query: hosts, vm_profile_query: servers, vm_profile_label: uuid}
""")
# Three that share hosts in a circle, and one by itself.
AGGREGATES = {'a': range(0, 4), 'b': range(3, 7), 'c': (6, 7, 8, 0), 'd': range(9, 12)}
SOMETIMES = 'b', 3
"""A host that leaves its aggregate now and then, and comes back."""

LOOKS = 20
"""At what is due, in a turn: a worker that looks while the other one takes aggregates gets none."""

CAPS = moves.Caps(total=50, per_source=50, per_destination=50)


def name_of(number):
    return f'h{number:02}'


def uuid_of(text):
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, text))


class Cloud:
    """Servers on hosts, as Nova would know them; who holds what, placement knows."""

    def __init__(self, client, seed, clock):
        self.client, self.rng, self.clock = client, random.Random(seed), clock
        self.hosts = [name_of(number) for numbers in AGGREGATES.values() for number in numbers]
        self.hosts = sorted(set(self.hosts))
        self.aggregates = {name: [name_of(number) for number in numbers]
                           for name, numbers in AGGREGATES.items()}
        self.lock = threading.Lock()
        self.placed, self.size, self.weight = {}, {}, {}
        for host in self.hosts:
            self._put(f'/resource_providers/{uuid_of(host)}/inventories', {
                'resource_provider_generation': self._provider(host),
                'inventories': {'VCPU': {'total': 12, 'max_unit': 12}}})
        for number in range(3 * len(self.hosts)):
            self._boot(uuid_of(f'vm{number}'), self.hosts[number // 5])
        self.change_load()

    def _provider(self, host):
        self._put('/resource_providers', {'name': host, 'uuid': uuid_of(host)}, 'POST')
        return 0

    def _put(self, path, body, method='PUT'):
        answer = self.client._request(method, path, json=body)
        if answer.status_code >= 300:
            raise AssertionError(answer.text)

    def _boot(self, instance, host):
        self.placed[instance], self.size[instance] = host, self.rng.choice((1, 1, 2, 3))
        self.client.post(AllocationSet.from_consumers(Consumer(
            uuid=instance, allocations={uuid_of(host): {'VCPU': self.size[instance]}},
            project_id='p', user_id='u', consumer_type=INSTANCE)))

    def change_load(self):
        self.weight = {instance: self.size[instance] * self.rng.random() / 12
                       for instance in self.placed}

    def aggregate_hosts(self):
        return {name: list(hosts) for name, hosts in self.aggregates.items()}

    def change_membership(self):
        name, number = SOMETIMES
        hosts, host = self.aggregates[name], name_of(number)
        (hosts.remove if host in hosts else hosts.append)(host)

    def read(self, scopes=None, moves=()):
        with self.lock:
            placed, aggregates = dict(self.placed), [
                snapshot.Aggregate(name=name, uuid=name, hosts=tuple(hosts))
                for name, hosts in self.aggregates.items()]
        wanted = scope.HostScope(aggregates, scopes).with_ends_of(moves)
        trees = providers.ProviderCache().read(self.client, {
            uuid_of(host): {each for each, where in placed.items() if where == host}
            for host in self.hosts})
        held = {host: shape.held_by_consumer(trees.of[uuid_of(host)]) for host in self.hosts
                if host in wanted}
        return snapshot.Snapshot(
            taken_at=self.clock().isoformat(),
            hosts=tuple(snapshot.Host(
                name=host, uuid=uuid_of(host), inventory=shape.inventory(trees.of[uuid_of(host)]),
                used=shape.used(trees.of[uuid_of(host)]),
                service=snapshot.Service(state='up', status='enabled')) for host in held),
            instances=tuple(snapshot.Instance(
                uuid=each, name=each, display_name=each, host=host, project_id='p',
                status='ACTIVE', vcpus=self.size[each], memory_mb=512, disk_gb=1,
                resources=held[host].get(each, {})) for each, host in placed.items()
                if host in held),
            aggregates=scope.within(aggregates, held))

    def names_elsewhere(self, attribute, names):
        return set()

    def query(self, query):
        at = self.clock().timestamp()
        with self.lock:
            values, label = dict(self.weight), 'uuid'
            if query.kind != metrics.VM_PROFILE:
                values, label = dict.fromkeys(self.hosts, 0.0), 'host'
                for instance, host in self.placed.items():
                    values[host] += self.weight[instance]
        return metrics.Vector(tuple(metrics.Sample({label: name}, min(value, 1.0), at)
                                    for name, value in values.items()))

    def claim(self, move, migration):
        """Claim as the conductor does: the migration takes over the source, the instance gets the
        destination, or nothing changes.

        :raises InsufficientInventory: there is no room
        """
        consumer = self.client.consumer(move.instance_uuid)
        self.client.post(AllocationSet.from_consumers(
            Consumer(uuid=migration, allocations=consumer.allocations, project_id='p',
                     user_id='u', consumer_type=MIGRATION),
            consumer.holding({uuid_of(move.destination): {'VCPU': self.size[consumer.uuid]}})))

    def complete(self, move, migration):
        with self.lock:
            self.placed[move.instance_uuid] = move.destination
        self.client.post(AllocationSet.from_consumers(self.client.consumer(migration).holding({})))


class Clock:
    def __init__(self):
        self.now = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)

    def __call__(self):
        return self.now


class PlanningThread(threading.Thread):
    """In the place of a child process that plans once: a real cycle beside the other worker's."""

    is_leaving = True

    def __init__(self, work):
        super().__init__(daemon=True)
        self._work, self._error = work, None
        self.start()

    def run(self):
        try:
            self._work()
        except Exception as error:
            self._error = error

    @property
    def popen(self):
        return self

    def poll(self):
        return None if self.is_alive() else 0

    def answer(self):
        if self.is_alive():
            return None
        if self._error is not None:
            raise self._error
        return 0

    def dismiss(self):
        pass

    def terminate(self):
        pass

    def wait(self, timeout=None):
        self.join(timeout)


class Worker(cycle_scheduler.CycleScheduler):
    """A worker as in a conductor, but for its child, which is a thread."""

    def __init__(self, name, rounds):
        database = db_engine.Database(db_engine.create_engine(rounds.url))
        self.rounds, self.database, self.planned = rounds, database, 0
        scheduler_ports = cycle_scheduler.SchedulerPorts(
            locks=locks.AggregateLocks(rounds.coordination_url, str(rounds.folder), name),
            switches=switches.SwitchBoard(database), cycles=cycles.Cycles(database),
            journal=journal.Journal(database, name), utcnow=rounds.clock,
            aggregate_hosts=rounds.cloud.aggregate_hosts)
        super().__init__(rounds.conf, scheduler_ports, planning_client.Command('', ()))

    def _started_child(self, due):
        scheduler_ports, cloud = self.scheduler_ports, self.rounds.cloud
        chosen = options.EngineOptions(
            aggregates=tuple(due), include_unassigned_hosts=False, planning_time_limit=2.0)
        made = evaluation.Cycle(
            evaluation.CyclePorts.over(self.database, scheduler_ports.journal, inventory=cloud,
                                       metrics=cloud),
            POLICIES, chosen, self.rounds.rules, self.rounds.clock)
        self.planned += 1
        self._process = PlanningThread(made.run)
        return self._process


@dataclasses.dataclass
class Tally:
    """The result. ``twice`` are instances with moves of two plans at a time, ``refused`` moves
    that placement had no room for."""

    plans: int = 0
    moves: int = 0
    twice: list = dataclasses.field(default_factory=list)
    refused: list = dataclasses.field(default_factory=list)
    planned_by: dict = dataclasses.field(default_factory=dict)


class Rounds:
    """:param url: of the control database, which is up to date
    :param coordination_url: of tooz; None for lock files
    """

    def __init__(self, client, folder, url, coordination_url=None, seed=0):
        self.folder, self.url, self.coordination_url = folder, url, coordination_url
        self.clock, self.rng = Clock(), random.Random(seed)
        self.cloud = Cloud(client, seed, self.clock)
        self.conf = cfg.ConfigOpts()
        kronos_conf.register_opts(self.conf)
        self.conf([], default_config_files=[])
        for name, value in (('automation', 'auto'), ('aggregates', list(AGGREGATES)),
                            ('evaluation_interval', INTERVAL), ('aggregates_per_cycle', 1)):
            self.conf.set_override(name, value, 'kronos')
        self.rules = evaluation.CycleRules(
            automation=Defaults(level='auto'), cooldown=1, instance_cooldown=1,
            instance_cooldown_factor=1, instance_cooldown_max=1, no_return_window=0,
            experience_window=0, stale_plan_age=10 * INTERVAL, start_interval=0,
            in_scope=tuple(AGGREGATES))
        self.workers = [Worker(name, self) for name in ('one', 'two')]
        self.executor = journal.Journal(self.workers[0].database, 'executor')
        self.under_way = {}
        self.tally = Tally()

    def run(self, count):
        for number in range(count):
            self.clock.now += datetime.timedelta(seconds=INTERVAL)
            if number % 7 == 6:
                self.cloud.change_membership()
            self.cloud.change_load()
            self._plan()
            self._check()
            self._carry_out()
        self.tally.planned_by = {worker.scheduler_ports.journal.worker: worker.planned
                                 for worker in self.workers}
        self.tally.plans = len(self.executor.plans(limit=100000))
        return self.tally

    def close(self):
        for worker in self.workers:
            worker.stop()
            worker.database.engine.dispose()

    def _plan(self):
        """Both at once, until nothing is due any more."""
        for _turn in range(2):
            barrier = threading.Barrier(2)
            errors_met = []
            threads = [threading.Thread(target=self._tick, args=(worker, barrier, errors_met))
                       for worker in self.rng.sample(self.workers, 2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if errors_met:
                raise errors_met[0]

    @staticmethod
    def _tick(worker, barrier, errors_met):
        barrier.wait()
        try:
            for _look in range(LOOKS):
                worker.tick()
                if worker.child is not None:
                    break
                time.sleep(0.005)
            while worker.child is not None and worker.child.is_alive():
                time.sleep(0.005)
            if worker.child is not None:
                worker._check_child(worker._process)
        except Exception as error:
            errors_met.append(error)

    def _check(self):
        # A plan may move an instance twice, the second time once the first has ended: it was put
        # aside until its destination had room.
        planned = {(move.instance_uuid, move.plan_uuid) for move in self.executor.moves(
            states=set(transitions.MOVE_TRANSITIONS) - moves.TERMINAL)}
        counts = collections.Counter(instance for instance, _plan in planned)
        self.tally.twice += [each for each, count in counts.items() if count > 1]

    def _carry_out(self):
        """Start the moves that may start, and end some of those in progress."""
        for _wave in range(3):
            for move in self.executor.dispatch(CAPS, self.clock):
                self._begin(self.executor.claim(move.uuid, self.clock()))
            for key in sorted(self.under_way):
                if self.rng.random() < 0.6:
                    self._end(*self.under_way.pop(key))
        self.executor.abandon(self.clock(), datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC))
        self.executor.close_plans(self.clock())

    def _begin(self, move):
        self.tally.moves += 1
        migration = uuid_of(f'migration of {move.uuid}')
        now = self.clock()
        if self.cloud.placed[move.instance_uuid] != move.source:
            self.tally.twice.append(move.instance_uuid)
            self._fail(move, now)
            return
        try:
            self.cloud.claim(move, migration)
        except errors.InsufficientInventory:
            self.tally.refused.append(move)
            self._fail(move, now)
            return
        move = self.executor.advance(move, moves.CLAIMING, now)
        move = self.executor.advance(move, moves.MIGRATING, now, requested_at=now)
        self.under_way[move.uuid] = move, migration

    def _fail(self, move, now):
        self.executor.advance(move, moves.FAILED, now, finished_at=now)
        self.executor.settle(move.uuid, now)

    def _end(self, move, migration):
        now = self.clock()
        self.cloud.complete(move, migration)
        move = self.executor.advance(move, moves.VERIFYING, now)
        self.executor.advance(move, moves.COMPLETED, now, finished_at=now)
        self.executor.settle(move.uuid, now)


class OneAtATime:
    """Requests that do not meet: what intercepts them in this process is not made for threads. Two
    transactions of placement's still come in any order."""

    def __init__(self, adapter):
        self._adapter, self._lock = adapter, threading.Lock()

    def request(self, *args, **kwargs):
        with self._lock:
            return self._adapter.request(*args, **kwargs)


@contextlib.contextmanager
def placement(folder):
    """A PlacementClient of the real placement service, in this process."""
    conf = cfg.ConfigOpts()
    placement_conf.register_opts(conf)
    conf.set_override('connection', f'sqlite:///{folder}/placement.sqlite', 'placement_database')
    conf.set_override('sync_on_startup', True, 'placement_database')
    conf([], default_config_files=[])
    with direct.PlacementDirect(conf) as adapter:
        yield PlacementClient(OneAtATime(adapter))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--rounds', type=int, default=200)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--mariadb', action='store_true',
                        help='control database and locks in a MariaDB of its own')
    args = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url, coordination_url = f'sqlite:///{folder}/kronos.sqlite', None
        if args.mariadb:
            from tests.functional import mariadb
            server = stack.enter_context(mariadb.MariaDB())
            url, coordination_url = server.empty(), f'mysql://{server.login}/kronos'
        migrate.sync(db_engine.create_engine(url), migrate.CONTROL)
        client = stack.enter_context(placement(folder))
        rounds = Rounds(client, folder, url, coordination_url, args.seed)
        stack.callback(rounds.close)
        tally = rounds.run(args.rounds)
    print(f'{args.rounds} rounds, {tally.plans} plans (evaluations by {tally.planned_by}), '
          f'{tally.moves} moves; planned twice: {len(tally.twice)}, refused by placement: '
          f'{len(tally.refused)}')
    shows_nothing = tally.moves < args.rounds or not all(tally.planned_by.values())
    return 1 if tally.twice or tally.refused or shows_nothing else 0


if __name__ == '__main__':
    raise SystemExit(main())
