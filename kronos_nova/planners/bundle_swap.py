"""Swaps of instances between full hosts, to make room for further instances.

Full hosts are seldom full in everything: one host has free processors and no free memory, another
host has free memory and no free processors. Neither host can take a further instance until the two
hosts exchange some instances. A chain of these swaps is an ejection chain (Glover 1996).

A swap exchanges two bundles. A bundle is several instances of one size on one host. Swaps are rated
by the *usable room* that they add. The usable room of a host is the free room of its scarcest
resource: the resource of which the host has least, compared with the needs of the instances that
are still to be placed.
"""

from typing import NamedTuple

import numpy as np

from kronos_nova.model import TOLERANCE
from kronos_nova.model.extremes import smallest
from kronos_nova.planners.base import FIRST_BATCH
from kronos_nova.planners.packing import Packing

MOST_IN_BUNDLE = 4
"""Maximum number of instances in a bundle. The instances of a bundle have the same size. A swap
exchanges two bundles. Raised, a plan takes longer; lowered, four small instances can no longer make
room for an instance of four times their size. Chosen because each flavor is mostly twice as large
as the next smaller flavor; not measured."""
RATED = 1000
"""Maximum number of bundles that are rated for each of the two bundles of a swap. A bundle is
several instances of one size on one host. If there are more bundles, those are rated that are
cheapest to move, or that leave most usable room on their host. Raised, a swap takes longer to find;
lowered, the best swap is missed more often. Chosen because a million swaps are rated in some
hundredths of a second. A plan needs hundreds of swaps."""


class Bundles(NamedTuple):
    """A list of bundles. A bundle is a number of instances of one size on one host. The instances
    of a bundle move together. Each array has one row for each bundle.

    host : intp, host of each bundle
    first : intp, the first instance of each bundle
    amount : intp, number of instances in each bundle; 0 for an empty bundle
    size : float64 (bundles, resources), total size of the instances of each bundle
    price : float64, price of moving each bundle, in units of usable room (see
        :class:`BundleSwaps`); 0 if the search has already moved the instances of the bundle
    """

    host: np.ndarray
    first: np.ndarray
    amount: np.ndarray
    size: np.ndarray
    price: np.ndarray

    def select(self, rows: np.ndarray) -> 'Bundles':
        """Return the bundles at the positions ``rows``, in the order of ``rows``."""
        return Bundles(*(column[rows] for column in self))


class BundleSwaps:
    """A search that finds swaps of bundles in a packing, and makes these swaps. A packing is an
    assignment of instances to hosts. A bundle is several instances of one size on one host. The
    *usable room* of a host is the minimum of ``free room / ratio`` over all resources.

    ratio : float64, for each resource the amount that the instances without a host need, as a
        fraction of the largest of these amounts
    price : float64, price of a move of each instance. A swap is made only if it adds at least as
        much usable room as its moves cost together
    rated : number of pairs of bundles rated so far
    """

    def __init__(self, packing: Packing, ratio: np.ndarray, price: np.ndarray):
        self.packing, self.ratio, self.price = packing, ratio, price
        self.rated = 0

    def usable(self, free: np.ndarray) -> np.ndarray:
        return (free / self.ratio).min(axis=-1, initial=1.0 / TOLERANCE)

    def admit(self, vm: int) -> bool:
        """Make room on a host for an instance that has no host, and put the instance on this host.
        To make room, some instances of the host go to a second host. Instances of the second host
        may come in exchange. Return True if the instance has a host now; False if no such swap was
        found."""
        packing = self.packing
        allowed = packing.allows_host(vm) & packing.is_open
        piles = self._piles()
        out = self._bundles(piles, 1, MOST_IN_BUNDLE)
        room = packing.free[out.host] + out.size - packing.size[vm]
        out = out.select(allowed[out.host] & (room + TOLERANCE >= 0).all(axis=1))
        out = out.select(np.lexsort((out.size.sum(axis=1), out.price))[:RATED])
        return self._make(piles, out, vm, least=-np.inf)

    def balance(self) -> bool:
        """Make the swap with the largest gain. The gain is the usable room that the swap adds (see
        :class:`BundleSwaps`), minus the price of the swap. Return True if a swap was made; False if
        no swap has a gain above 0."""
        piles = self._piles()
        out = self._bundles(piles, 1, MOST_IN_BUNDLE)
        free = self.packing.free[out.host]
        gain = self.usable(free + out.size) - self.usable(free) - out.price
        return self._make(piles, out.select(smallest(-gain, RATED)), None, least=1e-6)

    def _piles(self) -> tuple[np.ndarray, np.ndarray]:
        """Return two arrays: the first instance of each pile, and the number of instances of each
        pile. A pile is all instances of one size on one host. Instances that the search has moved
        and instances that the search has not moved form separate piles."""
        packing = self.packing
        vms = np.flatnonzero(packing.place >= 0)
        vms = vms[packing.is_open[packing.place[vms]]]
        moved = packing.moved[vms]
        key = (packing.place[vms] * (packing.alike.max() + 1) + packing.alike[vms]) * 2 + moved
        _, first, number = np.unique(key, return_index=True, return_counts=True)
        return vms[first], number

    def _bundles(self, piles: tuple, least: int, most: int) -> Bundles:
        """Return the bundles that can be taken from the piles: from each pile, one bundle for each
        number of instances from 1 to ``most``. If ``least`` is 0, one empty bundle is added for
        each host that may take more instances.

        :param piles: the arrays that :meth:`_piles` returns
        """
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
        """Make the best allowed swap of two bundles. The first bundle goes from its host to the
        host of the second bundle, and the second bundle goes to the host of the first. Return True
        if a swap was made; False if no swap is allowed.

        :param piles: the arrays that :meth:`_piles` returns
        :param out: the bundles that may be the first bundle of a swap
        :param vm: an instance without a host, which is put on the host that the first bundle
            leaves; None if there is no such instance
        :param least: a swap is made only if its gain is above this value. The gain is the usable
            room that the swap adds, minus the price of the swap
        """
        packing = self.packing
        back = self._bundles(piles, 0, MOST_IN_BUNDLE)
        if not len(out.host):
            return False
        taken = packing.size[vm] if vm is not None else 0.0
        first = packing.free[out.host] + out.size - taken
        second = packing.free[back.host] + back.size
        keep = ((back.size <= first.max(axis=0) + TOLERANCE).all(axis=1)
                & (out.size.min(axis=0) <= second + TOLERANCE).all(axis=1))
        back, second = back.select(keep), second[keep]
        if len(second) > RATED:
            few = np.lexsort((-self.usable(second), back.price))[:RATED]
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
                   for n in smallest(-value, FIRST_BATCH) if value[n] > least)

    def _usable_of(self, room: np.ndarray, at: np.ndarray, size: np.ndarray,
                   of: np.ndarray) -> np.ndarray:
        """Return float64: for each index ``i`` of ``at`` and ``of``, the usable room of a host
        whose free room is ``room[at[i]] - size[of[i]]``. Usable room is defined in
        :class:`BundleSwaps`.
        """
        least = np.full(len(at), 1.0 / TOLERANCE)
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
        """Return instances that form the bundle ``n`` and may all go to ``destination``. Return
        None if too few instances of the bundle's size may go there."""
        packing, first = self.packing, bundles.first[n]
        found: list[int] = []
        same = (packing.place == bundles.host[n]) & (packing.alike == packing.alike[first])
        same &= packing.moved == packing.moved[first]
        for vm in np.flatnonzero(same).tolist():
            if (len(found) < bundles.amount[n] and packing.allows_host(vm)[destination]
                    and packing.space.conflicts(vm).isdisjoint(found)):
                found.append(vm)
        return found if len(found) == bundles.amount[n] else None
