"""Swaps of bundles of instances between full hosts, which make room.

Full hosts are seldom full in everything: one has processors left and no memory, another the
reverse. No further instance fits on either host until instances of the two change places. Chains of
such swaps are the ejection chains of Glover (1996).
"""

from typing import NamedTuple

import numpy as np

from kronos_nova.model import TOLERANCE
from kronos_nova.model.extremes import smallest
from kronos_nova.planners.packing import Packing

MOST_OUT = 4
"""Maximum number of instances of one size that leave a host in one swap, so that a larger instance
fits there. Raised, a plan takes longer; lowered, four small instances no longer make room for an
instance that is two sizes larger. Chosen because sizes of flavors mostly double from one to the
next; not measured."""
MOST_BACK = 3
"""Maximum number of instances of one size that come back to a host in one swap, for others that
leave it. Raised, a plan takes longer; lowered, small rests of free room stay unused. Not
measured."""
ROWS = 600
"""Maximum number of sets of leaving instances for which swaps are rated. Those with the least
memory to copy, or the most gain, are kept. Raised, a swap takes longer to find; lowered, the best
swap is missed more often. Chosen because with :data:`COLUMNS` a million swaps are rated in some
hundredths of a second, and a plan looks for hundreds of swaps."""
COLUMNS = 1500
"""Maximum number of sets of returning instances that are rated with each set of leaving instances.
Raised, a swap takes longer to find; lowered, the best swap is missed more often. Chosen together
with :data:`ROWS`."""
TRIES = 20
"""Maximum number of swaps, the best rated first, for which the constraints are checked for each
instance. Raised, a plan takes longer where constraints forbid most swaps; lowered, a swap that they
allow is missed. Where a constraint forbids one instance of a size, it mostly forbids all of them;
not measured."""
UNLIMITED = 1e9
"""Usable room of a host (no unit) when no instance waits for a place that needs any room. Fixed:
more than any host has."""


class Bundles(NamedTuple):
    """A list of n bundles. A bundle is a number of instances of one size on one host, which move
    together.

    host : intp (n,)
    first : intp (n,), the first instance of each bundle
    amount : intp (n,), number of instances in each; 0 for an empty bundle
    size : float64 (n, c), size of all instances of a bundle together
    price : float64 (n,), price of moving the instances of a bundle that have not moved yet
    """

    host: np.ndarray
    first: np.ndarray
    amount: np.ndarray
    size: np.ndarray
    price: np.ndarray

    def select(self, rows: np.ndarray) -> 'Bundles':
        """Return some of the bundles, in the given order."""
        return Bundles(*(column[rows] for column in self))


class BundleSwaps:
    """The search for swaps in a packing, which are then made.

    ratio : float64 (c,), proportions in which the instances that have no place yet need each kind
        of room; room in other proportions is not usable
    price : float64 (v,), price of moving each instance, in units of usable room
    rated : number of pairs of bundles rated so far
    """

    def __init__(self, packing: Packing, ratio: np.ndarray, price: np.ndarray):
        self.packing, self.ratio, self.price = packing, ratio, price
        self.rated = 0

    def usable(self, free: np.ndarray) -> np.ndarray:
        return (free / self.ratio).min(axis=-1, initial=UNLIMITED)

    def admit(self, vm: int) -> bool:
        """Place an instance that has no place yet on a host that lacks room for it. To make room,
        some instances of that host go to a second host, and instances of the second host may come
        back. Returns whether such a swap was found and made."""
        packing = self.packing
        allowed = packing.allows_host(vm) & packing.is_open
        piles = self._piles()
        out = self._bundles(piles, 1, MOST_OUT)
        room = packing.free[out.host] + out.size - packing.size[vm]
        out = out.select(allowed[out.host] & (room + TOLERANCE >= 0).all(axis=1))
        out = out.select(np.lexsort((out.size.sum(axis=1), out.price))[:ROWS])
        return self._make(piles, out, vm, least=-np.inf)

    def balance(self) -> bool:
        """Make the swap that adds most usable room. Returns whether there was a swap that adds
        some."""
        piles = self._piles()
        out = self._bundles(piles, 1, MOST_OUT)
        free = self.packing.free[out.host]
        gain = self.usable(free + out.size) - self.usable(free) - out.price
        return self._make(piles, out.select(smallest(-gain, ROWS)), None, least=1e-6)

    def _piles(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the piles as two arrays: the first instance of each, and its number of instances.
        A pile is the instances of one size on one host. Moved instances have piles of their own."""
        packing = self.packing
        vms = np.flatnonzero(packing.place >= 0)
        vms = vms[packing.is_open[packing.place[vms]]]
        moved = packing.moved[vms]
        key = (packing.place[vms] * (packing.alike.max() + 1) + packing.alike[vms]) * 2 + moved
        _, first, number = np.unique(key, return_index=True, return_counts=True)
        return vms[first], number

    def _bundles(self, piles: tuple, least: int, most: int) -> Bundles:
        """Return the bundles of ``least`` to ``most`` instances of every pile. If ``least`` is 0,
        there is one empty bundle for each host."""
        packing, (first, number) = self.packing, piles
        counts = np.arange(1, most + 1)
        which, count = np.nonzero(counts <= number[:, None])
        first, count = first[which], counts[count]
        host = packing.place[first]
        if not least:
            bare = np.flatnonzero(packing.is_open)
            host, first, count = (np.concatenate(pair) for pair in (
                (bare, host), (np.zeros_like(bare), first), (np.zeros_like(bare), count)))
        price = np.where(packing.moved[first], 0.0, self.price[first]) * count
        return Bundles(host, first, count, packing.size[first] * count[:, None], price)

    def _make(self, piles: tuple, out: Bundles, vm: int | None, least: float) -> bool:
        """Rate every pair of a bundle that leaves one host and a bundle that comes back from
        another, and make the best allowed swap. Returns whether one was made."""
        packing = self.packing
        back = self._bundles(piles, 0, MOST_BACK)
        if not len(out.host):
            return False
        taken = packing.size[vm] if vm is not None else 0.0
        first = packing.free[out.host] + out.size - taken
        second = packing.free[back.host] + back.size
        keep = ((back.size <= first.max(axis=0) + TOLERANCE).all(axis=1)
                & (out.size.min(axis=0) <= second + TOLERANCE).all(axis=1))
        back, second = back.select(keep), second[keep]
        if len(second) > COLUMNS:
            few = np.lexsort((-self.usable(second), back.price))[:COLUMNS]
            back, second = back.select(few), second[few]
        fits = out.host[:, None] != back.host
        self.rated += fits.size
        for c in range(out.size.shape[1]):
            fits &= back.size[:, c] <= first[:, None, c] + TOLERANCE
            fits &= out.size[:, None, c] <= second[:, c] + TOLERANCE
        row, column = np.nonzero(fits)
        value = -(out.price + self.usable(packing.free[out.host]))[row]
        value -= (back.price + self.usable(packing.free[back.host]))[column]
        value += self._usable_of(first, row, back.size, column)
        value += self._usable_of(second, column, out.size, row)
        return any(self._carry_out(out, int(row[n]), back, int(column[n]), vm)
                   for n in smallest(-value, TRIES) if value[n] > least)

    def _usable_of(self, room: np.ndarray, at: np.ndarray, size: np.ndarray,
                   of: np.ndarray) -> np.ndarray:
        """Return the usable room (:meth:`usable`) that is left of ``room[at]`` after ``size[of]``
        is taken.

        The columns are computed one by one, without an array of the whole difference.
        """
        least = np.full(len(at), UNLIMITED)
        for c, ratio in enumerate(self.ratio):
            np.minimum(least, (room[:, c] / ratio)[at] - (size[:, c] / ratio)[of], out=least)
        return least

    def _carry_out(self, out: Bundles, row: int, back: Bundles, column: int,
                   vm: int | None) -> bool:
        packing = self.packing
        here, there = int(out.host[row]), int(back.host[column])
        leaving = self._members(out, row, there)
        coming = self._members(back, column, here)
        if leaving is None or coming is None:
            return False
        for other in (*leaving, *coming):
            packing.remove(other)
        for other in leaving:
            packing.put(other, there)
        for other in coming:
            packing.put(other, here)
        if vm is not None:
            packing.put(vm, here)
        return True

    def _members(self, bundles: Bundles, n: int, destination: int) -> list[int] | None:
        """Return as many instances as a bundle has, all of which may go to ``destination``; None if
        there are too few."""
        packing, first = self.packing, bundles.first[n]
        found: list[int] = []
        same = (packing.place == bundles.host[n]) & (packing.alike == packing.alike[first])
        same &= packing.moved == packing.moved[first]
        for vm in np.flatnonzero(same).tolist():
            if (len(found) < bundles.amount[n] and packing.allows_host(vm)[destination]
                    and packing.space.conflicts(vm).isdisjoint(found)):
                found.append(vm)
        return found if len(found) == bundles.amount[n] else None
