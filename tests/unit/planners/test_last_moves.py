"""The exact last move is the one that trying every move finds."""

import dataclasses

import numpy as np
import testtools
from hypothesis import assume
from hypothesis import given
from hypothesis import settings

from kronos_nova.planners.generation import Expander
from kronos_nova.planners.last_moves import last_moves
from kronos_nova.simulation import Prices
from kronos_nova.simulation.space import SearchSpace
from tests.unit.planners import clouds
from tests.unit.simulation.referee import Referee


def costs_of_all(problem, prices):
    """{(instance, destination): what is left of the imbalance, and the price}"""
    state, referee, costs = clouds.start(problem), Referee(problem), {}
    worst = np.maximum(state.imbalances(), problem.thresholds) + 1e-9
    for vm in np.flatnonzero(problem.movable & problem.available[state.vm_host]):
        for host in range(len(problem.hosts)):
            if not referee.permits(state.vm_host, vm, host):
                continue
            source = state.move(vm, host)
            if (state.imbalances() <= worst).all():
                costs[int(vm), int(host)] = state.combined() + float(prices.of(vm, source, host))
            state.move(vm, source)
    return costs


class LastMovesTest(testtools.TestCase):
    @settings(max_examples=60, deadline=None)
    @given(clouds.problems())
    def test_the_first_move_of_all_is_found_as_the_last(self, problem):
        # The search leaves to the order of moves what hosts share, and it does not judge like the
        # rules a host above a capacity (spread's policies have none), which could take what weighs
        # nothing there, nor brings it a part of a scattered affinity group together.
        assume(problem.provider is None)
        problem = dataclasses.replace(
            problem, groups=(), capacity_thresholds=np.full(len(problem.policies), np.inf))
        prices = Prices(vms=np.linspace(0, 0.02, len(problem.vms)), pairs={(0, 1): 0.05})
        space = SearchSpace(clouds.start(problem, prices=prices), budget=1)
        if not len(space.vms):
            return
        ends = Expander(space).first([[]], np.zeros(1, dtype=int))
        found = last_moves(space, ends, np.ones(1, dtype=bool), space.start - 1e-9, most=60)
        there = {(int(space.vms[vm]), int(space.hosts[host])): cost
                 for _row, (vm, host), cost in found}
        # What would need two hosts to be relieved at once is not a last move.
        known = costs_of_all(problem, prices)
        self.assertTrue(set(there) <= set(known))
        for move, cost in there.items():
            self.assertAlmostEqual(known[move], cost, places=9)
        best = min(known.values(), default=1.0)
        if best < space.start - 1e-9:
            self.assertAlmostEqual(best, min(there.values()), places=9)
