"""Imbalances that no plan can go below.

An instance is indivisible, and some may not be moved: the host with the largest of them is at least
as loaded as that, while the least loaded of the other hosts has no more than their mean.
"""

import numpy as np

from kronos_nova.model import Problem


def least_imbalances(problem: Problem) -> np.ndarray:
    """Return float64 (P,): a lower bound of the imbalance of each policy over all placements of the
    movable instances on the available hosts, without rules. The bound is 0 for a policy that leaves
    hosts out, because the host with the largest instance may be one of these."""
    hosts, movable = np.flatnonzero(problem.available), problem.movable
    if len(hosts) < 2:
        return np.zeros(len(problem.policies))
    moved = np.zeros(problem.scores.shape)
    np.add.at(moved, problem.vm_host[movable],
              problem.weights[movable] * problem.host_scale[problem.vm_host[movable]])
    fixed, scale = np.maximum(problem.scores - moved, 0.0)[hosts], problem.host_scale[hosts]
    on_top = fixed.max(axis=0)
    if movable.any():
        largest = problem.weights[movable].max(axis=0)
        on_top = np.maximum(on_top, (fixed + largest * scale).min(axis=0))
    # In units of load: what the other hosts have at most, and can hold at least.
    load = (problem.scores[hosts] / scale).sum(axis=0) - on_top / scale.max(axis=0)
    size = (1.0 / scale).sum(axis=0) - (1.0 / scale).max(axis=0)
    least = np.maximum(on_top - np.maximum(load, 0.0) / size, 0.0)
    return least if problem.left_out is None else np.where(problem.left_out > 0, 0.0, least)
