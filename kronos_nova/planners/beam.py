"""A beam search over sets of moves: many half-done plans side by side, one move longer at a time.

Plans are compared by what they leave of the combined imbalance plus the price of their moves: their
cost. Beam search after Lowerre (1976) and Ow and Morton (1988).
"""

import bisect
import dataclasses

import numpy as np

from kronos_nova.planners.base import Limits
from kronos_nova.planners.generation import Expander
from kronos_nova.planners.generation import Generation
from kronos_nova.planners.generation import Plan
from kronos_nova.planners.last_moves import MOST_PLANS
from kronos_nova.planners.last_moves import last_moves
from kronos_nova.planners.softened_max import SoftenedMax
from kronos_nova.simulation import TOLERANCE
from kronos_nova.simulation.space import SearchSpace

CANDIDATES = 6
FEWEST_CANDIDATES = 30
BY_SMOOTH = 0.75
KEPT = 48
"""For many of the best end states there may be no order of moves that leads there."""
KEPT_AT_ONCE = 8
FINISHED_AT_ONCE = 6
LAST_MOVES = 3
"""So many moves before the budget ends it is worth to look for exact last moves."""
LEVEL, PAIR, CHILD, ENDS = 6e5, 3.0, 60.0, 2.0
"""What a generation costs, a pair rated (again as much for every kind of room that is scarce), a
host of a plan made, and a pair of hosts that a last move may lead between, in about nanoseconds."""


@dataclasses.dataclass(frozen=True, slots=True)
class Width:
    """How broad a search is: plans side by side, of those how many from one root, and hosts looked
    at as sources and destinations."""

    plans: int
    hosts: int
    per_root: int = 1 << 30

    def cost(self, space: SearchSpace) -> float:
        """Of lengthening one plan by one move, in units of effort."""
        count = len(space.scores)
        hosts = min(count, self.hosts)
        pairs = hosts * len(space.vms) * hosts / count
        return pair_cost(space) * pairs + CHILD * CANDIDATES * count


def pair_cost(space: SearchSpace) -> float:
    return PAIR * (1 + space.free.shape[1])


@dataclasses.dataclass(frozen=True, slots=True)
class End:
    """Where a plan leads: ``cost`` is combined imbalance plus price."""

    cost: float
    plan: Plan


class Beam:
    """Searches an space and remembers the best end states it met.

    best : the best legal one
    kept : some of the best, best first
    effort : what the search has cost so far, in about nanoseconds
    """

    def __init__(self, space: SearchSpace, limits: Limits):
        self.space, self.limits = space, limits
        self.make = Expander(space)
        self.best = End(space.start, [])
        self.kept = [self.best]
        self.effort = 0.0
        self._known = {frozenset()}
        self._by_root: list[End | None] = []
        self._prices: np.ndarray | None = None

    def run(self, smooth: SoftenedMax, plans: list[Plan], depth: int, width: Width,
            roots=None) -> list[End | None]:
        """Lengthen ``plans`` by up to ``depth`` moves.

        :param roots: a number for each plan; those of one root share ``width.per_root``
        :returns: the best legal end met from each root
        """
        roots = np.zeros(len(plans), dtype=np.intp) if roots is None else np.array(roots)
        self._by_root = [None] * (int(roots.max()) + 1)
        generation = self.make.first(plans, roots)
        self._try_last_moves(generation)
        rated = smooth.rate(generation)
        for _level in range(depth):
            if self.limits.is_over or not len(generation):
                break
            generation, rated = self._lengthen(smooth, generation, rated, width)
        return self._by_root

    def _lengthen(self, smooth, old: Generation, rated, width: Width):
        """The next generation, and how it is rated."""
        values, shares = rated
        hosts, vms = self._of_interest(shares, width.hosts)
        prices = self._prices_of(hosts, vms)
        changes = smooth.best_changes(shares, old.free, hosts, vms, prices)
        changes += values[:, None].astype(np.float32)
        self._forbid(changes, old, vms)
        wanted = max(FEWEST_CANDIDATES, CANDIDATES * width.plans)
        row, column = _least_of_each(changes, wanted)
        each = smooth.to_each(shares[:, :, row], old.free[:, :, row], hosts, vms[column],
                              prices[:, column])
        place, pair = _least_hosts(each, wanted)
        new = self.make.next(old, row[pair], vms[column[pair]], hosts[place])
        self.effort += (LEVEL + pair_cost(self.space) * changes.size * len(hosts)
                        + CHILD * len(new) * len(self.space.scores))
        costs = self._costs(new)
        self._remember(new, costs)
        if new.moves.shape[1] > self.limits.budget - LAST_MOVES:
            self._try_last_moves(new)
        values, shares = smooth.rate(new)
        chosen = _mixed(values, costs, new.root, width)
        return new[chosen], (values[chosen], shares[:, :, chosen])

    def _costs(self, ends: Generation) -> np.ndarray:
        """float64 (n,): inf where an end is not legal."""
        space = self.space
        costs = space.policy_weights @ (ends.top - ends.bottom) + ends.price
        costs[~space.is_legal(ends.top, ends.bottom, ends.free)] = np.inf
        return costs

    def _of_interest(self, shares: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
        """Hosts to give to and instances to take: of the hosts that contribute most to the bottoms
        and to the tops; all, if there are few hosts."""
        count = len(shares)
        if count <= most:
            return np.arange(count), self.space.by_home
        policies = len(self.space.policy_weights)
        peak = shares.max(axis=2)
        hot, cold = peak[:, :policies].sum(axis=1), peak[:, policies:].sum(axis=1)
        hottest = np.argsort(-hot, kind='stable')[:most]
        vms = np.concatenate([self.space.residents[n] for n in hottest])
        return np.argsort(-cold, kind='stable')[:most], vms

    def _prices_of(self, hosts: np.ndarray, vms: np.ndarray) -> np.ndarray:
        """float32 (len(hosts), len(vms)): the price of a move, inf where an instance may not go."""
        is_whole = len(hosts) == len(self.space.scores)
        if is_whole and self._prices is not None:
            return self._prices
        prices = np.array([self.space.column(int(host))[vms] for host in hosts], dtype=np.float32)
        if is_whole:
            self._prices = prices
        return prices

    def _forbid(self, changes, old: Generation, vms) -> None:
        """No instance is moved twice by one plan, and no plan is longer than the budget."""
        where = np.full(len(self.space.vms) + 1, -1)
        where[vms] = np.arange(len(vms))
        column = where[old.moves[:, :, 0]]
        row, place = np.nonzero(column >= 0)
        changes[row, column[row, place]] = np.inf
        changes[old.lengths >= self.limits.budget] = np.inf

    def _try_last_moves(self, ends: Generation) -> None:
        """Look for moves that make the best plans so far out of these."""
        short = ends.lengths < self.limits.budget
        self.effort += ENDS * min(len(ends), MOST_PLANS) * len(self.space.scores) ** 2
        below = self.kept[min(len(self.kept), FINISHED_AT_ONCE) - 1].cost - TOLERANCE
        for row, move, cost in last_moves(self.space, ends, short, below, FINISHED_AT_ONCE):
            end = End(cost, [*ends.plan(row), move])
            self.keep(end)
            self._note(int(ends.root[row]), end)

    def _remember(self, ends: Generation, costs: np.ndarray) -> None:
        order = np.argsort(costs, kind='stable')
        for n in order[:KEPT_AT_ONCE]:
            if np.isfinite(costs[n]) and (
                    len(self.kept) < KEPT or costs[n] < self.kept[-1].cost - TOLERANCE):
                self.keep(End(float(costs[n]), ends.plan(n)))
        roots, first = np.unique(ends.root[order], return_index=True)
        for root, n in zip(roots, order[first], strict=True):
            if np.isfinite(costs[n]) and self._is_news(root, costs[n]):
                self._note(root, End(float(costs[n]), ends.plan(n)))

    def _is_news(self, root: int, cost: float) -> bool:
        known = self._by_root[root]
        return known is None or cost < known.cost - TOLERANCE

    def _note(self, root: int, end: End) -> None:
        if self._is_news(root, end.cost):
            self._by_root[root] = end

    def keep(self, end: End) -> None:
        """Remember an end state."""
        moves = frozenset(end.plan)
        if moves not in self._known:
            self._known.add(moves)
            bisect.insort(self.kept, end, key=lambda end: (round(end.cost / TOLERANCE),
                                                           len(end.plan)))
            del self.kept[KEPT:]
            self.best = self.kept[0]

    def prefer(self, end: End) -> None:
        """Put an end that serves as well as the best one before it."""
        self.best = end
        self.kept.insert(0, end)


def _least_of_each(values: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the least finite values of each row, about ``count`` in all."""
    each = min(-(-count // len(values)), values.shape[1])
    if not each:
        return np.zeros((2, 0), dtype=np.intp)
    column = np.argpartition(values, each - 1, axis=1)[:, :each].reshape(-1)
    row = np.repeat(np.arange(len(values)), each)
    finite = np.isfinite(values[row, column])
    return row[finite], column[finite]


def _least_hosts(values: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the least values of each column: its least one, or if the columns are few
    some more, about ``count`` in all."""
    hosts, columns = values.shape
    every = np.arange(columns)
    each = min(hosts, max(1, count // max(columns, 1)))
    if each == 1:
        return values.argmin(axis=0), every
    place = np.argsort(values, axis=0, kind='stable')[:each].reshape(-1)
    column = np.tile(every, each)
    finite = np.isfinite(values[place, column])
    return place[finite], column[finite]


def _mixed(values: np.ndarray, costs: np.ndarray, root: np.ndarray, width: Width) -> np.ndarray:
    """Which plans to go on with: most by the smooth value, the others by the true one."""
    by_smooth = _best_of_roots(values, root, width.per_root)
    by_smooth = by_smooth[:max(1, int(width.plans * BY_SMOOTH))]
    taken = np.zeros(len(values), dtype=bool)
    taken[by_smooth] = True
    by_true = _best_of_roots(costs, root, width.per_root)
    by_true = by_true[~taken[by_true]][:width.plans - len(by_smooth)]
    return np.concatenate([by_smooth, by_true])


def _best_of_roots(values: np.ndarray, root: np.ndarray, most: int) -> np.ndarray:
    """Indexes in the order of the values, at most so many of a root."""
    order = np.argsort(values, kind='stable')
    if most >= len(order):
        return order
    by_root = np.argsort(root[order], kind='stable')
    sizes = np.bincount(root)
    rank = np.empty(len(order), dtype=np.intp)
    rank[by_root] = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return order[rank < most]
