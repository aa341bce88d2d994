"""Scheduling of cycles: workers with locks of files and children that are real processes."""

import datetime
import errno
import os

import fixtures
import sqlalchemy as sa
import testtools
from oslo_config import cfg

from kronos_nova import conf as kronos_conf
from kronos_nova.db import cycles
from kronos_nova.db import drains as db_drains
from kronos_nova.db import journal
from kronos_nova.db import models
from kronos_nova.db import switches
from kronos_nova.drain.states import Drain
from kronos_nova.engine import cycle_scheduler
from kronos_nova.engine import locks
from kronos_nova.engine import planning_client
from kronos_nova.objects import plan as plans
from tests.unit.db import fixtures as db_fixtures

INTERVAL = 300


class PlanningTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.clock = db_fixtures.Clock()
        self.database = self.useFixture(db_fixtures.ControlDatabase()).database
        self.cycles = cycles.Cycles(self.database)
        self.hosts = {'a': ['h1'], 'b': ['h2']}
        self.hosts_now = lambda: self.hosts
        self.state_path = self.useFixture(fixtures.TempDir()).path
        self.conf = cfg.ConfigOpts()
        kronos_conf.register_opts(self.conf)
        self.conf([], default_config_files=[])
        self.set(automation='auto', aggregates=['a', 'b'], evaluation_interval=INTERVAL,
                 aggregates_per_cycle=1, planner_idle_time=0)

    def set(self, **options):
        for name, value in options.items():
            self.conf.set_override(name, value, 'kronos')

    def worker(self, name):
        made = cycle_scheduler.CycleScheduler(
            self.conf, cycle_scheduler.SchedulerPorts(
                locks=locks.AggregateLocks(None, self.state_path, name), cycles=self.cycles,
                switches=switches.SwitchBoard(self.database),
                journal=journal.Journal(self.database, name), utcnow=self.clock,
                aggregate_hosts=lambda: self.hosts_now()),
            planning_client.Command('tests.unit.engine.fakes_sleeping_worker', []))
        self.addCleanup(made.stop)
        return made

    def begun(self):
        """{aggregate: the worker that began its last evaluation}"""
        with self.database.reader() as session:
            return dict(session.execute(sa.select(
                models.CycleRow.aggregate, models.CycleRow.worker)).all())

    def test_workers_plan_different_aggregates_side_by_side(self):
        one, two, three = map(self.worker, ('one', 'two', 'three'))
        for worker in (one, two, three):
            worker.tick()
        self.assertEqual({'a': 'one', 'b': 'two'}, self.begun())
        self.assertIsNone(three.child)

    def test_what_an_operator_drains_is_tried_again_soon_after_a_failure(self):
        self.set(aggregates=['a'])
        db_drains.Drains(self.database).request([Drain(
            uuid='d', host='h1', aggregate='a', state='draining', requested_by='jane',
            requested_at=self.clock())])
        one, two = self.worker('one'), self.worker('two')
        one.tick()
        self.cycles.fail(['a'], self.clock(), INTERVAL)
        one.stop()
        self.clock.go(cycle_scheduler.SOON + 1)
        two.tick()
        self.assertIsNone(two.child)
        self.clock.go(cycle_scheduler.SOON)
        two.tick()
        self.assertEqual({'a': 'two'}, self.begun())

    def drain_of(self, aggregate):
        """The table of drains, with a drain ``d`` of a host of the aggregate."""
        known = db_drains.Drains(self.database)
        known.request([Drain(
            uuid='d', host='h1', aggregate=aggregate, state='draining', requested_by='jane',
            requested_at=self.clock())])
        return known

    def test_a_drain_of_an_aggregate_that_left_the_scope_waits_and_says_so(self):
        known = self.drain_of('c')
        worker = self.worker('one')
        self.clock.go(cycle_scheduler.UNEVALUATED_SECONDS)
        worker.tick()
        self.assertEqual('an evaluation of aggregate c, which is not in scope any more ([kronos] '
                         'aggregates, include_unassigned_hosts); "host release h1" ends the drain',
                         known.get('d').waits_for)
        self.assertNotIn('c', self.begun())

    def test_a_drain_that_a_worker_with_another_scope_evaluates_is_left_to_it(self):
        """Conductors may name different aggregates."""
        known = self.drain_of('c')
        worker = self.worker('one')
        for _ in range(4):
            worker.tick()
            self.assertEqual('', known.get('d').waits_for)
            self.clock.go(cycle_scheduler.UNEVALUATED_SECONDS - 1)
            self.assertTrue(self.cycles.begin('c', 'other', self.clock(), cycle_scheduler.SOON))
            self.clock.go(1)
            self.cycles.end('c', self.clock(), plans.DRAINING, False, '{}')

    def test_an_evaluation_by_a_wrong_clock_does_not_count_for_a_drain(self):
        known = self.drain_of('c')
        self.clock.go(24 * 3600)
        self.cycles.begin('c', 'other', self.clock(), cycle_scheduler.SOON)
        self.clock.go(-23 * 3600)
        self.worker('one').tick()
        self.assertIn('which is not in scope any more', known.get('d').waits_for)

    def test_one_worker_plans_all_that_is_due_unless_told_otherwise(self):
        self.set(aggregates_per_cycle=0)
        one, two = self.worker('one'), self.worker('two')
        one.tick()
        two.tick()
        self.assertEqual({'a': 'one', 'b': 'one'}, self.begun())
        self.assertIsNone(two.child)

    def test_a_name_that_is_left_empty_by_mistake_is_evaluated_and_found_wrong(self):
        self.set(aggregates=['', 'a'], aggregates_per_cycle=0)
        self.worker('one').tick()
        self.assertEqual({'': 'one', 'a': 'one'}, self.begun())

    def test_workers_that_look_at_once_do_not_share_what_one_plans_together(self):
        self.set(aggregates_per_cycle=0)
        one, two = self.worker('one'), self.worker('two')
        asked = []

        def hosts_while_the_other_looks():
            if not asked:
                asked.append(two.tick())
            return self.hosts

        self.hosts_now = hosts_while_the_other_looks
        one.tick()
        self.assertEqual({'a': 'one', 'b': 'one'}, self.begun())
        self.assertIsNone(two.child)

    def test_what_two_workers_planned_apart_is_planned_together_again(self):
        one, two = self.worker('one'), self.worker('two')
        for worker in (one, two):
            worker.tick()
            worker.stop()
        self.set(aggregates_per_cycle=0, planner_idle_time=2 * INTERVAL)
        self.clock.go(INTERVAL)
        two.tick()
        one.tick()
        self.assertEqual({'a': 'two', 'b': 'two'}, self.begun())
        self.assertIsNone(one.child)

    def test_an_aggregate_is_not_planned_before_it_is_due_nor_by_two_workers(self):
        self.set(aggregates=['a'])
        one, two = self.worker('one'), self.worker('two')
        one.tick()
        self.clock.go(INTERVAL)
        two.tick()
        self.assertEqual({'a': 'one'}, self.begun())
        one.stop()
        self.clock.go(-1)
        two.tick()
        self.assertEqual({'a': 'one'}, self.begun())
        self.clock.go(1)
        two.tick()
        self.assertEqual({'a': 'two'}, self.begun())

    def test_a_controller_whose_clock_was_a_day_ahead_delays_no_planning(self):
        self.set(aggregates_per_cycle=0)
        day = 86400
        one, two = self.worker('one'), self.worker('two')
        self.clock.go(day)
        one.tick()
        one.stop()
        self.cycles.fail(['b'], self.clock(), INTERVAL)
        self.clock.go(-day)
        two.tick()
        self.assertEqual({'a': 'two', 'b': 'one'}, self.begun())  # what failed is tried alone
        two.stop()
        self.clock.go(1)
        two.tick()
        self.assertEqual({'a': 'two', 'b': 'two'}, self.begun())
        two.stop()
        self.clock.go(INTERVAL - 2)
        one.tick()
        self.assertEqual({'a': 'two', 'b': 'two'}, self.begun())

    def test_clocks_that_differ_by_less_plan_nothing_more_often(self):
        self.set(aggregates=['a'])
        one, two = self.worker('one'), self.worker('two')
        self.clock.go(INTERVAL)
        one.tick()
        one.stop()
        self.clock.go(-INTERVAL)
        two.tick()
        self.assertEqual({'a': 'one'}, self.begun())

    def test_another_takes_over_from_a_worker_that_died_within_two_intervals(self):
        self.set(aggregates=['a'])
        one, two = self.worker('one'), self.worker('two')
        one.tick()
        # What the kernel does for a process that is killed.
        one.scheduler_ports.locks.release_all()
        self.clock.go(INTERVAL)
        two.tick()
        self.assertEqual({'a': 'two'}, self.begun())

    def test_a_child_that_was_killed_leaves_its_aggregate_to_others(self):
        self.set(aggregates=['a'])
        one, two = self.worker('one'), self.worker('two')
        one.tick()
        one.child.kill()
        one.child.wait()
        one.tick()
        self.clock.go(INTERVAL)
        two.tick()
        self.assertEqual({'a': 'two'}, self.begun())

    def test_aggregates_are_planned_later_if_no_child_can_be_started(self):
        self.set(aggregates=['a'])
        log = self.useFixture(fixtures.FakeLogger())
        one, two = self.worker('one'), self.worker('two')
        with fixtures.MonkeyPatch('sys.executable', '/no/such/python'):
            one.tick()
        self.assertIsNone(one.child)
        self.assertIn('No process can be started that plans aggregates a: [Errno 2]', log.output)
        self.clock.go(INTERVAL)
        two.tick()
        self.assertEqual({'a': 'two'}, self.begun())
        self.assertIsNotNone(two.child)

    def test_a_child_lets_the_service_go_first(self):
        worker = self.worker('one')
        worker.tick()
        self.assertEqual(min(os.nice(0) + 19, 19),
                         os.getpriority(os.PRIO_PROCESS, worker.child.pid))
        self.assertEqual(os.SCHED_IDLE, os.sched_getscheduler(worker.child.pid))

    def test_where_a_container_forbids_that_a_child_is_nice_at_least(self):
        for number in (errno.EPERM, errno.EINVAL, errno.ENOSYS):
            refusal = OSError(number, os.strerror(number))
            with fixtures.MockPatchObject(os, 'sched_setscheduler', side_effect=refusal):
                worker = self.worker(f'without {number}')
                worker.tick()
            self.assertEqual(min(os.nice(0) + 19, 19),
                             os.getpriority(os.PRIO_PROCESS, worker.child.pid))
            worker.stop()
            self.clock.go(INTERVAL)

    def test_where_a_container_forbids_priorities_a_child_plans_as_well(self):
        for name in ('setpriority', 'sched_setscheduler'):
            self.useFixture(fixtures.MockPatchObject(
                os, name, side_effect=PermissionError(errno.EPERM, 'Operation not permitted')))
        log = self.useFixture(fixtures.FakeLogger())
        worker = self.worker('one')
        worker.tick()
        self.assertIsNone(worker.child.poll())
        self.assertIn('The priority of a planning process cannot be set', log.output)
        self.assertIn('[Errno 1] Operation not permitted', log.output)

    def test_a_child_on_a_busy_controller_may_be_given_more(self):
        self.conf.set_override('planner_niceness', 3, 'kronos')
        worker = self.worker('one')
        worker.tick()
        self.assertEqual(min(os.nice(0) + 3, 19),
                         os.getpriority(os.PRIO_PROCESS, worker.child.pid))
        self.assertEqual(os.SCHED_OTHER, os.sched_getscheduler(worker.child.pid))

    def test_an_approved_plan_is_started_before_its_aggregate_is_due_again(self):
        operator = journal.Journal(self.database, 'operator')
        for aggregate in 'ab':
            self.cycles.begin(aggregate, 'one', self.clock(), INTERVAL)
        worker = self.worker('one')
        self.clock.go(cycle_scheduler.SOON)
        worker.tick()
        self.assertIsNone(worker.child)
        report = db_fixtures.report([('vm1', 'x', 'y')], name='b')
        later = self.clock() + datetime.timedelta(hours=1)
        uuid = operator.record_plan(report, plans.PROPOSED, self.clock(), later)
        operator.approve_plan(uuid, report.moves, 'jane', self.clock())
        worker.tick()
        self.assertIsNotNone(worker.child)

    def test_aggregates_that_share_hosts_are_one_workers(self):
        self.set(aggregates=['a', 'b', 'c', 'd'])
        self.hosts = {'a': ['h1', 'h2'], 'b': ['h3'], 'c': ['h2', 'h4'], 'd': ['h4']}
        one, two, three = map(self.worker, ('one', 'two', 'three'))
        for worker in (one, two, three):
            worker.tick()
        self.assertEqual({'a': 'one', 'c': 'one', 'd': 'one', 'b': 'two'}, self.begun())
        self.assertIsNone(three.child)

    def test_one_that_is_due_brings_those_that_it_shares_hosts_with(self):
        self.hosts = {'a': ['h1'], 'b': ['h1']}
        self.cycles.begin('b', 'earlier', self.clock(), INTERVAL)
        worker = self.worker('one')
        worker.tick()
        self.assertEqual({'a': 'one', 'b': 'one'}, self.begun())

    def test_nothing_is_taken_of_aggregates_of_which_one_is_another_workers(self):
        self.set(aggregates=['b'])
        one, two = self.worker('one'), self.worker('two')
        one.tick()
        self.set(aggregates=['a', 'b'])
        self.hosts = {'a': ['h1'], 'b': ['h1']}  # a host was added meanwhile
        two.tick()
        self.assertEqual({'b': 'one'}, self.begun())
        self.assertTrue(two.scheduler_ports.locks.acquire('a'))

    def test_one_that_is_off_does_not_count(self):
        self.set(aggregate_automation={'b': 'off'})
        self.hosts = {'a': ['h1'], 'b': ['h1']}
        self.worker('one').tick()
        self.assertEqual({'a': 'one'}, self.begun())

    def test_an_aggregate_whose_level_is_off_is_left_alone(self):
        self.set(aggregate_automation={'a': 'off'}, aggregates_per_cycle=0)
        self.worker('one').tick()
        self.assertEqual({'b': 'one'}, self.begun())
