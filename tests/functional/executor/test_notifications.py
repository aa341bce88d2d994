"""Notifications over a real RabbitMQ, with a process that is killed and a broker that is away."""

import datetime
import os
import signal
import subprocess
import sys
import time

import testtools
from oslo_config import cfg

from kronos_nova.db import engine as db_engine
from kronos_nova.executor import broker
from kronos_nova.executor import delivery
from kronos_nova.objects import automation
from tests.e2e.box import listener
from tests.e2e.box.processes import wait_for
from tests.functional.executor import test_broker
from tests.unit.db import fixtures
from tests.unit.db import notification_story

TOPIC = 'kronos_notifications'
PATIENCE = 20
TOLD = 18
"""Notifications of the story."""


class DeliveryTest(testtools.TestCase):
    """One test in several chapters, for the server takes seconds to start."""

    def setUp(self):
        super().setUp()
        self.broker = self.useFixture(test_broker.Broker())
        self.story = notification_story.Story(
            self.useFixture(fixtures.ControlDatabase(True)).database)
        self.transports = broker.Transports(self.broker.conf)
        self.addCleanup(self.transports.close)
        self.listener = listener.Listener(self.transports.notification, TOPIC)
        self.addCleanup(self.listener.stop)

    def test_each_arrives_at_least_once(self):
        self.all_that_happens_arrives_in_order()
        self.one_that_is_killed_before_it_marks_has_the_same_sent_twice()
        self.while_the_broker_is_away_they_wait_and_nobody_else_does()

    def deliverer(self, worker):
        return deliverer(self.story.database, self.transports, worker, self.story.clock)

    def wait_for(self, count):
        wait_for(lambda: len(self.listener.data) == count, PATIENCE,
                 lambda: f'heard: {sorted(self.listener.data)}', interval=0.1)
        self.assertEqual([*range(1, count + 1)], sorted(self.listener.data))

    def all_that_happens_arrives_in_order(self):
        self.story.tell_all()
        self.deliverer('one').deliver()
        self.deliverer('one').end()
        self.wait_for(TOLD)
        self.assertEqual({1}, {*self.listener.copies.values()})
        of_queues = [[data['sequence'] for event_type, data, _meta in self.listener.heard
                      if (event_type == 'move.error') == is_error] for is_error in (True, False)]
        self.assertEqual([sorted(each) for each in of_queues], of_queues)
        for _type, data, metadata in self.listener.heard:
            self.assertEqual(data['notification_uuid'], metadata['message_id'])

    def pause_three_times(self):
        for number in range(3):
            self.story.switch(automation.PAUSE, 'pause',
                              reason=f'{self.story.clock()} {number}')

    def one_that_is_killed_before_it_marks_has_the_same_sent_twice(self):
        self.pause_three_times()
        url = self.story.database.engine.url.render_as_string(hide_password=False)
        victim = subprocess.run(
            [sys.executable, '-m', __name__, url, self.broker.server.url,
             self.story.clock().isoformat()], timeout=120, capture_output=True, text=True)
        self.assertEqual(-signal.SIGKILL, victim.returncode, victim.stderr)
        self.wait_for(TOLD + 1)
        self.story.clock.go(delivery.LEASE_SECONDS + 1)
        self.deliverer('two').deliver()
        self.wait_for(TOLD + 3)
        self.assertEqual({TOLD + 1: 2, TOLD + 2: 1, TOLD + 3: 1}, {
            sequence: count for sequence, count in self.listener.copies.items()
            if sequence > TOLD})
        uuids = {data['notification_uuid'] for _type, data, _meta in self.listener.heard
                 if data['sequence'] == TOLD + 1}
        self.assertEqual(1, len(uuids))

    def while_the_broker_is_away_they_wait_and_nobody_else_does(self):
        self.broker.server.server.kill()
        self.pause_three_times()
        background = delivery.BackgroundDeliverer(self.deliverer('two'))
        self.addCleanup(background.stop)
        begun = time.monotonic()
        background.tick()
        self.assertLess(time.monotonic() - begun, 5)
        background._running.result(timeout=60)
        self.broker.server.server.start()
        self.broker.server.server.wait_ready(60)
        deadline = time.monotonic() + 60
        while len(self.listener.data) < TOLD + 6 and time.monotonic() < deadline:
            self.story.clock.go(delivery.LONGEST_PAUSE)
            background.tick()
            time.sleep(0.5)
        self.wait_for(TOLD + 6)


def deliverer(database, transports, worker, clock):
    sender = broker.NotificationSender(transports, [TOPIC], 'controller1')
    return delivery.Deliverer(database, worker, sender.send, clock, lambda: 1000)


def be_killed(database_url, transport_url, now):
    """Send the first that waits, and die before it is marked."""
    cfg.CONF([], default_config_files=[])
    broker.Transports(cfg.CONF)     # which registers the option
    cfg.CONF.set_override('transport_url', transport_url)
    database = db_engine.Database(db_engine.create_engine(database_url), announces=True)
    transports = broker.Transports(cfg.CONF)
    clock = fixtures.Clock()
    clock.now = datetime.datetime.fromisoformat(now)
    sender = broker.NotificationSender(transports, [TOPIC], 'controller1')

    def send_and_die(notification):
        sender.send(notification)
        os.kill(os.getpid(), signal.SIGKILL)

    delivery.Deliverer(database, 'victim', send_and_die, clock, lambda: 1000).deliver()


if __name__ == '__main__':
    be_killed(*sys.argv[1:])
