"""What noise alone makes of an imbalance."""

import numpy as np
import testtools

from kronos_nova.profiling import expected_range


class ExpectedRangeTest(testtools.TestCase):
    def test_it_is_what_draws_show(self):
        rng = np.random.default_rng(1)
        for deviations in (np.ones(2), np.ones(20), np.ones(320), rng.uniform(.01, .3, 50),
                           np.append(np.zeros(25), rng.uniform(.01, .3, 25))):
            drawn = np.mean([np.ptp(rng.normal(size=len(deviations)) * deviations)
                             for _ in range(4000)])
            self.assertTrue(abs(expected_range(deviations) / drawn - 1) < .02)

    def test_what_does_not_vary_makes_none(self):
        self.assertEqual([0.0, 0.0], [expected_range(np.zeros(n)) for n in (0, 7)])
        self.assertTrue(expected_range(np.ones(1)) < .01)
