"""The best ends of the clouds of ``optimum``, by an integer program of its own.

One column for each instance and host. It shares nothing with the program of the planners. Only
where instances end is decided: whether there is an order is asked afterwards.
"""

import dataclasses

import numpy as np

from kronos_nova.model import Problem

CEILING = 0.95
"""``overload_ceiling``, the default."""
MOVE_MB = 4096.0
"""Cost of a move in a pack plan in addition to the memory that it copies, in MiB."""


@dataclasses.dataclass(frozen=True, slots=True)
class End:
    """moves : (instance, host) in no order
    is_proven : whether there is no better end
    """

    moves: list[tuple[int, int]]
    is_proven: bool


class Ends:
    """The instances that end on other hosts. Room, groups, hosts that are too loaded, and the
    number of moves are kept."""

    def __init__(self, problem: Problem, budget: int):
        self.problem = problem
        hosts = np.arange(len(problem.hosts))
        vm, host = np.nonzero(problem.movable[:, None] & (hosts != problem.vm_host[:, None]))
        self.vm, self.host, self.count = vm, host, len(vm)
        self.home = problem.vm_host[vm]
        self._rows, self._low, self._high = [], [], []
        self._costs, self._most, self._is_whole = [np.zeros(self.count)], [np.ones(self.count)], [
            np.ones(self.count)]
        self.columns = self.count
        each = np.arange(self.count)
        self.add(each, np.ones(self.count), -np.inf, budget)
        for one in np.unique(vm):
            columns = np.flatnonzero(vm == one)
            self.add(columns, np.ones(len(columns)), -np.inf, 1.0)
        for c in range(problem.demands.shape[1]):
            self.at_most(problem.demands[:, c], np.ones(len(hosts)),
                         problem.limits[:, c] - problem.used[:, c])
        for group in problem.groups:
            is_member = np.isin(np.arange(len(problem.vms)), group.members).astype(float)
            here = np.bincount(problem.vm_host[group.members], minlength=len(hosts))
            self.at_most(is_member, np.ones(len(hosts)), np.maximum(1.0 - here, 0.0))

    def add(self, columns, values, low, high):
        self._rows.append((columns, values))
        self._low.append(low)
        self._high.append(high)

    def variable(self, cost, most=np.inf, is_whole=False):
        self._costs.append(np.array([cost]))
        self._most.append(np.array([most]))
        self._is_whole.append(np.array([float(is_whole)]))
        self.columns += 1
        return self.columns - 1

    def change(self, amount, host):
        """Return (columns, values) by which the moves of instances change the sum of an amount on a
        host."""
        columns = np.flatnonzero((self.host == host) | (self.home == host))
        sign = np.where(self.host[columns] == host, 1.0, -1.0)
        return columns, sign * amount[self.vm[columns]]

    def at_most(self, amount, scale, room):
        """Let what arrives less what leaves, by host, be no more than there is room for."""
        for host, most in enumerate(room):
            columns, values = self.change(amount, host)
            self.add(columns, values * scale[host], -np.inf, float(most))

    def keep_loads(self, most):
        """Let no host pass a load, or what it has now.

        :param most: float64 (P,)
        """
        problem = self.problem
        for p in range(len(problem.policies)):
            self.at_most(problem.weights[:, p], problem.host_scale[:, p],
                         np.maximum(most[p] - problem.scores[:, p], 0.0))

    def close(self, hosts):
        """Let nothing arrive at hosts."""
        self._most[0] = np.where(np.isin(self.host, hosts), 0.0, self._most[0])

    def price(self, cost):
        """:param cost: float64 (V,), of a move of each instance"""
        self._costs[0] = cost[self.vm]

    def solve(self, seconds):
        """Return the best end state that is found within the time; None if none is found.

        :param seconds: of wall time, with one thread
        """
        from scipy import optimize
        from scipy import sparse

        rows = np.concatenate([np.full(len(columns), n)
                               for n, (columns, _values) in enumerate(self._rows)])
        columns, values = (np.concatenate(part) for part in zip(*self._rows, strict=True))
        matrix = sparse.csr_array((values, (rows, columns)), (len(self._low), self.columns))
        found = optimize.milp(
            np.concatenate(self._costs), integrality=np.concatenate(self._is_whole),
            constraints=optimize.LinearConstraint(matrix, self._low, self._high),
            bounds=optimize.Bounds(0.0, np.concatenate(self._most)),
            options={'time_limit': seconds, 'mip_rel_gap': 1e-5})
        if found.x is None:
            return None
        chosen = np.flatnonzero(found.x[:self.count] > 0.5)
        return End(list(zip(self.vm[chosen].tolist(), self.host[chosen].tolist(), strict=True)),
                   found.status == 0)


def spread(problem: Problem, budget: int, seconds: float) -> End | None:
    """Return the end state with the least combined imbalance in which no policy is both above its
    threshold and worse than before."""
    ends = Ends(problem, budget)
    ends.keep_loads(np.full(len(problem.policies), CEILING))
    for p, weight in enumerate(problem.policy_weights):
        top, bottom = ends.variable(weight), ends.variable(-weight)
        scores = problem.scores[:, p]
        ends.add(np.array([top, bottom]), np.array([1.0, -1.0]), -np.inf,
                 max(np.ptp(scores), problem.thresholds[p]))
        for host, score in enumerate(scores):
            columns, values = ends.change(problem.weights[:, p], host)
            values = values * problem.host_scale[host, p]
            ends.add(np.append(columns, top), np.append(values, -1.0), -np.inf, -score)
            ends.add(np.append(columns, bottom), np.append(values, -1.0), -score, np.inf)
    return ends.solve(seconds)


def pack(problem: Problem, budget: int, seconds: float) -> End | None:
    """Return the end state with the most freed hosts, and of these the one with the least cost of
    memory to copy and moves."""
    ends = Ends(problem, budget)
    ends.keep_loads(np.full(len(problem.policies), CEILING))
    cost = problem.memory_mb + MOVE_MB
    most = float(np.sort(cost)[-budget:].sum())
    ends.price(cost / most)
    guests = np.bincount(problem.vm_host, minlength=len(problem.hosts))
    for host in np.flatnonzero(guests):
        is_empty = ends.variable(-1.1, 1.0, is_whole=True)
        leaves = np.flatnonzero(ends.home == host)
        ends.add(np.append(leaves, is_empty), np.append(np.ones(len(leaves)), -guests[host]),
                 0.0, np.inf)
        comes = np.flatnonzero(ends.host == host)
        ends.add(np.append(comes, is_empty), np.append(np.ones(len(comes)), float(budget)),
                 -np.inf, float(budget))
    return ends.solve(seconds)


def relieve(problem: Problem, budget: int, seconds: float, high: float,
            target: float) -> End | None:
    """Return the end state with the most hot hosts at their targets, then the most at their marks,
    then the least memory to copy. No other host exceeds its target."""
    ends = Ends(problem, budget)
    policies = len(problem.policies)
    ends.keep_loads(np.full(policies, target))
    above = (problem.scores > target).any(axis=1)
    ends.close(np.flatnonzero(above))
    hot = np.flatnonzero((problem.scores > high).any(axis=1))
    most = float(np.sort(problem.memory_mb)[-budget:].sum())
    ends.price(problem.memory_mb / most)
    for host in hot:
        for mark, reward in ((target, 2.2 * (len(hot) + 1)), (high, 2.2)):
            is_below = ends.variable(-reward, 1.0, is_whole=True)
            for p in range(policies):
                excess = problem.scores[host, p] - mark
                if excess > 0:
                    columns, values = ends.change(problem.weights[:, p], host)
                    ends.add(np.append(columns, is_below),
                             np.append(values * problem.host_scale[host, p], excess), -np.inf, 0.0)
    return ends.solve(seconds)


def has_order(problem: Problem, moves: list[tuple[int, int]], most: np.ndarray,
              effort: int = 20000) -> bool:
    """Return whether an order is found in which room, groups and loads are kept after each move,
    without putting instances aside.

    :param most: float64 (P,), loads that no destination passes, unless it has as much now
    :param effort: sets of made moves that are looked at
    """
    start = _Place(problem, most)
    seen, paths = set(), [frozenset[int]()]
    while paths and len(seen) < effort:
        made = paths.pop()
        if len(made) == len(moves):
            return True
        if made in seen:
            continue
        seen.add(made)
        left = [n for n in range(len(moves)) if n not in made]
        place = start.after([moves[n] for n in made])
        possible = [n for n in left if place.allows(*moves[n])]
        goals = [moves[n][1] for n in left]
        # What is the last to arrive somewhere stands in no other's way.
        alone = [n for n in possible if goals.count(moves[n][1]) == 1]
        paths += [made | {n} for n in alone[:1] or reversed(possible)]
    return False


class _Place:
    """The places of instances, and the room that they leave."""

    def __init__(self, problem, most):
        self.problem, self.at = problem, problem.vm_host.copy()
        self.used, self.scores = problem.used.copy(), problem.scores.copy()
        self.most = np.maximum(most, problem.scores)
        self.groups = [set(group.members.tolist()) for group in problem.groups]

    def after(self, moves):
        other = _Place.__new__(_Place)
        other.__dict__ |= self.__dict__
        other.at, other.used, other.scores = self.at.copy(), self.used.copy(), self.scores.copy()
        problem = self.problem
        for vm, host in moves:
            for place, sign in ((other.at[vm], -1.0), (host, 1.0)):
                other.used[place] += sign * problem.demands[vm]
                other.scores[place] += sign * problem.weights[vm] * problem.host_scale[place]
            other.at[vm] = host
        return other

    def allows(self, vm, host):
        problem = self.problem
        scores = self.scores[host] + problem.weights[vm] * problem.host_scale[host]
        return bool((self.used[host] + problem.demands[vm] <= problem.limits[host] + 1e-9).all()
                    and (scores <= self.most[host] + 1e-9).all()
                    and not any(vm in members and any(
                        self.at[other] == host for other in members - {vm})
                        for members in self.groups))
