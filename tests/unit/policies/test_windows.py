"""Moves are only made while a window is open."""

import datetime
import zoneinfo

import testtools
from oslo_config import cfg

from kronos_nova import conf as kronos_conf
from kronos_nova import exception
from kronos_nova.policies import windows


def at(text, zone='UTC'):
    return datetime.datetime.fromisoformat(text).replace(
        tzinfo=zoneinfo.ZoneInfo(zone)).timestamp()


class WindowsTest(testtools.TestCase):
    def test_open_from_the_first_second_until_before_the_last(self):
        found = windows.parse(['gpu; 0 22 * * sat; 360'])
        for text, is_open in (('2026-11-21T21:59:59', False), ('2026-11-21T22:00:00', True),
                              ('2026-11-22T03:59:59', True), ('2026-11-22T04:00:00', False)):
            self.assertIs(is_open, found.is_open('gpu', at(text)), text)

    def test_the_configuration_is_asked_as_it_is_by_then(self):
        conf = cfg.ConfigOpts()
        kronos_conf.register_opts(conf)
        conf([], default_config_files=[])
        noon = datetime.datetime(2026, 11, 18, 12, tzinfo=datetime.UTC)
        self.assertTrue(windows.may_start(conf, 'gpu', noon))
        conf.set_override('maintenance_window', ['*; 0 13 * * *; 60; Europe/Berlin'], 'kronos')
        self.assertTrue(windows.may_start(conf, 'gpu', noon))
        self.assertFalse(windows.may_start(conf, 'gpu', noon + datetime.timedelta(hours=1)))

    def test_an_aggregate_without_a_window_is_always_open(self):
        found = windows.parse(['gpu; 0 22 * * sat; 360'])
        self.assertTrue(found.is_open('web', at('2026-11-18T12:00:00')))

    def test_a_star_is_every_aggregate_and_any_window_will_do(self):
        found = windows.parse(['*; 0 1 * * *; 60', 'gpu; 0 12 * * *; 60'])
        self.assertTrue(found.is_open('gpu', at('2026-11-18T12:30:00')))
        self.assertFalse(found.is_open('web', at('2026-11-18T12:30:00')))
        self.assertTrue(found.is_open('web', at('2026-11-18T01:30:00')))

    def test_hours_are_those_of_the_time_zone_also_in_summer(self):
        found = windows.parse(['*; 0 22 * * *; 60; Europe/Berlin'])
        for day in ('2026-01-15', '2026-07-15'):
            self.assertTrue(found.is_open('gpu', at(f'{day}T22:30:00', 'Europe/Berlin')))
            self.assertFalse(found.is_open('gpu', at(f'{day}T21:30:00', 'Europe/Berlin')))

    def test_a_window_lasts_as_long_on_the_night_the_clocks_change(self):
        found = windows.parse(['*; 0 1 * * *; 180; Europe/Berlin'])
        start = at('2026-03-29T01:00:00', 'Europe/Berlin')  # 02:00 is skipped that night
        self.assertTrue(found.is_open('gpu', start + 179 * 60))
        self.assertFalse(found.is_open('gpu', start + 180 * 60))

    def test_it_tells_when_the_next_opens(self):
        found = windows.parse(['*; 0 1 * * *; 60', '*; 0 12 * * *; 60'])
        self.assertEqual(at('2026-11-18T12:00:00'),
                         found.opens_at('gpu', at('2026-11-18T10:00:00')))

    def test_everything_wrong_is_reported_at_once(self):
        lines = ['gpu', 'gpu; 61 * * * *; 5', 'gpu; * * * * *; soon', 'gpu; * * * * *; 0',
                 'gpu; * * * * *; 5; Mars/Crater', '; * * * * *; 5', 'gpu; @daily; 5']
        error = self.assertRaises(exception.ConfigurationError, windows.parse, lines)
        for line in lines:
            self.assertIn(f'"{line}"', str(error))
