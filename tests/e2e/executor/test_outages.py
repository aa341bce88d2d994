"""Services that Nova and Kronos share go away for a while."""

import time

from kronos_nova import clock
from kronos_nova.objects import move as moves
from tests.e2e.box.processes import wait_for
from tests.e2e.executor import base
from tests.e2e.executor import history

AWAY_SECONDS = 45
"""Longer than Nova waits for a service to report, and Kronos for one of its workers."""


class OutagesTest(base.ExecutorTestCase):
    computes, conductors, workers = 4, 2, 1
    executor = {'max_retries': 6, 'migration_timeout': 120}
    nova_conf = {'kronos_allocations': {'task_timeout': 10, 'grace': 10, 'reconcile_interval': 5}}

    def under_a_running_plan(self, disturb, count=8):
        """Disturb the cloud while moves are in progress; all the same all are done, and once.

        But for those that Nova itself loses: a nova-compute that cannot write down how its live
        migration fares, or gets no answer from the other one, gives it up.
        """
        servers = self.boot(count)
        self.orders(default={'seconds': 3})
        plan = self.start(self.round_robin(servers), start_interval=1)
        wait_for(lambda: any(move.migration_uuid for move in self.journal.moves(plan)), 60,
                 'nothing begins')
        disturb()
        over = clock.utcnow()
        self.wait_ended(600)
        done = self.journal.moves(plan)
        lost = {m.instance_uuid for m in done if m.state != moves.COMPLETED}
        self.assertEqual([], [detail for move in done for detail in history.blamed(
            self.journal.events(move.uuid), over)])
        self.assertLessEqual(len(lost), base.CAPS.total)
        self.assertEqual(lost, set(self.cooldowns.quarantined(clock.utcnow())) & {
            uuid for uuid, _host in servers})
        self.assert_asked_once_a_try(done)
        self.assert_allocations_exact(300, but_for=lost)

    def away(self, process):
        process.stop(30)
        time.sleep(AWAY_SECONDS)
        process.start()
        process.wait_ready(60)

    def test_the_broker_is_restarted(self):
        def restart():
            self.cloud.broker.server.stop(30)
            self.cloud.broker.server.start()
            self.cloud.broker.server.wait_ready(60)

        self.under_a_running_plan(restart)

    def test_the_broker_is_away_until_all_services_count_as_down(self):
        self.under_a_running_plan(lambda: self.away(self.cloud.broker.server))

    def test_the_database_is_away_until_all_services_count_as_down(self):
        seen = {daemon.name: daemon.process.log.stat().st_size
                for daemon in self.cloud.nova.conductors}
        self.under_a_running_plan(lambda: self.away(self.cloud.database.process))
        for daemon in self.cloud.nova.conductors:
            with daemon.process.log.open(errors='replace') as log:
                log.seek(seen[daemon.name])
                text = log.read()
            self.assertEqual(1, text.count('Kronos waits, because a database does not answer'))
            self.assertEqual(1, text.count('Kronos continues, because the database answers again'))
            self.assertNotIn('DB exceeded retry limit', text)
