"""Many half-done plans side by side, as arrays.

A plan here is a set of (instance, destination), each instance at most once and straight from where
it is now; the order has no meaning yet.
"""

import dataclasses

import numpy as np

from kronos_nova.simulation.space import SearchSpace

Plan = list[tuple[int, int]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """n plans with their end states.

    scores, free : float64 (h, P, n), (h, c, n)
    top, bottom : float64 (P, n), the ends of the scores
    price : float64 (n,), of the moves
    moves : intp (n, length, 2), -1 where a plan is shorter
    mark : uint64 (n,), equal for equal plans
    root : intp (n,), which of the plans that a search began with
    """

    scores: np.ndarray
    free: np.ndarray
    top: np.ndarray
    bottom: np.ndarray
    price: np.ndarray
    moves: np.ndarray
    mark: np.ndarray
    root: np.ndarray

    def __len__(self) -> int:
        return len(self.mark)

    def __getitem__(self, rows: np.ndarray) -> 'Generation':
        return Generation(
            scores=self.scores[:, :, rows], free=self.free[:, :, rows], top=self.top[:, rows],
            bottom=self.bottom[:, rows], price=self.price[rows], moves=self.moves[rows],
            mark=self.mark[rows], root=self.root[rows])

    @property
    def lengths(self) -> np.ndarray:
        """intp (n,): how many moves each plan has."""
        return (self.moves[:, :, 0] >= 0).sum(axis=1)

    def plan(self, row: int) -> Plan:
        return [(int(vm), int(host)) for vm, host in self.moves[row] if vm >= 0]


class Expander:
    """Makes generations of an space."""

    def __init__(self, space: SearchSpace):
        self.space = space
        chance = np.random.default_rng(0)
        self.vm_mark = chance.integers(1, 2**63, len(space.vms), dtype=np.uint64)

    def first(self, plans: list[Plan], roots: np.ndarray) -> Generation:
        """A generation of given plans."""
        scores, free = self.space.after(plans)
        moves = np.full((len(plans), max(map(len, plans)), 2), -1)
        for n, plan in enumerate(plans):
            moves[n, :len(plan)] = np.array(plan, dtype=np.intp).reshape(-1, 2)
        marks = [np.bitwise_xor.reduce(self._marks(*moves[n, :len(plan)].T), initial=0)
                 for n, plan in enumerate(plans)]
        price = [self.space.price_of(plan) for plan in plans]
        return Generation(
            scores=scores, free=free, top=scores.max(axis=0), bottom=scores.min(axis=0),
            price=np.array(price), moves=moves, mark=np.array(marks, dtype=np.uint64), root=roots)

    def next(self, old: Generation, row, vm, host) -> Generation:
        """Plans ``row`` of a generation with a further move each, without doubles."""
        mark = old.mark[row] ^ self._marks(vm, host)
        mark, first = np.unique(mark, return_index=True)
        apart = ~self.space.meets(vm[first], host[first], old.moves[row[first]])
        mark, first = mark[apart], first[apart]
        return self._moved(old, row[first], vm[first], host[first], mark)

    def _marks(self, vms: np.ndarray, hosts: np.ndarray) -> np.ndarray:
        return self.vm_mark[vms] * (2 * hosts + 1).astype(np.uint64)

    def _moved(self, old: Generation, row, vm, host, mark) -> Generation:
        space, every = self.space, np.arange(len(row))
        home = space.home[vm]
        scores, free = old.scores[:, :, row], old.free[:, :, row]
        scores[home, :, every] -= space.weights[vm] * space.scale[home]
        scores[host, :, every] += space.weights[vm] * space.scale[host]
        free[home, :, every] += space.sizes[vm]
        free[host, :, every] -= space.sizes[vm]
        moves = np.concatenate([old.moves[row], np.stack([vm, host], axis=1)[:, None]], axis=1)
        return Generation(
            scores=scores, free=free, top=scores.max(axis=0), bottom=scores.min(axis=0),
            price=old.price[row] + space.prices(vm, host), moves=moves, mark=mark,
            root=old.root[row])
