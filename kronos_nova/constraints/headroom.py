"""The rule that keeps the destination of a move at or below the ``capacity_threshold`` of every
policy. The threshold limits the load of the host in the policy, and the value of the policy's
capacity query for the host."""

import numpy as np

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.model import Problem
from kronos_nova.model.rules import LoadLimit
from kronos_nova.objects.snapshot import Snapshot


class Headroom:
    @staticmethod
    def compile(problem: Problem, snapshot: Snapshot,
                rules: ConstraintRules) -> tuple[LoadLimit, ...]:
        if not np.isfinite(problem.capacity_thresholds).any():
            return ()
        most = np.tile(problem.capacity_thresholds, (len(problem.hosts), 1))
        return (LoadLimit(most=most, what='the threshold', by_capacity=True),)
