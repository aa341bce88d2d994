"""A planning process that hangs, is stopped or dies: its aggregates are let go, and said to be."""

import dataclasses
import datetime
import os
import re
import signal
import subprocess
import sys
import time

import fixtures
import testtools
from oslo_config import cfg
from oslo_db import exception as db_exc

from kronos_nova import conf as kronos_conf
from kronos_nova.db import cycles as db_cycles
from kronos_nova.db import journal
from kronos_nova.db import switches
from kronos_nova.engine import cycle_scheduler
from kronos_nova.engine import guard
from kronos_nova.engine import locks
from kronos_nova.engine import planning_client
from tests.unit.db import fixtures as db_fixtures

INTERVAL = 300
TIMEOUT = 900
SECOND = datetime.timedelta(seconds=1)


class ChildTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.clock = db_fixtures.Clock()
        self.seconds = 0.0
        self.database = self.useFixture(db_fixtures.ControlDatabase()).database
        self.cycles = db_cycles.Cycles(self.database)
        self.state_path = self.useFixture(fixtures.TempDir()).path
        self.log = self.useFixture(fixtures.FakeLogger())
        self.conf = cfg.ConfigOpts()
        kronos_conf.register_opts(self.conf)
        self.conf([], default_config_files=[])
        self.set(automation='auto', aggregates=['a', 'b'], evaluation_interval=INTERVAL,
                 cycle_timeout=TIMEOUT, planner_idle_time=0)

    def set(self, **options):
        for name, value in options.items():
            self.conf.set_override(name, value, 'kronos')

    def go(self, seconds):
        self.clock.go(seconds)
        self.seconds += seconds

    def worker(self, name='one', child='tests.hostile.fakes_unstoppable_worker', cycles=None):
        made = cycle_scheduler.CycleScheduler(
            self.conf, cycle_scheduler.SchedulerPorts(
                locks=locks.AggregateLocks(None, self.state_path, name),
                switches=switches.SwitchBoard(self.database), cycles=cycles or self.cycles,
                journal=journal.Journal(self.database, name),
                aggregate_hosts=dict, utcnow=self.clock, monotonic=lambda: self.seconds),
            planning_client.Command(child, []))
        self.addCleanup(made.stop)
        return made

    def scopes(self, worker):
        return set() if worker.child is None else set(worker._scopes)


class HangingChildTest(ChildTestCase):
    def test_a_child_that_hangs_for_days_is_killed_at_its_limit(self):
        one = self.worker()
        one.tick()
        child = one.child
        for _hour in range(72):
            self.go(3600)
            one.tick()
            if child.poll() is not None:
                break
        self.assertEqual(-signal.SIGKILL, child.returncode)
        self.assertIn('cycle_timeout allows 900 s', self.log.output)

    def test_one_that_is_stopped_is_killed_too(self):
        one = self.worker()
        one.tick()
        child = one.child
        child.send_signal(signal.SIGSTOP)
        self.go(TIMEOUT + 1)
        one.tick()
        self.assertEqual(-signal.SIGKILL, child.returncode)

    def test_one_that_others_leave_no_processor_is_said_to_have_waited(self):
        self.addCleanup(os.sched_setaffinity, 0, os.sched_getaffinity(0))
        os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
        others = subprocess.Popen([sys.executable, '-c', 'while True: pass'])
        self.addCleanup(others.wait)
        self.addCleanup(others.kill)
        one = self.worker()
        one.tick()
        time.sleep(3)
        self.go(TIMEOUT + 1)
        one.tick()
        [waited] = re.findall('For ([0-9]+) s the process waited for a processor', self.log.output)
        self.assertGreaterEqual(int(waited), 1)

    def test_its_aggregates_are_tried_again_alone_after_pauses_that_grow(self):
        one, began = self.worker(), []
        for _second in range(0, 40_000, 100):
            self.go(100)
            had = one.child
            one.tick()
            if one.child is not None and one.child is not had:
                began.append((self.seconds, self.scopes(one)))
        self.assertEqual({'a', 'b'}, began[0][1])
        self.assertTrue(all(len(scopes) == 1 for _when, scopes in began[1:]), began)
        times = [when for when, scopes in began[1:] if scopes == {'a'}]
        pauses = [later - sooner for sooner, later in zip(times, times[1:], strict=False)]
        self.assertEqual(sorted(pauses), pauses)
        self.assertGreaterEqual(pauses[-1], 3600)

    def test_healthy_aggregates_go_first(self):
        one = self.worker()
        self.cycles.begin('a', 'one', self.clock(), INTERVAL)
        self.cycles.fail(['a'], self.clock(), INTERVAL)
        self.go(INTERVAL)
        one.tick()
        self.assertEqual({'b'}, self.scopes(one))

    def test_one_good_evaluation_ends_the_pauses(self):
        for _time in range(5):
            self.cycles.begin('a', 'one', self.clock(), 0)
            self.cycles.fail(['a'], self.clock(), INTERVAL)
            self.go(3600)
        self.assertEqual({'a'}, self.cycles.failed())
        self.cycles.begin('a', 'one', self.clock(), 0)
        self.cycles.end('a', self.clock(), 'balanced', False, '{}')
        self.assertEqual(set(), self.cycles.failed())
        self.assertEqual(['a'], self.cycles.due(['a'], self.clock() + INTERVAL * SECOND, INTERVAL))

    def test_what_the_child_had_finished_has_not_failed(self):
        for name in 'ab':
            self.cycles.begin(name, 'one', self.clock(), INTERVAL)
        self.go(1)
        self.cycles.end('a', self.clock(), 'balanced', False, '{}')
        self.cycles.fail(['a', 'b'], self.clock(), INTERVAL)
        self.assertEqual({'b'}, self.cycles.failed())

    def test_stopping_waits_for_a_bounded_time(self):
        self.patch(cycle_scheduler, 'LEAVE_SECONDS', 0.2)
        one, two = self.worker('one'), self.worker('two')
        one.tick()
        child = one.child
        child.send_signal(signal.SIGSTOP)
        started = time.monotonic()
        one.stop()
        self.assertLess(time.monotonic() - started, 5)
        self.assertIsNotNone(child.returncode)
        self.go(INTERVAL)
        two.tick()
        self.assertEqual({'a', 'b'}, self.scopes(two))


class StoppedWorkerTest(ChildTestCase):
    def setUp(self):
        super().setUp()
        self.at_the_hosts = lambda: None
        self.set(evaluation_interval=10 * INTERVAL)

    def aggregate_hosts(self):
        self.at_the_hosts()
        return {'a': ['h1'], 'b': ['h2']}

    def worker(self, name='one'):
        made = super().worker(name)
        made.scheduler_ports = dataclasses.replace(
            made.scheduler_ports, aggregate_hosts=self.aggregate_hosts)
        return made

    def test_one_that_stops_while_it_takes_aggregates_does_not_keep_others_from_planning(self):
        one, two = self.worker('one'), self.worker('two')

        def others_meanwhile():
            self.at_the_hosts = lambda: None
            for _tick in range(cycle_scheduler.TAKING_PATIENCE // 2):
                two.tick()
                self.assertIsNone(two.child)
                self.go(2)
            two.tick()
            self.assertEqual({'b'}, self.scopes(two))
            self.assertIn('Another worker has held the lock', self.log.output)

        self.at_the_hosts = others_meanwhile
        one.tick()
        self.assertEqual({'a'}, self.scopes(one))

    def test_others_have_patience_with_each_that_takes(self):
        one, two = self.worker('one'), self.worker('two')
        for _hour in range(3):
            self.at_the_hosts = two.tick
            one.tick()
            self.assertEqual({'a', 'b'}, self.scopes(one))
            two.tick()  # sees that nothing is due any more
            self.assertIsNone(two.child)
            one.stop()
            self.go(10 * INTERVAL)
        self.assertNotIn('Another worker has held the lock', self.log.output)


class LeakedLockTest(ChildTestCase):
    def test_a_database_that_fails_after_the_lock_leaves_no_lock(self):
        class Failing(db_cycles.Cycles):
            def begin(self, *arguments):
                raise db_exc.DBConnectionError('gone')

        one, two = self.worker('one', cycles=Failing(self.database)), self.worker('two')
        guard.Guard().run('planner', one.tick)
        self.assertIn('a database does not answer', self.log.output)
        two.tick()
        self.assertEqual({'a', 'b'}, self.scopes(two))

    def test_one_that_fails_between_two_aggregates_leaves_no_lock_on_the_first(self):
        class Failing(db_cycles.Cycles):
            def begin(self, aggregate, *arguments):
                if aggregate == 'b':
                    raise db_exc.DBConnectionError('gone')
                return super().begin(aggregate, *arguments)

        one, two = self.worker('one', cycles=Failing(self.database)), self.worker('two')
        guard.Guard().run('planner', one.tick)
        self.assertIsNone(one.child)
        self.go(INTERVAL)
        two.tick()
        self.assertEqual({'a', 'b'}, self.scopes(two))

    def test_a_machine_without_a_process_to_spare_leaves_no_lock(self):
        def fails(*args, **kwargs):
            raise BlockingIOError('Resource temporarily unavailable')

        one, two = self.worker('one'), self.worker('two')
        with fixtures.MonkeyPatch('subprocess.Popen', fails):
            one.tick()
        self.assertIsNone(one.child)
        self.go(INTERVAL)
        two.tick()
        self.assertEqual({'a', 'b'}, self.scopes(two))


class MemoryTest(testtools.TestCase):
    def test_the_kernel_takes_a_planning_process_first(self):
        code = ('from kronos_nova.engine import planning_worker as worker; '
                'worker.end_with_parent(); '
                'print(open("/proc/self/oom_score_adj").read())')
        said = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True,
                              check=True)
        self.assertEqual('500', said.stdout.strip())
