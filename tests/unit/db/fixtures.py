"""A control database of its own for a test, on disk as in life."""

import dataclasses
import datetime
import functools
import itertools
import pathlib
import tempfile

import fixtures

from kronos_nova.db import cooldowns as db_cooldowns
from kronos_nova.db import engine as db_engine
from kronos_nova.db import migrate
from kronos_nova.drain.states import DRAIN_TRANSITIONS
from kronos_nova.drain.states import DRAINING
from kronos_nova.objects import plan as plans


class ControlDatabase(fixtures.Fixture):
    """``database`` is an up-to-date control database that is gone after the test.

    :param announces: whether changes are sent as notifications
    """

    def __init__(self, announces=False):
        super().__init__()
        self._announces = announces

    def _setUp(self):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'kronos.sqlite')
        path.write_bytes(_synced())
        engine = db_engine.create_engine(f'sqlite:///{path}')
        self.addCleanup(engine.dispose)
        self.database = db_engine.Database(engine, announces=self._announces)


@functools.cache
def _synced():
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory, 'kronos.sqlite')
        engine = db_engine.create_engine(f'sqlite:///{path}')
        migrate.sync(engine, migrate.CONTROL)
        with engine.connect() as connection:
            connection.exec_driver_sql('PRAGMA wal_checkpoint(TRUNCATE)')
        engine.dispose()
        return path.read_bytes()


class Clock:
    """A clock that the test advances."""

    def __init__(self):
        self.now = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)

    def __call__(self):
        return self.now

    def go(self, seconds):
        self.now += datetime.timedelta(seconds=seconds)


def bring(drains, drain, new, **values):
    """Bring a drain to a state by the shortest way that is legal.

    :param drains: kronos_nova.db.drains.Drains
    :param values: written with the last step
    """
    ways = [(drains.get(drain.uuid).state,)]
    while ways[0][-1] != new:
        way = ways.pop(0)
        ways += [(*way, after) for after in sorted(
            DRAIN_TRANSITIONS[way[-1]], key=lambda state: (state != DRAINING, state))
                 if after not in way]
    for old, after in itertools.pairwise(ways[0]):
        drains.enter(drain, (old,), after, **(values if after == new else {}))


def cool(database, scope, names, until, now=None):
    """Begin cooldowns without a plan."""
    with database.writer() as session:
        db_cooldowns.begin(session, [db_cooldowns.Cooldown(scope, names, until)], now)


def report(moves, name='gpu', phase=plans.SPREAD):
    """An AggregateReport of a plan; ``moves`` are (instance, source, destination[, depends])."""
    return plans.AggregateReport(
        name=name, outcome=plans.PLANNED, mode='spread', planner='greedy', combined_before=0.5,
        combined_after=0.1, moves=tuple(
            plans.PlannedMove(
                order=number, phase=phase, instance_uuid=instance, source=source,
                destination=destination, memory_mb=1024, combined_after=0.1, reason='spreads',
                depends_on=tuple(depends))
            for number, (instance, source, destination, *depends) in enumerate(moves, 1)))


def making_room(report, *orders):
    """The same AggregateReport, in which the moves with these numbers only make room for others."""
    return dataclasses.replace(report, moves=tuple(
        dataclasses.replace(move, only_makes_room=move.order in orders)
        for move in report.moves))
