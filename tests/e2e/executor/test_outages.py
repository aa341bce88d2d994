"""What Nova and Kronos share goes away for a while."""

import time

from kronos_nova.objects import move as moves
from tests.e2e.box.client import MIGRATION_ENDED
from tests.e2e.box.processes import wait_for
from tests.e2e.executor import base

AWAY_SECONDS = 30


class OutagesTest(base.ExecutorTestCase):
    computes, conductors, workers = 4, 1, 2
    executor = {'max_retries': 6, 'migration_timeout': 60}

    def under_a_running_plan(self, disturb, count=8):
        """Disturb the cloud while moves are under way; all the same all are done, and once.

        But for those that Nova itself loses: a nova-compute that cannot write down how its live
        migration fares gives it up, and cannot write that down either.
        """
        servers = self.boot(count)
        self.orders(default={'seconds': 3})
        plan = self.start(self.round_robin(servers), stagger=1)
        wait_for(lambda: any(move.migration_uuid for move in self.journal.moves(plan)), 60,
                 'nothing begins')
        disturb()
        self.wait_ended(300)
        done = self.journal.moves(plan)
        lost = {m.instance_uuid for m in done if m.state != moves.COMPLETED}
        self.assertEqual(lost, self.never_ended(plan), [
            (m.error_type, m.error) for m in done if m.state != moves.COMPLETED])
        self.assertLessEqual(len(lost), base.CAPS.total)
        self.assert_asked_once_a_try(done)
        self.assert_allocations_exact(60, but_for=lost)

    def never_ended(self, plan):
        """Instances whose live migration is under way for ever, as Nova says and as the journal
        does."""
        return {move.instance_uuid for move in self.journal.moves(plan, states=(moves.FAILED,))
                if move.error_type == 'MigrationTimeout' and
                self.cloud.client.migration(move.instance_uuid)['status'] not in MIGRATION_ENDED}

    def test_the_broker_is_restarted(self):
        def restart():
            self.cloud.broker.server.stop(30)
            self.cloud.broker.server.start()
            self.cloud.broker.server.wait_ready(60)

        self.under_a_running_plan(restart)

    def test_the_database_is_away_for_half_a_minute(self):
        def take_away():
            self.cloud.database.process.stop(30)
            time.sleep(AWAY_SECONDS)
            self.cloud.database.process.start()
            self.cloud.database.process.wait_ready(60)

        self.under_a_running_plan(take_away)
