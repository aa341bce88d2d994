"""Soft server groups that may be broken for a price cost that price and nothing else."""

import dataclasses

import numpy as np
import testtools

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.model import Group
from kronos_nova.model import Prices
from kronos_nova.model import groups
from kronos_nova.objects import snapshot as objects
from kronos_nova.planners.base import Limits
from kronos_nova.planners.pack import Pack
from kronos_nova.planners.spread import Spread
from tests.unit.model.referee import Referee
from tests.unit.planners import clouds
from tests.unit.planners.test_local_search import uneven

COSTS = ConstraintRules(soft_group_cost=0.0)


def grouped(seed, **group):
    """Eight hosts and 64 instances, all of them in one of eight groups."""
    rng = np.random.default_rng(seed)
    problem = uneven(hosts=8, per_host=8, seed=seed)
    members = np.array_split(rng.permutation(len(problem.vms)), 8)
    return dataclasses.replace(problem, groups=tuple(
        Group(uuid=f'g{n}', name=f'g{n}', members=np.sort(some), hard=False,
              anti=bool(rng.random() < 0.7), **group) for n, some in enumerate(members)))


def end_of(planner, problem, misplaced, rules=COSTS, budget=6):
    state = clouds.start(problem, rules=rules, prices=Prices(soft_group_cost=misplaced))
    planner().plan(state, Limits(budget=budget))
    return state


class SpreadTest(testtools.TestCase):
    def test_at_no_cost_the_plan_is_as_good_as_without_groups(self):
        for seed in range(4):
            problem = grouped(seed)
            alone = end_of(Spread, dataclasses.replace(problem, groups=()), 0.0)
            self.assertLessEqual(end_of(Spread, problem, 0.0).combined(), 1.05 * alone.combined())

    def test_what_is_misplaced_is_worth_its_price(self):
        """And the dearer it is, the less of it there is."""
        for seed in range(2):
            problem, misplaced = grouped(seed), []
            for cost in (0.0, 0.02, 10.0):
                state = end_of(Spread, problem, cost)
                referee, prices = Referee(problem, rules=COSTS), Prices(soft_group_cost=cost)
                spent = referee.price(prices, state.vm_host)
                before = referee.imbalances(problem.vm_host) @ problem.policy_weights
                self.assertAlmostEqual(spent, state.price())
                self.assertLessEqual(state.combined() + spent, before + 1e-9)
                misplaced.append(sum(
                    max(0, now - then) for now, then in zip(
                        referee.misplaced(state.vm_host), referee.misplaced(problem.vm_host),
                        strict=True)))
            self.assertEqual(0, misplaced[-1])
            self.assertLessEqual(misplaced[1], misplaced[0])

    def test_a_host_takes_as_many_members_as_the_group_allows(self):
        """Two may share a host: as many as the search for a better end needs."""
        problem = dataclasses.replace(
            uneven(hosts=2, per_host=4), vm_host=np.zeros(8, dtype=int),
            weights=np.full((8, 2), 0.1), host_scale=np.ones((2, 2)),
            scores=np.array([[0.8, 0.8], [0.0, 0.0]]))
        for most, moves in ((1, 1), (2, 2), (3, 3), (8, 4)):
            group = Group(uuid='g', name='g', members=np.arange(8), anti=True, hard=True,
                          max_per_host=most)
            state = end_of(Spread, dataclasses.replace(problem, groups=(group,)), 0.0)
            self.assertEqual(moves, int((state.vm_host == 1).sum()))


class PackTest(testtools.TestCase):
    def test_at_no_cost_as_many_hosts_are_freed_as_without_groups(self):
        for seed in range(2):
            problem = dataclasses.replace(
                grouped(seed), limits=np.full((8, 1), 20.0), used=np.bincount(
                    grouped(seed).vm_host, minlength=8)[:, None].astype(float))
            ends = [end_of(Pack, one, 0.0, budget=60) for one in (
                problem, dataclasses.replace(problem, groups=()))]
            self.assertEqual(*(int((state.guests == 0).sum()) for state in ends))


class BoundTest(testtools.TestCase):
    def test_no_number_of_members_is_too_large(self):
        """Nova has no upper bound for max_server_per_host."""
        snapshot = objects.Snapshot(taken_at='', hosts=(), instances=(), server_groups=(
            objects.ServerGroup(uuid='g', name='g', policy='anti-affinity', members=('a', 'b'),
                                rules={'max_server_per_host': 2**63}),))
        group, = groups(snapshot, ('a', 'b'), ('h0', 'h1'))
        problem = clouds.idle([0, 0], hosts=2, groups=(group,))
        self.assertEqual([[False, True]] * 2, clouds.start(problem).delta(
            (np.arange(2)[:, None], np.arange(2)[None, :])).feasible.tolist())
