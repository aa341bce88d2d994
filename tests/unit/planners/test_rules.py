"""No planner breaks a rule, whatever it is after, and all end in time."""

import collections
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
from kronos_nova.planners.hot_hosts import Marks
from kronos_nova.planners.level import Level
from kronos_nova.planners.pack import Pack
from kronos_nova.planners.relieve import Relieve
from kronos_nova.planners.risk import LowerRisk
from kronos_nova.planners.spread import Spread
from tests.unit.model.referee import Referee
from tests.unit.planners import clouds

PLANNERS = {
    'greedy': Greedy, 'spread': Spread, 'ffd': FirstFitDecreasing, 'pack': Pack,
    'evacuate': Evacuator, 'affinity': AffinityEnforcer, 'risk': LowerRisk, 'level': Level,
    'relieve': lambda: Relieve(Marks(*np.array([[0.5], [0.4], [0.25]]).repeat(2, axis=1)))}
CEILING = 0.6
HEEDS_CEILING = PLANNERS.keys() - {'evacuate', 'ffd', 'pack'}


@st.composite
def strained(draw):
    """(problem, snapshot, rules) with all that constraints go by, hosts without room, and hosts
    that are disabled or down."""
    problem, snapshot, rules = draw(clouds.strained(
        max_hosts=6, max_vms=14, max_policies=2, least=(3, 6, 2)))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    draining = ~problem.available & (rng.random(len(problem.hosts)) < 0.7)
    full = rng.random(len(problem.hosts)) < 0.2
    limits = problem.limits.copy()
    limits[:len(full)][full] = problem.used[:len(full)][full]
    return dataclasses.replace(
        problem, draining=draining, limits=limits, evacuable=rng.random(len(problem.vms)) < 0.9,
        variances=rng.choice([0.0, 0.01, 0.05], problem.weights.shape)), snapshot, rules


class Ticks:
    """A clock that is a second later each time it is looked at."""

    def __init__(self):
        self.seen = itertools.count()

    def __call__(self):
        return float(next(self.seen))


class EveryPlannerTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.steps = collections.Counter()

    def plan(self, case, planner, **limits):
        problem, snapshot, rules = case
        state = clouds.start(problem, snapshot=snapshot, rules=rules)
        steps = PLANNERS[planner]().plan(state, Limits(
            budget=5, overload_ceiling=CEILING, **limits))
        self.assertLessEqual(len(steps), 5)
        self.replay(case, steps, planner)

    def replay(self, case, steps, planner):
        problem, snapshot, rules = case
        # That a host becomes empty matters more than how loaded the others are, and than calm.
        yields = {'headroom', 'returns'} if planner == 'evacuate' else set()
        referee = Referee(problem, snapshot, rules,
                          ceiling=CEILING if planner in HEEDS_CEILING else None)
        state = clouds.start(problem)
        forbidden = [group.hard or rules.soft_group_cost is None for group in problem.groups]
        for step in steps:
            may = problem.evacuable if problem.draining[step.source] else problem.movable
            self.steps[planner] += 1
            self.judged = min(self.steps[each] for each in PLANNERS)
            self.assertTrue(may[step.vm])
            self.assertTrue(problem.available[step.destination])
            against = referee.against(state.vm_host, step.vm, step.destination)
            self.assertEqual(set(), {*against} - yields)
            broken = referee.misplaced(state.vm_host)
            self.assertEqual(step.source, state.move(step.vm, step.destination))
            self.assertTrue((state.used <= np.maximum(problem.limits, problem.used) + 1e-9).all())
            for now, before, is_forbidden in zip(
                    referee.misplaced(state.vm_host), broken, forbidden, strict=True):
                self.assertLessEqual(now, before if is_forbidden else now)

    @clouds.judges(1)
    @settings(max_examples=50 * clouds.MANY, deadline=None)
    @given(strained())
    def test_it_keeps_every_rule_after_every_step(self, case):
        for planner in PLANNERS:
            self.plan(case, planner)

    @settings(max_examples=50 * clouds.MANY, deadline=None)
    @given(strained(), st.sampled_from(sorted(PLANNERS)), st.integers(0, 12))
    def test_it_ends_in_time_with_a_plan_that_keeps_them(self, case, planner, seconds):
        clock = Ticks()
        self.plan(case, planner, clock=clock, deadline=float(seconds))
        self.assertLess(clock(), seconds + 40)
