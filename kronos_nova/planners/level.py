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
Schrimpf et al. 2000).

A solution may have more moves than the budget permits. The plan is the first part of the solution.
The next cycle plans the next part.

A policy may leave its highest and lowest hosts out of its imbalance. Such a host has no excess in
this policy. Left-out hosts are chosen by their scores before the search. No move may take the score
of a left-out host further from the band.
"""

import bisect
import dataclasses
import math
from collections.abc import Callable
from collections.abc import Sequence

import numpy as np

from kronos_nova.model import TOLERANCE
from kronos_nova.model import State
from kronos_nova.model import spans
from kronos_nova.model.arrays import Index
from kronos_nova.model.space import SearchSpace
from kronos_nova.objects.plan import HOT_SCORE
from kronos_nova.objects.plan import SPREAD
from kronos_nova.planners import order
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import Step
from kronos_nova.planners.spread import hosts_that_matter
from kronos_nova.units import MIB_PER_GIB

MOVE_PARTS = (0.5, 0.1)
"""Fixed costs of a move, as fractions of the mean memory of an instance, used one after the other.
The cost of a move is a fixed cost plus the memory that the move copies. With the first fixed cost,
the search finds moves, and replaces some of them by cheaper moves. With the second fixed cost, the
search replaces moves by cheaper moves once more. Raised, plans have fewer moves, of larger
instances; lowered, plans have more moves, of smaller instances, and a search of equal length finds
worse plans. Chosen by ``bench installed``."""
FEWER_MOVES = (1.0, 2.0, 4.0, 8.0)
"""Fixed costs of a move, as multiples of the mean memory of an instance. The cost of a move is a
fixed cost plus the memory that the move copies. A solution is a set of moves that brings the scores
of all hosts into their target ranges. If the cheapest solution needs two plans or more, but not
more than :data:`FEW_PLANS`, one solution is searched with each of these fixed costs. The higher the
fixed cost, the fewer moves the solution has. Raised, these solutions have still fewer moves;
lowered, these solutions equal the cheapest solution. Not measured separately."""
FEW_PLANS = 3
"""Largest number of plans of a solution that is compared with a solution of one plan less. A
solution is a set of moves that brings the scores of all hosts into their target ranges. Its moves
are made in one or more plans, one plan in each evaluation. The planner first searches a solution
that copies little memory. If this first solution needs two plans or more, but at most this number,
a solution that needs one plan less is searched. Raised, more memory is copied to need, for example,
four plans instead of five; lowered, target ranges are more often reached one plan later than
possible. Not measured."""
PREMIUM = 1.1
"""Factor by which the memory to copy may grow so that fewer plans are needed. A solution is a set
of moves that brings the scores of all hosts into their target ranges, in one or more plans. The
planner first searches a solution that copies little memory. A solution that needs fewer plans than
the first one is chosen only if it copies at most this factor times as much memory. Raised, more
memory is copied to need fewer plans; lowered, target ranges are more often reached one plan later.
Chosen by ``bench installed``: with 1.25, one of its 18 cases of up to 32 hosts needs three plans
instead of four, and an aggregate of 100 hosts copies 19 % more than its four parts do."""
MOST_MOVES = 200
"""Number of moves that every search may find, even if a plan may have fewer moves. The moves that
do not fit into the plan are left to later plans. If a plan may have many moves, :data:`REACH`
permits a search to find more. Raised, searches for thousands of hosts take longer; lowered, the
number and cost of the later plans' moves are known less exactly. Not measured."""
REACH = 2
"""Number of moves that a search may find for each move that a plan may have. The moves that do not
fit into the plan are left to later plans. If the plan may have few moves, the search may find
:data:`MOST_MOVES` instead. Raised, the search for large plans takes longer; lowered, the moves that
are left to later plans are worse. Not measured."""
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
STEP = 1e4
"""Number of pairs of an instance and a host that could be rated in the time that it takes to choose
one move or swap. For each choice, the search adds this number to the pairs that it has rated. The
search ends when the sum reaches :data:`EFFORT`. Raised, searches of small clusters end sooner;
lowered, searches of small clusters take longer. Chosen together with :data:`EFFORT`."""
PLACES = 12
"""Maximum number of further positions that are tried for the target range of each policy. The
scores of all hosts should lie in the target range. It is as wide as the policy's threshold, but may
lie a little higher or lower. Raised, plans for small clusters take longer; lowered, the position
for which least memory is copied is missed more often. Not measured."""
SHORT = 5000
"""Largest product of moves and hosts (no unit) for which other positions of the target ranges are
tried. The scores of all hosts should lie in the target range of each policy. A target range has a
fixed width, but may lie a little higher or lower. The moves are first searched for one position.
Other positions are tried if the number of these moves times the number of hosts is at most this
product. Raised, plans for larger clusters take longer; lowered, plans for small clusters copy more
memory. Chosen because in larger clusters no other position led to less copied memory."""
LEAST_TOGETHER = 0.1
"""Smallest share of a host's excess that its servers have to cause together. If they cause less,
the host is not relieved by moves of single servers. The excess is the part of the score outside the
policy's target range. The share is the summed load of the servers, divided by the excess. Raised,
some hosts keep their excess although moves would help a little; lowered, servers are moved off
hosts that are loaded for another reason than their servers. Chosen because it is not worth a
migration to remove less than a tenth of the excess."""
NOISE = 0.3
"""Spread (no unit) of the random factors by which ratings of candidate moves are multiplied. The
spread is the standard deviation of a factor's logarithm. The factors are used when a search
replaces some moves of its solution by other moves. Raised, worse moves are chosen; lowered, the
search chooses the moves that it has just removed. Chosen because in tests, plans copied more memory
with a spread of 0, and also with a spread of 1."""
TAKEN_BACK = 8
"""Maximum number of moves from or to two hosts that one search step undoes. A step draws one move
at random; the two hosts are the source and the destination of this move. The step then looks for
moves that replace the undone moves and copy less memory. Raised, a step takes longer and rarely
finds such moves; lowered, the search hardly changes its moves. Not measured."""
MORE_TAKEN_BACK = 3
"""Maximum number of moves of all hosts that one search step undoes, in addition to moves from or to
two hosts (:data:`TAKEN_BACK`). Their number is drawn at random, from 0 to this maximum. The moves
are drawn from all moves found so far. The step then looks for moves that replace the undone moves
and copy less memory. Raised, a step takes longer and rarely finds such moves; lowered,
the search hardly changes its moves. Not measured."""
DEVIATION = 0.5
"""Largest difference of cost between an accepted solution and the best known solution, as a
multiple of the mean cost of a move. A solution is a set of moves that brings the scores of all
hosts into their target ranges. Each search step changes the present solution. A step that makes the
solution more expensive is undone if the new solution costs more than the best known solution plus
this difference. Raised, the search spends its time on worse solutions; lowered, the search hardly
changes its moves. Not measured."""
REBUILT = 6
"""Maximum number of additional moves or swaps that one search step makes. A step first undoes some
moves. It then makes at most as many moves or swaps as it has undone, plus this number. Raised, a
step takes longer; lowered, solutions with more moves of smaller instances are missed. Not
measured."""
TRIES = 8
"""Maximum number of moves or swaps of one host that are checked against server groups, the best
first. Raised, plans for hosts with many server groups take longer; lowered, an allowed move of such
a host is missed more often. Not measured."""
SPARE = 0.96
"""Share of the permitted moves that a solution with one plan less should have at most. A solution
is a set of moves that brings the scores of all hosts into their target ranges. If the cheapest
solution needs two plans, a solution for one plan is searched; if it needs three plans, a solution
for two plans. The other permitted moves of these plans are kept for instances that have to wait on
a third host until their destination has room. Raised, no moves are left for waiting instances;
lowered, a solution with one plan less is found less often. Not measured."""
BEYOND = 4.0
"""Additional cost of each move that a solution has above a wanted number of moves. The unit is the
mean memory of an instance. A solution is a set of moves that brings the scores of all hosts into
their target ranges, in one or more plans. The wanted number is chosen so that the solution needs
one plan less than the solution that was found first. Raised, larger instances are moved so that one
move less is needed; lowered, solutions keep a few moves too many. Not measured."""
SEARCHES = 3
"""Maximum number of searches for one plan. A further search is made if the moves of a search cannot
all be made one after the other. The further search starts from the state after the moves that can
be made. Raised, plans for full hosts take longer; lowered to 1, full hosts need one plan more. Not
measured."""
UNFIT = 1e9
"""Weight of the excess in the cost of a solution, in GiB for each unit of score. A solution is a
set of moves. The excess is the part of the scores that is still outside the target ranges after the
moves. The cost is the excess times this weight, plus the memory in GiB that the moves copy. The
solution with the lowest cost is chosen. Raised, rounding errors hide differences of the memory;
lowered below the memory of a cloud, solutions copy less memory but leave scores outside the target
ranges. Fixed: more than the memory of any cloud, because the excess has to decide first."""


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
        for _ in range(BISECTIONS):
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
        return cls(low, low + widths, np.maximum(weights, LEAST_WEIGHT))

    def moved(self, policy: int, low: float) -> 'Band':
        """Return a copy in which the band of one policy begins at the score ``low``. The widths of
        the bands do not change."""
        lows = self.low.copy()
        lows[policy] = low
        return Band(lows, lows + self.high - self.low, self.weights)

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


LEAST_WEIGHT = 1e-3
"""Weight of a policy that has a threshold but no weight in the combined imbalance. Raised, this
policy competes with the policies that have a weight; lowered to 0, no move is made to bring this
policy within its threshold. Not measured."""
BISECTIONS = 50
"""Number of bisections that compute the position of a target range of scores. Each bisection halves
an interval that contains the position. Raised, nothing changes; lowered, the position is less
exact. Fixed by float64, which has 52 binary digits."""


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
            now, left = capped.after(moves), dataclasses.replace(
                limits, budget=limits.budget - len(moves))
            way = search(now, left)
            more = possible(now, way, left)
            moves += more
            if not more or len(more) >= min(len(way), left.budget) or limits.is_past:
                break
        return order.carry_out(moves, state, lambda source: 'evens the load')


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


def search(state: State, limits: Limits) -> list[tuple[int, int]]:
    """Return all moves (instance, destination) of the best solution, possibly more than the budget
    permits. The moves that relieve the hosts with the largest excess come first. The excess is the
    part of the scores outside the bands."""
    reach = max(MOST_MOVES, REACH * limits.budget)
    space = SearchSpace(state, reach, hosts_that_matter(state, reach))
    if len(space.hosts) < 2 or not len(space.vms):
        return []
    mean = float(space.memory.mean()) / MIB_PER_GIB

    def built(band: Band, part: float) -> Leveling:
        leveling = Leveling(space, band)
        leveling.build(reach, part * mean)
        return leveling

    best = _best_band(band_of(state), lambda band: built(band, MOVE_PARTS[0]), reach)
    is_whole = best.count < reach
    for part in MOVE_PARTS:
        best.refine(part * mean, limits)
        best.trim()
    if 1 < best.plans(limits.budget) <= FEW_PLANS and is_whole:
        fewer = int(SPARE * limits.budget * (best.plans(limits.budget) - 1))
        larger = [built(best.band, part) for part in FEWER_MOVES]
        other = min(larger, key=lambda each: (each.left(), max(each.count, fewer), each.gib()))
        other.fewer = fewer
        for part in (FEWER_MOVES[larger.index(other)], MOVE_PARTS[-1]):
            other.refine(part * mean, limits)
            other.trim()
        if (other.plans(limits.budget) < best.plans(limits.budget)
                and other.left() <= best.left() and other.gib() <= PREMIUM * best.gib()):
            best = other
    return [(int(space.vms[vm]), int(space.hosts[host])) for vm, host in best.sequence()]


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
            if (other.left(), other.gib()) < (best.left(), best.gib()):
                best = other
    return best


Rated = tuple[float, list[tuple[int, int]]]
"""A rated move or swap: (rating, [(instance, destination)])."""


class Leveling:
    """One search for moves that bring the scores of all hosts into the bands, the target ranges.
    The search has v instances, h hosts and c kinds of room, such as resource classes. The
    attributes describe the state after the moves found so far.

    place : intp (v,), host on which each instance ends
    scores : float64 (P, h), scores of the hosts, without the part ``beyond``
    residents : the instances of each host, sorted
    free : float64 (c, h), free room of each host
    excess : float64 (h,), part of the scores of each host outside the bands, summed with the
        weights of the policies
    cost : float64 (v,), cost of moving each instance, in GiB
    beyond : float64 (P, h), part of the scores that does not count, because the policy leaves the
        host out of its imbalance; not related to :data:`BEYOND`
    prices : prices of moving each instance to each host; None if no move has a price. A move with a
        price is made only if it removes more excess than its price
    price : float32 (v,), price of moving each instance to its host in ``place``
    is_paid : true once the search has made a move with a price
    fewer : number of moves that the solution should have at most; each further move has the
        additional cost :data:`BEYOND`
    rated : number of pairs of an instance and a host that were rated so far
    """

    def __init__(self, space: SearchSpace, band: Band):
        self.space, self.band = space, band
        count, hosts = len(space.vms), len(space.hosts)
        self.home, self.place = space.home, space.home.copy()
        self.weights, self.sizes = space.weights[:count].T.copy(), space.sizes[:count].T.copy()
        self.scale = space.scale[:hosts].T.copy()
        self.scores, self.free = space.scores[:hosts].T.copy(), space.free[:hosts].T.copy()
        self.memory = space.memory / MIB_PER_GIB
        self.cost, self.beyond = self.memory, np.zeros_like(self.scores)
        self._leave_out()
        self.excess = band.excess(self.scores)
        self.prices, self.is_paid = space.price_rows, False
        self.price = np.zeros(count, dtype=np.float32)
        self.residents = self._residents()
        self.chance, self.blur, self.rated = np.random.default_rng(0), 0.0, 0.0
        self.fewer = len(self.place)

    def _residents(self) -> list[list[int]]:
        """Return the sorted instances of each host, one list for each host."""
        by_host = np.argsort(self.place, kind='stable')
        ends = np.cumsum(np.bincount(self.place, minlength=len(self.excess)))[:-1]
        return [part.tolist() for part in np.split(by_host, ends)]

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
    def moved(self) -> np.ndarray:
        """intp: the instances that are not on their original hosts."""
        return np.flatnonzero(self.place != self.home)

    @property
    def count(self) -> int:
        return len(self.moved)

    def gib(self) -> float:
        """Return the GiB of memory that the moves copy."""
        return float(self.memory[self.moved].sum())

    def left(self) -> float:
        """Return the summed excess of all hosts after the moves. The excess is the part of the
        scores outside the bands. The sum is rounded, so that rounding errors do not count."""
        return float(np.round(self.excess.sum(), DIGITS))

    def plans(self, budget: int) -> int:
        """Return the number of plans that all moves need, with at most ``budget`` moves in each
        plan."""
        return -(-self.count // budget)

    def total(self) -> float:
        """Return the objective that the search lowers, in GiB. The objective is the sum of three
        costs:

        * the excess and the prices of the moves, times :data:`UNFIT`
        * the cost of the moves
        * the additional cost of moves beyond ``fewer``
        """
        moved, excess = self.moved, self.excess.sum()
        beyond = max(0, len(moved) - self.fewer)
        if self.prices is not None:
            excess += self.price[moved].sum()
        return float(UNFIT * excess + BEYOND * self.memory.mean() * beyond
                     + self.cost[moved].sum())

    def move(self, vm: int, host: int) -> None:
        source = self.place[vm]
        for there, sign in ((source, -1), (host, 1)):
            self.scores[:, there] += sign * self.weights[:, vm] * self.scale[:, there]
            self.free[:, there] -= sign * self.sizes[:, vm]
            self.excess[there] = self.band.excess_of(self.scores[:, there].tolist())
        self.place[vm] = host
        self.residents[source].remove(vm)
        bisect.insort(self.residents[host], vm)
        if self.prices is not None:
            self.price[vm] = self.prices.price_of(vm, host)
            self.is_paid = self.is_paid or bool(self.price[vm])

    def build(self, most: int, move_gib: float) -> None:
        """Make at most ``most`` steps, one after the other. A step is one move or one swap. Stop
        earlier if no step removes excess, the part of the scores outside the bands.

        :param move_gib: cost of each move in GiB, in addition to the memory that the move copies
        """
        self.cost = self.memory + move_gib
        for _ in range(most):
            self.rated += STEP
            moves = self._best_of_all()
            if not moves:
                return
            for move in moves:
                self.move(*move)

    def _best_of_all(self) -> list[tuple[int, int]] | None:
        """Return [(instance, destination)] of the next move or swap; None if no move or swap
        removes excess, the part of the scores outside the bands. The hosts are tried one after the
        other, the host with the largest excess first. For each host, the best move is tried first,
        then the best swap."""
        for host in np.argsort(-self.excess, kind='stable').tolist():
            if self.excess[host] <= TOLERANCE:
                break
            moves = self._best_move(host) or self._best_swap(host)
            if moves:
                return moves
        return None

    def _best_move(self, host: int) -> list[tuple[int, int]] | None:
        """Return [(instance, destination)] of the best move off or onto a host; None if no such
        move brings scores closer to their target ranges."""
        found = [self._off(host)]
        if (self.scores[:, host] < self.band.low - TOLERANCE).any():
            found.append(self._onto(host))
        rating, moves = max(found, key=lambda pair: pair[0])
        return moves if rating > 0 else None

    def _off(self, host: int) -> Rated:
        """Return (rating, [(instance, destination)]) of the best move off a host. The rating is 0
        if no such move brings scores closer to their target ranges."""
        if not self.residents[host]:
            return 0.0, []
        vms, hosts = np.array(self.residents[host], dtype=np.intp), np.arange(len(self.excess))
        together = self.band.weights @ (self.weights[:, vms].sum(axis=1) * self.scale[:, host])
        if together < LEAST_TOGETHER * self.excess[host]:
            return 0.0, []
        left = self.scores[:, host, None] - self.weights[:, vms] * self.scale[:, host, None]
        change = self.band.excess(left) - self.excess[host]
        there = [scores + weights[vms, None] * scale for scores, weights, scale in zip(
            self.scores, self.weights, self.scale, strict=True)]
        change = change[:, None] + self.band.excess(there) - self.excess
        ratings = self._rated(change, (vms[:, None], hosts))
        ratings[:, host] = 0.0
        for sizes, free in zip(self.sizes, self.free, strict=True):
            ratings[sizes[vms, None] > free + TOLERANCE] = 0.0
        return self._first_allowed(ratings, lambda row, to: [(int(vms[row]), int(to))])

    def _onto(self, host: int) -> Rated:
        """Return (rating, [(instance, destination)]) of the best move to a host. The rating is 0 if
        no such move brings scores closer to their target ranges."""
        vms = np.flatnonzero(self.place != host)
        for sizes, free in zip(self.sizes, self.free[:, host], strict=True):
            vms = vms[sizes[vms] <= free + TOLERANCE]
        change = self._left_by(vms)
        arrived = self.scores[:, host, None] + self.weights[:, vms] * self.scale[:, host, None]
        change += self.band.excess(arrived) - self.excess[host]
        return self._first_allowed(self._rated(change, (vms, host))[:, None],
                                   lambda row, _: [(int(vms[row]), host)])

    def _left_by(self, vms: np.ndarray) -> np.ndarray:
        """Return float64, one value for each of ``vms``: the change of its host's excess if the
        instance leaves the host. The excess is the part of the scores outside the bands."""
        sources = self.place[vms]
        left = self.scores[:, sources] - self.weights[:, vms] * self.scale[:, sources]
        return self.band.excess(left) - self.excess[sources]

    def _rated(self, change: np.ndarray, *moves: tuple[np.ndarray, Index]) -> np.ndarray:
        """Return float64 (...): the rating of each chain. A chain is one move, or the two moves of
        a swap. The rating is the excess that the chain removes for each GiB of its cost; 0 if the
        chain removes no excess. The excess is the part of the scores outside the bands.

        :param change: float64 (...), change of the excess by each chain; overwritten
        :param moves: (instances, hosts) of the first move of each chain, then of the second move
        """
        self.rated += change.size
        cost = 0.0
        for vms, hosts in moves:
            is_away, will_be = self.place[vms] != self.home[vms], hosts != self.home[vms]
            cost = cost + self.cost[vms] * (will_be.astype(float) - is_away)
            if self.prices is not None:
                # A price is the excess that a move must remove at least; see min_gain and
                # soft_group_cost.
                self.prices.add(change, vms, hosts)
                if self.is_paid:
                    change -= self.price.take(vms)
        # A move without additional cost counts as one of FREE_GIB.
        ratings = np.divide(change, np.maximum(cost, FREE_GIB))
        np.negative(ratings, out=ratings)
        ratings[change > -TOLERANCE] = 0.0
        if self.blur:
            ratings *= np.exp(self.chance.normal(0.0, self.blur, ratings.shape))
        return ratings

    def _first_allowed(self, ratings: np.ndarray,
                       chain: Callable[[np.intp, np.intp], list[tuple[int, int]]]) -> Rated:
        """Return (rating, [(instance, destination)]) of the best chain that server groups allow. A
        chain is one move, or the two moves of a swap. Only the best :data:`TRIES` chains are
        checked. The rating is 0 if none of these chains is allowed, or if no chain has a positive
        rating.

        :param ratings: float64, a table with the rating of each chain
        :param chain: function of a row and a column of ``ratings``, which returns the moves of the
            chain
        """
        for _ in range(TRIES if ratings.size else 0):
            row, column = np.unravel_index(ratings.argmax(), ratings.shape)
            rating, moves = float(ratings[row, column]), chain(row, column)
            if rating <= 0 or all(self._is_apart(vm, host) for vm, host in moves):
                return rating, moves
            ratings[row, column] = 0.0
        return 0.0, []

    def _is_apart(self, vm: int, host: int) -> bool:
        return not self.space.spacing or self.space.keeps_apart(vm, host, self.place)

    def _best_swap(self, host: int) -> list[tuple[int, int]] | None:
        """Find the best swap of an instance on ``host`` with an instance on another host. Return
        its two moves as [(instance, destination)]; None if no such swap brings scores closer to
        their target ranges."""
        if not 0 < len(self.residents[host]) < len(self.place):
            return None
        here = np.array(self.residents[host], dtype=np.intp)
        others = np.flatnonzero(self.place != host)
        there = self.place[others]
        more = [weights[others] - weights[here, None] for weights in self.weights]
        own = [scores[host] + each * scale[host] for scores, each, scale in zip(
            self.scores, more, self.scale, strict=True)]
        other = [scores[there] - each * scale[there] for scores, each, scale in zip(
            self.scores, more, self.scale, strict=True)]
        change = (self.band.excess(own) - self.excess[host]
                  + self.band.excess(other) - self.excess[there])
        ratings = self._rated(change, (here[:, None], there), (others, host))
        for sizes, free in zip(self.sizes, self.free, strict=True):
            bigger = sizes[others] - sizes[here, None]
            ratings[(bigger > free[host] + TOLERANCE) | (-bigger > free[there] + TOLERANCE)] = 0.0
        rating, moves = self._first_allowed(ratings, lambda row, column: [
            (int(here[row]), int(there[column])), (int(others[column]), host)])
        return moves if rating > 0 else None

    def refine(self, move_gib: float, limits: Limits) -> None:
        """Make the solution cheaper. Each step undoes some moves and searches other moves in their
        place. The search ends once it has rated a maximum number of pairs of an instance and a host
        (:data:`EFFORT`). The cheapest set of moves found is kept.

        :param move_gib: cost of each move in GiB, in addition to the memory that the move copies
        """
        self.cost = self.memory + move_gib
        end = self.rated + min(EFFORT, EFFORT_MOVE * self.count) / len(MOVE_PARTS)
        self.blur = NOISE
        best = now = self.total()
        kept = self._all()
        while self.rated < end and self.count and not limits.is_over:
            before = self._all()
            gone = self._ruined()
            for vm in gone:
                self.move(int(vm), int(self.home[vm]))
            self.build(len(gone) + REBUILT, move_gib)
            total = self.total()
            if total < best - TOLERANCE:
                best, kept = total, self._all()
            if total <= max(now, best + DEVIATION * self.cost[self.moved].mean()):
                now = total
            else:
                self._restore(before)
        self._restore(kept)
        self.blur = 0.0

    def _all(self) -> tuple[np.ndarray, ...]:
        return tuple(array.copy() for array in (
            self.place, self.scores, self.free, self.excess, self.price))

    def _restore(self, kept: tuple[np.ndarray, ...]) -> None:
        place = self.place
        self.place, self.scores, self.free, self.excess, self.price = kept
        for vm in np.flatnonzero(place != self.place).tolist():
            self.residents[place[vm]].remove(vm)
            bisect.insort(self.residents[self.place[vm]], vm)

    def _ruined(self) -> np.ndarray:
        """Return intp: the instances whose moves one search step undoes, drawn at random. Two hosts
        are drawn first: the original host and the present host of one moved instance. Up to
        :data:`TAKEN_BACK` instances are drawn from those that were moved from or to one of the two
        hosts, and up to :data:`MORE_TAKEN_BACK` from all moved instances."""
        moved = self.moved
        vm = self.chance.choice(moved)
        ends = self.place[vm], self.home[vm]
        near = moved[np.isin(self.place[moved], ends) | np.isin(self.home[moved], ends)]
        near = self.chance.permutation(near)[:TAKEN_BACK]
        more = self.chance.choice(moved, int(self.chance.integers(0, MORE_TAKEN_BACK + 1)))
        return np.union1d(near, more)

    def trim(self) -> None:
        """Undo needless moves, the moves of the largest instances first. A move is needless if
        every policy is within its threshold without the move. Then centre each band (target range
        of scores) on the scores. Do nothing if a policy is above its threshold."""
        widths = self.band.high - self.band.low + TOLERANCE
        if (self._imbalances() > widths).any():
            return
        for vm in self.moved[np.argsort(-self.memory[self.moved], kind='stable')].tolist():
            there = int(self.place[vm])
            fits = (self.sizes[:, vm] <= self.free[:, self.home[vm]] + TOLERANCE).all()
            if fits and self._is_apart(vm, int(self.home[vm])):
                self.move(vm, int(self.home[vm]))
                if (self._imbalances() > widths).any():
                    self.move(vm, there)
        low, high = self._ends()
        self.band = Band((low + high - widths) / 2, (low + high + widths) / 2, self.band.weights)
        self._leave_out()
        self.excess = self.band.excess(self.scores)

    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Return two arrays float64 (P,): the lowest score and the highest score that count in each
        policy."""
        scores, left_out = self._scores(), self.space.problem.left_out
        if left_out is None:
            return scores.min(axis=1), scores.max(axis=1)
        return spans.ends(scores, left_out)[::-1]

    def _imbalances(self) -> np.ndarray:
        low, high = self._ends()
        return high - low

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
            change = self._left_by(vms)
            arrived = self.scores[:, goals[vms]] + (
                self.weights[:, vms] * self.scale[:, goals[vms]])
            change += self.band.excess(arrived) - self.excess[goals[vms]]
            helps = change < -TOLERANCE
            worst = np.maximum(self.excess[self.place[vms]], self.excess[goals[vms]])
            n = np.lexsort((change, -np.round(worst, DIGITS), ~helps))[0]
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
DIGITS = round(-math.log10(TOLERANCE))
"""Number of decimal digits to which an excess is rounded. Fixed by :data:`TOLERANCE`."""


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
