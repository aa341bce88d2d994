"""The expected load of an instance by its past."""

import numpy as np
import testtools
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kronos_nova.load import LoadStats
from kronos_nova.load import load_statistics
from tests.unit.planners.clouds import MANY

STEP = 300.0


def after(series, stats=None, start=0.0):
    """Return the statistics of one instance whose load was sampled every five minutes."""
    stats = stats or LoadStats()
    for number, load in enumerate(series):
        stats = stats.after(start + number * STEP, ('vm',), np.array([load]))
    return stats


def expected(stats, load):
    [found] = stats.expected(('vm',), np.array([load]))
    return found


class LoadStatsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.rng = np.random.default_rng(1)

    def test_what_flickers_is_expected_where_it_mostly_is(self):
        stats = after(self.rng.choice([.1, .3], 288))
        self.assertAlmostEqual(.2, expected(stats, .3), delta=.02)

    def test_what_stays_where_it_goes_is_expected_where_it_is(self):
        hours = np.repeat(self.rng.uniform(0, 1, 8), 36)
        stats = after(hours)
        self.assertAlmostEqual(hours[-1], expected(stats, hours[-1]), delta=.12)
        self.assertAlmostEqual(.9, expected(stats, .9), delta=.15)

    def test_the_slope_is_that_of_the_regression_of_what_comes_on_what_is(self):
        left, load = .9, np.zeros(4000)
        for number in range(1, 4000):
            load[number] = left * load[number - 1] + self.rng.normal(0, .01)
        part = 1 - np.exp(-STEP / load_statistics.SOON)
        slope = sum(part * (1 - part) ** k * left ** (k + 1) for k in range(500))
        stats = after(load + .5)
        found = (expected(stats, .6) - expected(stats, .5)) / .1
        self.assertAlmostEqual(slope, found, delta=.1)

    def test_of_an_instance_that_is_not_known_what_it_is_now_is_expected(self):
        self.assertEqual(.4, expected(LoadStats(), .4))
        self.assertEqual(.4, expected(after([.4]), .4))

    def test_figures_are_converted_where_the_unit_changes(self):
        """The largest host has twice the CPUs, and its fractions are half as large."""
        loads = self.rng.choice([.1, .3], 288)
        stats = known = LoadStats()
        for number, load in enumerate(loads):
            known = known.after(number * STEP, ('vm',), np.array([load]), 16.0)
            unit = 16.0 if number < 100 else 32.0
            stats = stats.after(number * STEP, ('vm',), np.array([load * 16.0 / unit]), unit)
        self.assertAlmostEqual(expected(known, .3) / 2, expected(stats, .15))
        self.assertAlmostEqual(known.variances(('vm',))[0] / 4, stats.variances(('vm',))[0])
        for unit in float('nan'), 0.0:    # the unit is not known
            np.testing.assert_array_equal(
                known.figures, known.after(known.at, ('vm',), np.array([np.nan]), unit).figures)

    def test_a_clock_that_is_a_bit_behind_forgets_nothing(self):
        """Such as that of another controller."""
        stats = after(self.rng.choice([.1, .3], 288))
        behind = stats.after(stats.at - 2.0, ('vm',), np.array([.3]))
        self.assertAlmostEqual(expected(stats, .3), expected(behind, .3), 6)
        self.assertAlmostEqual(.2, expected(behind.after(stats.at + 300, ('vm',), np.array([.1])),
                                            .1), delta=.03)
        forgotten = stats.after(stats.at - 2 * load_statistics.FORGOTTEN, ('vm',), np.array([.3]))
        self.assertEqual(.3, expected(forgotten, .3))

    def test_a_constant_load_is_expected_to_change_with_what_it_does(self):
        self.assertAlmostEqual(.2, expected(after([.2] * 288), .2))
        self.assertGreater(expected(after([.2] * 288), .6), .5)

    def test_what_was_not_measured_changes_nothing_and_stays_unknown(self):
        stats = after([.2, .4, float('nan')])
        self.assertTrue(np.isnan(expected(stats, float('nan'))))
        np.testing.assert_array_equal(after([.2, .4]).figures, stats.figures)

    def test_who_is_gone_is_forgotten_and_so_is_all_after_a_long_time_without_a_look(self):
        stats = after([.2, .4])
        self.assertEqual((), stats.after(600, ('other',), np.array([np.nan])).vms)
        late = after([.6], stats, start=load_statistics.FORGOTTEN + 601)
        self.assertEqual(.6, late.figures[0, 1])

    def test_a_clock_that_was_put_back_begins_again(self):
        self.assertEqual(.6, after([.6], after([.2, .4]), start=-1e6).figures[0, 1])

    @given(hnp.arrays(float, st.integers(1, 30), elements=st.floats(0, 1)))
    @settings(deadline=None, max_examples=50 * MANY)
    def test_never_beyond_what_was_seen(self, series):
        found = expected(after(series), series[-1])
        self.assertTrue(series.min() - 1e-9 <= found <= series.max() + 1e-9)
