"""No planner breaks a rule, whatever it is after, and all end in time."""

import dataclasses
import itertools

import numpy as np
import testtools
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from kronos_nova.planners.affinity import AffinityEnforcer
from kronos_nova.planners.base import Limits
from kronos_nova.planners.evacuate import Evacuator
from kronos_nova.planners.ffd import FirstFitDecreasing
from kronos_nova.planners.greedy import Greedy
from kronos_nova.planners.pack import Pack
from kronos_nova.planners.spread import Spread
from tests.unit.planners import clouds
from tests.unit.simulation.referee import Referee

PLANNERS = (Greedy, Spread, FirstFitDecreasing, Pack, Evacuator, AffinityEnforcer)


@st.composite
def strained(draw):
    """Problems with server groups, hosts without room, and hosts that are disabled or down."""
    problem = draw(clouds.problems(max_hosts=5, max_vms=12))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    draining = ~problem.available & (rng.random(len(problem.hosts)) < 0.7)
    full = rng.random(len(problem.hosts)) < 0.4
    limits = problem.limits.copy()
    limits[:len(full)][full] = problem.used[:len(full)][full]
    return dataclasses.replace(problem, draining=draining, limits=limits,
                               evacuable=rng.random(len(problem.vms)) < 0.9)


class Ticks:
    """A clock that is a second later each time it is looked at."""

    def __init__(self):
        self.seen = itertools.count()

    def __call__(self):
        return float(next(self.seen))


class EveryPlannerTest(testtools.TestCase):
    def replay(self, problem, steps, planner):
        # That a host becomes empty matters more than how loaded the others are.
        yields = {'headroom'} if planner is Evacuator else set()
        referee, state = Referee(problem), clouds.start(problem)
        for step in steps:
            may = problem.evacuable if problem.draining[step.source] else problem.movable
            self.assertTrue(may[step.vm])
            self.assertTrue(problem.available[step.destination])
            against = referee.against(state.vm_host, step.vm, step.destination)
            self.assertEqual(set(), {*against} - yields)
            broken = referee.misplaced(state.vm_host)
            self.assertEqual(step.source, state.move(step.vm, step.destination))
            self.assertTrue((state.used <= np.maximum(problem.limits, problem.used) + 1e-9).all())
            for now, before in zip(referee.misplaced(state.vm_host), broken, strict=True):
                self.assertLessEqual(now, before)

    @settings(max_examples=25 * clouds.MANY, deadline=None)
    @given(strained(), st.sampled_from(PLANNERS))
    def test_it_keeps_every_rule_after_every_step(self, problem, planner):
        steps = planner().plan(clouds.start(problem), Limits(budget=5))
        self.assertLessEqual(len(steps), 5)
        self.replay(problem, steps, planner)

    @settings(max_examples=25 * clouds.MANY, deadline=None)
    @given(strained(), st.sampled_from(PLANNERS), st.integers(0, 12))
    def test_it_ends_in_time_with_a_plan_that_keeps_them(self, problem, planner, seconds):
        clock = Ticks()
        limits = Limits(budget=5, clock=clock, deadline=float(seconds))
        steps = planner().plan(clouds.start(problem), limits)
        self.assertLess(clock(), seconds + 40)
        self.replay(problem, steps, planner)
