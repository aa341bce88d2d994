"""The control database after a year: its size, and whether it is as fast as on the first day.

A day of ``observe`` over twenty aggregates, every evaluation with a plan that differs from the
last, and a thousand moves, written as the services write them; then what the services drop in a
day. And again, day after day, in a real MariaDB.
"""

import contextlib
import datetime
import itertools
import re
import statistics
import time
import uuid

import sqlalchemy as sa
from oslo_config import cfg

from bench import report

AGGREGATES = 20
INTERVAL = 300
MOVES = 10
STEPS = (('planned', 'dispatched'), ('dispatched', 'checking'), ('checking', 'migrating'),
         ('migrating', 'verifying'), ('verifying', 'completed'))
REASON = 'evens the load: imbalance cpu 0.780 to 0.712, memory 0.083 to 0.083; 4096 MiB to copy'
REPEAT = 30
LIMIT_MIB = 2048
SLOWER = 2.0


def register(subparsers):
    parser = subparsers.add_parser(
        'year', help='size and speed of the control database after a year in observe')
    parser.add_argument('--days', type=int, default=365)
    parser.add_argument('--moves', type=int, default=1000, help='moves a day (1000)')
    parser.set_defaults(run=run)


def run(args) -> report.Report:
    rows, failures = [], []
    with _server() as server:
        year = Year(server, args.moves)
        first = None
        for day in range(1, args.days + 1):
            begun = time.monotonic()
            year.live_a_day()
            written = time.monotonic() - begun
            dropped = year.prune()
            if day in (1, args.days) or day % 30 == 0:
                ticks = year.ticks()
                first = first or ticks
                rows.append((day, year.size_mib(), *year.counts(), written,
                             time.monotonic() - begun - written, dropped, *ticks))
    if rows[-1][1] > LIMIT_MIB:
        failures.append(f'{rows[-1][1]:.0f} MiB, target {LIMIT_MIB}')
    slow = max(now / then for now, then in zip(ticks, first or ticks, strict=True))
    if slow > SLOWER:
        failures.append(f'a tick takes {slow:.1f} times as long as on the first day')
    columns = ('day', 'MiB', 'plans', 'reports', 'moves', 'events', 'written in s', 'dropped in s',
               'rows dropped', *(f'{name} ms' for name in year.TICKS))
    return report.Report(
        tables=(report.Table('control database', columns, rows),), failures=tuple(failures),
        notes=('The size is that of tables and indexes as MariaDB tells it. Of each tick the '
               f'median of {REPEAT}.',))


@contextlib.contextmanager
def _server():
    from tests.e2e.box import mariadb
    from tests.e2e.box import processes
    from tests.e2e.box import settings
    with processes.folder('kronos-year-') as root:
        server = mariadb.MariaDB(root, settings.Ports())
        server.install()
        server.start(60)
        yield server


class Year:
    TICKS = ('dispatch', 'close', 'approved', 'experience')

    def __init__(self, server, moves):
        from kronos_nova.conf import database as database_conf
        from kronos_nova.db import engine as db_engine
        from kronos_nova.db import journal
        from kronos_nova.db import migrate
        from kronos_nova.db import retention
        self._server, self._moves = server, moves
        engine = db_engine.create_engine(server.url('kronos'))
        migrate.sync(engine, migrate.CONTROL)
        self._database = db_engine.Database(engine)
        self._journal = journal.Journal(self._database, 'bench')
        conf = cfg.ConfigOpts()
        database_conf.register_opts(conf)
        conf([], default_config_files=[])
        self._retention = retention.Retention(self._database, retention.Days.from_conf(conf))
        self._now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
        self._bodies = {}

    def live_a_day(self):
        evaluations = [(f'aggregate{number}', self._now + datetime.timedelta(seconds=second))
                       for second in range(0, 86400, INTERVAL) for number in range(AGGREGATES)]
        carried_out = self._moves // MOVES
        with self._database.writer() as session:
            for start in range(0, len(evaluations), 500):
                self._write(session, [(*each, number < carried_out) for number, each in
                                      enumerate(evaluations[start:start + 500], start)])
        self._now += datetime.timedelta(days=1)

    def _write(self, session, made):
        """
        :param made: (aggregate, time, whether its moves are carried out) of each plan
        """
        from kronos_nova.db import models
        from kronos_nova.objects import plan as plans
        rows, reports, moves = [], [], []
        for aggregate, at, is_carried_out in made:
            plan, instances = _uuid(), [_uuid() for _move in range(MOVES)]
            rows.append({
                'uuid': plan, 'aggregate': aggregate, 'mode': 'spread', 'planner': 'spread',
                'state': plans.DONE if is_carried_out else plans.OBSERVED, 'created_at': at,
                'expires_at': at, 'finished_at': at if is_carried_out else None,
                'combined_before': 0.5, 'combined_after': 0.3, 'move_count': MOVES,
                'fingerprint': 64 * 'f', 'last_seen_at': at})
            reports.append({'plan_uuid': plan, 'created_at': at,
                            'body': self._body(aggregate, instances)})
            if is_carried_out:
                moves += [self._move(rows[-1], order, instance)
                          for order, instance in enumerate(instances, 1)]
        session.execute(sa.insert(models.PlanRow), rows)
        session.execute(sa.insert(models.ReportRow), reports)
        if moves:
            session.execute(sa.insert(models.MoveRow), moves)
            session.execute(sa.insert(models.MoveEventRow), [
                {'move_uuid': move['uuid'], 'at': move['finished_at'], 'old_state': old,
                 'new_state': new, 'worker': 'controller1:4711:ab12', 'detail': ''}
                for move in moves for old, new in ((None, 'planned'), *STEPS)])

    def _body(self, aggregate, instances):
        """Return the JSON of a report as a cycle makes it. Only the uuids are new; they are
        inserted into a report that was made once."""
        if aggregate not in self._bodies:
            places = [f'@{order}@' for order in range(MOVES)]
            self._bodies[aggregate] = re.split('|'.join(places), _report(
                aggregate, places).to_summary_json())
        pieces = self._bodies[aggregate]
        return ''.join(itertools.chain(*zip(pieces, [*instances, ''], strict=True)))

    @staticmethod
    def _move(plan, order, instance):
        at = plan['created_at']
        return {'uuid': _uuid(), 'plan_uuid': plan['uuid'], 'aggregate': plan['aggregate'],
                'ordinal': order, 'depends_on': '[]', 'phase': 'spread',
                'instance_uuid': instance, 'source': f'compute{order}',
                'destination': f'compute{order + 20}', 'memory_mb': 4096, 'reason': REASON,
                'state': 'completed', 'owner': 'controller1:4711:ab12', 'not_before': at,
                'created_at': at, 'dispatched_at': at, 'requested_at': at,
                'finished_at': at + datetime.timedelta(seconds=60), 'settled_at': at,
                'migration_uuid': _uuid(), 'retry_count': 0, 'abort_requested': False,
                'outage': False}

    def prune(self):
        """Drop what the services drop in a day; how many rows."""
        dropped = 0
        while step := sum(self._retention.step(self._now).values()):
            dropped += step
        return dropped

    def ticks(self):
        """Return the median milliseconds of each query that workers repeat at every tick."""
        from kronos_nova.objects import move as moves
        journal, caps = self._journal, moves.Caps(total=4, per_source=1, per_destination=2)
        asked = (lambda: journal.dispatch(caps, lambda: self._now),
                 lambda: (journal.unsettled(self._now), journal.close_plans(self._now)),
                 lambda: (journal.approved_plans(), journal.aggregates_with_open_plans()),
                 journal.durations)
        return tuple(_median_ms(each) for each in asked)

    def counts(self):
        return tuple(self._server.query('kronos', f'SELECT COUNT(*) AS n FROM {table}')[0]['n']
                     for table in ('plans', 'reports', 'moves', 'move_events'))

    def size_mib(self):
        self._server.query('kronos', 'ANALYZE TABLE plans, reports, moves, move_events')
        [row] = self._server.query(
            None, 'SELECT SUM(data_length + index_length + data_free) / 1048576 AS size FROM '
                  "information_schema.tables WHERE table_schema = 'kronos'")
        return float(row['size'])


def _report(aggregate, instances):
    from kronos_nova.objects import plan as plans
    moves = tuple(plans.PlannedMove(
        order=order, phase=plans.SPREAD, instance_uuid=instance, source=f'compute{order}',
        destination=f'compute{order + 20}', memory_mb=4096, combined_after=0.3, reason=REASON)
        for order, instance in enumerate(instances, 1))
    return plans.AggregateReport(
        name=aggregate, outcome=plans.PLANNED, mode='spread', planner='spread', moves=moves,
        combined_before=0.5, combined_after=0.3, not_moved=tuple(
            plans.Skip(reason=reason, instances=()) for reason in plans.SKIP_REASONS),
        policies=tuple(plans.PolicyReport(
            name=name, state='ok', weight=0.5, threshold=0.1, imbalance_before=0.78,
            imbalance_after=0.4) for name in ('cpu', 'memory')))


def _uuid():
    return str(uuid.uuid4())


def _median_ms(work):
    spent = []
    for _time in range(REPEAT):
        begun = time.perf_counter()
        work()
        spent.append(1000 * (time.perf_counter() - begun))
    return statistics.median(spent)
