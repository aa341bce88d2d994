"""An upper bound of the load that instances can bring to a host, given the room of the host."""

import numpy as np

from kronos_nova.model.problem import Problem


def most_added(problem: Problem) -> np.ndarray:
    """Return float64 (H, P): an upper bound of the score that movable instances can add to each
    host, however they are moved.

    Each resource class gives a bound: the highest load of movable instances that fit into the free
    amount of the class on the host. The amount that movable instances of the host use now counts as
    free. The bound is computed as if a part of an instance could be placed, so that the bound is
    never too low. The lowest of these bounds is returned.
    """
    movable, count = problem.movable, len(problem.hosts)
    demands, loads = problem.demands[movable], problem.weights[movable]
    present = np.zeros((count, demands.shape[1]))
    np.add.at(present, problem.vm_host[movable], demands)
    # The present instances of a host may stay even where they take more than its room.
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
