"""Bounds that no planner can beat: a MILP's optimum on small clusters, a lower bound on any."""

import dataclasses

import numpy as np

from kronos_nova.model import Problem


@dataclasses.dataclass(frozen=True, slots=True)
class Optimum:
    """``combined`` is the best end state that was found, ``bound`` what none can go below."""

    combined: float
    bound: float


def spread_optimum(problem: Problem, budget: int, seconds: float = 60.0) -> Optimum:
    """Return the least combined imbalance after at most ``budget`` moves, computed by HiGHS.

    The model is of end states only: the capacity in placement, and the rule that no policy ends
    both worse and above its threshold. It has no order of moves, so that a real plan may not reach
    the result.

    :raises ValueError: a policy leaves hosts out, which is not modelled
    """
    if problem.left_out is not None:
        raise ValueError('hosts that are left out are not modelled: use imbalance_over 1.0')
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
        """Return the entries (row of the host, column, value) of a constraint for each host:
        amounts that arrive minus amounts that leave."""
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
    # HiGHS may find no plan or no bound within the time.
    return Optimum(float('inf') if found.fun is None else float(found.fun),
                   -float('inf') if found.mip_dual_bound is None else float(found.mip_dual_bound))


def spread_bound(problem: Problem, budget: int) -> float:
    """Return a lower bound of the combined imbalance after ``budget`` moves, for two policies.

    To bring the highest hosts down to a level, each host above it has to lose at least a certain
    number of its heaviest instances. To bring the lowest hosts up to a level, each host below it
    has to get at least a certain number of the heaviest instances. Both numbers together must not
    exceed the budget. Destinations and room are not considered.
    """
    leaves, arrives = _Departures(problem), _Arrivals(problem, budget)
    return max(0.0, _best_levels(leaves, problem, budget) + _best_levels(arrives, problem, budget))


class _Departures:
    """The number of instances that each host must lose at least to come down to a level."""

    sign = 1.0

    def __init__(self, problem: Problem):
        self.scores, hosts = problem.scores, len(problem.hosts)
        most = int(np.bincount(problem.vm_host, minlength=hosts).max())
        self.gone = np.full((2, hosts, most + 1), np.inf)
        for host in range(hosts):
            weights = problem.weights[problem.vm_host == host] * problem.host_scale[host]
            for p in range(2):
                gone = np.cumsum(np.sort(weights[:, p])[::-1])
                self.gone[p, host, :len(gone) + 1] = np.concatenate([[0.0], gone])

    def counts(self, p: int, level: float) -> np.ndarray:
        excess = self.scores[:, p] - level
        return (self.gone[p] < excess[:, None] - 1e-12).sum(axis=1)


class _Arrivals:
    """The number of instances that each host must be given at least to come up to a level."""

    sign = -1.0

    def __init__(self, problem: Problem, budget: int):
        self.scores, self.scale = problem.scores, problem.host_scale
        heaviest = -np.sort(-problem.weights, axis=0)[:budget + 1]
        self.given = np.vstack([np.zeros(2), np.cumsum(heaviest, axis=0)])

    def counts(self, p: int, level: float) -> np.ndarray:
        lacking = np.maximum(level - self.scores[:, p], 0.0) / self.scale[:, p]
        return np.searchsorted(self.given[:, p], lacking - 1e-12)


def _best_levels(side, problem: Problem, budget: int, points: int = 200) -> float:
    """Return the least value of sign × Σ weight × level over all pairs of levels that can be
    reached with the budget."""
    even = (problem.scores / problem.host_scale).sum(axis=0) / (1 / problem.host_scale).sum(axis=0)
    ends = problem.scores.max(axis=0) if side.sign > 0 else problem.scores.min(axis=0)
    first, second = problem.policy_weights
    step, best = abs(ends[0] - even[0]) / (points - 1), np.inf
    for level in np.linspace(even[0], ends[0], points):
        needed = side.counts(0, level)
        if needed.sum() <= budget:
            other = _furthest(side, needed, even[1], ends[1], budget)
            best = min(best, side.sign * (first * level + second * other) - first * step)
    return best


def _furthest(side, needed: np.ndarray, even: float, end: float, budget: int) -> float:
    """Return the level of the second policy nearest to the even one that the same number of moves
    can reach, found by bisection."""
    def is_reached(level):
        return np.maximum(needed, side.counts(1, level)).sum() <= budget

    if is_reached(even):
        return even
    for _ in range(30):
        middle = (even + end) / 2
        even, end = (even, middle) if is_reached(middle) else (middle, end)
    return even
