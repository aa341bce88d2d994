"""Moves of guests that run: they go on, and they are killed for it."""

import json
import time

from kronos_nova.objects import move as moves
from tests.e2e.box.processes import wait_for
from tests.e2e.executor import base as executor_base
from tests.e2e.hypervisors import base

LONGEST_GAP = 3.0
"""Seconds between two beats that a move may cost on a machine that does much else; Nova lets a
guest stand still for half a second."""


class MovesTest(base.HypervisorTestCase):
    nova_conf = {'libvirt': {'live_migration_bandwidth': 8},  # MiB/s: time enough to interfere
                 'kronos_allocations': {'reconcile_interval': 2, 'grace': 5, 'task_timeout': 5}}

    def test_guests_beat_on_where_they_were_moved_to(self):
        uuids = [*self.boot(2, 'compute1', cpu=0.1, memory_mb=16, dirty_mb_s=1),
                 *self.boot(2, 'compute2', cpu=0.1)]
        begun = time.monotonic()
        done = self.carry_out([
            executor_base.planned(uuids[0], 'compute1', 'compute2', 1),
            executor_base.planned(uuids[2], 'compute2', 'compute1', 2)])
        self.assert_well_done(done)
        self.assertEqual(['compute2', 'compute1', 'compute1', 'compute2'],
                         [self.wait_beat(uuid, time.monotonic()) for uuid in uuids])
        for uuid in uuids:
            gap = self.heartbeats.longest_gap(uuid, begun)
            print(f'{uuid}: not heard for {gap:.2f} s at most')
            self.assertLess(gap, LONGEST_GAP)
        self.assert_alive(uuids)

    def test_the_progress_of_a_move_is_what_libvirt_has_copied(self):
        """Nova writes it down every five seconds, and this copy takes longer."""
        [uuid] = self.boot(1, 'compute1', memory_mb=96)
        plan = self.start([executor_base.planned(uuid, 'compute1', 'compute2', 1)])
        seen = []
        while self.journal.aggregates_with_open_plans():
            [row] = json.loads(self.cloud.manage(
                'move', 'list', '--plan', plan, '-f', 'json', '-c', 'Progress'))
            seen.append(row['Progress'])
            time.sleep(0.5)
        print(f'progress: {seen}')
        copied = [percent for percent in seen if percent is not None and 0 < percent < 100]
        self.assertTrue(copied, seen)
        self.assertEqual(sorted(copied), copied)
        [move] = self.journal.moves(plan)
        self.assertEqual(moves.COMPLETED, move.state)
        self.assertGreaterEqual(move.memory_total, base.MEMORY_MB * 2 ** 20)

    def test_a_nova_compute_that_is_killed_in_mid_copy_costs_no_guest(self):
        [uuid] = self.boot(1, 'compute1', memory_mb=64, dirty_mb_s=2)
        plan = self.start([executor_base.planned(uuid, 'compute1', 'compute2', 1)])
        [move] = self.journal.moves(plan)
        self.wait_state(move.uuid, moves.MIGRATING)
        wait_for(lambda: 'Data remaining' in self.hypervisors['compute1'].virsh(
            'domjobinfo', uuid), 60, 'nothing is copied')
        source = self.cloud.nova.computes['compute1']
        source.process.kill()
        source.start()
        self.wait_ended(240)
        self.assert_alive([uuid])
