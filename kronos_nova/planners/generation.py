"""Many half-done plans side by side, as arrays.

A plan here is a set of (instance, destination), each instance at most once and straight from where
it is now; the order has no meaning yet.
"""

import dataclasses

import numpy as np

from kronos_nova.planners.arena import Arena

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


class Maker:
    """Makes generations of an arena."""

    def __init__(self, arena: Arena):
        self.arena = arena
        chance = np.random.default_rng(0)
        self.vm_mark = chance.integers(1, 2**63, len(arena.vms), dtype=np.uint64)

    def first(self, plans: list[Plan], roots: np.ndarray) -> Generation:
        """A generation of given plans."""
        scores, free = self.arena.after(plans)
        moves = np.full((len(plans), max(map(len, plans)), 2), -1)
        for n, plan in enumerate(plans):
            moves[n, :len(plan)] = np.array(plan, dtype=np.intp).reshape(-1, 2)
        marks = [np.bitwise_xor.reduce(self._marks(*moves[n, :len(plan)].T), initial=0)
                 for n, plan in enumerate(plans)]
        price = [self.arena.price_of(plan) for plan in plans]
        return Generation(
            scores=scores, free=free, top=scores.max(axis=0), bottom=scores.min(axis=0),
            price=np.array(price), moves=moves, mark=np.array(marks, dtype=np.uint64), root=roots)

    def next(self, old: Generation, row, vm, host) -> Generation:
        """Plans ``row`` of a generation with a further move each, without doubles."""
        mark = old.mark[row] ^ self._marks(vm, host)
        mark, first = np.unique(mark, return_index=True)
        apart = ~self._meets_fellow(old.moves[row[first]], vm[first], host[first])
        mark, first = mark[apart], first[apart]
        return self._moved(old, row[first], vm[first], host[first], mark)

    def _marks(self, vms: np.ndarray, hosts: np.ndarray) -> np.ndarray:
        return self.vm_mark[vms] * (2 * hosts + 1).astype(np.uint64)

    def _meets_fellow(self, moves, vm, host) -> np.ndarray:
        """bool (n,): whether a plan has another of the server group go to the same host."""
        arena = self.arena
        group = arena.group[vm]
        if not (group >= 0).any():
            return np.zeros(len(vm), dtype=bool)
        fellows = (moves[:, :, 0] >= 0) & (arena.group[moves[:, :, 0]] == group[:, None])
        return (fellows & (moves[:, :, 1] == host[:, None])).any(axis=1) & (group >= 0)

    def _moved(self, old: Generation, row, vm, host, mark) -> Generation:
        arena, every = self.arena, np.arange(len(row))
        home = arena.home[vm]
        scores, free = old.scores[:, :, row], old.free[:, :, row]
        scores[home, :, every] -= arena.weights[vm] * arena.scale[home]
        scores[host, :, every] += arena.weights[vm] * arena.scale[host]
        free[home, :, every] += arena.demands[vm]
        free[host, :, every] -= arena.demands[vm]
        moves = np.concatenate([old.moves[row], np.stack([vm, host], axis=1)[:, None]], axis=1)
        return Generation(
            scores=scores, free=free, top=scores.max(axis=0), bottom=scores.min(axis=0),
            price=old.price[row] + arena.prices(vm, host), moves=moves, mark=mark,
            root=old.root[row])
