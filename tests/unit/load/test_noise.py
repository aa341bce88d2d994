"""The imbalance that noise alone makes."""

import numpy as np
import testtools

from kronos_nova.load import expected_range


class ExpectedRangeTest(testtools.TestCase):
    def test_it_is_what_draws_show(self):
        rng = np.random.default_rng(1)
        for deviations in (np.ones(2), np.ones(20), np.ones(320), rng.uniform(.01, .3, 50),
                           np.append(np.zeros(25), rng.uniform(.01, .3, 25))):
            drawn = np.mean([np.ptp(rng.normal(size=len(deviations)) * deviations)
                             for _ in range(4000)])
            self.assertTrue(abs(expected_range(deviations) / drawn - 1) < .02)

    def test_without_the_hosts_that_are_left_out_it_is_what_draws_show_too(self):
        rng = np.random.default_rng(1)
        for left_out, deviations in (
                (1, np.ones(4)), (1, np.ones(20)), (5, np.ones(20)), (16, np.ones(320)),
                (2, rng.uniform(.01, .3, 50)),
                (2, np.append(np.zeros(25), rng.uniform(.01, .3, 25))),
                (1, np.append(np.full(99, .02), .5)),
                (5, np.append(np.full(90, .02), np.full(10, .5)))):
            drawn = np.sort(rng.normal(size=(4000, len(deviations))) * deviations, axis=1)
            drawn = np.mean(drawn[:, -1 - left_out] - drawn[:, left_out])
            self.assertTrue(abs(expected_range(deviations, left_out) / drawn - 1) < .02)

    def test_where_fewer_than_two_hosts_count_it_is_none(self):
        self.assertEqual([0.0, 0.0], [expected_range(np.ones(n), 2) for n in (4, 5)])

    def test_what_does_not_vary_makes_none(self):
        self.assertEqual([0.0, 0.0], [expected_range(np.zeros(n)) for n in (0, 7)])
        self.assertEqual(0.0, expected_range(np.zeros(7), 1))
        self.assertTrue(expected_range(np.ones(1)) < .01)
