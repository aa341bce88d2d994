"""The number of moves a second that go through broker and journal when Nova takes no time."""

import multiprocessing
import os
import pathlib
import time
from typing import Any

from bench import report
from kronos_nova import clock

AGGREGATE = 'bench'
TARGET = 20.0


def register(subparsers):
    parser = subparsers.add_parser('moves', help='moves a second, with a Nova that is instant')
    parser.add_argument('--moves', type=int, default=400)
    parser.add_argument('--workers', type=int, default=2, help='processes that dispatch and act')
    parser.add_argument('--concurrent', type=int, default=100, help='max_concurrent_migrations')
    parser.add_argument('--poll-interval', type=float, default=0.5)
    parser.set_defaults(run=run)


class InstantNova:
    """A migration has ended when it was asked for. An instance's name has its source after @."""

    def __init__(self):
        self._arrived = {}

    def instance(self, uuid):
        from kronos_nova.executor import compute
        return compute.InstanceState(host=self._arrived.get(uuid, uuid.partition('@')[2]),
                                     status='ACTIVE')

    def service(self, _host):
        from kronos_nova.objects import snapshot
        return snapshot.Service(state='up', status='enabled')

    def hold_room(self, _move):
        pass

    def release_room(self, _move, has_moved):
        pass

    def live_migrate(self, move):
        self._arrived[move.instance_uuid] = move.destination

    def migration(self, move):
        from kronos_nova.executor import compute
        return compute.MigrationState(uuid=f'{move.uuid[:-1]}m', status='completed',
                                      was_started=True)


def run(args):
    from tests.e2e.box import mariadb
    from tests.e2e.box import processes
    from tests.e2e.box import rabbitmq
    from tests.e2e.box import settings
    ports = settings.Ports()
    with processes.folder('kronos-bench-') as root:
        broker, database = rabbitmq.RabbitMQ(root, ports), mariadb.MariaDB(root, ports)
        database.install()
        broker.start(120)
        database.start(120)
        broker.server.wait_ready(120)
        return _measure(args, broker, database)


def _measure(args, broker, database):
    from kronos_nova.db import engine as db_engine
    from kronos_nova.db import journal as db_journal
    from kronos_nova.db import migrate
    from kronos_nova.objects import plan as plans

    engine = db_engine.create_engine(database.url('kronos'))
    migrate.sync(engine, migrate.CONTROL)
    journal = db_journal.Journal(db_engine.Database(engine), 'bench')
    context = multiprocessing.get_context('spawn')
    ready, end = context.Barrier(args.workers + 1), context.Event()
    workers = [context.Process(target=_work,
                               args=(args, broker.url, database.url('kronos'), ready, end))
               for _ in range(args.workers)]
    for worker in workers:
        worker.start()
    ready.wait(60)
    usage = Usage(database, {'workers': [worker.pid for worker in workers],
                             'MariaDB': _group(database.process.pid),
                             'RabbitMQ': _group(broker.server.pid)})
    now = clock.utcnow()
    uuid = journal.record_plan(_report(args.moves), plans.EXECUTING, now, now)
    try:
        while journal.aggregates_with_open_plans():
            time.sleep(0.5)
        spent = usage.spent()
    finally:
        end.set()
        for worker in workers:
            worker.join(30)
    return _tell(args, journal.moves(uuid), spent)


class Usage:
    """The use since it was made: CPU seconds by process, and SQL statements.

    :param processes: {name: pids}
    """

    def __init__(self, database, processes):
        self._database, self._processes = database, processes
        self._before = self._now()

    def spent(self):
        return {name: value - self._before[name] for name, value in self._now().items()}

    def _now(self):
        cpu = {name: sum(map(_cpu_seconds, pids)) for name, pids in self._processes.items()}
        return {**cpu, 'statements': self._database.statements()}


def _group(pgid):
    """Return the pids of a process group."""
    return [int(path.name) for path in pathlib.Path('/proc').glob('[0-9]*')
            if _stat(path.name)[2] == str(pgid)]


def _cpu_seconds(pid):
    return sum(map(int, _stat(pid)[11:13])) / os.sysconf('SC_CLK_TCK')


def _stat(pid):
    """Return the fields of /proc/PID/stat from the state on; zeros where the process has ended."""
    try:
        return pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ['0'] * 20


def _tell(args, done, spent):
    states = {move.state for move in done}
    first = min(move.dispatched_at for move in done)
    seconds = (max(move.requested_at for move in done) - first).total_seconds()
    whole = (max(move.finished_at for move in done) - first).total_seconds()
    rate = len(done) / seconds
    failures = []
    if states != {'completed'}:
        failures.append(f'moves ended as {sorted(states)}')
    if rate < TARGET:
        failures.append(f'{rate:.1f} moves a second, target {TARGET:.0f}')
    return report.Report(tables=(report.Table(
        'moves', ('moves', 'workers', 'caps', 'seconds to the last request', 'requests/s',
                  'seconds to the last end', 'ends/s'),
        [(len(done), args.workers, args.concurrent, seconds, rate, whole, len(done) / whole)]),
        report.Table('a move costs', ('CPU ms in the workers', 'in MariaDB', 'in RabbitMQ',
                                      'SQL statements'),
                     [(*(1000 * spent[name] / len(done)
                         for name in ('workers', 'MariaDB', 'RabbitMQ')),
                       spent['statements'] / len(done))])),
        failures=tuple(failures),
        notes=('Real RabbitMQ and MariaDB; Nova is a stand-in that takes no time.',))


def _report(count):
    from kronos_nova.objects import plan as plans
    return plans.AggregateReport(
        name=AGGREGATE, outcome=plans.PLANNED, mode='spread', planner='bench', moves=tuple(
            plans.PlannedMove(
                order=order, phase=plans.SPREAD, instance_uuid=f'vm{order}@host{order % 50}',
                source=f'host{order % 50}', destination=f'host{(order + 1) % 50}', memory_mb=1024,
                combined_after=0.0, reason='bench') for order in range(1, count + 1)))


def _work(args, broker_url, database_url, ready, end):
    import oslo_messaging
    from oslo_config import cfg

    from kronos_nova import conf as kronos_conf
    from kronos_nova.db import cooldowns
    from kronos_nova.db import engine as db_engine
    from kronos_nova.db import journal as db_journal
    from kronos_nova.executor import broker
    from kronos_nova.executor import permits
    from kronos_nova.executor import service
    from kronos_nova.executor.ports import ExecutorPorts
    from kronos_nova.objects.automation import AUTO
    from kronos_nova.objects.automation import Defaults

    conf = cfg.CONF
    kronos_conf.register_opts(conf)
    conf([], default_config_files=[])
    for name in ('max_concurrent_migrations', 'max_concurrent_per_source',
                 'max_concurrent_per_destination'):
        conf.set_override(name, args.concurrent, 'kronos_executor')
    oslo_messaging.get_rpc_transport(conf, url=broker_url)  # registers transport_url
    conf.set_override('transport_url', broker_url)
    database = db_engine.Database(db_engine.create_engine(database_url))
    context = service.ServiceContext(
        conf=conf, host='bench', transports=broker.Transports(conf),
        executor_ports=ExecutorPorts(
            journal=db_journal.Journal(database, f'worker:{os.getpid()}'),
            cooldowns=cooldowns.Cooldowns(database), utcnow=clock.utcnow,
            permits=permits.Permits(database, lambda: Defaults(level=AUTO),
                                    lambda _aggregate, _now: True),
            aggregates=(AGGREGATE,)))
    dispatch = service.DispatchService(context)
    nova: Any = InstantNova()    # has only the methods that a live migration calls
    execution = service.ExecutionService(context, nova)
    ready.wait(60)
    while not end.wait(args.poll_interval):
        dispatch.tick()
        execution.tick()
