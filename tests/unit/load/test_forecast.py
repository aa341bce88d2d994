"""Forecasts of the hours to come, and their errors."""

import numpy as np
import testtools
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kronos_nova.load import forecast
from tests.unit.planners.clouds import MANY

H = 6
HOURS = 24 * 9


def reported(loads, horizon=H):
    """The forecast made of (N, 216 + horizon) hours after the first 216, and what then came."""
    days = loads[:, HOURS - forecast.DAYS:HOURS]
    begin = HOURS - forecast.WEEK_AGO
    week = loads[:, begin:begin + forecast.weeks(horizon)]
    return forecast.seasonal(days, week), loads[:, HOURS:HOURS + horizon]


def on_one_host(count):
    return forecast.PlacedLoads(np.zeros(count, dtype=np.intp), np.ones(count), 1)


def brute(loads, lead, weigh, at):
    """Compute the forecast for hour ``at`` from five simple ones, the plainest way."""
    def simple(hour):
        x, target, last = loads, hour + lead, hour - 1
        return np.array([x[last], x[target - 24], x[target - 24] + x[last] - x[last - 24],
                         x[target - 168], x[target - 168] + x[last] - x[last - 168]])
    errors = np.array([simple(hour) - loads[hour + lead] for hour in weigh])
    weights = 1 / ((errors ** 2).mean(axis=0) + forecast.LEAST_ERROR)
    return float(weights @ simple(at) / weights.sum())


class SeasonalTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.rng = np.random.default_rng(3)
        self.hours = np.arange(HOURS + H)

    def noise(self, count, deviation=.01):
        return self.rng.normal(0, deviation, (count, len(self.hours)))

    def off(self, loads):
        made, came = reported(loads)
        return float(np.abs(made.ahead - came).mean())

    def office(self, hours):
        return .2 + .5 * ((hours % 24 >= 8) & (hours % 24 < 18))

    def test_a_day_like_the_last_is_predicted_before_it_comes(self):
        for hour in (2, 6, 10, 16):
            loads = self.office(self.hours + hour) + self.noise(20)
            self.assertLess(self.off(loads), .02)
            made, _came = reported(loads)
            found = made.judged(on_one_host(20))
            self.assertTrue(found.is_worth_it)
            self.assertLess(found.error, .2 * found.present_error)

    def test_a_weekend_is_predicted_by_the_one_before(self):
        for since in (12, 24, 36):
            is_off = (self.hours - HOURS + since) % 168 < 48
            loads = np.where(is_off, .1, self.office(self.hours + 10)) + self.noise(20)
            self.assertLess(self.off(loads), .03)

    def test_what_has_moved_to_another_level_is_predicted_there(self):
        loads = self.office(self.hours) + self.noise(20)
        loads[:, HOURS - 30:] += .2
        self.assertLess(self.off(loads), .05)

    def test_what_has_no_pattern_is_hardly_predicted_better_than_by_the_present(self):
        loads = np.abs(np.cumsum(self.noise(20, .02), axis=1)) + .2
        made, _came = reported(loads)
        found = made.judged(on_one_host(20))
        self.assertTrue(found.is_known)
        self.assertFalse(found.is_worth_it)

    def test_without_a_week_yesterday_is_enough_and_without_yesterday_nothing_is_predicted(self):
        loads = self.office(self.hours) + self.noise(20)
        loads[:, :HOURS - forecast.DAYS] = np.nan
        made, came = reported(loads)
        self.assertLess(np.abs(made.ahead - came).mean(), .02)
        self.assertTrue(made.judged(on_one_host(20)).is_worth_it)
        loads[:, :HOURS - 20] = np.nan
        made, _came = reported(loads)
        self.assertTrue(np.isnan(made.ahead).all())
        self.assertFalse(made.judged(on_one_host(20)).is_known)
        self.assertFalse(made.judged(on_one_host(20)).is_worth_it)

    def test_one_of_which_nothing_is_known_spoils_nothing(self):
        loads = self.office(self.hours) + self.noise(3)
        made, _came = reported(loads)
        found = made.select(np.array([0, -1, 2]))
        self.assertEqual([False, True, False], np.isnan(found.ahead).any(axis=1).tolist())
        self.assertTrue(found.judged(on_one_host(3)).is_worth_it)
        nothing, _came = reported(loads[:0])
        self.assertTrue(np.isnan(nothing.select(np.array([-1])).ahead).all())

    def test_margins_cover_so_many_hours_of_each_host_and_go_with_what_causes_them(self):
        loads = self.office(self.hours) + self.noise(6, .001)
        loads[0] += self.rng.choice([0, .2], len(self.hours), p=(.7, .3))
        made, _came = reported(loads)
        placed = forecast.PlacedLoads(np.repeat([0, 1], 3), np.ones(6), 2)
        margins = made.margins(placed, .9)
        beyond = placed.sums(-made.errors)
        covered = (beyond <= placed.sums(margins)[..., None] + 1e-9).mean(axis=2)
        self.assertTrue((covered >= .87).all())
        self.assertGreater(margins[0].mean(), 10 * margins[1:].mean())

    def test_a_pattern_a_minute_long_makes_no_difference_to_hosts_that_share_it(self):
        """Errors of instances that cancel out are none of their host."""
        noise = self.noise(1, .1)
        loads = .5 + np.concatenate([noise, -noise])
        made, _came = reported(loads)
        self.assertLess(made.judged(on_one_host(2)).error, 1e-6)

    @settings(max_examples=30 * MANY, deadline=None)
    @given(st.integers(0, 2 ** 32 - 1), st.integers(0, H - 1))
    def test_it_is_what_the_plainest_way_gives(self, seed, lead):
        loads = np.random.default_rng(seed).uniform(.1, 1, HOURS + H)
        made, _came = reported(loads[None])
        known = range(HOURS - 24, HOURS - lead)
        self.assertAlmostEqual(max(brute(loads, lead, known, HOURS), 0.0), made.ahead[0, lead],
                               places=5)
        for at in (HOURS - 24, HOURS - 23):
            others = [hour for hour in known if (hour - at) % 2]
            error = brute(loads, lead, others, at) - loads[at + lead]
            self.assertAlmostEqual(error, made.errors[0, lead, at - HOURS + 24], places=5)

    @settings(max_examples=30 * MANY, deadline=None)
    @given(hnp.arrays(float, (3, HOURS + H), elements=st.floats(0, 1) | st.just(np.nan)))
    def test_whatever_is_missing_what_is_predicted_is_possible(self, loads):
        made, _came = reported(loads)
        ahead = made.ahead[~np.isnan(made.ahead)]
        self.assertTrue(((ahead >= 0) & (ahead <= 3)).all())
        self.assertTrue((np.isnan(made.errors) == np.isnan(made.present_errors)).all())
        placed = on_one_host(3)
        self.assertFalse(np.isnan(made.margins(placed, .9)).any())
        self.assertTrue((made.variances() >= 0).all())


class HighestTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        hours = np.arange(forecast.DAYS + H)
        self.loads = np.stack([.3 + .3 * np.sin(hours * np.pi / 12)] * 2)
        self.days = self.loads[:, :forecast.DAYS]
        self.said = np.stack([self.loads[:, at:at + H].max(axis=1)
                              for at in range(forecast.ORIGINS + 1, forecast.DAYS)], axis=1)

    def judged(self, said):
        return forecast.judged_highest(said, self.days, H, on_one_host(2))

    def test_who_knows_the_future_is_never_off(self):
        found = self.judged(self.said)
        self.assertAlmostEqual(0, found.error)
        self.assertGreater(found.present_error, .1)
        self.assertTrue(found.is_worth_it)

    def test_who_says_what_is_there_is_as_good_as_the_present(self):
        found = self.judged(self.days[:, forecast.ORIGINS:-1])
        self.assertAlmostEqual(found.present_error, found.error)
        self.assertFalse(found.is_worth_it)

    def test_who_says_nothing_is_not_known(self):
        self.assertFalse(self.judged(np.full(self.said.shape, np.nan)).is_known)
