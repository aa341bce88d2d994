"""No destination may pass a policy's ``capacity_threshold``, by its score or its capacity query."""

import numpy as np

from kronos_nova.simulation.rules import LoadLimit


class Headroom:
    @staticmethod
    def compile(problem, snapshot, rules):
        if not np.isfinite(problem.capacity_thresholds).any():
            return ()
        most = np.tile(problem.capacity_thresholds, (len(problem.hosts), 1))

        def why(state, vm, host):
            policy, load = limit.first_over(state, vm, host)
            return (f'{problem.hosts[host]} would be at {load:.3f} in {problem.policies[policy]}, '
                    f'over the threshold of {problem.capacity_thresholds[policy]:g}')

        limit = LoadLimit('threshold', why, most, by_capacity=True)
        return (limit,)
