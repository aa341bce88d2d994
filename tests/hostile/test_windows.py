"""Maintenance windows that were mistyped, and the nights on which clocks are changed."""

import datetime

import ddt
import testtools

from kronos_nova import exception
from kronos_nova.policies import windows


def utc(text):
    return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC).timestamp()


def minutes_open(window, start, hours):
    return sum(window.is_open(start + minute * 60) for minute in range(hours * 60))


@ddt.ddt
class MistypedWindowTest(testtools.TestCase):
    @ddt.data('gpu; 0 0 30 2 *; 60', 'gpu; 0 0 31 4,6,9,11 *; 60', 'gpu; R R * * *; 60',
              'gpu; 0 1 * * *; 99999999999999999999', 'gpu; 0 1 * * *; 60; ../../etc/passwd',
              'gpu; 0 1 * * *; 60; ' + 'x' * 300, 'gpu; 0 1 * * *; 60; America',
              'gpu; ' + '1,' * 1000 + '1 * * * *; 60', 'gpu; 0 1 * * *; \u0663')
    def test_is_refused_when_it_is_read(self, line):
        error = self.assertRaises(exception.ConfigurationError, windows.parse, [line])
        self.assertIn('maintenance_window', str(error))
        self.assertLess(len(str(error)), 2000)

    def test_one_that_can_never_open_is_said_to_be_so(self):
        error = self.assertRaises(exception.ConfigurationError, windows.parse,
                                  ['gpu; 0 0 30 2 *; 60'])
        self.assertIn('never occurs', str(error))

    def test_a_leap_day_comes(self):
        found = windows.parse(['gpu; 0 0 29 2 *; 60'])
        self.assertEqual(utc('2028-02-29T00:00:00'),
                         found.opens_at('gpu', utc('2026-11-22T00:00:00')))


class ClockChangeTest(testtools.TestCase):
    """In 2026 Europe's clocks go forward on 29 March, and back on 25 October at 01:00 UTC."""

    def window(self, line):
        window, = windows.parse([f'gpu; {line}; Europe/Berlin']).windows
        return window

    def test_a_window_in_the_hour_that_comes_twice_opens_once(self):
        window = self.window('30 2 * * *; 15')
        self.assertEqual(15, minutes_open(window, utc('2026-10-24T22:00:00'), 24))
        self.assertTrue(window.is_open(utc('2026-10-25T00:30:00')))
        self.assertFalse(window.is_open(utc('2026-10-25T01:30:00')))

    def test_one_that_began_just_before_the_clock_was_put_back_lasts_as_long_as_it_says(self):
        window = self.window('45 2 * * *; 60')
        self.assertEqual(60, minutes_open(window, utc('2026-10-24T22:00:00'), 24))
        self.assertTrue(window.is_open(utc('2026-10-25T01:30:00')))

    def test_a_window_in_the_hour_that_is_left_out_opens_as_much_later(self):
        window = self.window('30 2 * * *; 15')
        self.assertEqual(15, minutes_open(window, utc('2026-03-28T23:00:00'), 24))
        self.assertTrue(window.is_open(utc('2026-03-29T01:30:00')))

    def test_it_says_when_it_opens_and_is_open_then(self):
        window = self.window('30 2 * * *; 15')
        now = utc('2026-01-01T00:00:00')
        for _day in range(365):
            opens = window.opens_at(now)
            self.assertTrue(window.is_open(opens))
            self.assertFalse(window.is_open(opens - 1))
            self.assertLess(opens - now, 26 * 3600)
            now = opens

    def test_it_tells_which_clock_changes_it_overlaps(self):
        now = utc('2026-01-01T00:00:00')
        self.assertEqual(
            [datetime.datetime(2026, 3, 29, 1, tzinfo=datetime.UTC),
             datetime.datetime(2026, 10, 25, 1, tzinfo=datetime.UTC)],
            list(self.window('0 1 * * *; 240').clock_changes(now)))
        self.assertEqual([], list(self.window('0 12 * * *; 60').clock_changes(now)))
        window, = windows.parse(['gpu; 0 1 * * *; 240']).windows
        self.assertEqual([], list(window.clock_changes(now)))

    def test_it_tells_when_the_time_at_which_it_opens_is_left_out(self):
        now = utc('2026-01-01T00:00:00')
        late, = self.window('30 2 * * *; 60').late_openings(now)
        self.assertEqual(datetime.datetime(2026, 3, 29, 1, tzinfo=datetime.UTC), late)
        self.assertEqual((datetime.datetime(2026, 3, 29, 2), datetime.datetime(2026, 3, 29, 3)),
                         self.window('30 2 * * *; 60').clock_around(late))
        for line in ('0 1 * * *; 240', '0 3 * * *; 60', '59 1 * * *; 1', '30 2 * 10 *; 60'):
            self.assertEqual([], list(self.window(line).late_openings(now)), line)
