"""Notifications that wait: none is lost, none has another's number."""

import dataclasses
import threading

import fixtures as test_fixtures
import testtools

from kronos_nova.db import counters
from kronos_nova.db import outbox
from kronos_nova.db import retention
from kronos_nova.objects import notification as n
from tests.unit.db import fixtures


class OutboxTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.clock = fixtures.Clock()
        self.database = self.useFixture(fixtures.ControlDatabase(True)).database
        self.outbox = outbox.Outbox(self.database)

    def write(self, *texts):
        with self.database.writer() as session:
            for text in texts:
                self.add(session, text)

    def add(self, session, text):
        outbox.add(session, n.AUTOMATION_CHANGED, n.AutomationPayload(
            kind='pause', aggregate='gpu', value='stop', set_at=self.clock(), set_by='jane',
            reason=text), self.clock())

    def waiting(self, limit=100):
        self.outbox.number()
        return [(each.sequence, each.payload['kronos_object.data']['reason'])
                for each in self.outbox.waiting(limit)]

    def test_a_change_that_is_taken_back_leaves_no_notification_and_no_gap(self):
        self.write('one')

        def fail():
            with self.database.writer() as session:
                self.add(session, 'never happened')
                raise ValueError

        self.assertRaises(ValueError, fail)
        self.write('two')
        self.assertEqual([(1, 'one'), (2, 'two')], self.waiting())

    def test_what_was_sent_does_not_wait_and_the_rest_keep_their_numbers(self):
        self.write('one', 'two', 'three')
        self.outbox.number()
        self.outbox.mark_sent([self.outbox.waiting()[1].uuid], self.clock())
        self.assertEqual([(1, 'one'), (3, 'three')], self.waiting())

    def test_no_number_is_given_twice_when_all_rows_are_gone(self):
        self.write('one', 'two')
        self.waiting()
        self.outbox.trim(0)
        self.write('three')
        self.assertEqual([(3, 'three')], self.waiting())

    def test_the_oldest_beyond_the_bound_are_dropped_and_counted(self):
        self.write(*map(str, range(10)))
        self.outbox.number()
        self.assertEqual((7, 0), (self.outbox.trim(3), self.outbox.trim(3)))
        self.assertEqual([(8, '7'), (9, '8'), (10, '9')], self.waiting())
        [dropped] = [each.value for each in counters.Counters(self.database).read()
                     if each.name == counters.DROPPED_NOTIFICATIONS]
        self.assertEqual(7, dropped)

    def test_those_that_no_broker_accepted_in_time_are_dropped_and_counted(self):
        log = self.useFixture(test_fixtures.FakeLogger())
        self.write('sent', 'waiting')
        self.outbox.number()
        self.outbox.mark_sent([self.outbox.waiting()[0].uuid], self.clock())
        self.write('without a number')
        self.clock.go(8 * 86400)
        self.write('new')
        days = retention.Days(**{**dict.fromkeys(
            [field.name for field in dataclasses.fields(retention.Days)], 0), 'notifications': 7})
        self.assertEqual({'notifications': 3}, retention.Retention(self.database, days).step(
            self.clock()))
        self.assertIn('2 notifications were dropped: no broker accepted them', log.output)
        [dropped] = [each.value for each in counters.Counters(self.database).read()
                     if each.name == counters.DROPPED_NOTIFICATIONS]
        self.assertEqual(2, dropped)

    def test_several_at_once_number_each_once(self):
        self.write(*map(str, range(40)))
        threads = [threading.Thread(target=self.outbox.number) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([*range(1, 41)], [sequence for sequence, _text in self.waiting()])

    def test_more_than_a_batch_is_numbered_in_several(self):
        self.write(*map(str, range(outbox.BATCH + 1)))
        self.assertEqual([outbox.BATCH, 1, 0], [self.outbox.number() for _ in range(3)])
