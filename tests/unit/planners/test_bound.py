"""Imbalances that no plan can go below."""

import itertools

import numpy as np
import testtools
from hypothesis import given
from hypothesis import settings

from kronos_nova.planners.bound import least_imbalances
from tests.unit.planners import clouds


class LeastImbalancesTest(testtools.TestCase):
    @clouds.judges(4)
    @settings(max_examples=60 * clouds.MANY, deadline=None)
    @given(clouds.problems(max_hosts=3, max_vms=5))
    def test_no_placement_is_below_it(self, problem):
        bound, state = least_imbalances(problem), clouds.start(problem)
        vms, hosts = np.flatnonzero(problem.movable), np.flatnonzero(problem.available)
        for place in itertools.product(hosts, repeat=len(vms)):
            after = state.after(zip(vms.tolist(), map(int, place), strict=True))
            self.judged += 1
            self.assertTrue((after.imbalances() >= bound - 1e-9).all())

    def test_one_large_instance_keeps_its_host_above_the_others(self):
        problem = clouds.idle([0, 1, 2], hosts=3)
        scores = np.array([[.8], [.2], [.1]])
        problem = clouds.dataclasses.replace(problem, weights=scores.copy(), scores=scores)
        self.assertAlmostEqual(.8 - .15, least_imbalances(problem)[0])
