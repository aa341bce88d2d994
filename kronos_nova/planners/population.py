"""A population: n assignments that a search improves at the same time, each by one swap after the
other.

An *assignment* gives each instance a host. The *value* of an assignment is a smooth approximation
of its combined imbalance (:class:`SoftenedMax`). The best swap is the swap with the lowest sum of
two numbers: the value after the swap, and the prices of the moves of the swap.

A *swap* sends one instance from a first host to a second host, and another instance back. Each host
has a *dummy item*, which stands for no instance. A swap with a dummy item is a move of one
instance. Instances and dummy items are called *items*. Moves and swaps are the neighbourhoods
*shift* and *swap* of machine reassignment (ROADEF 2012). If a plan has used up its budget of moves,
a swap also undoes the earlier move that costs least to undo.

An *end state* is the assignment after all moves of a plan. The *cost* of an end state is its exact
combined imbalance plus the prices of the moves. :class:`Incumbents` keeps the best end states that
the search has found.
"""

import bisect
import dataclasses
import math

import numpy as np

from kronos_nova.model import TOLERANCE
from kronos_nova.model import spans
from kronos_nova.model.space import NEVER
from kronos_nova.model.space import SearchSpace

Plan = list[tuple[int, int]]
"""Moves of a plan: [(instance, destination)]. Each instance has at most one move, from its present
host. The order of the list has no meaning."""
KEPT = 48
"""Number of best end states that a search keeps. An end state gives each instance a host. Several
are kept, because some end states cannot be reached by moves that are made one after the other.
Raised, plans take longer; lowered, plans for full hosts are missed. Chosen by a measurement: mostly
the cheapest end state could be reached. But in a cluster with a hundred full hosts, the first that
could be reached was the 5th cheapest, and in a cluster with a few full hosts the 20th cheapest."""


@dataclasses.dataclass(frozen=True, slots=True)
class End:
    """The end state of a plan: the assignment after all moves of the plan.

    cost : the combined imbalance plus the prices of the plan's moves; inf if the end state is not
        allowed
    plan : the moves that lead to the end state
    """

    cost: float
    plan: Plan


class Incumbents:
    """The best end states found so far, the cheapest first. Of equal costs, the end states with
    fewer moves come first.

    :param kept: known end states in this order; at least one
    """

    def __init__(self, kept: list[End]):
        self.kept = kept.copy()
        self._known = {frozenset(end.plan) for end in kept}

    @property
    def best(self) -> End:
        return self.kept[0]

    @property
    def worst(self) -> float:
        """The cost below which a new end state is kept; inf while fewer than :data:`KEPT` end
        states are known."""
        return self.kept[-1].cost - TOLERANCE if len(self.kept) >= KEPT else float('inf')

    def add(self, end: End) -> None:
        """Keep an end state if its cost is among the lowest :data:`KEPT` costs."""
        moves = frozenset(end.plan)
        if end.cost < float('inf') and moves not in self._known:
            self._known.add(moves)
            bisect.insort(self.kept, end, key=lambda end: (round(end.cost / TOLERANCE),
                                                           len(end.plan)))
            del self.kept[KEPT:]


COLDEST = 1e-4
"""Lowest temperature, as a fraction of a host, at which swaps are rated. Swaps are rated by a
smooth approximation of the combined imbalance. The temperature is a parameter of this
approximation: the lower the temperature, the closer the approximation, and the less the hosts with
medium scores count. Raised, the approximation is less exact; lowered, numbers overflow. Fixed by
the range of single precision."""
STEEPEST = 80.0
"""Largest exponent (no unit) that is used to rate swaps. The exponent is the change of a host's
score by a swap, divided by the temperature. The temperature is explained at :data:`COLDEST`, and
the rating in :class:`SoftenedMax`. Larger exponents count as this value. Raised, numbers overflow;
lowered, all large changes of load are rated as equal. Fixed by the range of single precision, which
ends near exp(88)."""


GUARD = 0.05
"""Weight (no unit) with which searches rate the loads of a policy of weight 0. The policy adds
nothing to the cost of a plan, but has a threshold. With the small weight, a search keeps its
imbalance within the threshold, or lowers its imbalance to the threshold. Raised, moves are chosen
that even out this policy instead of others; lowered, most plans of a search pass the threshold and
are useless. Measured on 20 random clouds of 5 hosts: with 0, a plan of 4 moves ends up to 0.14
above the lowest combined imbalance."""


class SoftenedMax:
    """The function that gives an assignment its value at one temperature. The value is a smooth
    approximation of the combined imbalance. The approximation is used because single moves often do
    not change the exact imbalance: if two hosts share the highest score, the imbalance falls only
    after the second of two moves, but the value falls after the first move.

    The highest score is approximated by ``temperature × log Σ exp(score / temperature)``, to which
    every host with nearly the highest score contributes. The lowest score is approximated by the
    same expression with opposite signs. Boyd and Vandenberghe, Convex Optimization, section 3.1.5
    (log-sum-exp), has a bound of the error.

    The sum ``Σ`` is called a *term*. There are T terms: for each policy, one for the highest score
    and one for the lowest score. Each host contributes one part to each term. A swap of two
    instances changes only the contributions of two hosts. The new contribution of a host is the old
    contribution times one factor for each of the two instances. One matrix product therefore rates
    all pairs of instances at once. Single precision is exact enough to choose a swap.

    A host that a policy leaves out of its imbalance contributes nothing. A swap may cause the
    policy to include the host. The rating of this swap is then not exact, but :class:`Trial` rates
    the chosen swap again, exactly.

    price : float32 (T,), factor of the logarithm of each term in the value: the weight of the
        policy, or :data:`GUARD` if the weight is 0, times the temperature; not the price of a move
    kind : intp (h,), kind of each host, from 0 to k - 1; hosts of equal size are of one kind
    arriving, leaving : float32 (k, items, T), factors by which the contribution of a host to each
        term changes when an item arrives at the host or leaves it. There is a factor for each kind
        of host and each item (an instance, or a dummy item that stands for no instance)
    faintest : smallest fraction of a term that a host is assumed to contribute. Smaller numbers
        become 0 in single precision, and then remain 0 after any swap
    """

    faintest = math.exp(-STEEPEST)

    def __init__(self, space: SearchSpace, temperature: float):
        self.space, self.temperature = space, max(temperature, COLDEST)
        self._weights = np.where(space.policy_weights > 0.0, space.policy_weights, GUARD)
        self.price = (np.tile(self._weights, 2) * self.temperature).astype(np.float32)
        scales, self.kind = space.kinds
        steps = space.weights * scales[:, None] / self.temperature
        steps = np.clip(np.concatenate([steps, -steps], axis=2), -STEEPEST, STEEPEST)
        self.arriving, self.leaving = (np.exp(way * steps, dtype=np.float32) for way in (1, -1))

    def evaluate(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return three arrays: the values of n assignments, float64 (n,); the imbalances, float64
        (n, P); and the fraction of each term that each host contributes, float64 (n, h, T).

        :param scores: float64 (n, P, h), scores of the hosts in each assignment
        """
        left_out = self.space.problem.left_out
        top, bottom = ((scores.max(axis=2), scores.min(axis=2)) if left_out is None
                       else spans.ends(scores, left_out))
        terms = np.concatenate([scores - top[:, :, None], bottom[:, :, None] - scores], axis=1)
        if left_out is not None:
            terms[terms > 0] = -np.inf
        terms = np.exp(terms / self.temperature)
        sums = terms.sum(axis=2)
        values = np.log(sums) @ self.price + (top - bottom) @ self._weights
        parts = np.maximum(terms / sums[:, :, None], self.faintest)
        return values, top - bottom, parts.transpose(0, 2, 1).copy()


PARTNERS = 40
"""Maximum number of hosts whose instances are candidates for a swap in one search step. A step
draws one host, and rates swaps of its instances with instances of these hosts. They are the hosts
that contribute most to the imbalance: the most and the least loaded hosts. In a step that only
moves instances off the drawn host, all hosts are considered, because single moves take little time
to rate, and the best destination often has a medium load. Raised, a step takes longer; lowered,
more steps are needed. Measured by ``bench constants`` on 10 clouds: with 10, four plans change, and
end with 4 % more imbalance on average; with 1000, three plans change, and end as well."""
UNTRIED = 0.4
"""Share of the imbalance that untried hosts may cause in an assignment that counts as finished. An
assignment gives each instance a host. A search improves assignments by swaps of instances. A host
is untried if no swap of the host was tried since the assignment last changed. A finished assignment
is replaced by a new one. Raised, assignments are replaced while swaps could improve them; lowered,
time is spent on assignments that no swap improves. Measured: with 0, plans for 10 clouds of ``bench
constants`` end as well, but no plan is found for 40 hosts of which a policy leaves some out."""
HOMING = 0.3
"""Probability that a search step undoes earlier moves by its swaps. A swap moves a first instance
from host A to host B, and a second instance from host B to host A. In a step that undoes earlier
moves, a second instance that is not on its original host goes back to its original host instead.
The plan then needs no move of this instance. If plans may have only few moves for the number of
hosts, the probability applies only to steps that look for instances to move off host A; all other
steps undo no moves in this way. Raised, other swaps are tried less often; lowered to 0, a search
cannot replace one moved instance by another. Chosen by ``bench constants``: with 0, 0.5 and 1,
plans for 4 of 10 clouds change, and end with 3, 5 and 11 % more imbalance on average."""


class Population:
    """A population of n assignments of the v + h items of a search space to hosts. The items are
    the v instances and one dummy item for each of the h hosts. A dummy item stands for no instance.

    place : intp (n, v + h), the host of every item
    scores : float64 (n, P, h), scores of the hosts
    free : float64 (n, resources, h), free room of the hosts
    left : intp (n,), number of further moves that the budget permits in each assignment. Each
        instance that is not on its original host counts as one move
    tried : bool (n, 2, h), true if a step has searched a swap of the host and found none that is
        better, and the assignment has not changed since. Index 1 of the second axis is for steps in
        which the host only sends an instance; index 0 is for all other steps
    """

    def __init__(self, space: SearchSpace, budget: int, plans: list[Plan]):
        self.space, hosts = space, len(space.scores)
        self.home = np.concatenate([space.home, np.arange(hosts)])
        self.budget, count = budget, len(plans)
        self.place, self.left = np.tile(self.home, (count, 1)), np.full(count, budget)
        self.scores, self.free = space.after([[]] * count)
        self.tried = np.zeros((count, 2, hosts), dtype=bool)
        self.restart(np.arange(count), plans)

    def restart(self, rows: np.ndarray, plans: list[Plan]) -> None:
        """Replace the assignments at the positions ``rows`` by new assignments.

        :param plans: for each of ``rows``, the plan whose moves give the new assignment
        """
        self.place[rows] = self.home
        for row, plan in zip(rows, plans, strict=True):
            vms, there = np.array(plan, dtype=np.intp).reshape(-1, 2).T
            self.place[row, vms] = there
        self.scores[rows], self.free[rows] = self.space.after(plans)
        self.left[rows] = self.budget - np.array([len(plan) for plan in plans])
        self.tried[rows] = False

    def improve(self, softened: SoftenedMax, chance: np.random.Generator,
                are_few: bool) -> tuple[np.ndarray, int]:
        """Draw one host in each assignment, and make the best swap of this host if the swap lowers
        the value. The value of an assignment is a smooth approximation of its combined imbalance.
        The more a host contributes to the value, the more probably the host is drawn.

        :param are_few: whether a plan may have only few moves for the number of hosts, see
            :meth:`Swaps._draw`
        :returns: positions of the assignments that further swaps are unlikely to improve (local
            optima), and the number of rated pairs of items
        """
        swaps = Swaps(self, softened, chance, are_few)
        improved = Trial(swaps).make()
        failed = np.ones(len(self.place), dtype=bool)
        failed[improved] = False
        self.tried[improved] = False
        self.tried[failed, swaps.side, swaps.here[failed, 0]] = True
        untried = np.where(self.tried, 0, swaps.drawn).sum(axis=(1, 2))
        optimal = failed & (untried <= UNTRIED * swaps.drawn.sum(axis=(1, 2)))
        return np.flatnonzero(optimal), swaps.changes.size

    def ends(self, rows: np.ndarray, below: float) -> list[End]:
        """Return the end states of the assignments ``rows`` whose combined imbalance is less than
        ``below``. End states that violate policies, room or server groups are left out."""
        space, imbalances = self.space, self.space.imbalances(self.scores[rows])
        combined = imbalances @ space.policy_weights
        good = (combined < below) & space.is_legal(imbalances, self.free[rows])
        ends = []
        for row, cost in zip(rows[good], combined[good], strict=True):
            if space.spacing and not space.are_apart(self.place[row]):
                continue
            moved = np.flatnonzero(self.place[row] != self.home)
            plan = list(zip(moved.tolist(), self.place[row, moved].tolist(), strict=True))
            ends.append(End(float(cost) + space.price_of(plan), plan))
        return ends


class Swaps:
    """Possible swaps in each of n assignments, and the ratings of these swaps. In each assignment,
    one host is drawn at random. A swap exchanges one of ``a`` items on the drawn host with one of
    ``b`` items on other hosts. There are ``h`` hosts.

    here : intp (n, 1), the drawn host of each assignment
    first : intp (n, a), items on the drawn host. An item is an instance, or a dummy item that
        stands for no instance. An assignment with fewer than ``a`` of these items is padded with
        the dummy item of the drawn host
    second : intp (n, b), items on other hosts, each of which may be swapped with each of ``first``;
        also padded with the dummy item of the drawn host
    there : intp (n, b), present hosts of the items ``second``
    goals : intp (n, b), destinations of the items ``second``: the drawn host, or the original host
        of the item
    changes : float32 (n, a, b), rating of each swap; the lowest is the best. The rating is the
        change of the value, a smooth approximation of the combined imbalance, plus the prices of
        the moves of the swap. If plans may have many moves, swaps are compared by their change per
        move: the change of the value is halved for a swap that adds two moves
    drawn : float32 (n, 2, h), weights by which hosts are drawn. If plans may have only few moves,
        index 0 of the second axis is for hosts that receive an instance, and index 1 for hosts that
        send an instance. Otherwise, index 0 is for all hosts, and the weights at index 1 are 0
    back : intp (n,), the instance whose move is undone if the budget is used up and a swap adds a
        move. While the budget is not used up, a dummy item
    """

    def __init__(self, owner: Population, softened: SoftenedMax, chance: np.random.Generator,
                 are_few: bool):
        self.owner, self.space, self.softened = owner, owner.space, softened
        self.place, self.every = owner.place, np.arange(len(owner.place))[:, None]
        self.value, self.imbalances, self.parts = softened.evaluate(owner.scores)
        shares = self.parts * softened.price
        shares[:, len(self.space.hosts):] = 0
        self.tops, self.bottoms = (side.sum(axis=2) for side in np.split(shares, 2, axis=2))
        self.share = self.tops + self.bottoms
        self.dummy = len(self.space.vms)
        self.sends, homing = chance.random(2) < (0.5, HOMING)
        first, second = self._draw(chance, are_few)
        self.first, self.second = (_filled(items, self.dummy + self.here)
                                   for items in (first, second))
        self.there = _pick(self.place, self.every, self.second)
        self.goals = self._goals((not are_few or self.sends) and homing)
        self.back, self.regret = self._least_missed()
        self.leaves, self.arrives = self._moves()
        self.changes = self._rate()
        self._weigh(are_few)

    def _draw(self, chance: np.random.Generator,
              are_few: bool) -> tuple[np.ndarray, np.ndarray]:
        """Draw a host for each assignment. Return two arrays, bool (n, v + h) each: true for the
        items of the drawn host that may be swapped, and true for the items of other hosts with
        which they may be swapped.

        If plans may have only few moves, two instances that are on their original hosts are not
        swapped, because the swap would take two moves. The drawn host then either only sends or
        only receives instances. A host that sends is drawn by its contribution to the highest
        scores. A host that receives is drawn by its contribution to the lowest scores.
        Contributions are explained in :class:`SoftenedMax`.

        :param are_few: whether a plan may have only few moves for the number of hosts
        """
        self.drawn = (np.stack([self.bottoms, self.tops], axis=1) if are_few
                      else np.stack([self.share, np.zeros_like(self.share)], axis=1))
        self.side = int(self.sends and are_few)
        share = np.where(self.owner.tried[:, self.side], 0, self.drawn[:, self.side])
        drawn = chance.random(len(share)) * share.sum(axis=1)
        passed = np.cumsum(share, axis=1) < drawn[:, None]
        self.here = np.minimum(passed.sum(axis=1), len(self.space.hosts) - 1)[:, None]
        first = self.place == self.here
        loose = self.place != self.owner.home
        if are_few and self.sends:
            loose[:, self.dummy:self.dummy + len(self.space.hosts)] = True
            return first, loose & ~first
        # Moved instances may always be moved elsewhere, even from hosts that need no improvement.
        second = _pick(self._partners(), self.every, self.place) | (loose & ~first)
        if are_few:
            loose[:, self.dummy:] = True
            first &= loose
        return first, second

    def _partners(self) -> np.ndarray:
        """Return bool (n, h), a row for each of n assignments and a column for each of h hosts. In
        each row, true for the hosts whose items may be swapped with items of the host that was
        drawn for the assignment. These are the hosts that contribute most to the imbalance, at most
        :data:`PARTNERS`."""
        chosen = np.ones(self.share.shape, dtype=bool)
        if chosen.shape[1] > PARTNERS:
            few = np.argpartition(self.share, -PARTNERS, axis=1)[:, :-PARTNERS]
            chosen[self.every, few] = False
        chosen[self.every, self.here] = False
        chosen[:, len(self.space.hosts):] = False
        return chosen

    def _goals(self, homing: bool) -> np.ndarray:
        """Return intp (n, b): the destination of the second item of each swap. The destination is
        the drawn host or the original host of the item.

        :param homing: whether an instance that is not on its original host goes back to its
            original host; if False, all items go to the drawn host
        """
        homes = self.owner.home.take(self.second)
        return np.where(homing & (homes != self.there) & (self.second < self.dummy),
                        homes, self.here)

    def _least_missed(self) -> tuple[np.ndarray, np.ndarray]:
        """Choose the move to undo in each assignment whose budget of moves is used up. A swap that
        adds a move is then possible only if an earlier move is undone.

        Return two arrays. The first, intp (n,), has for each assignment the instance whose move
        costs least to undo. The second, float32 (n, 1), has the cost of undoing this move. If the
        budget is not used up, the instance is a dummy item and the cost is 0."""
        home, softened = self.owner.home, self.softened
        regret = np.zeros((len(self.every), 1), dtype=np.float32)
        back = np.full(len(self.every), self.dummy)
        full = np.flatnonzero(self.owner.left == 0)
        number, vms = np.divmod(np.flatnonzero(self.place[full] != home), len(home))
        if not len(number):
            return back, regret
        away = self.place[full[number], vms]
        left = 1 + self._going(softened.leaving, full[number], away, vms) + self._going(
            softened.arriving, full[number], home[vms], vms)
        change = np.log(np.maximum(left, softened.faintest)) @ softened.price
        each = np.full((len(full), len(home)), np.inf, dtype=np.float32)
        each[number, vms] = change - self.space.price_change(vms, home[vms], away)
        back[full], regret[full, 0] = each.argmin(axis=1), each.min(axis=1)
        return back, regret

    def _going(self, way: np.ndarray, number: np.ndarray, hosts: np.ndarray,
               items: np.ndarray) -> np.ndarray:
        """Return the change of each term if an item leaves or enters a host, as a fraction of the
        term. The result is float64, with the T terms as the last axis. Terms are explained in
        :class:`SoftenedMax`.

        :param way: :attr:`SoftenedMax.leaving` if the items leave, :attr:`SoftenedMax.arriving` if
            the items enter
        :param number: for each item, the index of the assignment in which the item leaves or enters
        """
        change = _pick(way, self.softened.kind.take(hosts), items) - 1
        return change * _pick(self.parts, number, hosts)

    def _rate(self) -> np.ndarray:
        left, changes = np.matmul(*self._factors()), self._alone()
        np.log(left, out=left)
        for number, price in enumerate(self.softened.price):
            changes += price * left[:, number]
        return changes

    def _factors(self) -> tuple[np.ndarray, np.ndarray]:
        """Return two stacks of float32 matrices. Their product is each term after each swap, as a
        fraction of the term before the swap. A term is the sum of the contributions of all hosts,
        see :class:`SoftenedMax`.

        The first two axes of the product are assignments and terms. The third axis has the items
        ``first``, and the fourth axis the items ``second``: each item of ``first`` is swapped with
        each item of ``second``."""
        softened, first, second = self.softened, self.first, self.second
        kind, of = softened.kind.take(self.here), softened.kind.take(self.there)
        own, other = _pick(self.parts, self.every, self.here), _pick(
            self.parts, self.every, self.there)
        gone = (other * _pick(softened.leaving, of, second)).astype(np.float32)
        back = _pick(softened.arriving, kind, second)
        others = 1 - own - other
        goes_home = (self.goals != self.here)[:, :, None]
        if goes_home.any():  # the returning item then goes to its original host
            back = np.where(goes_home, np.float32(1), back)
            others = others + np.where(
                goes_home, self._going(softened.arriving, self.every, self.goals, second), 0)
        # BLAS multiplies contiguous matrices about twice as fast.
        (count, items), terms, factors = second.shape, gone.shape[2], 2 + len(softened.arriving)
        lefts = np.ones((count, terms, first.shape[1], factors), dtype=np.float32)
        rights = np.empty((count, terms, factors, items), dtype=np.float32)
        left, right = lefts.transpose(3, 0, 2, 1), rights.transpose(2, 0, 3, 1)
        left[0], right[0] = own * _pick(softened.leaving, kind, first), back
        for number, arriving in enumerate(softened.arriving, start=1):
            left[number] = arriving.take(first, axis=0)
            np.multiply(gone, (of == number - 1)[:, :, None], out=right[number])
        right[-1] = np.maximum(others, softened.faintest)
        return lefts, rights

    def _alone(self) -> np.ndarray:
        """Return float32 (n, a, b): the additional cost of each swap of an item of ``first`` with
        an item of ``second``. If the budget of moves is used up, the additional cost is the number
        of moves that the swap adds, times the cost of undoing an earlier move. Otherwise the
        additional cost is 0.

        Forbidden swaps cost NEVER (practically infinite): swaps of two items on the same host, and
        swaps that add two moves if fewer than two are left in the budget.
        """
        second_alone = self.regret * self.arrives
        second_alone[self.there == self.here] = NEVER
        is_short = self.owner.left[:, None] < 2
        ones = np.ones_like(self.leaves), np.ones_like(second_alone)
        lefts = ones[0], self.regret * self.leaves, NEVER * self.leaves
        rights = second_alone, ones[1], is_short * self.arrives.clip(0)
        return np.matmul(np.stack(lefts, axis=2), np.stack(rights, axis=1))

    def _moves(self) -> tuple[np.ndarray, np.ndarray]:
        """Return two arrays, float32 (n, a) and float32 (n, b): the number of moves that each of
        the items ``first`` and each of the items ``second`` adds to the plan. The number is 1 for
        an instance that leaves its original host, -1 for an item of ``second`` that returns to its
        original host, and 0 otherwise."""
        home, dummy = self.owner.home, self.dummy
        first, second = home.take(self.first), home.take(self.second)
        leaves = (first == self.here) & (self.first < dummy)
        arrives = (second == self.there).astype(np.float32) - (second == self.goals)
        return leaves.astype(np.float32), arrives * (self.second < dummy)

    def _weigh(self, are_few: bool) -> None:
        """Add to ``changes`` the prices of the moves, and NEVER for swaps for which a host has no
        room. If plans may have many moves, swaps are compared by their change per move: first, the
        change of the value is halved for each swap that adds two moves."""
        space, changes = self.space, self.changes
        if not are_few:
            changes *= 1 - self.leaves[:, :, None] * (self.arrives.clip(0) / 2)[:, None]
        if space.prices_at is not None:
            here, there, goals = self.here[:, :, None], self.there[:, None], self.goals[:, None]
            changes += space.price_change(self.first[:, :, None], here, there)
            changes += space.price_change(self.second[:, None], there, goals)
        for c, sizes in enumerate(space.sizes.T):
            room = self.owner.free[:, c] - space.floor[:, c]
            first, second = sizes.take(self.first)[:, :, None], sizes.take(self.second)
            most = (second + _pick(room, self.every, self.there))[:, None]
            least = (second - _pick(room, self.every, self.here))[:, None]
            np.copyto(changes, NEVER, where=(first > most) | (first < least))


class Trial:
    """The best swap of each of m assignments, rated again exactly. The value of an assignment is a
    smooth approximation of its combined imbalance. Assignments in which no swap lowers the value
    are left out.

    number : intp (m,), index of each assignment in the population
    items : intp (3, m), the item that leaves the drawn host, the item that is swapped with it, and
        the item whose move is undone
    sources, goals : intp (3, m), present hosts and destinations of ``items``
    """

    def __init__(self, swaps: Swaps):
        self.swaps, self.owner, self.space = swaps, swaps.owner, swaps.space
        flat = swaps.changes.reshape(len(swaps.every), -1)
        best = flat.argmin(axis=1)
        number = self.number = np.flatnonzero(_pick(flat, swaps.every[:, 0], best) < 0)
        row, column = np.divmod(best[number], swaps.changes.shape[2])
        here, home = swaps.here[number, 0], self.owner.home
        first, second = swaps.first[number, row], swaps.second[number, column]
        there, back = swaps.there[number, column], swaps.goals[number, column]
        self.more = (self._moved(first, there) - self._moved(first, here)
                     + self._moved(second, back) - self._moved(second, there))
        self.undoes = self.more > self.owner.left[number]
        undo = np.where(self.undoes, swaps.back[number], swaps.dummy)
        self.items = np.stack([first, second, undo])
        self.sources = np.stack([here, there, swaps.place[number, undo]])
        self.goals = np.stack([there, back, home[undo]])
        self.scores, self.free = self.owner.scores[number], self.owner.free[number]
        self.space.shift(self.scores, self.free, np.arange(len(number)), self.items, self.sources,
                         self.goals)

    def _moved(self, items: np.ndarray, hosts: np.ndarray) -> np.ndarray:
        """Return intp (m,): 1 for each instance whose original host is not the host in ``hosts``; 0
        for other instances and for dummy items."""
        return ((self.owner.home[items] != hosts) & (items < self.swaps.dummy)).astype(int)

    def _is_better(self) -> np.ndarray:
        """Return bool (m,): true for swaps that lower the value by more than the prices of their
        moves, and do not violate policies, room or server groups. The value of an assignment is a
        smooth approximation of its combined imbalance."""
        owner, space, number, swaps = self.owner, self.space, self.number, self.swaps
        value, imbalances, _ = swaps.softened.evaluate(self.scores)
        value += np.sum(space.price_change(self.items, self.sources, self.goals), axis=0)
        better = value < swaps.value[number] - TOLERANCE
        better &= ((imbalances <= space.worst) | (imbalances <= swaps.imbalances[number])
                   ).all(axis=1)
        better &= ~self.undoes | (self.items[:2] != self.items[2]).all(axis=0)
        better &= (self.free >= np.minimum(space.floor.T, owner.free[number])).all(axis=(1, 2))
        for n in np.flatnonzero(better) if space.spacing else ():
            items, place = self.items[:, n], owner.place[number[n]].copy()
            place[items] = self.goals[:, n]
            better[n] = all(space.keeps_apart(int(vm), int(host), place)
                            for vm, host in zip(items, self.goals[:, n], strict=True))
        return better

    def make(self) -> np.ndarray:
        """Make the swaps that improve their assignments. Return intp, the positions of the changed
        assignments."""
        better, owner = self._is_better(), self.owner
        rows = self.number[better]
        owner.scores[rows], owner.free[rows] = self.scores[better], self.free[better]
        owner.left[rows] -= (self.more - self.undoes)[better]
        items, goals = self.items[:, better], self.goals[:, better]
        is_real = items < self.swaps.dummy
        owner.place[np.broadcast_to(rows, items.shape)[is_real], items[is_real]] = goals[is_real]
        return rows


def _pick(table: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return ``table[first, second]``. The two indexes are first combined into one flat index,
    because numpy then is many times faster."""
    rows = table.reshape(-1, *table.shape[2:])
    return rows.take(first * table.shape[1] + second, axis=0)


def _filled(mask: np.ndarray, filler: np.ndarray) -> np.ndarray:
    """Return intp (n, most): for each row of ``mask``, the indices of its true columns. ``most`` is
    the largest number of true columns in a row. Shorter rows are padded with the row's value in
    ``filler``."""
    count, rows = np.count_nonzero(mask, axis=1), np.arange(len(mask))
    most = max(1, int(count.max(initial=0)))
    filled = np.repeat(filler, most, axis=1)
    begin, ends = np.repeat(rows * mask.shape[1], count), np.cumsum(count)
    place = np.arange(len(begin)) + np.repeat(rows * most - (ends - count), count)
    filled.reshape(-1)[place] = np.flatnonzero(mask) - begin
    return filled
