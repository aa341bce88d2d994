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
        return ((demands <= room + TOLERANCE) | (demands == 0)).all(axis=1)

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
