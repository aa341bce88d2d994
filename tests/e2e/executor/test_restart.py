"""The workers of a conductor end by a signal while moves run, and others continue the moves."""

import datetime
import os
import signal

from kronos_nova import clock
from kronos_nova.objects import move as moves
from tests.e2e.box.processes import wait_for
from tests.e2e.executor import base

MOVES = 6
WORKERS = 2
RELOADS = 3
SILENCE_SECONDS = 90
"""Longer than each of these tests waits: no move is adopted because its worker is silent."""


class RestartTest(base.ExecutorTestCase):
    computes, conductors, workers = 2, 2, WORKERS
    executor = {'max_concurrent_migrations': MOVES, 'max_concurrent_per_source': MOVES,
                'max_concurrent_per_destination': MOVES, 'worker_timeout': SILENCE_SECONDS}
    nova_conf = {'DEFAULT': {'max_concurrent_live_migrations': MOVES}}

    def recorded(self, daemon):
        """Return the names of the daemon's workers that the journal has."""
        since = clock.utcnow() - datetime.timedelta(hours=1)
        return {name for name, _role, _heard_at in self.journal.workers(since)
                if name.startswith(f'{daemon.name}:')}

    def begin(self):
        """Return a plan whose migrations all run, some of them by workers of the first conductor. A
        conductor that is ended while it prepares a migration may lose the migration."""
        plan = self.start(self.round_robin(self.boot(MOVES)))
        wait_for(lambda: [move.migration_uuid for move in self.journal.moves(plan)].count(None) == 0
                 and self.running() == MOVES, 90, lambda: f'{self.running()} of {MOVES} run')
        return plan

    def running(self):
        return [each['status'] for each in self.cloud.client.migrations(
            migration_type='live-migration')].count('running')

    def assert_left(self, plan, end):
        """Check that ended workers of the first conductor are not recorded any more, and that
        others continue their moves. The moves need not complete: Nova itself may lose a migration
        whose nova-compute waits for an answer of such a worker."""
        conductor = self.cloud.nova.conductors[0]
        old = self.recorded(conductor)
        self.assertEqual(WORKERS, len(old))
        end()
        wait_for(lambda: not old & self.recorded(conductor), 15,
                 lambda: f'{old & self.recorded(conductor)} of {old} are still recorded')
        wait_for(lambda: not {None, *old} & {move.owner for move in self.journal.moves(plan)}, 15,
                 'no other worker continues the moves')
        self.assertEqual({moves.MIGRATING}, {move.state for move in self.journal.moves(plan)})
        return old

    def test_workers_that_end_leave_their_moves_at_once(self):
        conductor = self.cloud.nova.conductors[0]
        self.orders(default={'outcome': 'hang'})
        plan = self.begin()
        owners = {move.owner for move in self.journal.moves(plan)}
        gone = set()
        for _ in range(RELOADS):
            gone |= self.assert_left(plan, lambda: os.kill(conductor.process.pid, signal.SIGHUP))
            wait_for(lambda: len(self.recorded(conductor)) == WORKERS, 30, 'no new workers')
        self.assertNotEqual(set(), gone & owners)
        self.addCleanup(conductor.start)
        gone |= self.assert_left(plan, conductor.process.stop)
        self.assertEqual(set(), gone & self.recorded(conductor))

    def test_the_report_of_a_scheduler_that_ends_is_deleted(self):
        scheduler = self.cloud.nova.scheduler
        old = wait_for(lambda: self.recorded(scheduler), 30, 'no report')
        os.kill(scheduler.process.pid, signal.SIGHUP)
        wait_for(lambda: not old & self.recorded(scheduler), 15, 'the report is still there')
        wait_for(lambda: self.recorded(scheduler), 30, 'no report of the new process')
