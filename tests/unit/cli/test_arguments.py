"""Numbers and times on the command line."""

import argparse
import datetime
import time
import types

import ddt
import fixtures
import testtools

from kronos_client.cli import arguments
from kronos_nova import clock
from tests.unit.cmd import test_automation


@ddt.ddt
class ArgumentsTest(testtools.TestCase):
    @ddt.data((arguments.COUNT, '-1'), (arguments.COUNT, '1.5'), (arguments.POSITIVE, '0'),
              (arguments.POSITIVE, '9' * 30), (arguments.seconds, 'nan'),
              (arguments.seconds, 'inf'), (arguments.seconds, '-1'), (arguments.seconds, 'soon'),
              (arguments.pause, '0'), (arguments.later, '0'), (arguments.later, '2020-01-01T00:00'),
              (arguments.later, '9' * 30), (arguments.later, 'tomorrow'))
    @ddt.unpack
    def test_what_makes_no_sense_is_refused(self, kind, text):
        self.assertRaises(argparse.ArgumentTypeError, kind, text)

    def test_the_rest_is_taken(self):
        self.assertEqual((0, 7, 2.5), (
            arguments.COUNT('0'), arguments.POSITIVE('7'), arguments.seconds('2.5')))

    def test_times_are_minutes_from_now_or_local(self):
        now = clock.utcnow()
        self.assertAlmostEqual(30 * 60, (arguments.later('30') - now).total_seconds(), delta=5)
        noon = datetime.datetime(2999, 1, 1, 12).astimezone()
        self.assertEqual(noon, arguments.later('2999-01-01T12:00'))
        self.assertEqual(arguments.later('2999-01-01'), arguments.later('29990101'))
        self.assertEqual(datetime.datetime(2999, 1, 1, 11, tzinfo=datetime.UTC),
                         arguments.later('2999-01-01T12:00+01:00'))


    def test_times_of_day(self):
        for text, padded in (('1:02', '01:02:00'), ('1:02:03', '01:02:03')):
            self.assertEqual(arguments.past(padded), arguments.past(text))

    def test_a_time_of_day_before_the_clocks_were_changed(self):
        """Yesterday had another offset from UTC than today: at 23:30 it was not 00:30."""
        self.addCleanup(time.tzset)     # after the variable has its old value
        self.useFixture(fixtures.EnvironmentVariable('TZ', 'Europe/Berlin'))
        time.tzset()
        for changed in ('2026-03-29', '2026-10-25'):
            now = datetime.datetime.fromisoformat(f'{changed}T12:00').astimezone(datetime.UTC)
            self.patch(arguments, 'datetime', _Stopped(now))
            found = arguments.past('23:30')
            self.assertEqual('23:30', found.astimezone().strftime('%H:%M'))
            self.assertLess(now - found, datetime.timedelta(hours=14))


class _Stopped(types.SimpleNamespace):
    """The module datetime at a moment at which it is always ``now``."""

    def __init__(self, now):
        class Datetime(datetime.datetime):
            @classmethod
            def now(cls, tz=None):
                return now.astimezone(tz)
        super().__init__(datetime=Datetime, UTC=datetime.UTC, time=datetime.time,
                         timedelta=datetime.timedelta)


@ddt.ddt
class TypoTest(test_automation.OperatorTestCase):
    @ddt.data(('plan', 'list', '--limit', '-1'), ('move', 'list', '--limit', '0'),
              ('host', 'drain', 'a', '--deadline', '99999999999999'),
              ('host', 'drain', 'a', '--parallel', '0'), ('db', 'purge', '--days', '0'),
              ('move', 'list', '--host', ''), ('move', 'list', '--server', ''),
              ('plan', 'list', '--state', ''), ('plan', 'list', '--state', 'complete'),
              ('move', 'list', '--state', 'complete'))
    def test_a_number_that_makes_no_sense_is_a_wrong_argument(self, words):
        self.assertEqual(2, self.assertRaises(SystemExit, self.manage, *words).code)

    @ddt.data(('plan', 'list'), ('resume',), ('pause',), ('stop',), ('automation', 'set', 'off'),
              ('room', 'make', 'm1.1'))
    def test_an_aggregate_that_is_not_in_scope_is_refused_with_those_that_are(self, words):
        self.configure('aggregates = gpu')
        said = self.manage(*words, '--aggregate', 'gup', expected=1)
        self.assertIn('Aggregate gup: is not in scope. ', said)

    def test_room_without_an_aggregate_is_refused_with_the_aggregates_in_scope(self):
        for options, said in (
                ('aggregates = gpu, db', 'several are in scope. Name one of gpu, db.'),
                ('', 'there is nothing to balance')):
            self.configure(options)
            self.assertIn(said, self.manage('room', 'make', 'm1.1', expected=1))
