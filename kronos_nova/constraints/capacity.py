"""A destination must have room in placement's terms, in every resource class."""

import numpy as np

from kronos_nova.simulation import TOLERANCE


class Capacity:
    reason = 'capacity'
    idle = False

    def __init__(self, problem, snapshot, rules):
        pass

    def mask(self, state, vm):
        demand = state.problem.demands[vm]
        wanted = np.flatnonzero(demand)
        room = state.problem.limits[:, wanted] - state.used[:, wanted]
        return (demand[wanted] <= room + TOLERANCE).all(axis=1)

    def column(self, state, host):
        demands = state.problem.demands
        room = state.problem.limits[host] - state.used[host]
        permitted = np.ones(len(demands), dtype=bool)
        # A class at a time: much faster than all() over so short an axis.
        for demand, left in zip(demands.T, room + TOLERANCE, strict=True):
            permitted &= (demand <= left) | (demand == 0)
        return permitted

    def permits(self, state, vm, host):
        return not len(self._short(state, vm, host))

    def why(self, state, vm, host):
        lacking = self._short(state, vm, host)[0]
        problem = state.problem
        return (f'{problem.hosts[host]} has no room for '
                f'{problem.demands[vm, lacking]:g} {problem.resource_classes[lacking]}')

    def _short(self, state, vm, host):
        demand = state.problem.demands[vm]
        room = state.problem.limits[host] - state.used[host]
        return np.flatnonzero((demand > room + TOLERANCE) & (demand > 0))
