"""Imbalances that no plan can go below.

An instance is indivisible, and some may not be moved: the host with the largest of them is at least
as loaded as that, while the least loaded of the other hosts has no more than their mean.

A host without room stays as little loaded as it is, such as one that a buffer keeps free: the most
loaded of the others has their mean at least.
"""

import numpy as np

from kronos_nova.model import Problem


def least_imbalances(problem: Problem) -> np.ndarray:
    """Return float64 (P,): a lower bound of the imbalance of each policy over all placements of the
    movable instances on the available hosts for which these have room, without other rules. The
    bound is 0 for a policy that leaves hosts out, because the host with the largest instance may be
    one of these."""
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
    if movable.any():
        most = fixed + _most_added(problem)[hosts]
        least = np.maximum(least, _below_others(problem, hosts, most))
    return least if problem.left_out is None else np.where(problem.left_out > 0, 0.0, least)


def _below_others(problem: Problem, hosts: np.ndarray, most: np.ndarray) -> np.ndarray:
    """Return float64 (P,): how far some host is below the others at least.

    :param most: float64 (H, P), the highest score that each of the hosts can have
    """
    sizes = 1.0 / problem.host_scale[hosts]
    load = (problem.scores[hosts] * sizes).sum(axis=0)
    mean = np.maximum(load - most * sizes, 0.0) / (sizes.sum(axis=0) - sizes)
    return np.maximum((mean - most).max(axis=0), 0.0)


def _most_added(problem: Problem) -> np.ndarray:
    """Return float64 (H, P): the highest score that movable instances can add to each host. As much
    of each resource class as is free without them is filled with the instances that have the
    highest load for its amount."""
    movable, count = problem.movable, len(problem.hosts)
    demands, loads = problem.demands[movable], problem.weights[movable]
    present = np.zeros((count, demands.shape[1]))
    np.add.at(present, problem.vm_host[movable], demands)
    # Instances that are on a host may stay, also where it has less room than they take.
    room = np.maximum(problem.limits[:count] - problem.used[:count] + present, present)
    if problem.provider is not None:
        room[problem.provider != np.arange(count)[:, None]] = np.inf
    added = np.full((count, loads.shape[1]), np.inf)
    for number, amounts in enumerate(demands.T):
        needs = amounts > 0
        for policy, load in enumerate(loads.T):
            order = np.argsort(-load[needs] / amounts[needs], kind='stable')
            filled, reached = ([0.0, *np.cumsum(each[needs][order])] for each in (amounts, load))
            most = load[~needs].sum() + np.interp(room[:, number], filled, reached)
            added[:, policy] = np.minimum(added[:, policy], most)
    return added * problem.host_scale
