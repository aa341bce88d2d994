"""Hosts are made less likely to become full, one move after the other."""

import dataclasses

import numpy as np
import testtools
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from kronos_nova.model import Prices
from kronos_nova.objects.plan import HOT_SCORE
from kronos_nova.planners.base import Limits
from kronos_nova.planners.risk import LowerRisk
from kronos_nova.planners.risk import chance
from kronos_nova.planners.risk import risk
from tests.unit.model.referee import Referee
from tests.unit.planners import clouds


@st.composite
def flickering(draw):
    """Clouds of which it is known how much each instance varies."""
    problem = draw(clouds.problems())
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    return dataclasses.replace(problem, variances=rng.choice(
        [0.0, 0.001, 0.01, 0.05], problem.weights.shape))


def makes_full(state, vm, left):
    """Return whether an instance is where it is now on a full host that is fuller than that which
    it left was."""
    return any(load > max(HOT_SCORE, was) + 1e-9 for load, was, weight in zip(
        state.scores[state.vm_host[vm]], left, state.problem.weights[vm], strict=True) if weight)


def plan(problem, budget=5, ceiling=9.0, price=0.0):
    state = clouds.start(problem, prices=Prices(vms=np.full(len(problem.vms), price)))
    before = risk(state)
    steps = LowerRisk().plan(state, Limits(budget=budget, overload_ceiling=ceiling))
    return steps, before, risk(state)


class LowerRiskTest(testtools.TestCase):
    @clouds.judges(4)
    @settings(max_examples=60 * clouds.MANY, deadline=None)
    @given(flickering())
    def test_every_rule_holds_after_every_step(self, problem):
        ceiling = np.maximum(0.5, problem.scores) + 1e-9
        steps = plan(problem, ceiling=0.5)[0]
        for step, state in clouds.replayed(self, problem, steps, ceiling=0.5):
            self.assertTrue((state.scores[step.destination] <= ceiling[step.destination]).all())

    @settings(max_examples=60 * clouds.MANY, deadline=None)
    @given(flickering(), st.sampled_from((0.0, 0.01, 0.1)))
    def test_it_takes_the_move_that_lowers_the_risk_most_if_that_pays(self, problem, price):
        referee, state = Referee(problem), clouds.start(problem)
        before, best = risk(state), 1e-9
        for vm in np.flatnonzero(problem.movable):
            for host in np.flatnonzero(problem.available):
                if host != state.vm_host[vm] and referee.allows(state.vm_host, vm, host):
                    left = state.scores[state.vm_host[vm]].copy()
                    source = state.move(vm, host)
                    if not makes_full(state, vm, left):
                        best = max(best, before - risk(state) - price)
                    state.move(vm, source)
        steps, _before, after = plan(problem, budget=1, price=price)
        self.assertEqual(best > 2e-9, bool(steps))
        if steps:
            self.assertAlmostEqual(best, before - after - price, places=9)

    def cloud(self, place, loads, variances):
        problem = clouds.idle(place)
        scores = np.zeros((len(problem.hosts), 1))
        np.add.at(scores[:, 0], problem.vm_host, loads)
        return dataclasses.replace(
            problem, weights=np.array(loads)[:, None], scores=scores,
            variances=np.array(variances)[:, None])

    def test_two_that_flicker_are_parted_though_the_hosts_are_even(self):
        problem = self.cloud([0, 0, 1, 1], [.3, .3, .3, .3], [.04, .04, 0, 0])
        steps, before, after = plan(problem, budget=2)
        self.assertEqual(0, steps[0].source)
        self.assertIn('makes h0 less likely to become full', steps[0].reason)
        self.assertLess(after, before)

    def test_of_two_that_help_about_alike_the_cheaper_one_moves(self):
        problem = self.cloud([0, 0, 0], [.5, .3, .2], [.01, .01, .01])
        prices = np.array([.02, .002, .02])
        state = clouds.start(problem)
        [step] = LowerRisk(lambda vms: prices[vms]).plan(
            state, Limits(budget=1, overload_ceiling=9.0))
        self.assertEqual((1, 0), (step.vm, step.source))

    def test_hosts_that_are_far_from_full_are_left_alone(self):
        problem = self.cloud([0, 0, 1], [.1, .1, .1], [1e-4, 1e-4, 1e-4])
        self.assertEqual([], plan(problem, price=.01)[0])

    def test_a_chance_is_the_square_of_what_any_load_may_do_at_most(self):
        rng = np.random.default_rng(1)
        for loads in (rng.exponential(.1, 10_000), (rng.random(10_000) < .05) * .95 + 0.0):
            found = chance(np.array([loads.mean()]), np.array([loads.var()]))[0]
            self.assertLessEqual((loads > .9).mean(), np.sqrt(found))
        self.assertGreater(chance(np.array([1.2]), np.array([0.0]))[0],
                           chance(np.array([1.1]), np.array([0.0]))[0])
