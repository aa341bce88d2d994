"""The control database stays small, and as fast as on its first day."""

import dataclasses
import datetime
import json

import fixtures as test_fixtures
import sqlalchemy as sa
import testtools
from oslo_config import cfg

from kronos_nova.conf import database as database_conf
from kronos_nova.db import cooldowns as db_cooldowns
from kronos_nova.db import cycles as db_cycles
from kronos_nova.db import drains as db_drains
from kronos_nova.db import journal as db_journal
from kronos_nova.db import leases
from kronos_nova.db import maintenances as db_maintenances
from kronos_nova.db import models
from kronos_nova.db import repairs as db_repairs
from kronos_nova.db import retention
from kronos_nova.db import server_names
from kronos_nova.db import switches
from kronos_nova.db import tasks as db_tasks
from kronos_nova.drain import states as drains
from kronos_nova.objects import automation
from kronos_nova.objects import maintenance
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from kronos_nova.objects import repair as repairs
from kronos_nova.operations import approving
from tests.unit.db import fixtures

WIDE = moves.Caps(total=100, per_source=100, per_destination=100)
DAY = 86400
KINDS = [field.name for field in dataclasses.fields(retention.Days)]


class ControlTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(test_fixtures.FakeLogger())
        self.database = self.useFixture(fixtures.ControlDatabase()).database
        self.clock = fixtures.Clock()
        self.journal = db_journal.Journal(self.database, 'one')
        self.conf = cfg.ConfigOpts()
        database_conf.register_opts(self.conf)
        self.conf([], default_config_files=[])

    def plan(self, *planned, state=plans.EXECUTING, name='gpu'):
        return self.journal.record_plan(fixtures.report(planned, name), state, self.clock(),
                                        self.clock() + datetime.timedelta(hours=1))

    def carry_out(self):
        """Every move that is planned, to its end."""
        for move in self.journal.dispatch(WIDE, self.clock):
            taken = self.journal.claim(move.uuid, self.clock())
            for state in (moves.MIGRATING, moves.VERIFYING, moves.COMPLETED):
                taken = self.journal.advance(taken, state, self.clock(), finished_at=self.clock())
            self.journal.settle(taken.uuid, self.clock())
        self.journal.close_plans(self.clock())

    def count(self, model):
        with self.database.reader() as session:
            return session.scalar(sa.select(sa.func.count()).select_from(model))


class RetentionTest(ControlTestCase):
    def drop(self, **days):
        kept = retention.Days.from_conf(self.conf)
        return retention.Retention(self.database, dataclasses.replace(
            kept, **days)).step(self.clock())

    def test_reports_go_first_then_steps_then_moves_and_their_plan(self):
        uuid = self.plan(('vm1', 'a', 'b'))
        self.carry_out()
        self.clock.go(8 * DAY)
        self.assertEqual(1, self.drop()['reports'])
        self.assertIsNone(self.journal.plan(uuid).report)
        self.assertEqual(1, self.journal.plan(uuid).move_count)
        self.clock.go(23 * DAY)
        self.assertLess(3, self.drop()['events'])
        [move] = self.journal.moves(uuid)
        self.assertEqual((moves.COMPLETED, []), (move.state, self.journal.events(move.uuid)))
        self.clock.go(60 * DAY)
        dropped = self.drop()
        self.assertEqual((1, 1), (dropped['moves'], dropped['plans']))
        self.assertEqual([0] * 4, [self.count(model) for model in (
            models.PlanRow, models.MoveRow, models.MoveEventRow, models.ReportRow)])

    def test_a_plan_outlives_its_own_time_with_its_moves(self):
        uuid = self.plan(('vm1', 'a', 'b'))
        self.carry_out()
        self.clock.go(50 * DAY)
        self.assertEqual(0, self.drop(plans=10)['plans'])
        self.assertEqual(plans.DONE, self.journal.plan(uuid).state)

    def test_moves_are_kept_while_another_move_of_their_plan_waits(self):
        """The move of vm2 waits for that of vm1, and finds out how it ended."""
        uuid = self.plan(('vm1', 'a', 'b'), ('vm2', 'b', 'c', 1))
        [first] = self.journal.dispatch(WIDE, self.clock)
        taken = self.journal.claim(first.uuid, self.clock())
        taken = self.journal.advance(taken, moves.MIGRATING, self.clock())
        self.journal.advance(taken, moves.FAILED, self.clock(), finished_at=self.clock())
        self.journal.settle(taken.uuid, self.clock())
        self.clock.go(2 * DAY)
        self.assertEqual(0, self.drop(moves=1)['moves'])
        [given_up] = self.journal.abandon(self.clock(), self.clock() - datetime.timedelta(days=9))
        self.assertEqual('vm2', given_up.instance_uuid)
        self.journal.close_plans(self.clock())
        self.assertEqual(plans.DONE, self.journal.plan(uuid).state)
        self.clock.go(2 * DAY)
        self.assertEqual(2, self.drop(moves=1)['moves'])

    def test_what_waits_or_runs_is_kept_whatever_its_age(self):
        self.plan(('vm1', 'a', 'b'))
        self.plan(('vm2', 'a', 'b'), name='other', state=plans.PROPOSED)
        db_repairs.Repairs(self.database, self.clock).plan(repairs.Repair(
            kind='leaked', instance_uuid='vm1', evidence='', before={}, after={}))
        db_cooldowns.Cooldowns(self.database).quarantine('vm1', -1, 'broken', self.clock())
        db_tasks.Tasks(self.database, 'one', self.clock).announce('migration', 'vm1')
        self.clock.go(4000 * DAY)
        self.assertEqual({0}, set(self.drop(**dict.fromkeys(KINDS, 1)).values()))
        self.assertEqual(2, self.count(models.ReportRow))

    def test_ended_quarantines_closed_repairs_and_lost_tasks_go(self):
        healed = db_repairs.Repairs(self.database, self.clock)
        healed.close(healed.plan(repairs.Repair(
            kind='leaked', instance_uuid='vm1', evidence='', before={}, after={})), repairs.HEALED)
        db_cooldowns.Cooldowns(self.database).quarantine('vm1', 60, 'broken', self.clock())
        db_tasks.Tasks(self.database, 'one', self.clock).find_lost('migration', 'vm1')
        self.clock.go(400 * DAY)
        dropped = self.drop()
        self.assertEqual([1, 1, 1], [dropped[name] for name in ('quarantines', 'repairs', 'tasks')])

    def test_what_operators_did_goes_after_a_year_and_names_with_the_moves(self):
        switches.SwitchBoard(self.database).set(automation.Switch(
            kind=automation.PAUSE, aggregate='gpu', value='pause', set_at=self.clock(),
            set_by='anna'))
        server_names.ServerNames(self.database).save({'vm1': 'web'}, self.clock())
        done = self.maintain()
        done.set_state('maintenance', maintenance.DONE)
        self.clock.go(91 * DAY)
        self.assertEqual({'server_names': 1}, {
            name: count for name, count in self.drop().items() if count})
        self.clock.go(275 * DAY)
        dropped = self.drop()
        self.assertEqual((1, 1), (dropped['switch_events'], dropped['maintenances']))
        # Its switch is in force until it is removed.
        self.assertEqual(1, self.count(models.SwitchRow))

    def test_a_drain_is_kept_until_its_host_is_released_or_drained_again(self):
        kept = db_drains.Drains(self.database)
        for number, (host, state) in enumerate((
                ('a', drains.RELEASED), ('b', drains.EMPTY), ('b', drains.OVERDUE),
                ('c', drains.BLOCKED), ('d', drains.RELEASING))):
            self.clock.go(1)
            kept.request([drains.Drain(
                uuid=str(number), host=host, aggregate='gpu', state=state, requested_by='anna',
                requested_at=self.clock())])
        self.clock.go(366 * DAY)
        self.assertEqual(2, self.drop()['drains'])
        self.assertEqual(['2', '3', '4'], sorted(drain.uuid for drain in kept.in_states(
            (*drains.ACTIVE, drains.EMPTY, drains.OVERDUE, drains.RELEASING, drains.RELEASED))))

    def maintain(self):
        found = db_maintenances.Maintenances(self.database)
        found.begin(maintenance.Maintenance(
            uuid='maintenance', state=maintenance.RUNNING, requested_by='anna',
            requested_at=self.clock(), options=maintenance.MaintenanceOptions(), hosts={}))
        return found

    def test_0_keeps_for_ever(self):
        self.plan(('vm1', 'a', 'b'))
        self.carry_out()
        self.clock.go(4000 * DAY)
        self.assertEqual({}, self.drop(**dict.fromkeys(KINDS, 0)))

    def test_it_goes_in_small_steps(self):
        for number in range(5):
            self.plan((f'vm{number}', 'a', 'b'), state=plans.OBSERVED)
        self.clock.go(100 * DAY)
        pruned = retention.Retention(self.database, retention.Days.from_conf(self.conf))
        self.assertEqual(2, pruned.step(self.clock(), 2)['plans'])
        self.assertEqual(3, self.count(models.PlanRow))

    def test_one_process_prunes_and_another_takes_over_when_it_is_gone(self):
        pruners = [retention.Pruner(self.conf, self.database, name, self.clock)
                   for name in ('one', 'two')]
        self.plan(('vm1', 'a', 'b'), state=plans.OBSERVED)
        for pruner in pruners:
            pruner.tick()
        self.clock.go(100 * DAY)
        pruners[1].tick()
        self.assertEqual(0, self.count(models.PlanRow))


class LeaseTest(ControlTestCase):
    def test_work_belongs_to_one_until_it_is_silent_or_lets_go(self):
        one, two = (leases.Leases(self.database, name, self.clock) for name in ('one', 'two'))
        self.assertTrue(one.hold('reconciler', 60))
        self.assertFalse(two.hold('reconciler', 60))
        self.clock.go(30)
        self.assertTrue(one.hold('reconciler', 60))
        self.clock.go(59)
        self.assertFalse(two.hold('reconciler', 60))
        self.clock.go(2)
        self.assertTrue(two.hold('reconciler', 60))
        self.assertFalse(one.hold('reconciler', 60))
        one.advance('reconciler', self.clock())
        self.assertIsNone(two.progress('reconciler'))
        two.advance('reconciler', self.clock())
        two.release('reconciler')
        self.assertTrue(one.hold('reconciler', 60))
        self.assertEqual(self.clock(), one.progress('reconciler'))


class ObservedTest(ControlTestCase):
    def test_the_report_of_a_plan_that_is_still_made_is_kept(self):
        uuid = self.plan(('vm1', 'a', 'b'), state=plans.OBSERVED)
        self.clock.go(8 * DAY)
        self.assertEqual(uuid, self.plan(('vm1', 'a', 'b'), state=plans.OBSERVED))
        store = retention.Retention(self.database, retention.Days.from_conf(self.conf))
        self.assertEqual(0, store.step(self.clock())['reports'])
        record = self.journal.plan(uuid)
        approving.approve(self.journal, record, 'ann', self.clock())
        self.assertEqual(plans.APPROVED, self.journal.plan(uuid).state)

    def test_the_report_of_a_plan_that_is_not_made_any_more_goes(self):
        self.plan(('vm1', 'a', 'b'), state=plans.OBSERVED)
        self.clock.go(8 * DAY)
        store = retention.Retention(self.database, retention.Days.from_conf(self.conf))
        self.assertEqual(1, store.step(self.clock())['reports'])
        uuid = self.plan(('vm1', 'a', 'b'), state=plans.OBSERVED)
        approving.approve(self.journal, self.journal.plan(uuid), 'ann', self.clock())
        self.assertEqual(1, self.journal.plan(uuid).times_seen)

    def test_a_plan_that_says_what_the_last_one_said_is_not_stored_again(self):
        first = self.plan(('vm1', 'a', 'b'), state=plans.OBSERVED)
        begun = self.clock()
        self.clock.go(300)
        self.assertEqual(first, self.plan(('vm1', 'a', 'b'), state=plans.OBSERVED))
        record = self.journal.plan(first)
        self.assertEqual((2, begun, self.clock()),
                         (record.times_seen, record.created_at, record.last_seen_at))
        self.clock.go(300)
        other = self.plan(('vm1', 'a', 'c'), state=plans.OBSERVED)
        self.assertNotEqual(first, other)
        self.clock.go(300)
        self.assertNotIn(self.plan(('vm1', 'a', 'b'), state=plans.OBSERVED), (first, other))
        self.assertEqual(3, self.count(models.ReportRow))

    def test_a_plan_that_may_run_is_a_plan_of_its_own(self):
        self.plan(('vm1', 'a', 'b'), state=plans.OBSERVED)
        self.plan(('vm1', 'a', 'b'))
        self.assertEqual([plans.EXECUTING, plans.OBSERVED],
                         sorted(plan.state for plan in self.journal.plans()))

    def test_who_stayed_is_kept_of_the_latest_report_alone(self):
        report = fixtures.report([('vm1', 'a', 'b')])
        report = dataclasses.replace(report, not_moved=(
            plans.Skip(reason='no_gain', instances=tuple(f'vm{n}' for n in range(30000))),))
        uuid = self.journal.record_plan(report, plans.OBSERVED, self.clock(), self.clock())
        kept = json.loads(self.journal.plan(uuid).report)
        self.assertEqual([{'reason': 'no_gain', 'count': 30000}], kept['not_moved'])
        cycles = db_cycles.Cycles(self.database)
        cycles.begin('gpu', 'one', self.clock(), 1)
        cycles.end('gpu', self.clock(), plans.PLANNED, True, report.to_json())
        [last] = cycles.last()
        [skip] = json.loads(last.report)['not_moved']
        self.assertEqual(30000, len(skip['instances']))
        with self.database.reader() as session:
            [(body, report_size)] = session.execute(sa.text(
                'SELECT (SELECT length(body) FROM reports), length(report) FROM cycles'))
        self.assertLess(body, 1000)
        self.assertLess(report_size, 30000 * 8)


class IndexesTest(ControlTestCase):
    """Queries of every few seconds read no table of the journal from end to end."""

    LARGE = ('plans', 'reports', 'moves', 'move_events', 'repairs', 'quarantines', 'cooldowns',
             'tasks')

    def setUp(self):
        super().setUp()
        self.asked = []
        sa.event.listen(self.database.engine, 'before_cursor_execute', self._note)
        # There is something to find everywhere.
        self.plan(('vm1', 'a', 'b'), ('vm2', 'c', 'd'))
        self.plan(('vm3', 'a', 'b'), name='other', state=plans.PROPOSED)
        self.carry_out()
        self.plan(('vm4', 'a', 'b'), ('vm5', 'c', 'd', 1))
        self.asked.clear()

    def _note(self, _connection, _cursor, statement, parameters, _context, _many):
        if statement.lstrip().upper().startswith(('SELECT', 'UPDATE', 'DELETE')):
            self.asked.append((statement, parameters))

    def scans(self):
        with self.database.engine.connect() as connection:
            for statement, parameters in list(self.asked):
                for row in connection.exec_driver_sql(f'EXPLAIN QUERY PLAN {statement}',
                                                      parameters):
                    if row[3].startswith('SCAN') and row[3].split()[1] in self.LARGE:
                        yield f'{row[3]}: {statement}'

    def tick(self):
        journal, now = self.journal, self.clock()
        early = now - datetime.timedelta(hours=1)
        journal.approved_plans()
        journal.open_plans()
        journal.aggregates_with_open_plans()
        journal.abandon(now, early)
        journal.reclaim(now, early)
        journal.dispatch(WIDE, self.clock, ['gpu'])
        journal.unsettled(now)
        journal.close_plans(now)
        journal.mine()
        journal.adopt(now, {**journal.owners(), 'one': now, None: None})
        journal.hosts_being_emptied()
        journal.durations()
        journal.tries(early)
        journal.predictions()
        journal.failures_of_drains(early)
        journal.refused_since(early)
        journal.moved_since(early)
        journal.requested_since(early)
        journal.emptied_since(early)
        journal.instances_moved_since(early)
        journal.moves_under_way()
        journal.plans('gpu')
        register = db_tasks.Tasks(self.database, 'one', self.clock)
        register.beat()
        register.dead(early, early)
        cooldowns = db_cooldowns.Cooldowns(self.database)
        cooldowns.cooling(now)[db_cooldowns.INSTANCE]
        cooldowns.quarantined(now)
        self.plan(('vm9', 'a', 'b'), state=plans.OBSERVED, name='third')
        retention.Retention(self.database, retention.Days.from_conf(self.conf)).step(now)

    def test_every_question_of_a_tick_uses_an_index(self):
        self.tick()
        self.assertLess(20, len(self.asked))
        self.assertEqual([], list(self.scans()))

    def test_nothing_is_written_where_there_is_nothing_to_close(self):
        self.journal.close_plans(self.clock())
        self.assertEqual([], [statement for statement, _ in self.asked
                              if not statement.startswith('SELECT')])
