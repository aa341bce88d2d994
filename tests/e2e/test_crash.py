"""A conductor worker dies in the middle of a plan."""

import os
import signal

from tests.e2e import base
from tests.e2e import box
from tests.e2e.box.processes import wait_for
from tests.e2e.demo import scenario

RACK = scenario.MadeUp(racks={'rack': (1.0, 0.0, 0.0, 0.0)}, servers=12, threshold=0.1,
                       migration_seconds=6.0, budget=8, timeout=240.0)
MOVES = 'SELECT uuid, instance_uuid, state, owner, migration_uuid, error FROM moves'


class KilledWorkerTest(base.CloudTestCase):
    settings = box.Settings(computes=4, conductor_workers=3, kronos=True, memory_mb=131072,
                            migration_seconds=RACK.migration_seconds, day_seconds=7200.0)

    @classmethod
    def prepare(cls):
        policies = cls.cloud.root / 'etc' / 'kronos-policies.yaml'
        policies.parent.mkdir(parents=True)
        policies.write_text(RACK.policies(RACK.threshold))
        conf = RACK.nova_conf(policies)
        conf['kronos'].update(cooldown=600, evaluation_interval=5)
        conf['kronos_executor']['worker_timeout'] = 10
        cls.cloud.configure(nova_conf=conf)

    def moves(self):
        return self.cloud.database.query('kronos', MOVES)

    def test_another_worker_goes_on_and_no_move_is_made_twice(self):
        servers = [uuid for uuid, _name in RACK.boot(self.cloud)]
        self.client.wait_active(servers)
        # Only now, so that the first plan sees all servers.
        self.client.create_aggregate('rack', RACK.hosts['rack'])

        owner = wait_for(self.owner_in_progress, 120, 'no move is in progress')
        _host, pid, _incarnation = owner.split(':')
        os.kill(int(pid), signal.SIGKILL)
        orphans = {move['uuid'] for move in self.moves()
                   if move['owner'] == owner and move['state'] == 'migrating'}

        wait_for(self.all_ended, RACK.timeout, lambda: f'moves do not end: {self.moves()}',
                 interval=0.5)
        moves = self.moves()
        self.assertEqual({'completed'}, {move['state'] for move in moves}, moves)
        self.assertTrue(orphans)
        self.assertNotIn(owner, {move['owner'] for move in moves if move['uuid'] in orphans})
        self.assert_moved_once(moves)
        self.assert_clean()

    def owner_in_progress(self):
        """A worker, ``host:pid:incarnation``, that has a running migration on its hands."""
        for move in self.moves():
            if move['state'] == 'migrating' and move['migration_uuid']:
                return move['owner']
        return None

    def all_ended(self):
        moves = self.moves()
        return moves and all(move['state'] in ('completed', 'failed', 'abandoned')
                             for move in moves)
