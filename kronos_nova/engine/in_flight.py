"""What the plans made earlier in a cycle mean for aggregates that share hosts with theirs."""

import collections
import dataclasses

import numpy as np

from kronos_nova.model import State
from kronos_nova.objects.snapshot import Instance


class MovesInFlight:
    """The moves of this cycle so far.

    An aggregate is planned from where those before it end. Room that a planned move is to free is
    not given away, neither of a host nor of a provider that hosts share: aggregates are carried out
    side by side, and it may not be free yet.
    """

    def __init__(self):
        self.moved: dict[str, str] = {}
        self._shifts = collections.Counter()
        self._leaving = collections.Counter()
        self._taken = collections.Counter()

    def place(self, instance: Instance) -> Instance:
        """The instance where the plans so far leave it."""
        if instance.uuid not in self.moved:
            return instance
        return dataclasses.replace(instance, host=self.moved[instance.uuid])

    def add(self, state: State, steps):
        """Take over the steps of a plan that ended in ``state``."""
        problem = state.problem
        for step in steps:
            self.moved[problem.vms[step.vm]] = problem.hosts[step.destination]
            for host, sign in ((step.source, -1), (step.destination, 1)):
                shift = sign * problem.weights[step.vm] * problem.host_scale[host]
                for policy, value in zip(problem.policies, shift, strict=True):
                    self._shifts[problem.hosts[host], policy] += float(value)
            for name, amount in zip(problem.resource_classes, problem.demands[step.vm],
                                    strict=True):
                self._leaving[problem.hosts[step.source], name] += float(amount)
            self._use_shared(problem, step)

    def _use_shared(self, problem, step):
        classes = np.arange(len(problem.resource_classes))
        rows, before = (problem.row(host, classes) for host in (step.destination, step.source))
        for c in np.flatnonzero((rows >= len(problem.hosts)) & (rows != before)):
            provider = problem.shared[rows[c] - len(problem.hosts)]
            self._taken[provider, problem.resource_classes[c]] += float(problem.demands[step.vm, c])

    def shift(self, hosts, policies) -> np.ndarray:
        """float64 (H, P): what the moves so far add to the measured scores."""
        return _table(self._shifts, hosts, [policy.name for policy in policies])

    def held_back(self, hosts, classes) -> np.ndarray:
        """float64 (H, C): what is still allocated there until the moves are carried out."""
        return _table(self._leaving, hosts, classes)

    def taken(self, providers, classes) -> np.ndarray:
        """float64 (S, C): what the moves will be allocated from providers that hosts share."""
        return _table(self._taken, providers, classes)


def _table(counter, rows, columns):
    return np.array([[counter[row, column] for column in columns] for row in rows],
                    dtype=float).reshape(len(rows), len(columns))
