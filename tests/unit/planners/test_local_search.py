"""The local search of ``spread``."""

import dataclasses
import itertools
from unittest import mock

import numpy as np
import testtools
from hypothesis import assume
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from kronos_nova.model import Group
from kronos_nova.model.rules import GroupPolicy
from kronos_nova.model.space import NOWHERE
from kronos_nova.model.space import SearchSpace
from kronos_nova.planners import order
from kronos_nova.planners.base import Limits
from kronos_nova.planners.greedy import Greedy
from kronos_nova.planners.local_search import LocalSearch
from kronos_nova.planners.local_search import searches
from kronos_nova.planners.population import End
from kronos_nova.planners.population import Incumbents
from kronos_nova.planners.spread import Spread
from tests.unit.planners import clouds

EFFORT = 2e7


def uneven(hosts=24, per_host=10, seed=3):
    """Hosts of two sizes, some of which hold many more instances than others."""
    rng = np.random.default_rng(seed)
    vm_host = rng.choice(hosts, hosts * per_host, p=rng.dirichlet(np.full(hosts, 2.0)))
    problem = clouds.idle(vm_host, hosts=hosts)
    weights = rng.choice([0.01, 0.02, 0.08], (len(vm_host), 2)) * rng.random((len(vm_host), 2))
    scale = np.where(np.arange(hosts) % 3, 1.0, 0.5)[:, None].repeat(2, axis=1)
    scores = np.zeros((hosts, 2))
    np.add.at(scores, vm_host, weights * scale[vm_host])
    return dataclasses.replace(
        problem, policies=('cpu', 'memory'), policy_weights=np.full(2, 0.5),
        thresholds=np.zeros(2), capacity_scores=np.full((hosts, 2), np.nan),
        capacity_thresholds=np.full(2, np.inf), weights=weights, host_scale=scale, scores=scores)


class LocalSearchTest(testtools.TestCase):
    @clouds.judges(4)
    @settings(max_examples=60 * clouds.MANY, deadline=None)
    @given(clouds.problems())
    def test_what_it_finds_can_be_done_and_ends_as_it_says(self, problem):
        state = clouds.start(problem)
        limits = Limits(budget=6)
        space = SearchSpace(state, limits.budget)
        assume(len(space.hosts) >= 2 and len(space.vms))
        found = Incumbents([End(space.state.combined(), [])])
        search = LocalSearch(space, found, limits)
        search.effort = EFFORT
        search.run()
        for end in found.kept:
            ordering = order.Ordering(state, limits)
            is_whole = ordering.do_all([(int(space.vms[vm]), int(space.hosts[host]))
                                   for vm, host in end.plan])
            self.judged += is_whole and bool(end.plan)
            if is_whole:
                self.assertAlmostEqual(end.cost, ordering.state.combined(), 9)
                self.assertTrue((ordering.state.imbalances() <= space.worst).all())
            self.assertLessEqual(len(ordering.done), limits.budget)

    def test_a_search_adds_no_plan_longer_than_its_budget(self):
        space = SearchSpace(clouds.start(uneven(hosts=4, per_host=3)), 6)
        found = Incumbents([End(space.state.combined(), [])])
        next(searches(space, found, Limits(budget=6)))
        known = {len(end.plan) for end in found.kept}
        self.assertEqual(6, max(known))
        found.kept = found.kept[:1]  # the longest, of the best cost
        self.assertLess(2, len(found.best.plan))
        longer = {tuple(end.plan) for end in found.kept}
        next(searches(space, found, Limits(budget=2)))
        new = [end.plan for end in found.kept if tuple(end.plan) not in longer]
        self.assertNotEqual([], new)
        self.assertGreaterEqual(2, max(len(plan) for plan in new))

    def test_it_stops_at_the_deadline(self):
        problem, ticks = uneven(), iter(range(1000))
        limits = Limits(budget=100, clock=lambda: next(ticks), deadline=20)
        space = SearchSpace(clouds.start(problem), limits.budget)
        search = LocalSearch(space, Incumbents([End(space.state.combined(), [])]), limits)
        search.effort = 1e12
        search.run()
        self.assertLess(next(ticks), 30)

    def test_the_plan_does_not_depend_on_the_time_that_is_left(self):
        """While the clock does not reach the deadline, only the effort counts."""
        plans = []
        for deadline in (float('inf'), 15.0, 5.55, 5.025):
            limits = Limits(budget=100, clock=lambda: 5.0, deadline=deadline)
            plans.append(Spread().plan(clouds.start(uneven()), limits))
            self.assertFalse(limits.cut.happened)
        self.assertEqual(plans[:1] * 4, plans)

    def test_a_search_that_the_deadline_stops_says_so(self):
        ticks = iter(range(1000))
        limits = Limits(budget=100, clock=lambda: next(ticks), deadline=20)
        Spread().plan(clouds.start(uneven()), limits)
        self.assertTrue(limits.cut.happened)

    def test_what_little_time_there_is_goes_to_the_search_and_not_to_greedy(self):
        """The plan of ``greedy`` would take all of the time."""
        now, state = 0.0, clouds.start(uneven())

        def slow(greedy, state, limits):
            nonlocal now
            now = limits.deadline
            return []

        with mock.patch.object(Greedy, 'plan', slow):
            steps = Spread().plan(state, Limits(budget=30, clock=lambda: now, deadline=10.0))
        self.assertEqual(30, len(steps))

    def test_a_plan_of_a_stopped_search_is_no_worse_than_greedy(self):
        for deadline in (0, 60, 120, 400):
            clock = itertools.count().__next__
            state, greedy = clouds.start(uneven()), clouds.start(uneven())
            Spread().plan(state, Limits(budget=30, clock=clock, deadline=deadline))
            Greedy().plan(greedy, Limits(budget=30, clock=lambda: 0, deadline=deadline and 1))
            self.assertLessEqual(state.combined(), greedy.combined())


class GroupPolicyTest(testtools.TestCase):
    @clouds.judges(4)
    @settings(max_examples=60 * clouds.MANY, deadline=None)
    @given(clouds.problems(most_groups=8, share_of_members=0.5),
           st.randoms(use_true_random=False))
    def test_members_are_let_in_where_the_rule_permits_it(self, problem, any_):
        state = clouds.start(problem)
        space = SearchSpace(state, 9)
        rules = [rule for rule in state.model.rules if isinstance(rule, GroupPolicy)]
        assume(len(space.vms) and rules)
        self.problem = problem
        place, count = space.home.copy(), len(space.hosts)
        for vm in any_.sample(range(len(place)), len(place) // 2):
            place[vm] = any_.choice([NOWHERE, *range(count)])
        to = np.append(space.hosts, NOWHERE)
        for vm, home in enumerate(space.home):
            others = tuple((space.vms[other], to[place[other]])
                           for other in np.flatnonzero(place != space.home) if other != vm)
            permitted = rules[0].allows(state, space.vms[vm], space.hosts, others) & np.isfinite(
                space.row(vm))
            permitted[home] = True
            for group in self._apart(rules[0], space.vms[vm]):
                domains = self._domains(group)[space.hosts]
                permitted &= (domains != domains[home]) | self._is_open_at_home(
                    space, group, vm, place)
            self.judged += not permitted.all()
            self.assertEqual(permitted.tolist(), space.allows_host(vm, place).tolist())

    def _apart(self, rule, vm):
        """The groups of an instance that the rule keeps apart."""
        members = rule.forbids.nonzero()[0]
        return [group for group in self.problem.groups
                if group.anti and vm in group.members
                and self.problem.groups.index(group) in members]

    def _domains(self, group):
        """The place of each host."""
        return np.arange(len(self.problem.hosts)) if group.places is None else group.places

    def _is_open_at_home(self, space, group, vm, place):
        """Return whether fewer than permitted, or than there were, of the other members are
        there."""
        domains = self._domains(group)
        home = domains[space.hosts[space.home[vm]]]
        now, before = (sum(position[other] != NOWHERE
                           and domains[space.hosts[position[other]]] == home
                           for other in range(len(space.vms))
                           if space.vms[other] in group.members and other != vm)
                       for position in (place, space.home))
        fixed = sum(domains[self.problem.vm_host[member]] == home for member in group.members
                    if member not in space.vms) + sum(domains[group.arriving] == home)
        return now + fixed < group.max_per_host or now <= before

    def test_no_rule_is_asked_about_every_exchange(self):
        """A rule looks through all that was moved, of a group that may have hundreds of members."""
        problem = uneven()
        group = Group(uuid='g', name='g', members=np.arange(240), anti=True, hard=True,
                      max_per_host=12)
        space = SearchSpace(clouds.start(dataclasses.replace(problem, groups=(group,))), 30)
        self.assertTrue(space.spacing)
        found = Incumbents([End(space.state.combined(), [])])
        search = LocalSearch(space, found, Limits(budget=30))
        search.effort = search.longest = EFFORT
        with mock.patch.object(GroupPolicy, 'allows', side_effect=AssertionError('it is asked')):
            search.run()
        self.assertLess(found.best.cost, space.state.combined())


class FewMovesTest(testtools.TestCase):
    """Every move has to serve the host that it leaves and the one that it enters, so another
    instance has to be found for a host, and another host for an instance."""

    def test_hosts_get_another_instance_and_instances_another_host(self):
        state = clouds.start(uneven(hosts=100, per_host=5))
        Spread().plan(state, Limits(budget=30))
        # With exchanges only where the instance ends, 0.1544.
        self.assertLess(state.combined(), 0.1530)


class ManyMovesTest(testtools.TestCase):

    def combined(self, budget):
        problem = uneven()
        state = clouds.start(problem)
        steps = Spread().plan(state, Limits(budget=budget))
        self.assertLessEqual(len(steps), budget)
        return state.combined()

    def test_more_moves_make_it_better(self):
        few, more, many = (self.combined(budget) for budget in (20, 60, 150))
        self.assertLess(more, few / 10)
        self.assertLess(many, more / 2)
