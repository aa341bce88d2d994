"""Sums by day: loads as evaluations found them, and moves that were dropped."""

import datetime

import sqlalchemy as sa
import testtools

from kronos_nova.db import evaluations
from kronos_nova.db import models
from kronos_nova.db import retention
from kronos_nova.db import sums
from kronos_nova.objects import host_load
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from tests.unit.db import fixtures

DAY = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
ALWAYS = datetime.date(2000, 1, 1), datetime.date(2100, 1, 1)


def a_host(name, score, servers=10, policy='cpu'):
    scores = {} if score is None else {policy: (score, 0.1)}
    return host_load.HostLoad(name=name, state='up', servers=servers, servers_after=servers,
                              scores=scores)


class SumsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.database = self.useFixture(fixtures.ControlDatabase()).database
        self.sums = sums.Sums(self.database)
        self.evaluations = evaluations.Evaluations(self.database)

    def evaluate(self, minutes, *loads, name='gpu'):
        self.evaluations.save(plans.AggregateReport(
            name=name, outcome=plans.BALANCED, mode='spread', planner='spread'), list(loads),
            DAY + datetime.timedelta(minutes=minutes))

    def drop(self, now, **days):
        names = ('plans', 'moves', 'events', 'reports', 'repairs', 'quarantines', 'tasks',
                 'operations', 'notifications', 'evaluations', 'sums')
        return retention.Retention(self.database, retention.Days(
            **dict.fromkeys(names, 0) | days)).step(now)


class LoadsTest(SumsTestCase):
    def loads(self, aggregate=None):
        row = models.LoadSumRow
        with self.database.reader() as session:
            return [(f'{each.day}', each.aggregate, each.observed_seconds / 60,
                     each.hot_seconds / 60, each.contended_seconds / 60)
                    for each in session.scalars(sa.select(row).where(
                        row.aggregate.in_([aggregate] if aggregate else ['gpu', 'db'])
                    ).order_by(row.day))]

    def test_an_evaluation_stands_for_the_time_since_the_one_before(self):
        self.evaluate(0, a_host('a', 0.95))
        self.assertEqual([], self.loads())
        self.evaluate(5, a_host('a', 0.95), a_host('b', 0.91), a_host('c', 0.9))
        self.evaluate(15, a_host('a', 1.0, 7), a_host('b', 1.2, 3), a_host('c', 0.2))
        self.assertEqual([('2026-03-01', 'gpu', 15.0, 2 * 5.0 + 2 * 10.0, 10 * 10.0)],
                         self.loads())

    def test_a_host_that_is_hot_in_two_policies_counts_once(self):
        self.evaluate(0, a_host('a', 0.95))
        load = host_load.HostLoad(name='a', state='up', servers=1, servers_after=1, scores={
            'cpu': (0.95, 0.95), 'memory': (0.99, 0.99)})
        self.evaluate(5, load)
        self.assertEqual([('2026-03-01', 'gpu', 5.0, 5.0, 0.0)], self.loads())

    def test_what_was_not_measured_is_not_observed(self):
        self.evaluate(0, a_host('a', 0.95))
        self.evaluate(5, a_host('a', None))
        self.evaluate(10)
        self.assertEqual([], self.loads())

    def test_a_time_without_evaluations_counts_for_an_hour_at_most(self):
        self.evaluate(0, a_host('a', 0.95))
        self.evaluate(600, a_host('a', 0.95))
        self.assertEqual([('2026-03-01', 'gpu', 60.0, 60.0, 0.0)], self.loads())

    def test_days_and_aggregates_have_sums_of_their_own(self):
        for name in ('gpu', 'db'):
            for minutes in (0, 10, 24 * 60, 24 * 60 + 10):
                self.evaluate(minutes, a_host('a', 0.95), name=name)
        self.assertEqual([('2026-03-01', 'db', 10.0), ('2026-03-02', 'db', 70.0)],
                         [each[:3] for each in self.loads('db')])
        self.assertEqual(4, len(self.loads()))

    def test_a_clock_that_went_back_adds_nothing(self):
        self.evaluate(60, a_host('a', 0.95))
        self.evaluate(30, a_host('a', 0.95))
        self.assertEqual([], self.loads())


class MovesTest(SumsTestCase):
    def end(self, number, state, day, project='p1', took=datetime.timedelta(minutes=3)):
        """Have a move that ended on a day, three minutes after its request."""
        at = DAY + datetime.timedelta(days=day)
        with self.database.writer() as session:
            if session.get(models.PlanRow, 'plan') is None:
                session.add(models.PlanRow(
                    uuid='plan', aggregate='gpu', mode='spread', planner='spread', state='done',
                    created_at=DAY, expires_at=DAY, move_count=1))
            session.add(models.MoveRow(
                uuid=f'move{number}', plan_uuid='plan', aggregate='gpu', ordinal=number,
                depends_on='[]', phase='spread', instance_uuid=f'vm{number}', source='a',
                destination='b', memory_mb=1024, reason='', state=state, not_before=at,
                created_at=at, requested_at=at - took, finished_at=at,
                settled_at=at, project_id=project))

    def moves(self):
        with self.database.reader() as session:
            return [(f'{each.day}', each.project_id or None, each.completed, each.failed,
                     each.abandoned, each.memory_mb, each.seconds) for each in session.scalars(
                         sa.select(models.MoveSumRow).order_by(models.MoveSumRow.day))]

    def test_a_move_whose_clock_was_set_back_adds_no_seconds(self):
        self.end(0, moves.COMPLETED, 0)
        self.end(1, moves.COMPLETED, 0, took=datetime.timedelta(days=-1))
        [(found, servers)] = self.sums.ended(DAY, DAY + datetime.timedelta(days=1), ())
        self.assertEqual((2, 180.0, 2), (found.completed, found.seconds, servers))
        self.drop(DAY + datetime.timedelta(days=70), moves=30)
        self.assertEqual([('2026-03-01', 'p1', 2, 0, 0, 2048, 180.0)], self.moves())

    def test_a_move_that_is_dropped_is_counted_once(self):
        for number, (state, day, project) in enumerate((
                (moves.COMPLETED, 0, 'p1'), (moves.COMPLETED, 0, 'p1'), (moves.FAILED, 0, 'p1'),
                (moves.ABANDONED, 1, None), (moves.COMPLETED, 60, 'p1'))):
            self.end(number, state, day, project)
        now = DAY + datetime.timedelta(days=70)
        for _time in range(2):
            self.drop(now, moves=30)
            self.assertEqual([('2026-03-01', 'p1', 2, 1, 0, 2048, 360.0),
                              ('2026-03-02', None, 0, 0, 1, 0, 0.0)], self.moves())
        self.drop(now + datetime.timedelta(days=60), moves=30)
        self.assertEqual(3, len(self.moves()))
        self.assertEqual(datetime.date(2026, 3, 1), self.sums.first_move(None))
        self.assertIsNone(self.sums.first_move('other'))

    def test_those_of_a_day_are_dropped_in_several_steps(self):
        for number in range(5):
            self.end(number, moves.COMPLETED, 0)
        keeper = retention.Retention(self.database, retention.Days(**dict.fromkeys((
            'plans', 'events', 'reports', 'repairs', 'quarantines', 'tasks', 'operations',
            'notifications', 'evaluations', 'sums'), 0), moves=30))
        for _time in range(3):
            keeper.step(DAY + datetime.timedelta(days=70), batch=2)
        self.assertEqual([('2026-03-01', 'p1', 5, 0, 0, 5 * 1024, 5 * 180.0)], self.moves())

    def test_sums_are_kept_for_two_years_and_no_longer(self):
        self.end(1, moves.COMPLETED, 0)
        for minutes in (0, 5):
            self.evaluate(minutes, a_host('a', 0.95))
        for days, count in ((730, 1), (733, 0)):
            self.drop(DAY + datetime.timedelta(days=days), moves=30, sums=731)
            self.assertEqual(count, len(self.moves()), days)
            self.assertEqual(count, len(self.sums.loads(*ALWAYS, (), None)), days)


class SumsBy:
    """Sums of days are added up by the ``database`` of a test."""

    ROWS = ((datetime.date(2025, 12, 31), 'gpu', 'p1'), (datetime.date(2026, 1, 1), 'gpu', 'p1'),
            (datetime.date(2026, 1, 31), 'gpu', ''), (datetime.date(2026, 1, 31), 'db', 'p2'))

    def fill(self):
        with self.database.writer() as session:
            session.add_all(models.MoveSumRow(
                day=day, aggregate=aggregate, project_id=project,
                **dict.fromkeys(sums.FIGURES, 1)) for day, aggregate, project in self.ROWS)
            session.add_all(models.LoadSumRow(day=day, aggregate=aggregate,
                                              **dict.fromkeys(sums.LOADS, 60.0))
                            for day, aggregate, _project in self.ROWS)

    def sums_of_moves(self, *by, since=ALWAYS[0], **wanted):
        return {(each.month, each.project, each.aggregate): each.completed
                for each in sums.Sums(self.database).moves(since, ALWAYS[1], by, **wanted)}

    def test_there_is_a_sum_for_each(self):
        self.fill()
        self.assertEqual({(None, None, None): 4}, self.sums_of_moves())
        self.assertEqual({('2025-12', None, None): 1, ('2026-01', None, None): 3},
                         self.sums_of_moves('month'))
        self.assertEqual({(None, 'p1', 'gpu'): 2, (None, None, 'gpu'): 1, (None, 'p2', 'db'): 1},
                         self.sums_of_moves('project', 'aggregate'))
        self.assertEqual({('2026-01', 'p1', None): 1}, self.sums_of_moves(
            'month', 'project', since=datetime.date(2026, 1, 1), project_id='p1'))
        [found] = sums.Sums(self.database).moves(*ALWAYS, ())
        self.assertEqual((4, 4, 4.0), (found.failed, found.memory_mb, found.seconds))

    def end(self, *found):
        """Moves in the journal: (server, state, seconds, month)."""
        with self.database.writer() as session:
            session.add(models.PlanRow(uuid='plan', aggregate='gpu', mode='spread', state='done',
                                       planner='spread', created_at=DAY, expires_at=DAY))
            session.flush()
            for number, (server, state, seconds, month) in enumerate(found):
                began = DAY.replace(month=month)
                session.add(models.MoveRow(
                    uuid=f'm{number}', plan_uuid='plan', aggregate='gpu', ordinal=number,
                    depends_on='[]', phase='spread', instance_uuid=server, source='a',
                    destination='b', memory_mb=1024, reason='', state=state, not_before=DAY,
                    created_at=DAY, requested_at=began, project_id='p1',
                    finished_at=began + datetime.timedelta(seconds=seconds)))

    def test_moves_in_the_journal_are_added_up(self):
        self.end(('s1', moves.COMPLETED, 1.5, 3), ('s1', moves.COMPLETED, 2.25, 3),
                 ('s2', moves.FAILED, 9, 3), ('s2', moves.COMPLETED, 4, 4),
                 ('s3', moves.ABANDONED, 9, 4))
        known, day = sums.Sums(self.database), datetime.timedelta(days=1)
        [(total, servers)] = known.ended(DAY - day, DAY + 90 * day, ())
        self.assertEqual((3, 1, 1, 3072, 7.75, 2), (
            total.completed, total.failed, total.abandoned, total.memory_mb, total.seconds,
            servers))
        self.assertEqual(
            [('2026-03', 'p1', 'gpu', 2, 3.75, 1), ('2026-04', 'p1', 'gpu', 1, 4.0, 1)],
            sorted((each.month, each.project, each.aggregate, each.completed, each.seconds, moved)
                   for each, moved in known.ended(DAY - day, DAY + 90 * day, sums.BY)))
        self.assertEqual([], known.ended(DAY - day, DAY + 90 * day, (), aggregate='other'))

    def test_what_is_not_there_has_no_sum(self):
        self.fill()
        self.assertEqual({}, self.sums_of_moves(aggregate='other'))
        self.assertEqual([], sums.Sums(self.database).loads(*ALWAYS, (), 'other'))

    def test_loads_are_of_no_project(self):
        self.fill()
        self.assertEqual([('2025-12', 'gpu', 60.0), ('2026-01', 'db', 60.0),
                          ('2026-01', 'gpu', 120.0)], [
            (each.month, each.aggregate, each.hot_seconds)
            for each in sums.Sums(self.database).loads(*ALWAYS, sums.BY, None)])


class SumsByTest(SumsBy, SumsTestCase):
    pass
