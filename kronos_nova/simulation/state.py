"""The one thing that changes while planning: where instances are, and what follows from it."""

import numpy as np

from kronos_nova.simulation.problem import Problem


class State:
    """A :class:`Problem` with some moves done. Mutated by :meth:`move` only; moving back undoes.

    scores, capacity_scores : float64 (H, P)
    used : float64 (H, C)
    vm_host : intp (V,)
    """

    def __init__(self, problem: Problem):
        self.problem = problem
        self.scores = problem.scores.copy()
        self.capacity_scores = problem.capacity_scores.copy()
        self.used = problem.used.copy()
        self.vm_host = problem.vm_host.copy()

    def copy(self) -> 'State':
        """Another state of the same problem, which is moved about on its own."""
        other = State(self.problem)
        other.scores[:], other.capacity_scores[:] = self.scores, self.capacity_scores
        other.used[:], other.vm_host[:] = self.used, self.vm_host
        return other

    def move(self, vm: int, destination: int) -> int:
        """Put an instance on another host. Returns the host it left, so that ``move(vm, that)``
        undoes it."""
        problem = self.problem
        source = int(self.vm_host[vm])
        weight, demand = problem.weights[vm], problem.demands[vm]
        for values in (self.scores, self.capacity_scores):
            values[source] -= weight * problem.host_scale[source]
            values[destination] += weight * problem.host_scale[destination]
        self.used[source] -= demand
        self.used[destination] += demand
        self.vm_host[vm] = destination
        return source

    def imbalances(self) -> np.ndarray:
        """float64 (P,): max − min of every policy's scores over the available hosts; 0 where there
        is none."""
        available = self.problem.available
        if not available.any():
            return np.zeros(len(self.problem.policies))
        # A policy at a time: much faster than along so short an axis.
        return np.array([np.ptp(scores[available]) for scores in self.scores.T])

    def combined(self) -> float:
        """The imbalances summed by the policies' weights."""
        return float(self.imbalances() @ self.problem.policy_weights)
