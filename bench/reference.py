"""What no planner can beat: a MILP's optimum on small clusters and a lower bound on any."""

import dataclasses

import numpy as np

from kronos_nova.simulation import Problem


@dataclasses.dataclass(frozen=True, slots=True)
class Optimum:
    """``combined`` is the best end state that was found, ``bound`` what none can go below."""

    combined: float
    bound: float


def spread_optimum(problem: Problem, budget: int, seconds: float = 60.0) -> Optimum:
    """The least combined imbalance that ``budget`` moves can end with, by HiGHS.

    Only end states are modelled: capacity in placement terms and the rule that no policy ends worse
    and above its threshold; not the way there. So a real plan may not reach it.
    """
    from scipy import optimize
    from scipy import sparse

    hosts, policies = problem.scores.shape
    pairs = np.argwhere(np.arange(hosts) != problem.vm_host[:, None])
    vm, host = pairs.T
    home = problem.vm_host[vm]
    count, column = len(pairs), np.arange(len(pairs))
    blocks = []

    def add(rows, columns, values, low, high):
        size = np.broadcast_shapes(np.shape(low), np.shape(high))[0]
        matrix = sparse.csr_array((values, (rows, columns)), shape=(size, count + 2 * policies))
        blocks.append(optimize.LinearConstraint(matrix, low, high))

    def flow(amount):
        """Rows of hosts: what arrives minus what leaves."""
        return (np.concatenate([host, home]), np.concatenate([column, column]),
                np.concatenate([amount, -amount]))

    add(np.zeros(count, int), column, np.ones(count), [0], [budget])
    add(vm, column, np.ones(count), np.zeros(len(problem.vms)), np.ones(len(problem.vms)))
    for c in range(problem.demands.shape[1]):
        rows, columns, values = flow(problem.demands[vm, c])
        add(rows, columns, values, np.full(hosts, -np.inf),
            problem.limits[:, c] - problem.used[:, c])
    every = np.arange(hosts)
    for p in range(policies):
        rows, columns, values = flow(problem.weights[vm, p])
        top, bottom = count + 2 * p, count + 2 * p + 1
        start = problem.scores[:, p]
        for edge, low, high in ((top, -np.inf, -start), (bottom, -start, np.inf)):
            add(np.concatenate([rows, every]), np.concatenate([columns, np.full(hosts, edge)]),
                np.concatenate([values, -np.ones(hosts)]),
                np.broadcast_to(low, hosts), np.broadcast_to(high, hosts))
        most = max(np.ptp(start), problem.thresholds[p])
        add([0, 0], [top, bottom], [1.0, -1.0], [-np.inf], [most])
    objective = np.concatenate([np.zeros(count), np.outer(problem.policy_weights, [1, -1]).ravel()])
    whole = np.concatenate([np.ones(count), np.zeros(2 * policies)])
    found = optimize.milp(
        objective, integrality=whole, constraints=blocks,
        bounds=optimize.Bounds(np.concatenate([np.zeros(count), np.full(2 * policies, -np.inf)]),
                               np.concatenate([np.ones(count), np.full(2 * policies, np.inf)])),
        options={'time_limit': seconds, 'mip_rel_gap': 1e-4})
    return Optimum(float(found.fun), float(found.mip_dual_bound))
