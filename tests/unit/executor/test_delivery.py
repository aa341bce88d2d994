"""Notifications get to a broker that comes and goes, by one process at a time."""

import logging

import fixtures as test_fixtures
import testtools

from kronos_nova.db import outbox
from kronos_nova.executor import delivery
from kronos_nova.objects import automation
from tests.unit.db import fixtures
from tests.unit.db import notification_story


class Broker:
    """Takes messages, unless the test makes it refuse."""

    def __init__(self):
        self.taken = []
        self.left = float('inf')

    def send(self, notification):
        if not self.left:
            raise OSError('connection refused')
        self.left -= 1
        self.taken.append(notification.sequence)


class DeliveryTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(test_fixtures.FakeLogger(level=logging.INFO))
        self.database = self.useFixture(fixtures.ControlDatabase(True)).database
        self.story = notification_story.Story(self.database)
        self.clock = self.story.clock
        self.broker = Broker()
        self.most = 100

    def deliverer(self, worker='one', send=None):
        return delivery.Deliverer(self.database, worker, send or self.broker.send, self.clock,
                                  lambda: self.most)

    def write(self, count):
        for number in range(count):
            self.story.switch(automation.PAUSE, 'pause',
                              reason=f'{self.clock()} {number}')

    def test_all_that_waits_is_sent_once_and_in_order(self):
        self.write(delivery.BATCH * 2 + 1)
        deliverer = self.deliverer()
        for _look in range(2):
            deliverer.deliver()
        self.assertEqual([*range(1, delivery.BATCH * 2 + 2)], self.broker.taken)

    def test_a_broker_that_is_away_is_asked_now_and_then_and_gets_all_of_it(self):
        self.write(5)
        self.broker.left = 2
        deliverer = self.deliverer()
        deliverer.deliver()
        self.broker.left = float('inf')
        deliverer.deliver()
        self.assertEqual([1, 2], self.broker.taken)
        self.clock.go(delivery.FIRST_PAUSE)
        deliverer.deliver()
        self.assertEqual([1, 2, 3, 4, 5], self.broker.taken)
        self.assertEqual(1, self.log.output.count('connection refused'))
        self.assertEqual(1, self.log.output.count('accepts notifications again'))

    def test_it_is_not_asked_without_an_end_nor_given_up(self):
        self.write(1)
        self.broker.left = 0
        deliverer, tries = self.deliverer(), 0
        asked = self.deliverer(send=self._count).deliver  # never called: the lease is the other's
        for _second in range(600):
            before = deliverer._not_before
            deliverer.deliver()
            tries += deliverer._not_before != before
            asked()
            self.clock.go(1)
        self.assertTrue(10 < tries < 20, tries)

    def _count(self, _notification):
        raise AssertionError('two processes send')

    def test_while_one_sends_another_does_not_and_goes_on_when_it_is_dead(self):
        self.write(3)
        self.broker.left = 1
        self.deliverer('one').deliver()
        other = self.deliverer('two')
        self.broker.left = float('inf')
        other.deliver()
        self.assertEqual([1], self.broker.taken)
        self.clock.go(delivery.LEASE_SECONDS + 1)
        other.deliver()
        self.assertEqual([1, 2, 3], self.broker.taken)

    def test_one_that_ends_lets_another_go_on_at_once(self):
        first, other = self.deliverer('one'), self.deliverer('two')
        self.write(1)
        first.deliver()
        first.end()
        self.write(1)
        other.deliver()
        self.assertEqual([1, 2], self.broker.taken)

    def test_one_that_dies_after_it_sent_leaves_the_same_to_be_sent_again(self):
        self.write(2)
        seen = []

        def die(notification):
            seen.append((notification.uuid, notification.sequence))
            if len(seen) == 2:
                raise SystemExit

        self.assertRaises(SystemExit, self.deliverer('one', die).deliver)
        self.clock.go(delivery.LEASE_SECONDS + 1)
        again = []
        self.deliverer('two', lambda each: again.append((each.uuid, each.sequence))).deliver()
        self.assertEqual(seen, again)

    def test_what_waits_is_bounded_and_the_log_says_so(self):
        self.write(30)
        self.most = 10
        self.deliverer().deliver()
        self.assertEqual([*range(21, 31)], self.broker.taken)
        self.assertIn('20 notifications were dropped', self.log.output)

    def test_nothing_waits_after_it_was_sent(self):
        self.write(3)
        self.deliverer().deliver()
        self.assertEqual([], outbox.Outbox(self.database).waiting())
