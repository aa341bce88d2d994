"""A planning process that stays: real processes that serve real orders."""

import gc
import os
import pathlib
import signal
import subprocess
import sys
import time

import fixtures
import testtools
from oslo_config import cfg

from kronos_nova import conf as kronos_conf
from kronos_nova.db import cycles as db_cycles
from kronos_nova.db import journal
from kronos_nova.db import switches
from kronos_nova.engine import cycle_scheduler
from kronos_nova.engine import locks
from kronos_nova.engine import planning_client
from kronos_nova.engine import planning_worker
from tests.unit.db import fixtures as db_fixtures

INTERVAL = 300
PATIENCE = 600
"""Seconds. By default the process runs only where nothing else wants a processor, and two seconds
of work take minutes on a machine where all of them are taken."""
POLICIES = """policies:
- {name: cpu, mode: spread, weight: 1.0, threshold: 0.1, imbalance_query: up,
   vm_profile_query: up, max_migrations_per_cycle: 1}
"""
CONFIG = """[DEFAULT]
state_path = {path}
[kronos]
policies_file = {path}/policies.yaml
planner_max_cycles = {cycles}
# By default a planning process has only the processor that others leave: tests leave none.
planner_niceness = 0
[kronos_database]
connection = {url}
[kronos_prometheus]
url = http://127.0.0.1:1
"""


class WarmTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.clock, self.seconds = db_fixtures.Clock(), 0.0
        self.database = self.useFixture(db_fixtures.ControlDatabase()).database
        self.path = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (self.path / 'policies.yaml').write_text(POLICIES)
        self.configure()

    def configure(self, cycles=100):
        config = self.path / 'nova.conf'
        config.write_text(CONFIG.format(path=self.path, cycles=cycles,
                                        url=self.database.engine.url))
        self.conf = cfg.ConfigOpts()
        kronos_conf.register_opts(self.conf)
        self.conf([f'--config-file={config}'])
        self.conf.set_override('aggregates', ['a', 'b'], 'kronos')

    def worker(self, name='one'):
        made = cycle_scheduler.CycleScheduler(
            self.conf, cycle_scheduler.SchedulerPorts(
                locks=locks.AggregateLocks(None, str(self.path), name),
                cycles=db_cycles.Cycles(self.database),
                switches=switches.SwitchBoard(self.database),
                journal=journal.Journal(self.database, name), utcnow=self.clock,
                aggregate_hosts=dict,
                monotonic=lambda: self.seconds),
            planning_client.Command('tests.unit.engine.fakes_planning_worker',
                                     [str(self.path / 'nova.conf')]))
        self.addCleanup(made.stop)
        return made

    def go(self, seconds):
        self.clock.go(seconds)
        self.seconds += seconds

    def cycle(self, worker):
        """Let the worker start what is due and see it end."""
        worker.tick()
        self.assertIsNotNone(worker.child)
        deadline = time.monotonic() + PATIENCE
        while worker.child is not None:
            self.assertLess(time.monotonic(), deadline)
            worker.tick()
            time.sleep(0.02)

    def readings(self):
        """[(process, scopes)]"""
        return [tuple(line.split()) for line in
                (self.path / 'readings').read_text().splitlines()]

    def processes(self):
        return [process for process, _scopes in self.readings()]

    def test_one_process_plans_again_and_again(self):
        worker = self.worker()
        for _cycle in range(3):
            self.cycle(worker)
            self.go(INTERVAL)
        self.assertEqual(1, len(set(self.processes())))
        self.assertEqual(['a,b'] * 3, [scopes for _process, scopes in self.readings()])
        self.assertIn('could not plan aggregates a, b', self.log.output)
        self.assertEqual(0, len(worker.scheduler_ports.cycles.failed()))

    def test_a_service_that_is_to_read_its_configuration_again_keeps_it(self):
        worker = self.worker()
        self.cycle(worker)
        process = worker._process.popen
        self.assertNotEqual(os.getpgrp(), os.getpgid(process.pid))
        process.send_signal(signal.SIGHUP)
        self.go(INTERVAL)
        self.cycle(worker)
        self.assertEqual(1, len(set(self.processes())))
        self.assertNotIn('ended unexpectedly', self.log.output)

    def test_it_gives_the_locks_back_between_two_cycles(self):
        worker = self.worker()
        self.cycle(worker)
        self.assertTrue(locks.AggregateLocks(None, str(self.path), 'other').acquire('a'))

    def test_one_that_has_had_nothing_to_do_for_long_ends(self):
        worker = self.worker()
        self.cycle(worker)
        process = worker._process.popen
        self.go(INTERVAL - 1)
        worker.tick()
        self.assertIsNone(process.poll())
        self.conf.set_override('aggregates', ['c'], 'kronos')
        self.conf.set_override('automation', 'off', 'kronos')
        self.go(1000)
        worker.tick()
        process.wait(PATIENCE)
        self.assertIsNone(worker._process)

    def test_one_that_is_too_old_makes_way_for_another(self):
        self.configure(cycles=2)
        worker = self.worker()
        for _cycle in range(3):
            self.cycle(worker)
            self.go(INTERVAL)
        one, two, three = self.processes()
        self.assertEqual(one, two)
        self.assertNotEqual(two, three)

    def test_a_changed_configuration_is_read_by_a_new_process(self):
        worker = self.worker()
        self.cycle(worker)
        with (self.path / 'nova.conf').open('a') as file:
            file.write('timeout = 3\n')
        self.go(INTERVAL)
        self.cycle(worker)
        self.assertEqual(2, len(set(self.processes())))

    def test_another_niceness_is_that_of_the_next_cycle(self):
        worker = self.worker()
        self.cycle(worker)
        self.go(INTERVAL)
        # Nova reads its files again after a cycle that found them changed.
        self.conf.set_override('planner_niceness', 3, 'kronos')
        worker.tick()
        self.assertEqual(min(os.nice(0) + 3, 19),
                         os.getpriority(os.PRIO_PROCESS, worker.child.pid))

    def test_one_that_was_killed_while_it_had_nothing_to_do_is_replaced(self):
        worker = self.worker()
        self.cycle(worker)
        worker._process.popen.kill()
        worker._process.popen.wait()
        self.go(INTERVAL)
        self.cycle(worker)
        self.assertEqual(2, len(set(self.processes())))

    def test_it_ends_with_the_worker(self):
        worker = self.worker()
        self.cycle(worker)
        process = worker._process.popen
        worker.stop()
        process.wait(PATIENCE)

    def test_the_worker_that_planned_last_has_a_head_start(self):
        one, two = self.worker('one'), self.worker('two')
        self.cycle(one)
        self.go(INTERVAL)
        two.tick()
        self.assertIsNone(two.child)
        self.go(cycle_scheduler.HEAD_START)
        two.tick()
        self.assertIsNotNone(two.child)

    def test_nothing_of_the_pipes_is_left_open(self):
        before = set(os.listdir('/proc/self/fd'))
        worker = self.worker()
        self.cycle(worker)
        worker.stop()
        self.assertEqual(before, set(os.listdir('/proc/self/fd')) & before)

    def test_one_whose_worker_was_stopped_during_a_cycle_ends_without_an_error(self):
        self.addCleanup(gc.set_threshold, *gc.get_threshold())
        read, answers = os.pipe()
        os.close(read)
        self.addCleanup(os.close, answers)
        self.useFixture(fixtures.MonkeyPatch('sys.stdin', ['["a"]', '["b"]']))
        run = self.useFixture(fixtures.MockPatchObject(
            planning_worker, 'run', return_value=planning_worker.PLANNED)).mock
        self.assertEqual(0, planning_worker.serve(self.conf, dict, answers, bool))
        run.assert_called_once()


class ConfigurationTest(testtools.TestCase):
    """A planning process reads the configuration files when it starts."""

    def test_a_file_that_cannot_be_read_is_one_line_in_the_log(self):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / 'nova.conf'
        path.write_text('[kronos\n')
        for program in ('kronos_nova.cmd.cycle', 'kronos_nova.plugin.cycle'):
            done = subprocess.run(
                [sys.executable, '-m', program, '--answers', '1', '--', '--config-file', str(path)],
                capture_output=True, text=True, timeout=120, check=False)
            self.assertEqual(1, done.returncode, done.stderr)
            self.assertNotIn('Traceback', done.stderr)
            self.assertIn(f'The planning process cannot read its configuration: Failed to parse '
                          f'{path}: ', done.stderr)
