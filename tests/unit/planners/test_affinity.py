"""The affinity enforcer repairs what is broken, and only that."""

import dataclasses

import numpy as np
import testtools
from hypothesis import given
from hypothesis import settings

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.model import Group
from kronos_nova.planners.affinity import AffinityEnforcer
from kronos_nova.planners.base import Limits
from tests.unit.model.referee import Referee
from tests.unit.planners import clouds


def group(members, **kwargs):
    return Group(uuid='g', name='g', members=np.array(members), **kwargs)


class AffinityEnforcerTest(testtools.TestCase):
    def plan(self, problem, limits=None, **switches):
        state = clouds.start(problem)
        steps = AffinityEnforcer(**switches).plan(state, limits or Limits(budget=10))
        return state, steps

    def test_two_that_shall_be_apart_are_parted_by_one_move(self):
        problem = clouds.idle([0, 0, 1], groups=(group([0, 1], anti=True, hard=True),))
        state, steps = self.plan(problem)
        self.assertEqual((1, 0), (len(steps), state.groups.misplaced[0]))

    def test_a_group_that_is_kept_is_left_alone(self):
        problem = clouds.idle([0, 0, 1, 2], groups=(
            group([0, 1, 2], anti=True, hard=True, max_per_host=2),
            group([0, 1], anti=False, hard=True)))
        self.assertEqual([], self.plan(problem)[1])

    def test_three_that_shall_be_together_are_gathered(self):
        problem = clouds.idle([0, 1, 2], groups=(group([0, 1, 2], anti=False, hard=True),))
        state, steps = self.plan(problem)
        self.assertEqual((2, 0), (len(steps), state.groups.misplaced[0]))

    def test_two_pairs_are_gathered(self):
        problem = clouds.idle([0, 0, 1, 1], groups=(group([0, 1, 2, 3], anti=False, hard=False),))
        state, steps = self.plan(problem)
        self.assertEqual((2, 0), (len(steps), state.groups.misplaced[0]))

    def test_hard_and_soft_are_switched_separately(self):
        groups = (group([0, 1], anti=True, hard=True), group([2, 3], anti=True, hard=False))
        problem = clouds.idle([0, 0, 1, 1, 2], groups=groups)
        for hard, soft in ((True, False), (False, True)):
            state, _steps = self.plan(problem, hard=hard, soft=soft)
            self.assertEqual([0 if hard else 1, 0 if soft else 1],
                             state.groups.misplaced.tolist())

    def test_soft_groups_that_contradict_each_other_move_nothing_back_and_forth(self):
        problem = clouds.idle([0, 1, 1], groups=(group([0, 1, 2], anti=False, hard=False),
                                                 group([0, 1], anti=True, hard=False)))
        state = clouds.start(problem, rules=ConstraintRules(soft_group_cost=0.0))
        self.assertEqual([], AffinityEnforcer().plan(state, Limits(budget=10)))

    def test_a_hard_group_is_repaired_although_a_soft_one_is_violated_by_that(self):
        problem = clouds.idle([0, 0], groups=(group([0, 1], anti=False, hard=False),
                                              group([0, 1], anti=True, hard=True)))
        state = clouds.start(problem, rules=ConstraintRules(soft_group_cost=0.0))
        self.assertEqual(1, len(AffinityEnforcer().plan(state, Limits(budget=10))))

    def test_more_members_than_hosts_is_repaired_as_far_as_it_goes(self):
        problem = clouds.idle([0, 0, 0, 0], hosts=3,
                              groups=(group([0, 1, 2, 3], anti=True, hard=True),))
        state, steps = self.plan(problem)
        self.assertEqual((2, 1), (len(steps), state.groups.misplaced[0]))

    def test_a_server_gives_way_where_hosts_are_full(self):
        problem = dataclasses.replace(
            clouds.idle([0, 0, 1, 1, 2], hosts=3,
                        groups=(group([0, 2], anti=False, hard=True),)),
            limits=np.full((3, 1), 2.0), used=np.array([[2.0], [2.0], [1.0]]))
        state, steps = self.plan(problem)
        self.assertEqual((2, 0), (len(steps), state.groups.misplaced[0]))
        self.assertIn('makes room', steps[0].why)
        self.assertEqual('repairs server group g', steps[1].why)

    def test_no_server_gives_way_for_a_policy_that_is_not_repaired(self):
        problem = dataclasses.replace(
            clouds.idle([0, 0, 1, 1, 2], hosts=3,
                        groups=(group([0, 2], anti=False, hard=True),)),
            limits=np.full((3, 1), 2.0), used=np.array([[2.0], [2.0], [1.0]]))
        self.assertEqual([], self.plan(problem, hard=False)[1])

    def test_no_host_passes_the_overload_ceiling(self):
        problem = dataclasses.replace(
            clouds.idle([0, 0], hosts=2, groups=(group([0, 1], anti=True, hard=True),)),
            weights=np.array([[.1], [.1]]), scores=np.array([[.2], [.9]]),
            thresholds=np.array([1.0]))
        for ceiling, count in ((.95, 0), (1.0, 1)):
            limits = Limits(budget=5, overload_ceiling=ceiling)
            self.assertEqual(count, len(self.plan(problem, limits)[1]))

    @clouds.judges(4)
    @settings(max_examples=100 * clouds.MANY, deadline=None)
    @given(clouds.problems(most_groups=8, share_of_members=0.5))
    def test_every_step_lowers_the_violations(self, problem):
        problem = dataclasses.replace(problem, groups=tuple(
            dataclasses.replace(found, hard=True) for found in problem.groups))
        state, steps = self.plan(problem)
        replayed = clouds.start(problem)
        left = [replayed.groups.misplaced.sum()]
        for step in steps:
            self.assertTrue(Referee(problem).allows(
                replayed.vm_host, step.vm, step.destination))
            replayed.move(step.vm, step.destination)
            left.append(replayed.groups.misplaced.sum())
            self.judged += 1
        self.assertEqual(sorted(left, reverse=True), left)
