"""No destination may pass a policy's ``capacity_threshold``, by its score or its capacity query."""

import numpy as np

from kronos_nova.model.rules import LoadLimit


class Headroom:
    @staticmethod
    def compile(problem, snapshot, rules):
        if not np.isfinite(problem.capacity_thresholds).any():
            return ()
        most = np.tile(problem.capacity_thresholds, (len(problem.hosts), 1))
        return (LoadLimit(most=most, what='the threshold', by_capacity=True),)
