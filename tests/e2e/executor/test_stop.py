"""An operator stops Kronos, or lowers its level, while moves run."""

import time

from testtools import content

from kronos_nova.objects import automation
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from tests.e2e.box.processes import wait_for
from tests.e2e.executor import base

AT_ONCE = 8
QUIET_SECONDS = 30
HEEDED_SECONDS = 5


class StopTest(base.ExecutorTestCase):
    computes, conductors, workers = 4, 2, 2
    executor = {'max_concurrent_migrations': AT_ONCE, 'max_concurrent_per_source': AT_ONCE,
                'max_concurrent_per_destination': AT_ONCE}
    nova_conf = {'DEFAULT': {'max_concurrent_live_migrations': AT_ONCE}}

    def setUp(self):
        super().setUp()
        self.addCleanup(self.cloud.manage, 'resume')
        self.addCleanup(self.cloud.manage, 'automation', 'set', 'auto')

    def states(self, plan):
        return [move.state for move in self.journal.moves(plan)]

    def wait_running(self, plan, count):
        wait_for(lambda: self.states(plan).count(moves.MIGRATING) == count and sum(
            move.migration_uuid is not None for move in self.journal.moves(plan)) == count,
            120, lambda: f'they are {self.states(plan)}')

    def timeline(self, plan, said, took):
        """Return the output of the command, and the journal's events of the moves that it ended."""
        lines = [said, f'took {took:.1f} s']
        for move in self.journal.moves(plan):
            lines += [f'{move.ordinal}: {at} {old} -> {new} {worker} {detail}' for
                      at, old, new, worker, detail in self.journal.events(move.uuid)[-2:]]
        return '\n'.join(lines)

    def requested(self):
        """Return how often Nova was asked to migrate, as Nova tells."""
        return len(self.cloud.client.migrations(migration_type='live-migration'))

    def test_a_stop_aborts_what_runs_starts_nothing_and_outlives_every_conductor(self):
        servers = self.boot(2 * AT_ONCE)
        self.orders(default={'outcome': 'hang'})
        plan = self.start(self.round_robin(servers))
        self.wait_running(plan, AT_ONCE)
        asked, began = self.requested(), time.monotonic()
        said = self.cloud.manage('stop', '--reason', 'packet loss')
        took = time.monotonic() - began
        self.addDetail('how it went', content.text_content(self.timeline(plan, said, took)))
        self.assertIn('No move is in progress.', said)
        self.assertLess(took, QUIET_SECONDS)
        self.assertEqual({moves.ABANDONED}, {*self.states(plan)})
        self.assertEqual(asked, self.requested())
        self.assertEqual(dict(servers), {uuid: self.cloud.client.host(uuid)
                                         for uuid, _host in servers})
        wait_for(lambda: not self.journal.aggregates_with_open_plans(), 30, 'the plan is open')
        # Once more, with conductors that never heard the command.
        for conductor in self.cloud.nova.conductors:
            conductor.process.kill()
        later = self.start(self.round_robin(servers))
        for conductor in self.cloud.nova.conductors:
            conductor.start()
        wait_for(self.alive, 60, 'no worker comes back')
        time.sleep(3 * HEEDED_SECONDS)
        self.assertEqual({moves.PLANNED}, {*self.states(later)})
        self.assertEqual(asked, self.requested())
        self.assert_allocations_exact()
        # Fails where it finds anything.
        self.cloud.manage('--debug', 'allocations', 'audit', '--grace', '0')
        self.orders(default={'seconds': 1})
        self.cloud.manage('resume')
        self.wait_ended(180)
        self.assert_well_done(self.journal.moves(later))

    def alive(self):
        """Return whether a worker that started after the conductors died says that it lives."""
        return self.cloud.database.query(
            'kronos', 'SELECT name FROM workers WHERE heartbeat_at > '
                      'UTC_TIMESTAMP() - INTERVAL 2 SECOND')

    def test_what_nova_was_asked_for_is_let_finish_where_that_is_wanted(self):
        servers = self.boot(2 * AT_ONCE)
        self.orders(default={'seconds': 12})
        plan = self.start(self.round_robin(servers))
        self.wait_running(plan, AT_ONCE)
        self.assertIn('No move is in progress.', self.cloud.manage('stop', '--let-finish'))
        self.assertEqual([moves.ABANDONED] * AT_ONCE + [moves.COMPLETED] * AT_ONCE,
                         sorted(self.states(plan)))

    def test_observe_from_auto_starts_nothing_more_and_looks_after_what_runs(self):
        servers = self.boot(2 * AT_ONCE)
        self.orders(default={'seconds': 30})
        plan = self.start(self.round_robin(servers))
        self.wait_running(plan, AT_ONCE)
        self.cloud.manage('automation', 'set', automation.OBSERVE)
        time.sleep(HEEDED_SECONDS)
        asked = self.requested()
        self.wait_ended(120)
        self.assertEqual(asked, self.requested())
        self.assertEqual({moves.ABANDONED, moves.COMPLETED}, {*self.states(plan)})
        self.assert_asked_once_a_try(self.journal.moves(plan))
        self.assertEqual(plans.DONE, self.journal.plan(plan).state)
        self.assert_allocations_exact()
