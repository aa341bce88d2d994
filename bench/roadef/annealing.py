"""A search by simulated annealing, for assignments in which nearly every instance may move."""

import functools
from typing import Protocol

import numpy as np

from kronos_nova.model import TOLERANCE
from kronos_nova.model.arrays import Index
from kronos_nova.planners import ruin_recreate
from kronos_nova.planners.base import Limits
from kronos_nova.planners.ruin_recreate import STEP
from kronos_nova.planners.ruin_recreate import Moves
from kronos_nova.planners.ruin_recreate import Search

LOOKS = 100
"""Number of draws of a search by simulated annealing after which the objective is compared with the
best known one. Raised, a search ends at a worse assignment than its best more often; lowered, a
search takes longer. Not measured."""
SAMPLE = 5000
"""Maximum number of instances of which a search by simulated annealing rates the moves to one host
or the swaps with one instance. Raised, fewer moves are made in the same time; lowered, worse moves
are made. Chosen by ``bench roadef``: with 1,500 instead of all 5,000 processes of an instance, the
score is .034 instead of .022 after equal time."""


class Purpose(ruin_recreate.Purpose, Protocol):
    def may_allow(self, search: Search, vms: np.ndarray, hosts: Index) -> np.ndarray:
        """Return bool (n,), one value for each of n moves: false if some rule, except those about
        room, forbids the move alone. The rules are checked again before a move is made."""


class Annealing(Search):
    """A search that draws many moves and swaps at random and makes some of them, at first also
    moves that raise the sum of the excesses and prices (Kirkpatrick et al. 1983). The other methods
    are those of the planners' own search."""

    purpose: Purpose

    def anneal(self, effort: float, temperatures: tuple[float, float], limits: Limits) -> None:
        """Draw hosts and instances at random, and make some of their moves and swaps. The *rise* of
        a move or swap is the change of the sum of the excesses and prices. The probability that a
        move or swap is accepted is exp(-rise / temperature), or 1 if the rise is negative
        (Metropolis et al. 1953). For each drawn host or instance, one of the accepted moves or
        swaps is made. The search ends once it has rated a number of pairs of an instance and a
        host. The best assignment found is kept.

        :param effort: number of pairs
        :param temperatures: first and last temperature, in units of the excess. The temperature
            falls by the same factor for each pair
        """
        first, end, steps = self.rated, self.rated + effort, 0
        hot, cold = temperatures
        best, kept = self.purpose.total(self), self._all()
        draws = self._draw_move, self._draw_swap, self._draw_return
        while self.rated < end and not limits.is_over:
            draws[steps % len(draws)](hot * (cold / hot) ** ((self.rated - first) / effort))
            self.rated += STEP
            steps += 1
            if steps % LOOKS == 0 and self.purpose.total(self) < best - TOLERANCE:
                best, kept = self.purpose.total(self), self._all()
        if self.purpose.total(self) >= best - TOLERANCE:
            self._restore(kept)

    def _draw_move(self, temperature: float) -> None:
        """Draw a host, and make one of the accepted moves to this host; see :meth:`anneal`."""
        host = int(self.chance.integers(len(self.excess)))
        self._make(self._accepted(self._candidates(host), host, None, temperature))

    def _candidates(self, host: int) -> np.ndarray:
        """Draw some of the instances, and return those on other hosts for which ``host`` has the
        scarcest kind of room, as intp."""
        vms = self._others(host)
        for kind in self._scarcest:
            fits = self.sizes[kind, vms] <= self.free[kind, host] + TOLERANCE
            if self.held[kind]:
                fits |= self.home[vms] == host
            vms = vms[fits]
        return vms

    def _others(self, host: int) -> np.ndarray:
        """Draw some of the instances, and return those on other hosts, as intp."""
        count = min(SAMPLE, len(self.place))
        first = int(self.chance.integers(len(self.place) - count + 1))
        self.rated += count
        return first + np.flatnonzero(self.place[first:first + count] != host)

    def _make(self, moves: Moves) -> None:
        for move in moves:
            self.move(*move)

    def _draw_return(self, temperature: float) -> None:
        """Draw a moved instance, take it back to its original host, and make one of the accepted
        moves to the host that it leaves; see :meth:`anneal`. The rise is the sum for both moves.
        If no move is accepted, undo the first one unless it is accepted alone."""
        moved = self.moved
        if not len(moved):
            return
        vm = int(self.chance.choice(moved))
        host, home = int(self.place[vm]), int(self.home[vm])
        vms = np.array([vm])
        if host == home or not self._have_room(vms, home, None)[0] or not self.purpose.allows(
                self, [(vm, home)]):
            return
        rise = float(self._rise(vms, home, None)[0])
        self.move(vm, home)
        others = self._candidates(host)
        moves = self._accepted(others[others != vm], host, None, temperature, rise)
        self._make(moves)
        if not moves and rise >= temperature * self.chance.standard_exponential():
            self.move(vm, host)

    def _draw_swap(self, temperature: float) -> None:
        """Draw an instance, and make one of the accepted swaps with other instances; see
        :meth:`anneal`."""
        vm = int(self.chance.integers(len(self.place)))
        host = int(self.place[vm])
        vms = self._others(host)
        for kind in self._scarcest:
            vms = vms[~self._lacks(kind, vms, np.full(len(vms), vm))]
        self._make(self._accepted(vms, host, np.full(len(vms), vm), temperature))

    def _accepted(self, vms: np.ndarray, host: int, others: np.ndarray | None,
                  temperature: float, spent: float = 0.0) -> Moves:
        """Return one of the accepted moves or swaps; [] if none is accepted, or if this one is not
        allowed. A move or swap is accepted if its rise is less than a random number. The one that
        is furthest below its random number is returned.

        :param vms: intp (n,), instances that go to ``host``
        :param others: intp (n,), instances of ``host`` that go to the hosts of ``vms``; None for
            moves alone
        :param spent: rise of a move that was made before and belongs to each of these
        """
        possible = self._have_room(vms, host, others)
        vms, others = vms[possible], None if others is None else others[possible]
        possible = self.purpose.may_allow(self, vms, host)
        if others is not None:
            possible &= self.purpose.may_allow(self, others, self.place[vms])
        vms, others = vms[possible], None if others is None else others[possible]
        rise = self._rise(vms, host, others) + spent
        rise -= temperature * self.chance.standard_exponential(len(rise))
        if not len(rise) or rise.min() >= 0.0:
            return []
        number = int(rise.argmin())
        vm = int(vms[number])
        moves = [(vm, host)]
        if others is not None:
            moves.append((int(others[number]), int(self.place[vm])))
        return moves if self.purpose.allows(self, moves) else []

    @functools.cached_property
    def _scarcest(self) -> tuple[int, ...]:
        """The kind of room of which hosts have least, compared with the sizes of instances; () if
        there is no kind of room."""
        shares = self.free.mean(axis=1) / self.sizes.mean(axis=1)
        return (int(np.argmin(shares)),) if len(shares) else ()

    def _have_room(self, vms: np.ndarray, host: int, others: np.ndarray | None) -> np.ndarray:
        """Return bool (n,), one value for each of n moves or swaps: true if all hosts have the room
        that the arriving instances need. The arguments are those of :meth:`_accepted`."""
        needed = self._room_of(vms, host)
        if others is None:
            return self._is_free(needed, host)
        sources = self.place[vms]
        needed -= self._room_of(others, host)
        back = self._room_of(others, sources) - self._room_of(vms, sources)
        return self._is_free(needed, host) & self._is_free(back, sources)

    def _is_free(self, needed: np.ndarray, hosts: Index) -> np.ndarray:
        """Return bool (n,): true where a host has the free room ``needed``, float64 (n, c)."""
        lacks: np.ndarray = needed > self.free.T.take(hosts, axis=0) + TOLERANCE
        # A contiguous copy of the transpose is several times faster than any(axis=1).
        return np.logical_not(np.ascontiguousarray(lacks.T).any(axis=0))

    def _room_of(self, vms: np.ndarray, hosts: Index) -> np.ndarray:
        """Return float64 (n, c): the room that instances take up on hosts when they arrive, and
        release when they leave. Instances neither take up nor release the room that they keep on
        their original hosts."""
        sizes = self.sizes.T.take(vms, axis=0)
        if self._is_held:
            at_home = np.flatnonzero(self.home.take(vms) == hosts)
            sizes[at_home] *= ~self.held
        return sizes

    def _rise(self, vms: np.ndarray, host: int, others: np.ndarray | None) -> np.ndarray:
        """Return float64 (n,): the change of the sum of the excesses and prices by each of n moves
        or swaps. The arguments are those of :meth:`_accepted`."""
        sources, more = self.place[vms], self.weights.T.take(vms, axis=0)
        if others is not None:
            more -= self.weights.T.take(others, axis=0)
        left = more * self.scale.T.take(sources, axis=0)
        np.subtract(self.scores.T.take(sources, axis=0), left, out=left)
        more *= self.scale[:, host]
        more += self.scores[:, host]
        rise = self.purpose.excess(left.T) + self.purpose.excess(more.T)
        rise -= self.excess[sources] + self.excess[host]
        if self.prices is not None:
            rise += self.prices.price_of(vms, host) - self.price[vms]
            if others is not None:
                rise += self.prices.price_of(others, sources) - self.price[others]
        return rise
