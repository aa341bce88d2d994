"""The search by simulated annealing, on random instances of the machine reassignment problem."""

import ddt
import numpy as np
import testtools

from bench.roadef import annealing
from bench.roadef import search
from kronos_nova.planners.base import Limits
from tests.unit.test_bench_roadef import drawn

ENDLESS = Limits(budget=1)


def cost(found):
    """Return the sum that a rise is a change of, computed from the assignment alone."""
    return found.excess.sum() + found.price.sum() + found._penalty(found.free, slice(None)).sum()


class AnnealTest(testtools.TestCase):
    def test_it_finds_a_better_solution(self):
        found = search.begin(drawn(0), 0)
        before = found.purpose.total(found)
        found.anneal(2e7, (1e3, 1.0), ENDLESS)
        self.assertLess(found.purpose.total(found), .8 * before)

    def test_the_best_solution_is_kept(self):
        found = search.begin(drawn(0), 0)
        found.build(60, Limits(budget=60))
        before = found.place.tolist(), found.scores.copy(), found.free.copy()
        # At such a temperature every move is made.
        found.anneal(1e7, (1e9, 1e9), ENDLESS)
        self.assertEqual(before[0], found.place.tolist())
        self.assertTrue((before[1] == found.scores).all() and (before[2] == found.free).all())
        self.assertEqual([np.flatnonzero(found.place == host).tolist() for host in range(8)],
                         found.residents)

    def test_it_ends_at_the_deadline_at_the_last_temperature(self):
        found = search.begin(drawn(0), 0)
        times, temperatures = iter(range(1000)), []
        found._draw = lambda count, temperature: temperatures.append(temperature)
        found.anneal(1e12, (100.0, 1.0), Limits(budget=1, clock=lambda: next(times), deadline=100))
        self.assertEqual(sorted(temperatures, reverse=True), temperatures)
        self.assertGreater(temperatures[0], 90.0)
        self.assertLess(temperatures[-1], 1.1)

    def test_it_rates_no_more_pairs_than_it_may(self):
        found = search.begin(drawn(0), 0)
        found.anneal(2e7, (1e3, 1.0), ENDLESS)
        self.assertLess(2e7, found.rated)
        self.assertLess(found.rated, 2.2e7)


@ddt.ddt
class RiseTest(testtools.TestCase):
    @ddt.data(*range(4))
    def test_a_rise_is_the_change_of_all_costs(self, seed):
        found, chance = search.begin(drawn(seed), 0), np.random.default_rng(seed)
        found._urgency = chance.uniform(1, 9, found.free.shape)
        found._begin()
        for turn in range(200):
            vm, other = chance.choice(len(found.place), 2, replace=False).tolist()
            source, host = int(found.place[vm]), int(found.place[other])
            if source == host:
                continue
            is_swap = turn % 2
            before = cost(found)
            rise = found._rise(slice(vm, vm + 1), host,
                               found.weights[:, other, None] if is_swap else 0.0)
            rise += found._change_of_the_rest(np.array([vm]), host, other if is_swap else None)
            found.move(vm, host)
            if is_swap:
                found.move(other, source)
            found._follow(source, host)
            self.assertAlmostEqual(cost(found) - before, rise[0], 5)

    def test_the_data_follow_the_moves(self):
        found = search.begin(drawn(1), 0)
        for _ in range(300):
            found._draw(30, 1e4)
        self.assertTrue((found._around == found.scores[:, found.place]).all())
        self.assertTrue((found._paid == found.excess[found.place]).all())
        self.assertTrue(np.allclose(found._penalties, found._penalty(found.free, slice(None))))


class PenaltyTest(testtools.TestCase):
    def test_only_the_penalties_for_lacking_room_rise(self):
        found = search.begin(drawn(0), 0)
        found.free[1, 2] = -1.0
        found._urge(0.0, .1)
        self.assertEqual([(1, 2)], list(zip(*np.nonzero(found._urgency > 1.0), strict=True)))
        found.free[1, 2] = 0.0
        found._urge(.1, .9)
        self.assertEqual(1.0, found._urgency.max())

    def test_the_basic_penalty_rises_most_at_the_end(self):
        self.assertEqual(annealing.SOFTEST, annealing._basic_penalty(0.0))
        self.assertAlmostEqual(annealing.HARDEST * annealing.FORCE, annealing._basic_penalty(1.0))
        self.assertLess(annealing._basic_penalty(.9), annealing.HARDEST)

    def test_a_draw_rates_all_instances_from_the_middle_of_a_search_on(self):
        self.assertEqual([100, 707, 5000, 5000],
                         [annealing._sample(progress, 9000) for progress in (0.0, .25, .5, 1.0)])
        self.assertEqual(40, annealing._sample(0.0, 40))
