"""A search by simulated annealing, for assignments in which nearly every instance may move."""

from typing import Any
from typing import Protocol

import numpy as np

from kronos_nova.model import TOLERANCE
from kronos_nova.model.arrays import Index
from kronos_nova.planners import ruin_recreate
from kronos_nova.planners.base import Limits
from kronos_nova.planners.ruin_recreate import STEP
from kronos_nova.planners.ruin_recreate import Search
from kronos_nova.planners.ruin_recreate import Start

LOOKS = 100
"""Number of draws of a search by simulated annealing between two adjustments of temperature and
penalties. The objective is also compared with the best known one then. Raised, a search ends at a
worse assignment than its best more often; lowered, a search takes longer. Not measured."""
SMALLEST_SAMPLE, LARGEST_SAMPLE = 100, 5000
"""Number of instances of which one draw rates the moves or swaps: at first, and from the middle of
the search on. Raised, fewer moves are made in the same time; lowered, worse moves are made. The
largest number was chosen by ``bench roadef``: with at most 1,500 instead of all 5,000 processes of
an instance, the score is .034 instead of .022 after equal time. The smallest number was not
chosen by a measurement."""
TRIES = 8
"""Maximum number of moves or swaps of one draw that are checked against the constraints, the best
first. Raised, a draw takes longer; lowered, an allowed move is missed more often. Not measured."""
SWAPS = 4
"""Number of draws of which one rates moves and the others rate swaps, on average. Raised, fewer
moves are made; lowered, fewer swaps are made. Not measured."""
SOFTEST, HARDEST = 0.03, 0.5
"""First and last basic penalty, as multiples of the mean load of an instance. The basic penalty is
the least one for a lack of room that is as large as the mean size of an instance. Raised, large
instances stay where they are; lowered, too many hosts lack room at the end. Chosen with an earlier
form of the search: an instance ended at .06 instead of .12 if the penalty rose from .03 instead of
being 1 throughout."""
GROWTH, DECAY = 12.0, 6.0
"""Natural logarithms of two factors. The penalty for one kind of room of one host grows by the
first during a search if the host lacks this room all the time. The penalty falls by the second if
the host never lacks this room. Raised, lacks are corrected sooner and results are worse; lowered,
lacks are corrected too late. Chosen with an earlier form of the search: without growth, an instance
ended at .13 with violations, and with growth at .07 without violations."""
FORCED, FORCE = 0.1, 10.0
"""Last part of a search in which lacks of room are corrected, and the factor by which penalties
grow faster in this part. The basic penalty grows by this factor as well. Raised, results are worse;
lowered, hosts still lack room at the end, and the search returns an earlier assignment. Chosen with
an earlier form of the search: without this part, two of three instances ended as they began."""


class Purpose(ruin_recreate.Purpose, Protocol):
    def may_allow(self, search: Search, vms: np.ndarray, hosts: Index) -> np.ndarray:
        """Return bool (n,), one value for each of n moves: false if some rule, except those about
        room, forbids the move alone. The rules are checked again before a move is made."""


class Annealing(Search):
    """A search that draws moves and swaps at random and makes some of them, at first also moves
    that raise the sum of the excesses and prices (Kirkpatrick et al. 1983). Hosts may lack room
    during the search, at a *penalty* for each kind of room. A penalty rises as long as the room is
    lacking (strategic oscillation, Glover 1989). The other methods are those of the planners' own
    search. A load of 1 has to cause a score of 1 on each host.

    load : mean load of an instance, the unit of temperatures and penalties
    """

    purpose: Purpose

    def __init__(self, purpose: Purpose, start: Start, seed: int = 0):
        super().__init__(purpose, start, seed)
        self.load = float(np.abs(self.weights).sum(axis=0).mean())
        # Multiples of the basic penalty, of each kind of room of each host.
        self._urgency = np.ones_like(self.free)
        self._begin()

    def _begin(self) -> None:
        """Set the data that follow from the assignment: the penalties, and the scores and the
        excess of the host of each instance."""
        self._penalize(SOFTEST)
        self._around, self._paid = self.scores[:, self.place], self.excess[self.place]

    def anneal(self, effort: float, temperatures: tuple[float, float], limits: Limits) -> None:
        """Draw hosts and instances at random, and make some of their moves and swaps. The *rise* of
        a move or swap is the change of the sum of the excesses, prices and penalties. The
        probability that a move or swap is accepted is exp(-rise / temperature), or 1 if the rise is
        negative (Metropolis et al. 1953). For each drawn host or instance, one of the accepted
        moves or swaps is made. The search ends once it has rated a number of pairs of an instance
        and a host, or at the deadline. The best assignment found in which no host lacks room is
        kept.

        :param effort: number of pairs
        :param temperatures: first and last temperature, in units of the excess. The temperature
            falls by the same factor for each pair. If the deadline is earlier, the temperature
            falls by the same factor in each second
        """
        first, start, progress = self.rated, limits.clock(), 0.0
        hot, cold = temperatures
        best, kept = self.purpose.total(self), self._all()
        self._begin()
        while self.rated < first + effort and not limits.is_over:
            past, progress = progress, max(
                (self.rated - first) / effort,
                (limits.clock() - start) / (limits.deadline - start))
            self._urge(past, progress)
            self._penalize(_basic_penalty(progress))
            for _ in range(LOOKS):
                self._draw(_sample(progress, len(self.place)), hot * (cold / hot) ** progress)
            if not self._lacking.any() and self.purpose.total(self) < best - TOLERANCE:
                best, kept = self.purpose.total(self), self._all()
        self._restore(kept)

    @property
    def _lacking(self) -> np.ndarray:
        """bool (c, h): true for the kinds of room that a host lacks."""
        lacking: np.ndarray = self.free < -TOLERANCE
        return lacking

    def _urge(self, past: float, progress: float) -> None:
        """Raise the penalties for the room that is lacking, and lower the others.

        :param past, progress: part of the search at the last call and at this one
        """
        growth = GROWTH * (FORCE if progress >= 1.0 - FORCED else 1.0)
        change = np.exp((progress - past) * np.where(self._lacking, growth, -DECAY))
        self._urgency = np.maximum(self._urgency * change, 1.0)

    def _penalize(self, basic: float) -> None:
        """Set the penalties.

        :param basic: basic penalty, see :data:`SOFTEST`
        """
        size = np.maximum(self.sizes.mean(axis=1), TOLERANCE)
        self._rates = basic * self.load / size[:, None] * self._urgency
        self._penalties = self._penalty(self.free, slice(None))

    def _penalty(self, free: np.ndarray, hosts: np.ndarray | slice) -> np.ndarray:
        """Return float64 (n,): the penalties of hosts.

        :param free: float64 (c, n), free room of each host, negative if it lacks room
        """
        penalty: np.ndarray = -np.einsum('ij,ij->j', self._rates[:, hosts], np.minimum(free, 0.0))
        return penalty

    def _follow(self, *hosts: int) -> None:
        """Update the data about hosts that were changed, and about their instances."""
        for host in hosts:
            vms = self.residents[host]
            self._around[:, vms] = self.scores[:, host, None]
            self._paid[vms] = self.excess[host]
            self._penalties[host] = -(self._rates[:, host] @ np.minimum(self.free[:, host], 0.0))

    def _draw(self, count: int, temperature: float) -> None:
        """Draw an instance, and make one of its accepted swaps with some others; or draw a host,
        and make one of the accepted moves of some instances to this host.

        :param count: number of instances of which the moves or swaps are rated
        """
        if self.chance.integers(SWAPS):
            vm = int(self.chance.integers(len(self.place)))
            self._draw_for(int(self.place[vm]), vm, count, temperature)
        else:
            self._draw_for(int(self.chance.integers(len(self.excess))), None, count, temperature)

    def _draw_for(self, host: int, other: int | None, count: int, temperature: float) -> None:
        """Draw instances, and make one of their accepted moves to a host or swaps with an instance
        of this host.

        :param other: the instance of the host; None for moves
        """
        first = int(self.chance.integers(len(self.place) - count + 1))
        vms = slice(first, first + count)
        self.rated += STEP + count
        rise = self._rise(vms, host, 0.0 if other is None else self.weights[:, other, None])
        rise -= temperature * self.chance.standard_exponential(count)
        # Prices and penalties are not negative, and fall at most to 0.
        sources = self.place[vms]
        most = self._penalties.take(sources) + self.price[vms]
        most += self._penalties[host] + (0.0 if other is None else self.price[other])
        promising = np.flatnonzero((rise < most) & (sources != host))
        if len(promising):
            self._make_accepted(first + promising, host, other, rise[promising])

    def _rise(self, vms: slice, host: int, own: np.ndarray | float) -> np.ndarray:
        """Return float64 (n,): the change of the sum of the excesses if each of n instances alone
        goes to a host.

        :param own: float64 (P, 1), load that leaves the host and goes to the host of the instance
        """
        more = self.weights[:, vms] - own
        rise = self.purpose.excess(self._around[:, vms] - more)
        more += self.scores[:, host, None]
        rise += self.purpose.excess(more)
        rise -= self._paid[vms]
        rise -= self.excess[host]
        return rise

    def _make_accepted(self, vms: np.ndarray, host: int, other: int | None,
                       rise: np.ndarray) -> None:
        """Make one of the accepted moves or swaps. A move or swap is accepted if its rise is less
        than a random number. The one that is furthest below its random number is made, or if it is
        not allowed, the next one.

        :param vms: intp (n,), instances that go to ``host``
        :param other: instance of ``host`` that goes to the host of one of ``vms``; None for moves
            alone
        :param rise: float64 (n,), change of the sum of the excesses, minus the random numbers;
            overwritten
        """
        rise += self._change_of_the_rest(vms, host, other)
        accepted = rise < -TOLERANCE
        vms, rise = vms[accepted], rise[accepted]
        if len(vms) > TRIES:
            allowed = self.purpose.may_allow(self, vms, host)
            if other is not None:
                allowed &= self.purpose.may_allow(self, np.full(len(vms), other), self.place[vms])
            vms, rise = vms[allowed], rise[allowed]
        for vm in vms[np.argsort(rise)[:TRIES]].tolist():
            source = int(self.place[vm])
            moves = [(vm, host)] if other is None else [(vm, host), (other, source)]
            if self.purpose.allows(self, moves):
                for move in moves:
                    self.move(*move)
                self._follow(source, host)
                return

    def _change_of_the_rest(self, vms: np.ndarray, host: int, other: int | None) -> np.ndarray:
        """Return float64 (n,): the change of the sum of prices and penalties by each of n moves or
        swaps. The arguments are those of :meth:`_make_accepted`."""
        sources, here = self.place[vms], np.full(len(vms), host)
        there = self.free[:, sources] + self._room_of(vms, sources)
        left = self.free[:, here] - self._room_of(vms, here)
        prices: Any = self.prices
        change = prices.price_of(vms, here) - self.price[vms]
        if other is not None:
            others = np.full(len(vms), other)
            there -= self._room_of(others, sources)
            left += self._room_of(others, here)
            change += prices.price_of(others, sources) - self.price[other]
        change += self._penalty(there, sources) - self._penalties[sources]
        change += self._penalty(left, here) - self._penalties[host]
        return change

    def _room_of(self, vms: np.ndarray, hosts: np.ndarray) -> np.ndarray:
        """Return float64 (c, n): the room that instances take up on hosts when they arrive, and
        release when they leave. Instances neither take up nor release the room that they keep on
        their original hosts."""
        sizes = self.sizes[:, vms]
        if self._is_held:
            at_home = np.flatnonzero(self.home[vms] == hosts)
            sizes[np.ix_(self.held, at_home)] = 0.0
        return sizes


def _sample(progress: float, count: int) -> int:
    """Return the number of instances that a draw rates, of ``count``, after a part of a search."""
    least, most = min(SMALLEST_SAMPLE, count), min(LARGEST_SAMPLE, count)
    return round(least * (most / least) ** min(1.0, 2.0 * progress))


def _basic_penalty(progress: float) -> float:
    """Return the basic penalty after a part of a search, as in :data:`SOFTEST`."""
    forced = max(0.0, progress - (1.0 - FORCED)) / FORCED
    penalty: float = SOFTEST * (HARDEST / SOFTEST) ** progress * FORCE ** forced
    return penalty
