"""Numbers that were mistyped, or meant "for ever", are refused where they are written."""

import datetime

import testtools
from oslo_config import cfg

from kronos_nova import conf as kronos_conf
from kronos_nova.conf import bounds

NOW = datetime.datetime(2026, 11, 22, tzinfo=datetime.UTC)


def numbers():
    """(group, option) of all that are numbers of ours."""
    for module in kronos_conf.GROUPS:
        for option in module.OPTS:
            if type(option) in (cfg.IntOpt, cfg.FloatOpt):
                yield module.GROUP.name, option


def value_of(group, name, text):
    """
    :raises ValueError: oslo.config refuses it
    """
    conf = cfg.ConfigOpts()
    kronos_conf.register_opts(conf)
    conf([], default_config_files=[])
    conf.set_override(name, text, group)
    return conf[group][name]


class NumbersTest(testtools.TestCase):
    def test_there_are_numbers(self):
        self.assertGreater(len([*numbers()]), 60)

    def test_none_is_infinite_or_no_number_at_all(self):
        for group, option in numbers():
            for text in ('nan', 'inf', '-inf', '1e400'):
                self.assertRaises(ValueError, value_of, group, option.name, text)

    def test_none_is_so_large_that_no_time_can_be_made_of_it(self):
        for group, option in numbers():
            for text in ('9' * 14, '-' + '9' * 14):
                self.assertRaises(ValueError, value_of, group, option.name, text)

    def test_the_largest_are_times_that_there_are(self):
        for _group, option in numbers():
            unit = 'days' if option.name.endswith('_days') else 'seconds'
            length = datetime.timedelta(**{unit: option.type.max})
            self.assertLess(NOW - length, NOW + length)

    def test_products_of_the_largest_are_too(self):
        group = {option.name: option.type.max for _group, option in numbers()}
        self.assertLess(NOW, NOW + datetime.timedelta(
            seconds=group['evaluation_interval'] * group['rejection_backoff_cycles']))
        self.assertLess(NOW, NOW + datetime.timedelta(seconds=group['start_interval'] * 100_000))

    def test_bounds_of_an_option_of_its_own_stay(self):
        option = cfg.IntOpt('some', min=3, max=5)
        bounds.bound([option])
        self.assertEqual((3, 5), (option.type.min, option.type.max))
