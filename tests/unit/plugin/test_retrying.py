"""Repetition of a call inside Nova while a service does not answer."""

import time

import oslo_messaging as messaging
import testtools

from kronos_nova.plugin import outages

SECONDS = 120


class RetryingTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.now, self.began = 1000.0, []
        self.patch(time, 'monotonic', lambda: self.now)

    def sleep(self, seconds):
        self.now += seconds

    def call(self, *lasts):
        """Let calls fail after these seconds each, and the call after them succeed."""
        waits = [*lasts]

        def act():
            self.began.append(self.now)
            if waits:
                self.now += waits.pop(0)
                raise messaging.MessagingTimeout('injected')
            return 'answer'

        return outages.retrying(SECONDS, sleep=self.sleep)(act)

    def test_a_request_whose_answer_is_lost_is_repeated(self):
        """The time limit of RPC may be longer than that of the repetition."""
        for lost in (SECONDS - 1, SECONDS, 10 * SECONDS):
            self.assertEqual('answer', self.call(lost))

    def test_a_request_that_is_lost_after_others_failed_is_repeated(self):
        self.assertEqual('answer', self.call(1, 1, 1, SECONDS))

    def test_the_last_call_begins_after_the_time(self):
        self.assertRaises(messaging.MessagingTimeout, self.call, *[1] * 1000)
        self.assertGreaterEqual(self.began[-1] - self.began[0], SECONDS)
        self.assertLess(self.began[-2] - self.began[0], SECONDS)

    def test_each_use_has_the_whole_time(self):
        tries = outages.retrying(SECONDS, sleep=self.sleep)
        for _ in range(2):
            failures = [SECONDS]

            def act(failures=failures):
                if failures:
                    self.now += failures.pop()
                    raise messaging.MessagingTimeout('injected')
                return 'answer'

            self.assertEqual('answer', tries(act))

    def test_other_errors_are_not_repeated(self):
        def act():
            self.began.append(self.now)
            raise ValueError

        self.assertRaises(ValueError, outages.retrying(SECONDS, sleep=self.sleep), act)
        self.assertEqual(1, len(self.began))
