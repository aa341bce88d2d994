"""No destination may pass a policy's ``capacity_threshold``, by its score or its capacity query."""

import numpy as np

from kronos_nova.simulation import TOLERANCE


class Headroom:
    reason = 'threshold'

    def __init__(self, problem, snapshot, rules):
        self._policies = np.flatnonzero(np.isfinite(problem.capacity_thresholds))
        self._limits = problem.capacity_thresholds[self._policies] + TOLERANCE
        self._scale = problem.host_scale[:, self._policies]
        self._weights = problem.weights[:, self._policies]

    @property
    def idle(self):
        return not len(self._policies)

    def _load(self, state, hosts):
        """The higher of score and capacity value; a capacity that is not measured is NaN."""
        at = (hosts, self._policies)
        return np.fmax(state.scores[at], state.capacity_scores[at])

    def mask(self, state, vm):
        load = np.fmax(state.scores, state.capacity_scores)[:, self._policies]
        return (load + self._weights[vm] * self._scale <= self._limits).all(axis=1)

    def column(self, state, host):
        permitted = np.ones(len(self._weights), dtype=bool)
        # A policy at a time: much faster than all() over so short an axis.
        for p, load in enumerate(self._load(state, host)):
            permitted &= load + self._weights[:, p] * self._scale[host, p] <= self._limits[p]
        return permitted

    def permits(self, state, vm, host):
        return not len(self._over(state, vm, host))

    def why(self, state, vm, host):
        first = self._over(state, vm, host)[0]
        policy = self._policies[first]
        projected = self._load(state, host)[first] + self._weights[vm, first] * self._scale[
            host, first]
        problem = state.problem
        return (f'{problem.hosts[host]} would be at {projected:.3f} in {problem.policies[policy]}, '
                f'over the threshold of {problem.capacity_thresholds[policy]:g}')

    def _over(self, state, vm, host):
        projected = self._load(state, host) + self._weights[vm] * self._scale[host]
        return np.flatnonzero(projected > self._limits)
