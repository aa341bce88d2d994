"""A search for a better assignment of instances to hosts.

The search knows neither policies nor rules. A *purpose* states what the search minimises and what
the search permits. The purpose gives each host an *excess*, a cost that follows from the scores of
the host. A move may have a *price* in addition. The search lowers the sum of the excesses and the
prices.

The search has two methods. A caller may use one after the other:

* :meth:`Search.build` makes the best moves and swaps of the hosts with the most excess, one after
  the other.
* :meth:`Search.refine` undoes some moves and searches other moves in their place (ruin and
  recreate, Schrimpf et al. 2000).

The length of a search is the number of candidate moves that the search rates. No search depends on
the time, except that the search ends when the deadline has passed.
"""

import bisect
import dataclasses
from collections.abc import Callable
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from kronos_nova.model import TOLERANCE
from kronos_nova.model.arrays import Index
from kronos_nova.planners.base import FIRST_BATCH
from kronos_nova.planners.base import Limits

STEP = 1e4
"""Number of pairs of an instance and a host that could be rated in the time that it takes to choose
one move or swap. For each choice, the search adds this number to the pairs that it has rated. The
search ends when the sum reaches a maximum. Raised, searches of small clusters end sooner; lowered,
searches of small clusters take longer. Chosen together with the maximum of ``level``."""
NOISE = 0.3
"""Spread (no unit) of the random factors by which ratings of candidate moves are multiplied. The
spread is the standard deviation of a factor's logarithm. The factors are used when a search
replaces some moves of its solution by other moves. Raised, worse moves are chosen; lowered, the
search chooses the moves that it has just removed. Chosen because in tests, plans copied more memory
with a spread of 0, and also with a spread of 1."""
TAKEN_BACK = 8
"""Maximum number of moves from or to two hosts that one search step undoes. A step draws one move
at random; the two hosts are the source and the destination of this move. The step then looks for
moves that replace the undone moves and cost less. Raised, a step takes longer and rarely finds such
moves; lowered, the search hardly changes its moves. Chosen with random clusters of 12 to 30 hosts:
with 4, plans copy 2 % more memory; with 32, 1 % more."""
REBUILT = 6
"""Maximum number of additional moves or swaps that one search step makes. A step first undoes some
moves. It then makes at most as many moves or swaps as it has undone, plus this number. Raised, a
step takes longer; lowered, solutions with more moves of smaller instances are missed. Measured on
random clusters of 12 to 30 hosts: with 2, plans copy as much memory."""
SURE = 200
"""Number of steps of a solution that are made even after the deadline. A step is one move or one
swap. Raised, late evaluations exceed their time limit by more; lowered, the plans of late
evaluations have fewer moves. Not measured."""

Moves = list[tuple[int, int]]
"""One move, or the two moves of a swap: [(instance, destination)]."""
Rated = tuple[float, Moves]
"""A rated move or swap: (rating, moves)."""


class MovePrices(Protocol):
    """The prices of moving each instance from its original host to each host."""

    def price_of(self, vm: Index, host: Index) -> np.ndarray | np.floating:
        """Return the price of moving an instance to ``host``. Arguments may be arrays of one
        shape."""

    def add(self, total: np.ndarray, vms: np.ndarray, hosts: Index) -> None:
        """Add the prices of moves to ``total``, for arguments as in
        :meth:`kronos_nova.model.space.PriceRows.add`."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The assignment with which a search begins, for v instances, h hosts, P scores of a host and c
    kinds of room. The search changes the arrays that describe hosts and prices.

    home : intp (v,), original host of each instance
    weights : float64 (P, v), load of each instance
    scale : float64 (P, h), score that a load of 1 causes on each host
    scores : float64 (P, h), scores of the hosts
    sizes : float64 (c, v), room that each instance needs
    free : float64 (c, h), free room of each host
    held : bool (c,), true for the kinds of room that an instance keeps on its original host after
        a move away from this host
    price : float (v,), zeros of the type of the prices
    """

    home: np.ndarray
    weights: np.ndarray
    scale: np.ndarray
    scores: np.ndarray
    sizes: np.ndarray
    free: np.ndarray
    held: np.ndarray
    price: np.ndarray


class Purpose(Protocol):
    """The aim of a search: the costs that the search lowers, and the moves that the search may
    make.
    """

    @property
    def prices(self) -> MovePrices | None:
        """Prices of moving each instance to each host; None if no move has a price."""

    def excess(self, scores: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
        """Return float64 (...): the excess of each host.

        :param scores: scores of the hosts, one array (...) for each kind of score
        """

    def excess_of(self, scores: Sequence[float]) -> float:
        """Return the excess of one host.

        :param scores: scores of the host
        """

    def may_receive(self, scores: np.ndarray) -> bool:
        """Return True if moves onto a host can lower its excess.

        :param scores: float64 (P,), scores of the host
        """

    def is_caused_by(self, loads: np.ndarray, excess: float) -> bool:
        """Return True if moves of instances off a host can lower its excess.

        :param loads: float64 (P,), the part of the host's scores that the instances cause
        :param excess: excess of the host
        """

    def ratings(self, search: 'Search', change: np.ndarray,
                moves: Sequence[tuple[np.ndarray, Index]]) -> np.ndarray:
        """Return float64 (...): the rating of each chain. A chain is one move, or the two moves of
        a swap. The best chain has the highest rating.

        :param change: float64 (...), change of the excess and of the prices by each chain
        :param moves: (instances, hosts) of the first move of each chain, then of the second move
        """

    def allows(self, search: 'Search', moves: Moves) -> bool:
        """Return True if all rules, except those about room, allow the moves together."""

    def note(self, vm: int, source: int, host: int) -> None:
        """Update the data of the purpose after a move."""

    def total(self, search: 'Search') -> float:
        """Return the objective that the search lowers."""

    def deviation(self, search: 'Search') -> float:
        """Return the largest difference of the objective between an accepted solution and the best
        known solution."""


class Search:
    """One search for a better assignment. The search has v instances, h hosts, P scores of a host
    and c kinds of room, such as resource classes. The attributes describe the state after the moves
    found so far. The other attributes are those of :class:`Start`.

    place : intp (v,), host on which each instance ends
    scores : float64 (P, h), scores of the hosts
    residents : the instances of each host, sorted
    free : float64 (c, h), free room of each host
    excess : float64 (h,), excess of each host
    price : float (v,), price of moving each instance to its host in ``place``
    is_paid : true once the search has made a move with a price
    rated : number of pairs of an instance and a host that were rated so far
    """

    def __init__(self, purpose: Purpose, start: Start, seed: int = 0):
        """:param seed: seed of the random numbers of the search"""
        self.purpose, self.prices = purpose, purpose.prices
        self.home, self.place = start.home, start.home.copy()
        self.weights, self.sizes, self.scale = start.weights, start.sizes, start.scale
        self.scores, self.free, self.held = start.scores, start.free, start.held
        self._is_held = bool(start.held.any())
        self.excess = purpose.excess(self.scores)
        self.price, self.is_paid = start.price, False
        self.residents = self._residents()
        self.chance, self.blur, self.rated = np.random.default_rng(seed), 0.0, 0.0

    def _residents(self) -> list[list[int]]:
        """Return the sorted instances of each host, one list for each host."""
        by_host = np.argsort(self.place, kind='stable')
        ends = np.cumsum(np.bincount(self.place, minlength=len(self.excess)))[:-1]
        return [part.tolist() for part in np.split(by_host, ends)]

    @property
    def moved(self) -> np.ndarray:
        """intp: the instances that are not on their original hosts."""
        return np.flatnonzero(self.place != self.home)

    @property
    def count(self) -> int:
        return len(self.moved)

    def move(self, vm: int, host: int) -> None:
        source = int(self.place[vm])
        for there, sign in ((source, -1), (host, 1)):
            self.scores[:, there] += sign * self.weights[:, vm] * self.scale[:, there]
            self.free[:, there] -= sign * self.sizes[:, vm]
            self.excess[there] = self.purpose.excess_of(self.scores[:, there].tolist())
        home = int(self.home[vm])
        if self._is_held and home in (source, host):
            self.free[self.held, home] += (1 if host == home else -1) * self.sizes[self.held, vm]
        self.place[vm] = host
        self.residents[source].remove(vm)
        bisect.insort(self.residents[host], vm)
        if self.prices is not None:
            self.price[vm] = self.prices.price_of(vm, host)
            self.is_paid = self.is_paid or bool(self.price[vm])
        self.purpose.note(vm, source, host)

    def build(self, most: int, limits: Limits) -> None:
        """Make at most ``most`` steps, one after the other. A step is one move or one swap. Stop
        earlier if no step lowers the sum of the excesses and prices. After the deadline, stop once
        the first :data:`SURE` steps are made."""
        for number in range(most):
            if number >= SURE and limits.is_over:
                return
            self.rated += STEP
            moves = self._best_of_all()
            if not moves:
                return
            for move in moves:
                self.move(*move)

    def _best_of_all(self) -> Moves | None:
        """Return the next move or swap; None if no move or swap lowers the sum of the excesses and
        prices. The hosts are tried one after the other, the host with the largest excess first. For
        each host, the best move is tried first, then the best swap."""
        for host in np.argsort(-self.excess, kind='stable').tolist():
            if self.excess[host] <= TOLERANCE:
                break
            moves = self._best_move(host) or self._best_swap(host)
            if moves:
                return moves
        return None

    def _best_move(self, host: int) -> Moves | None:
        """Return the best move off or onto a host; None if no such move lowers the sum of the
        excesses and prices."""
        found = [self._off(host)]
        if self.purpose.may_receive(self.scores[:, host]):
            found.append(self._onto(host))
        rating, moves = max(found, key=lambda pair: pair[0])
        return moves if rating > 0 else None

    def _off(self, host: int) -> Rated:
        """Return (rating, moves) of the best move off a host. The rating is 0 if no such move
        lowers the sum of the excesses and prices."""
        if not self.residents[host]:
            return 0.0, []
        vms, hosts = np.array(self.residents[host], dtype=np.intp), np.arange(len(self.excess))
        loads = self.weights[:, vms].sum(axis=1) * self.scale[:, host]
        if not self.purpose.is_caused_by(loads, self.excess[host]):
            return 0.0, []
        left = self.scores[:, host, None] - self.weights[:, vms] * self.scale[:, host, None]
        change = self.purpose.excess(left) - self.excess[host]
        there = [scores + weights[vms, None] * scale for scores, weights, scale in zip(
            self.scores, self.weights, self.scale, strict=True)]
        change = change[:, None] + self.purpose.excess(there) - self.excess
        ratings = self._rated(change, (vms[:, None], hosts))
        ratings[:, host] = 0.0
        for sizes, free, held in zip(self.sizes, self.free, self.held, strict=True):
            lacks = sizes[vms, None] > free + TOLERANCE
            if held:
                lacks &= self.home[vms, None] != hosts
            ratings[lacks] = 0.0
        return self._first_allowed(ratings, lambda row, to: [(int(vms[row]), int(to))])

    def _onto(self, host: int) -> Rated:
        """Return (rating, moves) of the best move to a host. The rating is 0 if no such move lowers
        the sum of the excesses and prices."""
        vms = np.flatnonzero(self.place != host)
        for sizes, free, held in zip(self.sizes, self.free[:, host], self.held, strict=True):
            has_room = sizes[vms] <= free + TOLERANCE
            if held:
                has_room |= self.home[vms] == host
            vms = vms[has_room]
        change = self.left_by(vms)
        arrived = self.scores[:, host, None] + self.weights[:, vms] * self.scale[:, host, None]
        change += self.purpose.excess(arrived) - self.excess[host]
        return self._first_allowed(self._rated(change, (vms, host))[:, None],
                                   lambda row, _: [(int(vms[row]), host)])

    def left_by(self, vms: np.ndarray) -> np.ndarray:
        """Return float64, one value for each of ``vms``: the change of its host's excess if the
        instance leaves the host."""
        sources = self.place[vms]
        left = self.scores[:, sources] - self.weights[:, vms] * self.scale[:, sources]
        return self.purpose.excess(left) - self.excess[sources]

    def _rated(self, change: np.ndarray, *moves: tuple[np.ndarray, Index]) -> np.ndarray:
        """Return float64 (...): the rating of each chain. A chain is one move, or the two moves of
        a swap. The rating is 0 if the chain does not lower the sum of the excesses and prices.

        :param change: float64 (...), change of the excess by each chain; overwritten
        :param moves: (instances, hosts) of the first move of each chain, then of the second move
        """
        self.rated += change.size
        if self.prices is not None:
            for vms, hosts in moves:
                self.prices.add(change, vms, hosts)
                if self.is_paid:
                    change -= self.price.take(vms)
        ratings = self.purpose.ratings(self, change, moves)
        ratings[change > -TOLERANCE] = 0.0
        if self.blur:
            ratings *= np.exp(self.chance.normal(0.0, self.blur, ratings.shape))
        return ratings

    def _first_allowed(self, ratings: np.ndarray,
                       chain: Callable[[np.intp, np.intp], Moves]) -> Rated:
        """Return (rating, moves) of the best chain that the purpose allows. A chain is one move, or
        the two moves of a swap. Only the best :data:`FIRST_BATCH` chains are checked. The rating is
        0 if none of these chains is allowed, or if no chain has a positive rating.

        :param ratings: float64, a table with the rating of each chain
        :param chain: function of a row and a column of ``ratings``, which returns the moves of the
            chain
        """
        for _ in range(FIRST_BATCH if ratings.size else 0):
            row, column = np.unravel_index(ratings.argmax(), ratings.shape)
            rating, moves = float(ratings[row, column]), chain(row, column)
            if rating <= 0 or self.purpose.allows(self, moves):
                return rating, moves
            ratings[row, column] = 0.0
        return 0.0, []

    def _best_swap(self, host: int) -> Moves | None:
        """Return the two moves of the best swap of an instance on ``host`` with an instance on
        another host; None if no such swap lowers the sum of the excesses and prices."""
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
        change = (self.purpose.excess(own) - self.excess[host]
                  + self.purpose.excess(other) - self.excess[there])
        ratings = self._rated(change, (here[:, None], there), (others, host))
        for kind in range(len(self.sizes)):
            ratings[self._lacks(kind, here[:, None], others)] = 0.0
        rating, moves = self._first_allowed(ratings, lambda row, column: [
            (int(here[row]), int(there[column])), (int(others[column]), host)])
        return moves if rating > 0 else None

    def _lacks(self, kind: int, vms: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return bool (...): true for the swaps for which a host lacks room of one kind.

        :param vms, others: the two instances of each swap
        """
        sizes, free, here, there = self.sizes[kind], self.free[kind], self.place[vms], (
            self.place[others])
        if not self.held[kind]:
            bigger = sizes[others] - sizes[vms]
            return (bigger > free[here] + TOLERANCE) | (-bigger > free[there] + TOLERANCE)
        is_lacking = []
        for leaving, arriving, host in ((vms, others, here), (others, vms, there)):
            # An instance keeps this room on its original host.
            needed = sizes[arriving] * (self.home[arriving] != host)
            released = sizes[leaving] * (self.home[leaving] != host)
            is_lacking.append(needed - released > free[host] + TOLERANCE)
        return np.logical_or(*is_lacking)

    def refine(self, effort: float, limits: Limits) -> None:
        """Make the solution cheaper. Each step undoes some moves and searches other moves in their
        place. The search ends once it has rated a number of pairs of an instance and a host. The
        cheapest set of moves found is kept.

        :param effort: number of pairs
        """
        end = self.rated + effort
        self.blur = NOISE
        best = now = self.purpose.total(self)
        kept = self._all()
        while self.rated < end and self.count and not limits.is_over:
            before = self._all()
            gone = self._ruined().tolist()
            # An instance may fit on its original host only once others have gone back.
            for vm in [vm for vm in gone if not self.undo(vm)]:
                self.undo(vm)
            self.build(len(gone) + REBUILT, limits)
            total = self.purpose.total(self)
            if total < best - TOLERANCE:
                best, kept = total, self._all()
            if total <= max(now, best + self.purpose.deviation(self)):
                now = total
            else:
                self._restore(before)
        self._restore(kept)
        self.blur = 0.0

    def undo(self, vm: int) -> bool:
        """Undo the move of an instance if its original host still has the room for the instance,
        and if the purpose allows the instance there. Other instances may have come to this host in
        the meantime. Return True if the move was undone."""
        home, sizes = int(self.home[vm]), self.sizes[~self.held, vm]
        fits = bool((sizes <= self.free[~self.held, home] + TOLERANCE).all()
                    and self.purpose.allows(self, [(vm, home)]))
        if fits:
            self.move(vm, home)
        return fits

    def _all(self) -> tuple[np.ndarray, ...]:
        return tuple(array.copy(order='K') for array in (
            self.place, self.scores, self.free, self.excess, self.price))

    def _restore(self, kept: tuple[np.ndarray, ...]) -> None:
        place = self.place
        self.place, self.scores, self.free, self.excess, self.price = kept
        for vm in np.flatnonzero(place != self.place).tolist():
            source, host = int(place[vm]), int(self.place[vm])
            self.residents[source].remove(vm)
            bisect.insort(self.residents[host], vm)
            self.purpose.note(vm, source, host)

    def _ruined(self) -> np.ndarray:
        """Return intp: the instances whose moves one search step undoes, drawn at random. Two hosts
        are drawn first: the original host and the present host of one moved instance. Then up to
        :data:`TAKEN_BACK` instances are drawn from those that were moved from or to one of these
        hosts."""
        moved = self.moved
        vm = self.chance.choice(moved)
        ends = self.place[vm], self.home[vm]
        near = moved[np.isin(self.place[moved], ends) | np.isin(self.home[moved], ends)]
        return np.sort(self.chance.permutation(near)[:TAKEN_BACK])
