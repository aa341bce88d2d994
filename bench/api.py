"""The time that kronos-api takes to answer at the size of a large cloud, with two years of sums."""

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
"""Seconds that an operator's page, which makes several requests at once, may wait for each."""

TOKEN = 'reader'

POLICIES = ('cpu', 'memory')
PROJECTS = 20
"""Projects with moves on each day of the sums. Raised, a report reads more rows; lowered, fewer.
Chosen: a cloud of 300 moves a day has about as many."""

DAYS = 731
"""Days of sums that are kept by default."""

REFERENCE = '/healthcheck'
"""Answered without a token, the database or any work: the machine and the server alone."""


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
        rows = [(operation.name, *served.ask(path, args.requests))
                for operation, path in served.paths(routes.OPERATIONS)]
    return report.Report(
        tables=(report.Table('milliseconds', (
            'operation', 'bytes', 'p50', 'p99', 'CPU', 'p50 of reference', 'p99 of reference'),
            rows),),
        failures=tuple(
            f'p99 of {name} is {p99:.0f} ms, target at most {1000 * P99_SECONDS:.0f}; that of the '
            f'reference in between is {reference:.0f} ms'
            for name, _bytes, _p50, p99, _cpu, _median, reference in rows
            if p99 > 1000 * P99_SECONDS))


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
            '{aggregate}': 'aggregate0', '{plan}': plan, '{move}': move, '{server}': 'vm0',
            '{host}': _host(0)})
        server.task_dispatcher.shutdown()
        server.close()


class _Served:
    """A kronos-api in this process, whose only client is this process too."""

    def __init__(self, port, known):
        self._port = port
        self._known = known

    def paths(self, operations):
        """Yield (operation, path) of those that read what there is here."""
        for operation in operations:
            path = operation.path
            for name, value in self._known.items():
                path = path.replace(name, value)
            # Operations that are slow read the cloud; a report reads the database alone.
            reads_database = not operation.is_slow or operation.name == 'report:show'
            if operation.name == 'report:show':
                path += '?by=month&since=2000-01-01T00:00:00Z'
            if operation.method == 'GET' and operation.events is None and reads_database and (
                    '{' not in path) and operation.name != 'maintenance:show':
                yield operation, path

    def ask(self, path, times):
        """Ask for a path and for the reference by turns.

        :returns: bytes of an answer, median and 99th percentile in milliseconds, CPU milliseconds
            of client and service, and median and 99th percentile of the reference
        """
        connection = http.client.HTTPConnection('127.0.0.1', self._port)
        found, references, used = [], [], 0.0
        for number in range(times + 1):
            begun = time.process_time()
            size, taken = _one(connection, path)
            if number:     # the first reads what is read once
                used += 1000 * (time.process_time() - begun)
                found.append(taken)
            references.append(_one(connection, REFERENCE)[1])
        connection.close()
        return size, *_percentiles(found), used / times, *_percentiles(references)


def _one(connection, path):
    """Request a path and return (bytes of the answer, milliseconds that it took)."""
    begun = time.perf_counter()
    connection.request('GET', path, headers={'X-Auth-Token': TOKEN})
    answer = connection.getresponse()
    body = answer.read()
    if answer.status not in (200, 204):
        raise RuntimeError(f'{path}: {answer.status} {body[:200]}')
    return len(body), 1000 * (time.perf_counter() - begun)


def _percentiles(taken):
    """Return the median and the 99th percentile."""
    ordered = sorted(taken)
    return ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]


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
    """Fill the database with the last evaluation of every aggregate, scores and a journal, and
    return the uuids of (a plan, a move of it)."""

    from kronos_nova.db import cycles as db_cycles
    from kronos_nova.db import journal as db_journal
    from kronos_nova.db import scores
    from kronos_nova.db import server_names
    from kronos_nova.objects import plan as plans

    now, journal = clock.utcnow(), db_journal.Journal(database, 'bench')
    cycles = db_cycles.Cycles(database)
    hosts = [_host(number) for number in range(args.hosts)]
    servers = [f'vm{number}' for number in range(args.vms)]
    scores.Scores(database).replace('spread', dict.fromkeys(POLICIES, 0.5), {
        host: {'cpu': 0.5, 'memory': 0.4} for host in hosts}, now)
    server_names.ServerNames(database).save({uuid: f'web-{uuid}' for uuid in servers}, now)
    for number in range(args.aggregates):
        name = f'aggregate{number}'
        cycles.begin(name, 'bench', now - datetime.timedelta(seconds=9), 1)
        found = plans.AggregateReport(
            name=name, outcome=plans.NO_MOVE, mode='spread', planner='spread',
            policies=tuple(plans.PolicyReport(
                name=policy, state='ok', weight=0.5, threshold=0.1, imbalance_before=0.3,
                imbalance_after=0.2) for policy in POLICIES),
            not_moved=(plans.Skip(reason='no_gain', instances=tuple(
                servers[number::args.aggregates])),))
        cycles.end(name, now, plans.NO_MOVE, True, found.to_json())
        _evaluate(database, found, hosts[number::args.aggregates], args.vms // args.hosts, now)
    _sum(database, args, now)
    each = max(1, args.moves // 50)
    for number in range(each):
        made = now - datetime.timedelta(minutes=each - number)
        report_ = plans.AggregateReport(
            name=f'journal{number}', outcome=plans.PLANNED, mode='spread', planner='spread',
            combined_before=0.5, combined_after=0.1, moves=tuple(
                plans.PlannedMove(order=order, phase=plans.SPREAD, instance_uuid=servers[order],
                                  source=hosts[0], destination=hosts[1], memory_mb=1024,
                                  combined_after=0.1, reason='spreads', expected_seconds=30.0)
                for order in range(1, 51)))
        plan = journal.record_plan(report_, plans.EXECUTING, made, made)
    _end_all_but(plan, database, now)
    return plan, journal.moves(plan)[0].uuid


def _host(number):
    return f'host{number:05}'


def _evaluate(database, found, hosts, servers, now):
    """Write a day of evaluations, of which the last has the hosts."""
    import json

    from kronos_nova.db import evaluations
    from kronos_nova.db import models
    from kronos_nova.objects import host_load

    with database.writer() as session:
        session.add_all(models.EvaluationRow(
            aggregate=found.name, at=now - datetime.timedelta(minutes=5 * step),
            outcome=found.outcome, policies=json.dumps(dict.fromkeys(POLICIES, [0.3, 0.1])))
            for step in range(1, 288))
    evaluations.Evaluations(database).save(found, [host_load.HostLoad(
        name=name, state='up', servers=servers, servers_after=servers,
        scores=dict.fromkeys(POLICIES, (0.5, 0.4))) for name in hosts], now)


def _sum(database, args, now):
    """Write the daily sums of all days for which they are kept."""
    from kronos_nova.db import models
    from kronos_nova.db import sums

    days = [now.date() - datetime.timedelta(days=day) for day in range(1, DAYS + 1)]
    names = [f'aggregate{number}' for number in range(args.aggregates)]
    with database.writer() as session:
        session.add_all(models.LoadSumRow(
            day=day, aggregate=name, **dict.fromkeys(sums.LOADS, 3600.0))
            for day in days for name in names)
        session.add_all(models.MoveSumRow(
            day=day, aggregate=names[number % len(names)], project_id=f'project{number}',
            **dict.fromkeys(sums.FIGURES, 10))
            for day in days for number in range(PROJECTS))


def _end_all_but(plan, database, now):
    """Mark all plans except one as done, and their moves as completed, as a journal keeps them."""
    import sqlalchemy as sa

    from kronos_nova.db import models
    from kronos_nova.objects import move as moves
    from kronos_nova.objects import plan as plans

    with database.writer() as session:
        session.execute(sa.update(models.PlanRow).where(models.PlanRow.uuid != plan).values(
            state=plans.DONE, finished_at=now))
        session.execute(sa.update(models.MoveRow).where(models.MoveRow.plan_uuid != plan).values(
            state=moves.COMPLETED, requested_at=now, finished_at=now, settled_at=now))
