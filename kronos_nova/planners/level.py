"""The planner that brings every policy within its threshold and copies as little memory as
possible.

Each policy has a *band*, the target range of scores. The band is as wide as the policy's threshold.
A policy is within its threshold if the scores of all hosts are in the band. The *excess* of a host
is the part of its score above or below the band. The planner lowers the sum of the excesses of all
hosts. A move that brings load into the band lowers this sum in any aggregate. The imbalance, in
contrast, falls only once the last host above or below the band is in the band.

A *solution* is a set of moves after which every policy is within its threshold. A solution is built
host by host, the host with the largest excess first. Each step adds the move that removes most
excess for its cost (the greedy rule for covering problems, Chvátal 1979). Afterwards, the search
makes the solution cheaper: the search undoes some moves and finds other moves (ruin and recreate,
Schrimpf et al. 2000). In a small cluster, an integer program then finds the solution that copies
the least memory. In larger clusters, integer programs for a few hosts each replace some moves by
fewer or cheaper ones.

A solution may have more moves than the budget permits. The plan is the first part of the solution.
The next cycle plans the next part.

A policy may leave its highest and lowest hosts out of its imbalance. Such a host has no excess in
this policy. Left-out hosts are chosen by their scores before the search. No move may take the score
of a left-out host further from the band.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence

import numpy as np

from kronos_nova.model import TOLERANCE
from kronos_nova.model import State
from kronos_nova.model import rounded
from kronos_nova.model import spans
from kronos_nova.model.arrays import Index
from kronos_nova.model.assignment import Assignment
from kronos_nova.model.program import SOLVER_TOLERANCE
from kronos_nova.model.program import Program
from kronos_nova.model.space import SearchSpace
from kronos_nova.objects.plan import HOT_SCORE
from kronos_nova.objects.plan import SPREAD
from kronos_nova.planners import local_search
from kronos_nova.planners import order
from kronos_nova.planners.base import AHEAD
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import SearchBudget
from kronos_nova.planners.base import Step
from kronos_nova.planners.hot_hosts import LEAST_TOGETHER
from kronos_nova.planners.population import GUARD
from kronos_nova.planners.population import Plan
from kronos_nova.planners.ruin_recreate import Moves
from kronos_nova.planners.ruin_recreate import Search
from kronos_nova.planners.ruin_recreate import Start
from kronos_nova.planners.spread import SEARCHES
from kronos_nova.planners.spread import hosts_that_matter
from kronos_nova.planners.spread import is_tight
from kronos_nova.planners.spread import plan_of
from kronos_nova.planners.spread import program_of
from kronos_nova.planners.spread import without_detours
from kronos_nova.units import MIB_PER_GIB

MOVE_PARTS = (0.5, 0.1)
"""Fixed costs of a move, as fractions of the mean memory of an instance, used one after the other.
The cost of a move is a fixed cost plus the memory that the move copies. With the first fixed cost,
the search finds moves, and replaces some of them by cheaper moves. With the second fixed cost, the
search replaces moves by cheaper moves once more. Raised, plans have fewer moves, of larger
instances; lowered, plans have more moves, of smaller instances, and a search of equal length finds
worse plans. Chosen by ``bench installed``."""
FEWER_MOVES = (1.0, 2.0, 4.0)
"""Fixed costs of a move, as multiples of the mean memory of an instance. The cost of a move is a
fixed cost plus the memory that the move copies. A solution is a set of moves that brings the scores
of all hosts into their target ranges. If the cheapest solution needs two plans or more, but not
more than :data:`FEW_PLANS`, solutions are searched with these fixed costs, one after the other,
until one needs fewer plans. The higher the fixed cost, the fewer moves the solution has. Raised,
these solutions have still fewer moves; lowered, these solutions equal the cheapest solution. Chosen
by ``bench installed``."""
BUDGET = SearchBudget(pairs=(500,), stages=(1, 2), nodes=200, gap=0.01)
"""Limits of the integer program that chooses the hosts of all instances of a small cluster. The
program is solved once for the least memory to copy, and perhaps once for fewer plans. Two stages
are used if the moves to the best solutions with one stage have no possible order. Measured on
random clusters with one policy: of 12 with 240 to 500 pairs, 7 plans copy less memory, up to 38 %
less, and a plan takes 0.4 to 2.2 s of processor time in place of 0.2 to 0.5 s. In a cluster with
1,000 pairs and two policies, a plan takes up to 11 s."""
FEW_PLANS = 3
"""Largest number of plans of a solution that is compared with a solution of one plan less. A
solution is a set of moves that brings the scores of all hosts into their target ranges. Its moves
are made in one or more plans, one plan in each evaluation. The planner first searches a solution
that copies little memory. If this first solution needs two plans or more, but at most this number,
a solution that needs one plan less is searched. Raised, more memory is copied to need, for example,
four plans instead of five; lowered, target ranges are more often reached one plan later than
possible. Not measured."""
PART = SearchBudget(pairs=(100, 200), nodes=10, gap=0.03)
"""Limits of the integer program that replaces moves between a few hosts of a large cluster by fewer
or cheaper moves. Larger programs are solved once :data:`STALE` programs in a row have found nothing
better. Chosen by ``bench installed`` and with random clusters of 12 to 30 hosts: one program takes
0.03 to 0.15 s of processor time. Without the larger programs, plans copy up to 6 % more memory;
with 400 pairs, plans take up to three times as long and copy about as much."""
STALE = 15
"""Number of integer programs in a row that find nothing better, after which larger programs are
solved (:data:`PART`), or none. Raised, small programs are solved in vain; lowered, programs that
take longer are solved while small ones would still find better moves. Measured by ``bench
constants`` on 9 clouds: with 5, seven plans change, and five of them leave scores further outside
the target ranges."""
PREMIUM = 1.12
"""Factor by which the memory to copy may grow so that fewer plans are needed. A solution is a set
of moves that brings the scores of all hosts into their target ranges, in one or more plans. The
planner first searches a solution that copies little memory. A solution that needs fewer plans than
the first one is chosen only if it copies at most this factor times as much memory. Raised, more
memory is copied to need fewer plans; lowered, target ranges are more often reached one plan later.
Chosen by ``bench installed``: with 1.25, one of its 18 cases of up to 32 hosts needs three plans
instead of four, and an aggregate of 100 hosts copies 19 % more than its four parts do."""
EFFORT = 3e7
"""Maximum number of pairs of an instance and a host that a search rates to reduce the memory to
copy. Raised, plans take longer; lowered, plans copy more memory. Measured: rating this number of
pairs takes about half a second of processor time. With a quarter of the number, plans for clusters
of 32 and 100 hosts copy 2 % more memory."""
EFFORT_MOVE = 8e5
"""Maximum number of pairs of an instance and a host that a search rates for each move of a plan. A
search for a plan with few moves thus ends before :data:`EFFORT`, the maximum for one search, is
reached. Raised, plans with few moves take longer; lowered, plans with few moves copy more memory.
Chosen together with :data:`EFFORT`."""
PAIR_WORTH = 7500.0
"""Ratio of the number of pairs that a search may rate (:data:`EFFORT`) to the number of pairs that
all integer programs (:data:`PART`) of one solution may have. Raised, the programs end sooner, and
plans copy more memory; lowered, plans take longer. Measured on random clusters of 12 to 40 hosts:
the programs of a solution take 1 to 5 s of processor time."""
PLACES = 12
"""Maximum number of further positions that are tried for the target range of each policy. The
scores of all hosts should lie in the target range. It is as wide as the policy's threshold, but may
lie a little higher or lower. Raised, plans for small clusters take longer; lowered, the position
for which least memory is copied is missed more often. Not measured."""
SHORT = 2000
"""Largest product of moves and hosts (no unit) for which other positions of the target ranges are
tried. The scores of all hosts should lie in the target range of each policy. A target range has a
fixed width, but may lie a little higher or lower. The moves are first searched for one position.
Other positions are tried if the number of these moves times the number of hosts is at most this
product. Raised, plans for larger clusters take longer; lowered, plans for small clusters copy more
memory. Chosen because in larger clusters no other position led to less copied memory."""
DEVIATION = 0.5
"""Largest difference of cost between an accepted solution and the best known solution, as a
multiple of the mean cost of a move. A solution is a set of moves that brings the scores of all
hosts into their target ranges. Each search step changes the present solution. A step that makes the
solution more expensive is undone if the new solution costs more than the best known solution plus
this difference. Raised, the search spends its time on worse solutions; lowered, the search hardly
changes its moves. Measured on 15 clouds, with all evaluations until the thresholds are reached:
with 0, two clouds need one plan more."""
LEFT = 0.05
"""Share of the present excess above which the excess that a solution leaves counts as large. A
solution is a set of moves that brings the scores of all hosts into their target ranges. The excess
is the part of the scores outside these ranges. If several plans are needed and the solution leaves
a large excess, a solution with other moves is searched. Raised, target ranges are reached many
plans later where hosts are nearly full; lowered, more memory is copied. Chosen by ``bench
installed``: with 0, 100 hosts copy 19 % more memory; without other moves, 100 nearly full hosts
need 73 plans of ten moves instead of 28."""


@dataclasses.dataclass(frozen=True, slots=True)
class Band:
    """The bands of all policies. The band of a policy is the range in which the scores of all hosts
    should be.

    The *excess* of a host is the part of its scores outside the bands, added up over the policies
    with ``weights``.

    low, high : float64 (P,), lowest and highest score of each band
    weights : float64 (P,), weight of each policy in the excess
    """

    low: np.ndarray
    high: np.ndarray
    weights: np.ndarray

    @classmethod
    def around(cls, scores: np.ndarray, widths: np.ndarray, weights: np.ndarray) -> 'Band':
        """Return bands (target ranges of scores) of the given widths around the scores. A band that
        can hold all scores is centred on the scores. A narrower band is placed so that two sums are
        equal: the distances of higher scores from the upper end of the band, and the distances of
        lower scores from the lower end.

        :param scores: float64 (hosts, P), scores of the hosts that count in the imbalance
        :param widths: float64 (P,), width of each band
        :param weights: float64 (P,), weight of each policy in the combined imbalance
        """
        low, high = scores.min(axis=0) - widths, scores.max(axis=0)
        for _ in range(np.finfo(low.dtype).nmant):    # each bisection adds a binary digit
            middle = (low + high) / 2
            too_much = np.maximum(scores - middle - widths, 0).sum(axis=0)
            missing = np.maximum(middle - scores, 0).sum(axis=0)
            low = np.where(too_much > missing, middle, low)
            high = np.where(too_much > missing, high, middle)
        # Where the loads of all hosts fit into one band, the band is centred on them.
        ends = np.stack([scores.min(axis=0), scores.max(axis=0)])
        is_wide = np.ptp(ends, axis=0) <= widths
        low = np.where(is_wide, (ends.sum(axis=0) - widths) / 2, (low + high) / 2)
        # A policy without a weight in the combined imbalance still has a threshold.
        return cls(low, low + widths, np.where(weights > 0.0, weights, GUARD))

    def moved(self, policy: int, low: float) -> 'Band':
        """Return a copy in which the band of one policy begins at the score ``low``. The widths of
        the bands do not change."""
        lows = self.low.copy()
        lows[policy] = low
        return Band(lows, lows + self.high - self.low, self.weights)

    def widened(self, by: np.ndarray) -> 'Band':
        """Return a copy in which each band begins lower and ends higher by ``by``, float64 (P,)."""
        return Band(self.low - by, self.high + by, self.weights)

    def excess(self, scores: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
        """Return float64 (...): the excess of each host. The excess is the part of its scores
        outside the bands, as a weighted sum over the policies.

        :param scores: scores of the hosts, one array (...) for each policy
        """
        # The loop over policies works in place, because most of a plan's time is spent here.
        total: np.ndarray | None = None
        for each, low, high, weight in zip(scores, self.low.tolist(), self.high.tolist(),
                                           self.weights.tolist(), strict=True):
            outside = np.minimum(np.maximum(each, low), high)
            outside = np.subtract(each, outside, out=outside)
            np.abs(outside, out=outside)
            outside *= weight
            total = outside if total is None else np.add(total, outside, out=total)
        assert total is not None
        return total

    def excess_of(self, scores: Sequence[float]) -> float:
        """Return the excess of one host. The excess is the part of its scores outside the bands, as
        a weighted sum over the policies.

        :param scores: score of the host in each policy
        """
        total = 0.0
        for each, low, high, weight in zip(scores, self.low.tolist(), self.high.tolist(),
                                           self.weights.tolist(), strict=True):
            total += weight * (each - high if each > high else max(low - each, 0.0))
        return total


class Level:
    """A planner that brings every policy within its threshold and copies as little memory as
    possible. The planner searches all the moves that are needed, even if the budget of one plan
    does not permit all of them. The plan has the first of these moves. The next cycle searches
    again and plans further moves."""

    phase = SPREAD

    def plan(self, state: State, limits: Limits) -> list[Step]:
        if state.is_balanced or limits.budget < 1:
            return []
        model = state.model.with_ceiling(state, limits.overload_ceiling).with_mark(state, HOT_SCORE)
        capped = state.under(model)
        capped.settle()
        moves: list[tuple[int, int]] = []
        for _ in range(SEARCHES):
            left = dataclasses.replace(limits, budget=limits.budget - len(moves))
            more, is_whole = _best_possible(capped.after(moves), left)
            moves += more
            is_full = len(moves) >= limits.budget
            if not more or is_whole or is_full or limits.is_past:
                break
        moves = without_detours(capped, moves, functools.partial(excess, band=band_of(capped)))
        return order.carry_out(moves, state, lambda source: 'evens the load')


def _best_possible(state: State, limits: Limits) -> tuple[list[tuple[int, int]], bool]:
    """Return two results: the moves towards the best solution that can be made, in a possible
    order; and True if no better solution was left out for want of an order of its moves."""
    memory = state.problem.memory_mb
    best: list[tuple[int, int]] = []
    least = np.inf, 0
    for number, way in enumerate(search(state, limits)):
        moves = possible(state, way, limits)
        after = state.after(moves)
        left = (float(rounded(excess(after, band_of(after)))),
                int(memory[[vm for vm, _host in moves]].sum()))
        if left < least:
            best, least = moves, left
        is_whole = all(after.vm_host[vm] == host for vm, host in way)
        if is_whole or len(moves) >= limits.budget:
            return best, best is moves and (number == 0 or least[0] == 0.0)
        if limits.is_past:
            break
    return best, False


def band_of(state: State) -> Band:
    """Return the band (target range of scores) of each policy for the available hosts of a
    state."""
    problem = state.problem
    scores = state.scores[problem.available]
    if problem.left_out is None:
        return Band.around(scores, problem.thresholds, problem.policy_weights)
    bands = []
    for policy, count in enumerate(np.minimum(problem.left_out, (len(scores) - 1) // 2).tolist()):
        column, of = np.sort(scores[:, policy, None], axis=0), slice(policy, policy + 1)
        bands.append(Band.around(column[count:len(column) - count], problem.thresholds[of],
                                 problem.policy_weights[of]))
    return Band(*(np.concatenate([getattr(band, name) for band in bands])
                  for name in ('low', 'high', 'weights')))


def excess(state: State, band: Band) -> float:
    """Return the summed excess of the available hosts. The excess of a host is the part of its
    scores outside the bands, as a weighted sum over the policies. A host that a policy leaves out
    of its imbalance adds nothing for this policy."""
    problem, scores = state.problem, state.scores[state.problem.available].T
    if problem.left_out is not None:
        scores = scores - _beyond(scores, band, problem.left_out)
    return float(band.excess(scores).sum())


def _beyond(scores: np.ndarray, band: Band, left_out: np.ndarray) -> np.ndarray:
    """Return float64 (P, h): the part of the scores outside the band, for hosts that a policy
    leaves out of its imbalance. The part is positive above the band, and negative below the band.
    For hosts that a policy does not leave out, the result is 0.

    :param scores: float64 (P, h), scores of the hosts
    :param left_out: intp (P,), number *k* for each policy. The policy leaves out the *k* hosts with
        the highest scores and the *k* hosts with the lowest scores
    """
    beyond = np.zeros(scores.shape)
    for policy, count in enumerate(left_out.tolist()):
        order = np.argsort(scores[policy], kind='stable')
        highest, lowest = order[len(order) - count:], order[:count]
        beyond[policy, highest] += np.maximum(scores[policy, highest] - band.high[policy], 0.0)
        beyond[policy, lowest] -= np.maximum(band.low[policy] - scores[policy, lowest], 0.0)
    return beyond


def search(state: State, limits: Limits) -> Iterator[list[tuple[int, int]]]:
    """Yield the moves (instance, destination) of solutions, the best solution first. A solution may
    have more moves than the budget permits. The moves that relieve the hosts with the largest
    excess come first. The excess is the part of the scores outside the bands."""
    reach = limits.budget + AHEAD
    space = SearchSpace(state, reach, hosts_that_matter(state, reach))
    if len(space.hosts) < 2 or not len(space.vms):
        return

    def built(band: Band, part: float) -> Leveling:
        leveling = Leveling(space, band)
        leveling.charge(part)
        leveling.build(reach, limits)
        return leveling

    present = band_of(state)
    best = _best_band(present, lambda band: built(band, MOVE_PARTS[0]), reach)
    best.shorten(MOVE_PARTS, limits)
    exact = list(_exact(best, limits, best.plans(limits.budget)))
    found = [best, *exact, *_where_full(best, excess(state, present), reach, limits)]
    if not exact:
        found += _with_better_parts(min(found, key=_rank), limits)
    found.sort(key=_rank)
    best = found[0]
    plans = best.plans(limits.budget)
    if 1 < plans <= FEW_PLANS and not best.left():
        others = itertools.chain(_exact(best, limits, plans - 1),
                                 _with_fewer_moves(best, built, limits))
        best = next((other for other in others
                     if other.plans(limits.budget) < best.plans(limits.budget)
                     and not other.left() and other.gib() <= PREMIUM * best.gib()), best)
    rest = [other for other in found if other is not best]
    staged = (each for rounds in BUDGET.stages[1:]
              for each in _exact(best, limits, plans, rounds))
    for each in itertools.chain([best], rest, staged):
        yield [(int(space.vms[vm]), int(space.hosts[host])) for vm, host in each.sequence()]


def _rank(each: 'Leveling') -> tuple[float, float]:
    """Return a sort key of solutions: the excess that is left, then the GiB to copy."""
    return each.left(), each.gib()


def _with_better_parts(best: 'Leveling', limits: Limits) -> 'Iterator[Leveling]':
    """Yield a cheaper solution, in which integer programs have replaced moves of ``best``. Yield
    nothing if programs cannot be used."""
    if best.is_solvable and not limits.is_over:
        other = best.with_moves(best.plan)
        other.solve_parts(limits)
        yield other


def _where_full(best: 'Leveling', before: float, reach: int,
                limits: Limits) -> 'Iterator[Leveling]':
    """Yield another solution where hosts are full, made from the most even loads that the search of
    ``spread`` finds. Hosts are full in two cases:

    * Excess is left, although ``best`` has fewer moves than it may have. No further move or swap
      lowers the excess, but several of them together may. While further plans are needed anyway,
      only an excess above :data:`LEFT` counts.
    * Most moves are impossible at first (:func:`spread.is_tight`). Other moves have to make room,
      and the search for ``best`` moves large instances in place of two or three small ones.

    :param best: a solution
    :param before: excess before any move
    :param reach: number of moves that ``best`` may have
    """
    is_last = best.plans(limits.budget) <= 1
    is_stuck = best.count < reach and best.left() > (0.0 if is_last else LEFT * before)
    # To check all pairs once takes at most a hundredth of the work of a search.
    if (is_stuck or is_tight(best.space, EFFORT / 100)) and not limits.is_over:
        other = _from_even_loads(best, dataclasses.replace(
            limits, budget=reach if is_stuck else limits.budget))
        other.shorten((FEWER_MOVES[0], *MOVE_PARTS), limits)
        yield other


def _exact(best: 'Leveling', limits: Limits, plans: int,
           rounds: int = 1) -> 'Iterator[Leveling]':
    """Yield the solution that copies the least memory, found by an integer program. Yield nothing
    if the cluster is too large for the program, a move has a price, a policy leaves hosts out of
    its imbalance, or no solution is found.

    :param best: another solution for the same space
    :param plans: number of plans that the moves may need
    :param rounds: number of stages of moves, as in :func:`spread.program_of`
    """
    space = best.space
    if not best.is_solvable:
        return
    program = program_of(space, BUDGET, limits, move=0.0, rounds=rounds)
    if program is None:
        return
    program.limit_moves(plans * limits.budget)
    thresholds = space.problem.thresholds
    program.keep_imbalances(thresholds, np.zeros(len(thresholds)))
    found = BUDGET.solve(program, limits)
    if found is not None:
        other = best.with_moves(plan_of(space, program, found))
        other.trim()
        yield other


def _with_fewer_moves(best: 'Leveling', built: 'Callable[[Band, float], Leveling]',
                      limits: Limits) -> 'Iterator[Leveling]':
    """Yield solutions that are to need one plan less than ``best``. The first solutions are built
    with a higher and higher fixed cost of a move. The next solution begins with moves to even
    loads. Last, integer programs change one of these solutions.

    :param built: function that builds a solution for a Band and a fixed cost of a move, which is
        given as a multiple of the mean memory of an instance
    """
    few = dataclasses.replace(limits, budget=limits.budget * (best.plans(limits.budget) - 1))
    starts = (*((functools.partial(built, best.band, part), (part, MOVE_PARTS[-1]))
                for part in FEWER_MOVES),
              (functools.partial(_from_even_loads, best, few), (FEWER_MOVES[0], *MOVE_PARTS)))
    found: list[Leveling] = []
    for start, parts in starts:
        other = start()
        # One move of each plan is left for an instance that has to wait on a third host.
        other.purpose.fewer = few.budget - few.budget // limits.budget
        other.shorten(parts, limits)
        yield other
        if not other.left():
            found.append(other)
    if found and best.is_solvable:
        nearest = min(found, key=lambda each: each.purpose.total(each))
        nearest.solve_parts(limits, PREMIUM * best.gib())
        yield nearest


def _from_even_loads(best: 'Leveling', limits: Limits) -> 'Leveling':
    """Return a solution that copies little memory, made from the most even loads that the search of
    ``spread`` finds, without the moves that are not needed.

    :param best: a solution for the same space
    """
    solutions = []
    for end in local_search.found_once(best.space, limits).kept:
        solutions.append(best.with_moves(end.plan))
        solutions[-1].trim()
    return min(solutions, key=_rank)


def _best_band(band: Band, build: 'Callable[[Band], Leveling]', most: int) -> 'Leveling':
    """Return the Leveling with the best band. The best band leaves the least excess; of equal
    bands, the best is the one for which the least memory is copied. The band ``band`` is tried
    first. Then bands of the same width are tried that begin or end at the present score of a host.
    These bands are often easier to reach if instances are few and large.

    :param build: function that returns the Leveling for a Band
    :param most: maximum number of moves of a Leveling; if the first Leveling has this number, no
        other bands are tried
    """
    best = build(band)
    if best.count * len(best.excess) > SHORT or best.count >= most:
        return best
    for policy, scores in enumerate(best.space.scores.T):
        lows = np.unique(np.concatenate([scores, scores - (band.high - band.low)[policy]]))
        for low in lows[np.argsort(np.abs(lows - band.low[policy]), kind='stable')][:PLACES]:
            other = build(best.band.moved(policy, float(low)))
            if _rank(other) < _rank(best):
                best = other
    return best


class WithinBands:
    """The purpose of a search for moves that bring the scores of all hosts into the bands, the
    target ranges, and copy as little memory as possible. The excess of a host is the part of its
    scores outside the bands, summed with the weights of the policies. The search has v instances
    and h hosts.

    memory : float64 (v,), memory of each instance, in GiB
    cost : float64 (v,), cost of moving each instance, in GiB
    prices : prices of moving each instance to each host; None if no move has a price. A move with a
        price is made only if it removes more excess than its price
    fewer : number of moves that the solution should have at most; each further move has the
        cost of the last of :data:`FEWER_MOVES` in addition
    """

    def __init__(self, space: SearchSpace, band: Band):
        self.space, self.band = space, band
        self.memory = space.memory / MIB_PER_GIB
        self.cost, self.fewer = self.memory, len(space.vms)
        self.prices = space.price_rows

    def excess(self, scores: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
        return self.band.excess(scores)

    def excess_of(self, scores: Sequence[float]) -> float:
        return self.band.excess_of(scores)

    def may_receive(self, scores: np.ndarray) -> bool:
        return bool((scores < self.band.low - TOLERANCE).any())

    def is_caused_by(self, loads: np.ndarray, excess: float) -> bool:
        return bool(self.band.weights @ loads >= LEAST_TOGETHER * excess)

    def ratings(self, search: Search, change: np.ndarray,
                moves: Sequence[tuple[np.ndarray, Index]]) -> np.ndarray:
        """Return float64 (...): the rating of each chain, which is the excess that the chain
        removes for each GiB of its cost. A price is the excess that a move must remove at least;
        see ``min_gain`` and ``soft_group_cost``."""
        cost = 0.0
        for vms, hosts in moves:
            home = search.home[vms]
            is_away, will_be = search.place[vms] != home, hosts != home
            cost = cost + self.cost[vms] * (will_be.astype(float) - is_away)
        # A move without additional cost counts as one of FREE_GIB.
        ratings = np.divide(change, np.maximum(cost, FREE_GIB))
        return np.negative(ratings, out=ratings)

    def allows(self, search: Search, moves: Moves) -> bool:
        return not self.space.spacing or all(
            self.space.keeps_apart(vm, host, search.place) for vm, host in moves)

    def note(self, vm: int, source: int, host: int) -> None:
        pass

    def total(self, search: Search) -> float:
        """Return the objective that the search lowers, in GiB. The objective is the sum of three
        costs:

        * the excess and the prices of the moves, divided by :data:`TOLERANCE`, so that they decide
          first
        * the cost of the moves
        * the additional cost of moves beyond ``fewer``
        """
        moved, excess = search.moved, search.excess.sum()
        beyond = max(0, len(moved) - self.fewer)
        if self.prices is not None:
            excess += search.price[moved].sum()
        return float(excess / TOLERANCE + FEWER_MOVES[-1] * self.memory.mean() * beyond
                     + self.cost[moved].sum())

    def deviation(self, search: Search) -> float:
        moved = search.moved
        return float(DEVIATION * self.cost[moved].sum() / max(1, len(moved)))


class Leveling(Search):
    """One search for moves that bring the scores of all hosts into the bands, the target ranges.

    beyond : float64 (P, h), part of the scores that does not count, because the policy leaves the
        host out of its imbalance
    """

    purpose: WithinBands

    def __init__(self, space: SearchSpace, band: Band):
        count, hosts = len(space.vms), len(space.hosts)
        super().__init__(WithinBands(space, band), Start(
            home=space.home, weights=space.weights[:count].T.copy(),
            scale=space.scale[:hosts].T.copy(), scores=space.scores[:hosts].T.copy(),
            sizes=space.sizes[:count].T.copy(), free=space.free[:hosts].T.copy(),
            held=np.zeros(space.sizes.shape[1], dtype=bool),
            price=np.zeros(count, dtype=np.float32)))
        self.space, self.memory = space, self.purpose.memory
        self.beyond = np.zeros_like(self.scores)
        self._leave_out()
        self.excess = band.excess(self.scores)

    @property
    def band(self) -> Band:
        return self.purpose.band

    def _leave_out(self) -> None:
        """Subtract from the scores the part that does not count, and save this part as ``beyond``.
        A policy may leave hosts with extreme scores out of its imbalance. The part of the scores of
        these hosts outside the bands does not count."""
        left_out = self.space.problem.left_out
        if left_out is not None:
            scores, count = self._scores(), self.scores.shape[1]
            self.beyond = _beyond(scores, self.band, left_out)[:, :count]
            self.scores = scores[:, :count] - self.beyond

    def _scores(self) -> np.ndarray:
        """Return float64 (P, hosts): the scores of all hosts, including the parts that do not
        count."""
        # The search space has the highest and lowest scores of the hosts that no move touches, in
        # further rows.
        return np.concatenate([self.scores + self.beyond,
                               self.space.scores[self.scores.shape[1]:].T], axis=1)

    @property
    def plan(self) -> Plan:
        """The moves (instance, host) of the solution, in no particular order."""
        return [(vm, int(self.place[vm])) for vm in self.moved.tolist()]

    def with_moves(self, plan: Plan) -> 'Leveling':
        """Return another solution for the same search space and bands, with the given moves."""
        other = Leveling(self.space, self.band)
        for vm, host in plan:
            other.move(vm, host)
        return other

    def gib(self) -> float:
        """Return the GiB of memory that the moves copy."""
        return float(self.memory[self.moved].sum())

    def left(self) -> float:
        """Return the summed excess of all hosts after the moves. The excess is the part of the
        scores outside the bands. The sum is rounded, so that rounding errors do not count."""
        return float(rounded(self.excess.sum()))

    def plans(self, budget: int) -> int:
        """Return the number of plans that all moves need, with at most ``budget`` moves in each
        plan."""
        return -(-self.count // budget)

    def charge(self, part: float) -> None:
        """Set the cost of each move.

        :param part: cost of each move in addition to the memory that the move copies, as a multiple
            of the mean memory of an instance
        """
        self.purpose.cost = self.memory + part * self.memory.mean()

    def _effort(self) -> float:
        """Return the number of pairs of an instance and a host that a search may rate to make the
        solution cheaper."""
        return min(EFFORT, EFFORT_MOVE * self.count)

    def shorten(self, parts: Sequence[float], limits: Limits) -> None:
        """Make the solution cheaper, and undo needless moves. The search rates at most
        :data:`EFFORT` pairs of an instance and a host with the costs :data:`MOVE_PARTS` together.

        :param parts: costs of each move, as in :meth:`charge`, used one after the other
        """
        for part in parts:
            self.charge(part)
            self.refine(self._effort() / len(MOVE_PARTS), limits)
            self.trim()

    def trim(self) -> None:
        """Undo needless moves, the moves of the largest instances first. A move is needless if
        every policy is within its threshold without the move. If a policy is above its threshold, a
        move is needless if the sum of the excesses is not higher without the move. Then centre each
        band (target range of scores) on the scores, unless a policy is above its threshold."""
        widths = self.band.high - self.band.low + TOLERANCE
        is_level, most = self._is_within(widths), self.excess.sum() + TOLERANCE
        for vm in self.moved[np.argsort(-self.memory[self.moved], kind='stable')].tolist():
            there = int(self.place[vm])
            if self.undo(vm) and not (
                    self._is_within(widths) if is_level else self.excess.sum() <= most):
                self.move(vm, there)
        if not is_level:
            return
        low, high = self._ends()
        self.purpose.band = Band((low + high - widths) / 2, (low + high + widths) / 2,
                                 self.band.weights)
        self._leave_out()
        self.excess = self.band.excess(self.scores)

    @property
    def is_solvable(self) -> bool:
        """False if no integer program may choose hosts, because a move has a price, or because a
        policy leaves hosts out of its imbalance."""
        return self.space.model.prices.are_free and self.space.problem.left_out is None

    def solve_parts(self, limits: Limits, enough: float = 0.0) -> None:
        """Replace some moves by fewer or cheaper moves. Each of several integer programs chooses
        the best places on a few hosts for the instances that are now on these hosts (:data:`PART`).
        No program is solved for hosts that a program has not improved since they last changed.

        :param enough: memory in GiB. Stop once the solution copies at most this much, and has no
            more moves than it should have
        """
        self.charge(MOVE_PARTS[-1])
        at_best: list[set[int]] = []
        pairs, most_pairs = 0, self._effort() / PAIR_WORTH
        for most in PART.pairs:
            stale = 0
            while (stale < STALE and pairs < most_pairs
                   and (self.count > self.purpose.fewer or self.gib() > enough)
                   and not limits.is_over):
                hosts = self._drawn_hosts(most)
                drawn = set(hosts.tolist())
                stale += 1
                if any(each >= drawn for each in at_best):
                    continue
                before, total = self._all(), self.purpose.total(self)
                pairs += len(hosts) * sum(len(self.residents[host]) for host in drawn)
                for vm, host in self._best_places(hosts, limits):
                    self.move(vm, host)
                if self.purpose.total(self) < total - TOLERANCE:
                    at_best = [each for each in at_best if not each & drawn]
                    stale = 0
                else:
                    self._restore(before)
                    at_best.append(drawn)
        self.trim()

    def _drawn_hosts(self, most: int) -> np.ndarray:
        """Return intp, sorted: the hosts of an integer program. The program has the sources and
        destinations of some moves, drawn at random.

        :param most: maximum number of pairs of an instance and a host
        """
        drawn: set[int] = set()
        for vm in self.chance.permutation(self.moved).tolist():
            more = drawn | {int(self.home[vm]), int(self.place[vm])}
            if len(more) * sum(len(self.residents[host]) for host in more) <= most:
                drawn = more
        return np.array(sorted(drawn), dtype=np.intp)

    def _best_places(self, hosts: np.ndarray, limits: Limits) -> list[tuple[int, int]]:
        """Return the moves (instance, host) that take the instances on some hosts to their best
        places on these hosts. Return no moves if the program finds no solution.

        :param hosts: intp, sorted
        """
        if len(hosts) < 2:
            return []
        space, is_there = self.space, np.isin(self.place, hosts)
        is_own = is_there & np.isin(self.home, hosts)
        state = space.state.after([(int(space.vms[vm]), int(space.hosts[host]))
                                   for vm, host in self.plan if not is_there[vm]])
        surplus = self.count - self.purpose.fewer
        part = FEWER_MOVES[-1] if surplus > 0 else MOVE_PARTS[-1]
        program = Program(
            Assignment(state, state.model, space.vms[is_there & ~is_own], space.vms[is_own],
                       space.hosts[hosts], by_weight=True), part * float(space.memory.mean()))
        if surplus <= 0:
            program.limit_moves(int((self.place != self.home)[is_own].sum()) - surplus)
        program.keep_load_limits()
        program.keep_scores(self.band.low + SOLVER_TOLERANCE, self.band.high - SOLVER_TOLERANCE)
        found = PART.solve(program, limits)
        places = self.place.copy()
        if found is not None:
            places[is_there] = self.home[is_there]
            for vm, host in plan_of(space, program, found):
                places[vm] = host
        changed = np.flatnonzero(places != self.place)
        return list(zip(changed.tolist(), places[changed].tolist(), strict=True))

    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Return two arrays float64 (P,): the lowest score and the highest score that count in each
        policy."""
        scores, left_out = self._scores(), self.space.problem.left_out
        if left_out is None:
            return scores.min(axis=1), scores.max(axis=1)
        return spans.ends(scores, left_out)[::-1]

    def _is_within(self, widths: np.ndarray) -> bool:
        """Return True if the imbalance of each policy is at most its width, float64 (P,)."""
        low, high = self._ends()
        return bool((high - low <= widths).all())

    def sequence(self) -> list[tuple[int, int]]:
        """Return the moves in the order in which they are to be made. Moves that remove excess come
        first. Of these, the next move is always one from or to the host with the largest excess. If
        there are several, the one that removes most excess is next. The excess of a host is the
        part of its scores outside the bands, the target ranges."""
        goals, vms = self.place.copy(), self.moved
        for vm in vms:
            self.move(int(vm), int(self.home[vm]))
        moves = []
        while len(vms):
            change = self.left_by(vms)
            arrived = self.scores[:, goals[vms]] + (
                self.weights[:, vms] * self.scale[:, goals[vms]])
            change += self.band.excess(arrived) - self.excess[goals[vms]]
            helps = change < -TOLERANCE
            worst = np.maximum(self.excess[self.place[vms]], self.excess[goals[vms]])
            n = np.lexsort((change, -rounded(worst), ~helps))[0]
            vm = int(vms[n])
            self.move(vm, int(goals[vm]))
            moves.append((vm, int(goals[vm])))
            vms = np.delete(vms, n)
        return moves


FREE_GIB = 0.01
"""Lower bound of the cost of a move, in GiB, when candidate moves are rated. The rating of a move
is the excess that the move removes, divided by the cost. The excess is the part of the scores
outside the target ranges. If an instance has a move already, another destination for this instance
costs 0. Raised, the size of small instances no longer affects their rating; lowered to 0, the
rating of a move without cost divides by 0. Not measured."""


def possible(state: State, way: list[tuple[int, int]], limits: Limits) -> list[tuple[int, int]]:
    """Return the moves of ``way`` that the budget and every rule permit, in a possible order. Moves
    are removed from the end of this order until the remaining moves meet two conditions:

    * The moves lower the summed excess, the part of the scores outside the bands.
    * The moves leave each imbalance within its threshold, or do not raise it.

    :param way: the moves, possibly more than the budget permits
    """
    band = band_of(state)
    most = np.maximum(state.imbalances(), state.problem.thresholds) + TOLERANCE
    # Moves beyond the budget may make the room that earlier ones need.
    ordering = order.Ordering(state, dataclasses.replace(
        limits, budget=max(limits.budget, len(way))), most)
    ordering.do_all(way)
    moves, before = ordering.done[:limits.budget], excess(state, band)
    while moves:
        after = state.after(moves)
        if (after.imbalances() <= most).all() and excess(after, band) < before - TOLERANCE:
            return moves
        moves = moves[:-1]
    return []
