"""The exact last move is the one that trying every move finds."""

import dataclasses

import numpy as np
import testtools
from hypothesis import given
from hypothesis import settings

from kronos_nova.planners.arena import Arena
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import Prices
from kronos_nova.planners.finish import finish
from kronos_nova.planners.generation import Maker
from kronos_nova.simulation import State
from tests.unit.planners import clouds


def costs_of_all(problem, prices):
    """{(instance, destination): what is left of the imbalance, and the price}"""
    state, constraints, costs = State(problem), clouds.constraints(problem), {}
    worst = np.maximum(state.imbalances(), problem.thresholds) + 1e-9
    for vm in np.flatnonzero(problem.movable & problem.available[state.vm_host]):
        for host in np.flatnonzero(constraints.mask(state, vm)):
            source = state.move(vm, host)
            if (state.imbalances() <= worst).all():
                costs[int(vm), int(host)] = state.combined() + prices.of(vm, source, host)
            state.move(vm, source)
    return costs


class FinishTest(testtools.TestCase):
    @settings(max_examples=60, deadline=None)
    @given(clouds.problems())
    def test_the_first_move_of_all_is_found_as_the_last(self, problem):
        # Search and constraints do not judge all alike: a host above a capacity (spread's policies
        # have none) could take what weighs nothing there, and the search does not bring a part of a
        # scattered affinity group together.
        problem = dataclasses.replace(
            problem, groups=(), capacity_thresholds=np.full(len(problem.policies), np.inf))
        prices = Prices(vms=np.linspace(0, 0.02, len(problem.vms)), pairs={(0, 1): 0.05})
        limits = Limits(budget=1, overload_ceiling=9.0, prices=prices)
        arena = Arena(State(problem), clouds.constraints(problem), limits)
        if not len(arena.vms):
            return
        ends = Maker(arena).first([[]], np.zeros(1, dtype=int))
        found = finish(arena, ends, np.ones(1, dtype=bool), arena.start - 1e-9, most=60)
        there = {(int(arena.vms[vm]), int(arena.hosts[host])): cost
                 for _row, (vm, host), cost in found}
        # What would need two hosts to be relieved at once is not a last move.
        known = costs_of_all(problem, prices)
        self.assertTrue(set(there) <= set(known))
        for move, cost in there.items():
            self.assertAlmostEqual(known[move], cost, places=9)
        best = min(known.values(), default=1.0)
        if best < arena.start - 1e-9:
            self.assertAlmostEqual(best, min(there.values()), places=9)
