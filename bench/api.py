"""How long kronos-api takes to answer at the size of a large cloud."""

import contextlib
import datetime
import http.client
import pathlib
import tempfile
import threading
import time

from bench import report
from kronos_nova import clock

P99_SECONDS = 0.1
"""What an operator's page, which asks several things at once, may wait for each of them."""

TOKEN = 'reader'


def register(subparsers):
    parser = subparsers.add_parser('api', help='answers of kronos-api')
    parser.add_argument('--hosts', type=int, default=1000)
    parser.add_argument('--vms', type=int, default=30_000)
    parser.add_argument('--aggregates', type=int, default=10)
    parser.add_argument('--moves', type=int, default=5_000, help='in the journal')
    parser.add_argument('--requests', type=int, default=100, help='of each operation')
    parser.set_defaults(run=run)


def run(args) -> report.Report:
    from kronos_nova.api import routes

    with tempfile.TemporaryDirectory() as folder, _served(args, pathlib.Path(folder)) as served:
        rows = []
        for operation in routes.OPERATIONS:
            path = served.path_of(operation)
            if path is not None:
                rows.append((operation.name, *served.ask(path, args.requests)))
    return report.Report(
        tables=(report.Table('milliseconds', ('operation', 'bytes', 'p50', 'p99'), rows),),
        failures=tuple(f'p99 of {name} is {p99:.0f} ms, target at most {1000 * P99_SECONDS:.0f}'
                       for name, _bytes, _p50, p99 in rows if p99 > 1000 * P99_SECONDS))


@contextlib.contextmanager
def _served(args, folder):
    from keystonemiddleware import fixture as keystone_fixture

    from kronos_nova.cmd import api

    conf, database = configured(args, folder)
    plan, move = fill(args, database)
    with keystone_fixture.AuthTokenFixture() as keystone:
        keystone.add_token_data(
            token_id=TOKEN, expires=clock.utcnow() + datetime.timedelta(days=1),
            user_id='u', user_name='bench', role_list=['kronos_reader'])
        conf.set_override('port', 0, 'kronos_api')
        server = api.serve(api.make(conf), conf)
        threading.Thread(target=server.run, daemon=True).start()
        yield _Served(server.effective_port, {
            '{aggregate}': 'aggregate0', '{plan}': plan, '{move}': move, '{server}': 'vm0'})
        server.close()


class _Served:
    """A kronos-api in this process, whose only client is this process too."""

    def __init__(self, port, known):
        self._port = port
        self._known = known

    def path_of(self, operation):
        """The path of an operation that reads what there is here, else None."""
        path = operation.path
        for name, value in self._known.items():
            path = path.replace(name, value)
        is_there = '{' not in path and operation.name != 'maintenance:show'
        is_whole = operation.method == 'GET' and operation.events is None
        return path if is_there and is_whole else None

    def ask(self, path, times):
        """(bytes of an answer, median and 99th percentile in milliseconds)"""
        connection, taken = http.client.HTTPConnection('127.0.0.1', self._port), []
        for _time in range(times + 1):
            begun = time.perf_counter()
            connection.request('GET', path, headers={'X-Auth-Token': TOKEN})
            answer = connection.getresponse()
            body = answer.read()
            taken.append(1000 * (time.perf_counter() - begun))
            if answer.status != 200:
                raise RuntimeError(f'{path}: {answer.status} {body[:200]}')
        taken = sorted(taken[1:])     # the first reads what is read once
        return len(body), taken[len(taken) // 2], taken[min(len(taken) - 1, len(taken) * 99 // 100)]


def configured(args, folder):
    from kronos_nova.db import engine as db_engine
    from kronos_nova.db import migrate
    from tests.unit.api import configuration

    names = ', '.join(f'aggregate{number}' for number in range(args.aggregates))
    conf = configuration.configure(folder, f'aggregates = {names}')
    database = db_engine.control_database(conf)
    migrate.sync(database.engine, migrate.CONTROL)
    return conf, database


def fill(args, database):
    """The last evaluation of every aggregate, scores, and a journal; (a plan, a move of it)"""

    from kronos_nova.db import cycles as db_cycles
    from kronos_nova.db import journal as db_journal
    from kronos_nova.db import scores
    from kronos_nova.db import server_names
    from kronos_nova.objects import plan as plans

    now, journal = clock.utcnow(), db_journal.Journal(database, 'bench')
    cycles = db_cycles.Cycles(database)
    hosts = [f'host{number:05}' for number in range(args.hosts)]
    servers = [f'vm{number}' for number in range(args.vms)]
    scores.Scores(database).replace('spread', {'cpu': 0.5, 'memory': 0.5}, {
        host: {'cpu': 0.5, 'memory': 0.4} for host in hosts}, now)
    server_names.ServerNames(database).save({uuid: f'web-{uuid}' for uuid in servers}, now)
    for number in range(args.aggregates):
        name = f'aggregate{number}'
        cycles.begin(name, 'bench', now - datetime.timedelta(seconds=9), 1)
        cycles.end(name, now, plans.NO_MOVE, True, plans.AggregateReport(
            name=name, outcome=plans.NO_MOVE, mode='spread', planner='spread',
            policies=tuple(plans.PolicyReport(
                name=policy, state='ok', weight=0.5, threshold=0.1, imbalance_before=0.3,
                imbalance_after=0.2) for policy in ('cpu', 'memory')),
            not_moved=(plans.Skip(reason='no_gain', instances=tuple(
                servers[number::args.aggregates])),)).to_json())
    each = max(1, args.moves // 50)
    for number in range(each):
        made = now - datetime.timedelta(minutes=each - number)
        report_ = plans.AggregateReport(
            name=f'journal{number}', outcome=plans.PLANNED, mode='spread', planner='spread',
            combined_before=0.5, combined_after=0.1, moves=tuple(
                plans.PlannedMove(order=order, phase=plans.SPREAD, instance_uuid=servers[order],
                                  source=hosts[0], destination=hosts[1], memory_mb=1024,
                                  combined_after=0.1, reason='spreads') for order in range(1, 51)))
        plan = journal.record_plan(report_, plans.EXECUTING, made, made)
    _end_all_but(plan, database, now)
    return plan, journal.moves(plan)[0].uuid


def _end_all_but(plan, database, now):
    """Only one plan runs; the others are what a journal keeps."""
    import sqlalchemy as sa

    from kronos_nova.db import models
    from kronos_nova.objects import move as moves
    from kronos_nova.objects import plan as plans

    with database.writer() as session:
        session.execute(sa.update(models.PlanRow).where(models.PlanRow.uuid != plan).values(
            state=plans.DONE, finished_at=now))
        session.execute(sa.update(models.MoveRow).where(models.MoveRow.plan_uuid != plan).values(
            state=moves.COMPLETED, requested_at=now, finished_at=now, settled_at=now))
