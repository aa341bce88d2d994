"""Conductors that are killed, again and again, while a plan is carried out."""

import itertools
import random
import time

from kronos_nova.objects import move as moves
from tests.e2e.executor import base

SEED = 4


class CrashTest(base.ExecutorTestCase):
    computes, conductors, workers = 4, 2, 2

    def test_every_move_ends_and_none_is_done_twice(self):
        """Plans follow each other until there were enough crashes."""
        chance = random.Random(SEED)
        crashes, done = 0, []
        servers = self.boot(min(base.MOVES, 24))
        self.orders(default={'seconds': 2})
        while crashes < base.CRASHES:
            plan = self.start(self.round_robin(servers))
            victims = itertools.cycle(self.cloud.nova.conductors)
            while crashes < base.CRASHES and self.journal.aggregates_with_open_plans():
                time.sleep(chance.uniform(0.5, 6))
                victim = next(victims)
                victim.process.kill()
                crashes += 1
                victim.start()
            self.wait_ended(600)
            done += self.journal.moves(plan)
            self.assert_asked_once_a_try(done)
            self.assert_allocations_exact(120)
            servers = [(uuid, self.cloud.client.host(uuid)) for uuid, _host in servers]
        self.assertEqual(set(), {move.state for move in done} - moves.TERMINAL)
        ended = [move.state for move in done]
        print(f'{crashes} crashes: {len(done)} moves, {ended.count(moves.COMPLETED)} completed')
        self.assertGreater(ended.count(moves.COMPLETED), 0)
