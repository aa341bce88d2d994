"""Conductors that are killed, again and again, while a plan is carried out."""

import collections
import itertools
import os
import random
import time

import oslo_messaging as messaging
import sqlalchemy as sa
from oslo_config import cfg
from oslo_messaging import conffixture

from kronos_nova import clock
from kronos_nova.db import engine as db_engine
from kronos_nova.db import models
from kronos_nova.db import notifications
from kronos_nova.objects import move as moves
from kronos_nova.objects import notification as n
from tests.e2e.box import listener
from tests.e2e.box.processes import wait_for
from tests.e2e.executor import base
from tests.e2e.executor import history

TOPIC = 'kronos_notifications'

BACK_SECONDS = 300
"""A conductor loads Nova in about ten seconds of the processor, of which a busy machine gives it
few."""

SEED = int(os.environ.get('KRONOS_E2E_SEED', 4))


class CrashTest(base.ExecutorTestCase):
    computes, conductors, workers = 4, 2, 2
    executor = {'max_retries': 5}
    # As much shorter than ``migration_timeout`` as they are by default.
    nova_conf = {'kronos_allocations': {'task_timeout': 10, 'grace': 10, 'reconcile_interval': 5},
                 'DEFAULT': {'rpc_response_timeout': 60},
                 'kronos': {'notification_topics': TOPIC}}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.returns = []
        cls.database = db_engine.Database(cls.database.engine, announces=True)

    def test_every_move_ends_and_none_is_done_twice(self):
        """Plans follow each other until there were enough crashes."""
        chance = random.Random(SEED)
        victims = itertools.cycle(self.cloud.nova.conductors)
        crashes, done = 0, []
        heard = self.listen()
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
        print(f'a conductor was back after {max(self.returns):.0f} s at most')
        self.assertEqual(set(), {move.state for move in done} - moves.TERMINAL)
        ended = [move.state for move in done]
        print(f'{crashes} crashes: {len(done)} moves, {ended.count(moves.COMPLETED)} completed')
        self.assertGreater(ended.count(moves.COMPLETED), 0)
        self.cloud.manage('allocations', 'audit', '--grace', '0')  # raises if anything is found
        self.assert_all_was_told(heard, done)

    def listen(self):
        conf = self.useFixture(conffixture.ConfFixture(cfg.CONF)).conf
        conf([], default_config_files=[])
        transport = messaging.get_notification_transport(conf, url=self.cloud.broker.url)
        self.addCleanup(transport.cleanup)
        heard = listener.Listener(transport, TOPIC)
        self.addCleanup(heard.stop)
        return heard

    def assert_all_was_told(self, heard, done):
        """Check that notifications agree with the journal; some arrive more than once."""
        expected = collections.Counter()
        for plan in {move.plan_uuid for move in done}:
            expected.update([(n.PLAN_APPROVED, plan), (n.PLAN_FINISHED, plan)])
        for move in done:
            events = self.journal.events(move.uuid)
            expected[n.MOVE_START, move.uuid] += history.requests(events)
            expected[notifications.ENDS[move.state], move.uuid] += 1

        def missing():
            found = collections.Counter(
                (event_type, data.get('move_uuid', data['plan_uuid']))
                for event_type, data in heard.data.values()
                if event_type != n.MOVE_ERROR or data['final'])
            return (expected - found) + (found - expected)

        wait_for(lambda: not missing(), 120, lambda: f'missing, or too much: {missing()}')
        self.assertEqual([*range(1, len(heard.data) + 1)], sorted(heard.data))
        uuids = {(data['sequence'], data['notification_uuid']) for _t, data, _m in heard.heard}
        self.assertEqual(len(heard.data), len(uuids))
        copies = sum(heard.copies.values()) - len(heard.data)
        print(f'{len(heard.data)} notifications, {copies} of them heard again')

    def is_open(self):
        return bool(self.journal.aggregates_with_open_plans())

    def crash(self, victim):
        """Kill a conductor, start it again, and let it be at work before the other one's turn."""
        victim.process.kill()
        now, begun = clock.utcnow(), time.monotonic()
        victim.start()
        wait_for(lambda: self.is_at_work(victim, now) or not self.is_open(), BACK_SECONDS,
                 lambda: self.absence(victim), interval=0.3)
        self.returns.append(time.monotonic() - begun)

    def absence(self, victim):
        """Return the facts that distinguish a machine that is too busy from a conductor that
        hangs."""
        return (f'{victim.name} does not come back; load {os.getloadavg()}, those before it were '
                f'back after {[round(each) for each in self.returns]} s\n'
                f'{victim.process.tail(60)}')

    def is_at_work(self, conductor, since):
        with self.database.reader() as session:
            return session.scalars(sa.select(models.WorkerRow.name).where(
                models.WorkerRow.name.startswith(f'{conductor.name}:'),
                models.WorkerRow.heartbeat_at > since)).first()
