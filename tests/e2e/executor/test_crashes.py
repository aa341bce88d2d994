"""Conductors that are killed, again and again, while a plan is carried out."""

import itertools
import os
import random
import time

import sqlalchemy as sa
from oslo_utils import timeutils

from kronos_nova.db import models
from kronos_nova.objects import move as moves
from tests.e2e.box.processes import wait_for
from tests.e2e.executor import base

SEED = int(os.environ.get('KRONOS_E2E_SEED', 4))


class CrashTest(base.ExecutorTestCase):
    computes, conductors, workers = 4, 2, 2
    executor = {'max_retries': 5}
    # As much shorter than ``migration_timeout`` as they are by default.
    nova_conf = {'kronos_allocations': {'task_timeout': 10, 'grace': 10, 'reconcile_interval': 5},
                 'DEFAULT': {'rpc_response_timeout': 60}}

    def test_every_move_ends_and_none_is_done_twice(self):
        """Plans follow each other until there were enough crashes."""
        chance = random.Random(SEED)
        victims = itertools.cycle(self.cloud.nova.conductors)
        crashes, done = 0, []
        servers = self.boot(min(base.MOVES, 24))
        self.orders(default={'seconds': 2})
        while crashes < base.CRASHES:
            plan = self.start(self.round_robin(servers))
            while crashes < base.CRASHES and self.is_open():
                time.sleep(chance.uniform(0.5, 6))
                self.crash(next(victims))
                crashes += 1
            self.wait_ended(600)
            done += self.journal.moves(plan)
            self.assert_asked_once_a_try(done)
            # A nova-compute may have waited for one killed conductor after the other.
            self.assert_allocations_exact(300)
            servers = [(uuid, self.cloud.client.host(uuid)) for uuid, _host in servers]
        self.assertEqual(set(), {move.state for move in done} - moves.TERMINAL)
        ended = [move.state for move in done]
        print(f'{crashes} crashes: {len(done)} moves, {ended.count(moves.COMPLETED)} completed')
        self.assertGreater(ended.count(moves.COMPLETED), 0)
        self.cloud.manage('allocations', 'audit', '--grace', '0')  # raises if anything is found

    def is_open(self):
        return bool(self.journal.aggregates_with_open_plans())

    def crash(self, victim):
        """Kill a conductor, start it again, and let it be at work before the other one's turn."""
        victim.process.kill()
        now = timeutils.utcnow()
        victim.start()
        wait_for(lambda: self.is_at_work(victim, now) or not self.is_open(), 120,
                 f'{victim.name} does not come back', interval=0.3)

    def is_at_work(self, conductor, since):
        with self.database.reader() as session:
            return session.scalars(sa.select(models.Worker.name).where(
                models.Worker.name.startswith(f'{conductor.name}:'),
                models.Worker.heartbeat_at > since)).first()
