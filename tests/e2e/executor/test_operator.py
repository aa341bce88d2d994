"""Commands of an operator for moves in progress: watch, abort, force to complete."""

import datetime

from kronos_nova import clock
from kronos_nova.objects import move as moves
from tests.e2e.box.processes import wait_for
from tests.e2e.box.settings import command
from tests.e2e.executor import base
from tests.e2e.executor import terminal

TIMEOUT = 60


class OperatorTest(base.ExecutorTestCase):
    computes, conductors, workers = 3, 1, 1
    executor = {'migration_timeout': TIMEOUT, 'timeout_action': 'force_complete'}

    def assert_not_quarantined(self, *uuids):
        self.assertEqual(set(), {*uuids} & set(self.cooldowns.quarantined(clock.utcnow())))

    def test_moves_are_watched_until_the_last_is_aborted(self):
        servers = [uuid for uuid, _host in self.boot(2, 'compute1')]
        self.orders(default={'outcome': 'hang'})
        plan = self.start([base.planned(servers[0], 'compute1', 'compute2', 1),
                           base.planned(servers[1], 'compute1', 'compute3', 2)])
        first, _second = self.journal.moves(plan)
        watch = self.useFixture(terminal.Terminal(
            [*command('kronos-nova', 'kronos-manage'), '--config-file', self.cloud.nova.conf,
             'move', 'list', '--plan', plan, '--watch', '--interval', '0.5']))
        wait_for(lambda: all(move.migration_uuid for move in self.journal.moves(plan)), TIMEOUT,
                 'they do not begin')
        wait_for(lambda: 'migrating' in watch.text, TIMEOUT, lambda: f'it shows {watch.text}')
        self.cloud.manage('move', 'abort', first.uuid)
        wait_for(lambda: 'abandoned' in watch.text, TIMEOUT, lambda: f'it shows {watch.text}')
        self.assertIsNone(watch.process.poll())
        self.cloud.manage('move', 'abort', '--plan', plan)
        self.wait_ended(TIMEOUT)
        self.assertEqual(0, watch.process.wait(TIMEOUT))
        for uuid in servers:
            self.assertIn(uuid, watch.text)
            self.assertEqual('compute1', self.cloud.client.host(uuid))
        self.assertEqual([moves.ABANDONED] * 2, [move.state for move in self.journal.moves(plan)])
        self.assertEqual({'cancelled'}, {
            each['status'] for uuid in servers
            for each in self.cloud.client.migrations(instance_uuid=uuid)})
        self.assert_not_quarantined(*servers)
        self.assert_allocations_exact()

    def test_one_that_takes_too_long_is_forced_to_complete(self):
        [(slow, _host)] = self.boot(1, 'compute1')
        self.orders(default={'outcome': 'hang'})
        [move] = self.carry_out([base.planned(slow, 'compute1', 'compute2', 1)],
                                timeout=4 * TIMEOUT)
        self.assert_well_done([move])
        self.assertGreaterEqual(move.forced_at - move.requested_at,
                                datetime.timedelta(seconds=TIMEOUT))
        self.assertEqual(0, move.retry_count)
        self.assertEqual('compute2', self.cloud.client.host(slow))
        self.assert_not_quarantined(slow)
