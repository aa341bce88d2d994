"""Violations of rules are repaired where they can be, and nothing else is moved."""

import dataclasses

import numpy as np
import testtools

from kronos_nova.model import Group
from kronos_nova.model import Model
from kronos_nova.model import Prices
from kronos_nova.model import State
from kronos_nova.model.prices import Preferences
from kronos_nova.model.rules import GroupPolicy
from kronos_nova.model.rules import PlacementRule
from kronos_nova.model.rules import Room
from kronos_nova.planners.base import Limits
from kronos_nova.planners.rule_repair import RuleRepair
from kronos_nova.planners.rule_repair import is_due
from tests.unit.planners import clouds


def only(vms, hosts, allowed):
    """A rule that lets all of some instances be on some hosts."""
    return PlacementRule(
        reason='rule', kind=np.ones(vms, dtype=np.intp),
        allowed=np.array([[True] * hosts, [host in allowed for host in range(hosts)]]),
        names=lambda vm, host=None: 'rule licence', why=lambda state, vm, host: 'no')


def rather(cost, vms=2):
    """Preferences of all instances, by host."""
    return Preferences(kind=np.zeros(vms, dtype=np.intp), cost=np.array([cost]),
                       names=lambda vm, host=None: 'rule new')


def full(vm_host):
    """Three hosts with room for two servers each."""
    return dataclasses.replace(
        clouds.idle(vm_host, hosts=3), limits=np.full((3, 1), 2.0),
        used=np.bincount(vm_host, minlength=3)[:, None].astype(float))


def policy(groups):
    """The rule that no move violates the rules about several servers."""
    return GroupPolicy(reason='rule', forbids=np.ones(groups, dtype=bool),
                       firm=np.ones(groups, dtype=bool))


class RuleRepairTest(testtools.TestCase):
    def plan(self, problem, *rules, should=True, most=0, budget=10, **prices):
        model = Model(problem, (Room(reason='capacity'), *rules), Prices(**prices))
        state = State(model)
        self.is_due = is_due(state, should)
        steps = RuleRepair(should, most).plan(state, Limits(budget=budget))
        return state, steps

    def test_what_is_astray_goes_where_it_must_be(self):
        state, steps = self.plan(clouds.idle([0, 0, 1], hosts=3), only(3, 3, {1}))
        self.assertEqual([1, 1, 1], state.vm_host.tolist())
        self.assertTrue(self.is_due)
        self.assertEqual(['rule licence must have it elsewhere'] * 2, [each.why for each in steps])

    def test_it_is_astray_no_more_whatever_the_load(self):
        problem = dataclasses.replace(clouds.idle([0, 1], hosts=2),
                                      weights=np.array([[0.4], [0.4]]),
                                      scores=np.array([[0.4], [0.4]]))
        state, steps = self.plan(problem, only(2, 2, {1}))
        self.assertEqual([1, 1], state.vm_host.tolist())

    def test_another_gives_way_where_there_is_no_room(self):
        problem = dataclasses.replace(clouds.idle([0, 1, 1], hosts=3), used=np.array(
            [[1.0], [2.0], [0.0]]), limits=np.array([[2.0], [2.0], [1.0]]))
        rule = only(3, 3, {1})
        rule.kind[1:] = 0
        state, steps = self.plan(problem, rule)
        self.assertEqual(1, state.vm_host[0])
        self.assertEqual(2, len(steps))
        self.assertIn('makes room', steps[0].why)

    def test_a_rule_about_several_is_repaired_by_domains(self):
        group = Group(uuid='r', name='racks', rule='racks', members=np.arange(3), anti=True,
                      hard=True, places=np.array([0, 0, 2, 3]))
        problem = clouds.idle([0, 1, 2], hosts=4, groups=(group,))
        state, [step] = self.plan(problem, GroupPolicy(
            reason='rule', forbids=np.array([True]), firm=np.array([True])))
        self.assertEqual((0, 3), (int(state.groups.misplaced[0]), step.destination))
        self.assertEqual('repairs rule racks', step.why)

    def test_another_gives_way_so_that_servers_are_together(self):
        # Of three full hosts with room for two, only host 2 could take one more.
        problem = dataclasses.replace(full([0, 0, 1, 1, 2]), groups=(
            Group(uuid='r', name='pair', rule='pair', members=np.array([0, 2]), hard=True,
                  anti=False),))
        state, steps = self.plan(problem, policy(1))
        self.assertEqual(0, state.groups.misplaced[0])
        self.assertEqual(['makes room for what a rule would have elsewhere', 'repairs rule pair'],
                         [step.why for step in steps])

    def test_another_gives_way_so_that_servers_are_apart(self):
        # The rule keeps server 0 on host 0 or 1, which is full.
        problem = dataclasses.replace(full([0, 0, 1, 1, 2]), groups=(
            Group(uuid='r', name='apart', rule='apart', members=np.array([0, 1]), hard=True,
                  anti=True),))
        rule = only(5, 3, {0, 1})
        rule.kind[2:] = 0
        state, steps = self.plan(problem, rule, policy(1))
        self.assertEqual(0, state.groups.misplaced[0])
        self.assertEqual(['makes room for what a rule would have elsewhere',
                          'repairs rule apart'], [step.why for step in steps])

    def test_a_group_that_cannot_gather_stays(self):
        problem = dataclasses.replace(
            full([0, 0, 1, 1, 2]), movable=np.array([False, True, False, True, True]), groups=(
                Group(uuid='r', name='pair', rule='pair', members=np.array([0, 2]), hard=True,
                      anti=False),))
        self.assertEqual([], self.plan(problem, policy(1))[1])

    def test_what_should_be_elsewhere_goes_if_that_pays(self):
        problem = clouds.idle([0, 1], hosts=2)
        for prices, expected in (({}, 1), ({'vms': np.full(2, 0.02)}, 1),
                                 ({'vms': np.full(2, 0.06)}, 0)):
            _state, steps = self.plan(problem, preferences=rather([0.05, 0.0]), **prices)
            self.assertEqual(expected, len(steps))

    def test_what_should_be_elsewhere_is_left_alone_where_it_would_spoil_a_policy(self):
        problem = dataclasses.replace(clouds.idle([0, 1], hosts=2),
                                      weights=np.array([[0.4], [0.4]]),
                                      scores=np.array([[0.4], [0.4]]))
        _state, steps = self.plan(problem, preferences=rather([1.0, 0.0]))
        self.assertEqual([], steps)

    def test_a_server_that_must_leave_goes_where_it_should_be_at_once(self):
        # Host 1 is the least loaded one that the rule permits, and the preference names host 2.
        problem = dataclasses.replace(clouds.idle([0, 2], hosts=3),
                                      weights=np.array([[0.1], [0.2]]),
                                      scores=np.array([[0.1], [0.0], [0.2]]),
                                      thresholds=np.array([1.0]))
        wish = rather([0.0, 0.5, 0.0])
        rule = only(2, 3, {1, 2})
        _state, [step] = self.plan(problem, rule, preferences=wish)
        self.assertEqual((0, 2), (step.vm, step.destination))
        self.assertEqual('rule licence must have it elsewhere, and rule new should have it '
                         'elsewhere', step.why)

    def test_preferences_may_be_left_alone_and_moves_limited(self):
        problem = clouds.idle([0, 0, 0], hosts=2)
        wish = rather([1.0, 0.0], vms=3)
        self.assertEqual([], self.plan(problem, preferences=wish, should=False)[1])
        self.assertFalse(self.is_due)
        self.assertEqual(2, len(self.plan(problem, only(3, 2, {1}), most=2)[1]))

    def test_nothing_is_due_where_what_violates_a_rule_cannot_move(self):
        problem = dataclasses.replace(clouds.idle([0], hosts=2), movable=np.zeros(1, dtype=bool))
        wish = rather([1.0, 0.0], vms=1)
        self.assertEqual([], self.plan(problem, only(1, 2, {1}), preferences=wish)[1])
        self.assertFalse(self.is_due)
