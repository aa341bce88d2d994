"""Commands on a controller whose clock is wrong."""

import datetime

from kronos_nova import clock
from kronos_nova.db import shared_clock
from kronos_nova.drain import states as drains
from tests.unit.cmd import test_host

DAY = 86400
FEW = datetime.timedelta(seconds=60)
REAL = clock.utcnow


class WrongClockTest(test_host.HostTestCase):
    def setUp(self):
        super().setUp()
        self.patch(clock, 'utcnow', lambda: REAL() + datetime.timedelta(seconds=DAY))
        self.patch(shared_clock.SharedClock, 'skew', lambda _clock: float(DAY))

    def assertIsNow(self, time):
        self.assertLess(abs(time - REAL()), FEW)

    def test_switches_have_the_time_of_the_database(self):
        for words in (('automation', 'set', 'auto'), ('pause',), ('resume',), ('stop',)):
            self.manage(*words)
        found = self.table('automation', 'history')
        self.assertEqual(4, len(found))
        for row in found:
            self.assertIsNow(datetime.datetime.fromisoformat(row['At']))

    def test_a_drain_has_the_time_of_the_database(self):
        self.manage('host', 'drain', 'a')
        self.assertIsNow(self.drains.latest('a').requested_at)

    def test_a_deadline_by_a_wrong_clock_is_refused(self):
        said = self.manage('host', 'drain', 'a', '--deadline', '90', expected=1)
        self.assertIn('clock', said)
        self.assertEqual([], self.drains.in_states(drains.ACTIVE))
