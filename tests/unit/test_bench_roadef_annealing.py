"""The search by simulated annealing, with the purpose of the planner ``level``."""

import numpy as np
import testtools

from bench.roadef.annealing import Annealing
from kronos_nova.model.space import SearchSpace
from kronos_nova.planners.base import Limits
from kronos_nova.planners.level import Leveling
from kronos_nova.planners.level import band_of
from tests.unit.planners import clouds
from tests.unit.planners.test_level import cloud

ENDLESS = Limits(budget=1000)


class AnnealedLeveling(Annealing, Leveling):
    pass


def leveling(seed=0):
    """Return a search for 12 hosts with few servers each."""
    rng = np.random.default_rng(seed)
    state = clouds.start(cloud(rng.choice([.05, .1, .15], 60), rng.integers(0, 12, 60), 12, .1))
    found = AnnealedLeveling(SearchSpace(state, 60), band_of(state))
    found.purpose.may_allow = lambda search, vms, hosts: np.ones(len(vms), dtype=bool)
    found.charge(.1)
    return found


class AnnealTest(testtools.TestCase):
    def test_it_finds_a_better_solution(self):
        found = leveling()
        before = found.left()
        found.anneal(1e7, (.1, 1e-3), ENDLESS)
        self.assertLess(found.left(), .1 * before)

    def test_the_best_solution_is_kept(self):
        found = leveling()
        found.build(60)
        before = found.place.tolist(), found.scores.copy(), found.free.copy()
        # At such a temperature every move is made.
        found.anneal(1e7, (1e3, 1e3), ENDLESS)
        self.assertEqual(before[0], found.place.tolist())
        self.assertTrue((before[1] == found.scores).all() and (before[2] == found.free).all())
        self.assertEqual([np.flatnonzero(found.place == host).tolist() for host in range(12)],
                         found.residents)

    def test_it_ends_at_the_deadline(self):
        found = leveling()
        times = iter(range(100))
        found.anneal(1e12, (.1, 1e-3), Limits(budget=1, clock=lambda: next(times), deadline=5))
        self.assertEqual(6, next(times))

    def test_it_rates_no_more_pairs_than_it_may(self):
        found = leveling()
        found.anneal(2e5, (.1, 1e-3), ENDLESS)
        self.assertLess(2e5, found.rated)
        self.assertLess(found.rated, 2.2e5)
