"""Lower bounds of the imbalances that a plan can reach. There are two bounds.

The first bound holds because instances cannot be divided, and some instances must not move. The
most loaded host has at least the load of the largest instance. The least loaded of the other hosts
has at most their mean load. The bound is the difference of the two loads.

The second bound holds because the score of a host without room, such as a host that a buffer keeps
free, cannot rise. The most loaded of the other hosts has at least their mean load. The bound is the
difference of this mean load and the highest score that the host without room can have.
"""

import numpy as np

from kronos_nova.model import Problem
from kronos_nova.model import filling


def least_imbalances(problem: Problem) -> np.ndarray:
    """Return float64 (P,): a lower bound of the imbalance that any plan can reach in each policy.

    The bound is computed from the sizes of instances and the room of available hosts. All other
    rules are ignored. Some policies leave hosts with extreme scores out of their imbalances. The
    bound of such a policy is 0, because the host with the largest instance may be one of the hosts
    that are left out.
    """
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
    # In units of load: the most that the other hosts have, and the least that they can hold.
    load = (problem.scores[hosts] / scale).sum(axis=0) - on_top / scale.max(axis=0)
    size = (1.0 / scale).sum(axis=0) - (1.0 / scale).max(axis=0)
    least = np.maximum(on_top - np.maximum(load, 0.0) / size, 0.0)
    if movable.any():
        most = fixed + filling.most_added(problem)[hosts]
        least = np.maximum(least, _below_others(problem, hosts, most))
    return least if problem.left_out is None else np.where(problem.left_out > 0, 0.0, least)


def _below_others(problem: Problem, hosts: np.ndarray, most: np.ndarray) -> np.ndarray:
    """Return float64 (P,): the lower bound of each policy's imbalance that follows from the limited
    room of hosts. Each host gives one bound: the mean score of the other hosts, minus the highest
    score that this host can have. The result is the largest of these bounds, and at least 0.

    :param hosts: intp, the available hosts
    :param most: float64 (available hosts, P), highest score that each of ``hosts`` can have
    """
    sizes = 1.0 / problem.host_scale[hosts]
    load = (problem.scores[hosts] * sizes).sum(axis=0)
    mean = np.maximum(load - most * sizes, 0.0) / (sizes.sum(axis=0) - sizes)
    return np.maximum((mean - most).max(axis=0), 0.0)
