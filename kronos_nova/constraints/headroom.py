"""The rule that applies the ``capacity_threshold`` of every policy to the destinations of moves.
After a move, two values of the destination must be at or below this threshold: the score, and the
value of the policy's capacity query."""

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
