"""A beam search over sets of moves: many half-done plans side by side, one move longer at a time.

A plan here is a list of (instance, destination), each instance at most once and straight from where
it is now; the order has no meaning yet.
"""

import dataclasses

import numpy as np

from kronos_nova.planners.arena import Arena
from kronos_nova.planners.base import Limits
from kronos_nova.planners.smooth import Smooth
from kronos_nova.simulation import TOLERANCE

CANDIDATES = 6
FEWEST_CANDIDATES = 30
BY_SMOOTH = 0.75
KEPT = 48
KEPT_AT_ONCE = 8
"""For many of the best end states there may be no order of moves that leads there."""
OVERHEAD = 20000
"""Pairs that could be rated in the time that one generation takes beside rating."""


@dataclasses.dataclass(frozen=True, slots=True)
class Width:
    """How broad a search is: plans side by side, and hosts looked at as sources and
    destinations."""

    plans: int
    hosts: int


@dataclasses.dataclass(slots=True)
class Generation:
    """n plans of the same length, with their end states.

    scores, free : float64 (n, h, P), (n, h, c); moves : intp (n, length, 2), -1 where a plan is
    shorter; mark : uint64 (n,), equal for equal sets of moves
    """

    scores: np.ndarray
    free: np.ndarray
    moves: np.ndarray
    mark: np.ndarray

    def __len__(self) -> int:
        return len(self.mark)


class Beam:
    """Searches an arena and remembers the best end states it met.

    best : (combined imbalance, plan) of the best legal one; kept : some of the best, best first
    looked_at : pairs rated so far, the measure of effort
    """

    def __init__(self, arena: Arena, limits: Limits):
        self.arena, self.limits = arena, limits
        chance = np.random.default_rng(0)
        self.vm_mark = chance.integers(1, 2**63, len(arena.vms), dtype=np.uint64)
        self.best = (float(arena.start), [])
        self.kept: list[tuple[float, list]] = [self.best]
        self.looked_at = 0
        self._known = {frozenset()}
        self.overhead = OVERHEAD * (1 + len(arena.hosts) / 100)

    def run(self, smooth: Smooth, plans: list[list[tuple[int, int]]], depth: int,
            width: Width) -> None:
        """Lengthen ``plans`` by up to ``depth`` moves."""
        generation = self._begin(plans)
        for level in range(depth):
            if self.limits.is_over or not len(generation):
                return
            generation = self._lengthen(smooth, generation, width, is_last=level == depth - 1)

    def _begin(self, plans) -> Generation:
        scores, free = self.arena.after(plans)
        moves = np.full((len(plans), max(map(len, plans)), 2), -1)
        for n, plan in enumerate(plans):
            if plan:
                moves[n, :len(plan)] = plan
        marks = np.array([self._mark(plan) for plan in plans], dtype=np.uint64)
        return Generation(scores, free, moves, marks)

    def _mark(self, plan) -> np.uint64:
        vms, hosts = np.array(plan, dtype=np.intp).reshape(-1, 2).T
        return np.bitwise_xor.reduce(self._move_marks(vms, hosts), initial=0)

    def _move_marks(self, vms: np.ndarray, hosts: np.ndarray) -> np.ndarray:
        return self.vm_mark[vms] * (2 * hosts + 1).astype(np.uint64)

    def _lengthen(self, smooth, old: Generation, width: Width, is_last: bool) -> Generation:
        values, shares = smooth.rate(old.scores, old.free)
        sources, hosts = self._hosts(shares, width.hosts)
        vms = np.concatenate([self.arena.residents[n] for n in sources])
        if not len(vms):
            return _choose(old, np.empty(0, dtype=int))
        rated = smooth.changes(shares, old.free, hosts, vms)
        rated += values[:, None, None]
        self.looked_at += rated.size + self.overhead
        self._forbid(rated, old, hosts, vms)
        new, combined, legal = self._best_of(rated, old, hosts, vms, width)
        combined = np.where(legal, combined, np.inf)
        self._remember(new, combined)
        if is_last:
            return new
        smooth_values = smooth.rate(new.scores, new.free)[0]
        return _choose(new, _mixed(smooth_values, combined, width.plans))

    def _hosts(self, shares: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
        """Hosts to take from and to give to: those that contribute most to the tops and the
        bottoms; all, if there are few."""
        count = shares.shape[1]
        if count <= most:
            return np.arange(count), np.arange(count)
        policies = len(self.arena.policy_weights)
        peak = shares.max(axis=0)
        hot, cold = peak[:, :policies].sum(axis=1), peak[:, policies:2 * policies].sum(axis=1)
        return (np.argsort(-hot, kind='stable')[:most], np.argsort(-cold, kind='stable')[:most])

    def _forbid(self, rated, old: Generation, hosts, vms) -> None:
        arena = self.arena
        permitted = np.stack([arena.permitted(vm)[hosts] for vm in vms], axis=1)
        rated[:, ~permitted] = np.inf
        where = np.full(len(arena.vms), -1)
        where[vms] = np.arange(len(vms))
        for moved in old.moves.transpose(1, 2, 0)[:, 0]:
            column = np.where(moved >= 0, where[moved], -1)
            rows = np.flatnonzero(column >= 0)
            rated[rows, :, column[rows]] = np.inf
        if len(hosts) < len(arena.hosts):
            for c in range(old.free.shape[2]):
                free = old.free[:, hosts, c] + TOLERANCE
                rated[free[:, :, None] < arena.demands[vms, c]] = np.inf

    def _best_of(self, rated, old: Generation, hosts, vms, width: Width):
        count = max(FEWEST_CANDIDATES, CANDIDATES * width.plans)
        flat = rated.reshape(-1)
        best = np.argpartition(flat, count)[:count] if count < flat.size else np.arange(flat.size)
        best = best[np.isfinite(flat[best])]
        row, rest = np.divmod(best, len(hosts) * len(vms))
        host, vm = hosts[rest // len(vms)], vms[rest % len(vms)]
        mark = old.mark[row] ^ self._move_marks(vm, host)
        first = np.unique(mark, return_index=True)[1]
        first = first[self._without_clash(old.moves[row[first]], vm[first], host[first])]
        new = self._moved(old, row[first], vm[first], host[first], mark[first])
        return new, self.arena.combined(new.scores), self.arena.is_legal(new.scores, new.free)

    def _without_clash(self, moves, vm, host) -> np.ndarray:
        """Not two of a server group to one host by one plan, unless its limit is met anyway."""
        arena = self.arena
        group = arena.group[vm]
        if not (group >= 0).any() or not moves.shape[1]:
            return np.ones(len(vm), dtype=bool)
        fellows = (moves[:, :, 0] >= 0) & (arena.group[moves[:, :, 0]] == group[:, None])
        clash = fellows & (moves[:, :, 1] == host[:, None]) & (group >= 0)[:, None]
        return ~clash.any(axis=1)

    def _moved(self, old: Generation, row, vm, host, mark) -> Generation:
        arena, every = self.arena, np.arange(len(row))
        home = arena.home[vm]
        scores, free = old.scores[row], old.free[row]
        scores[every, home] -= arena.weights[vm] * arena.scale[home]
        scores[every, host] += arena.weights[vm] * arena.scale[host]
        free[every, home] += arena.demands[vm]
        free[every, host] -= arena.demands[vm]
        moves = np.concatenate([old.moves[row], np.stack([vm, host], axis=1)[:, None]], axis=1)
        return Generation(scores, free, moves, mark)

    def _remember(self, new: Generation, combined: np.ndarray) -> None:
        if not len(new):
            return
        for n in np.argsort(combined, kind='stable')[:KEPT_AT_ONCE]:
            if combined[n] < self.kept[-1][0] - TOLERANCE or len(self.kept) < KEPT:
                if not np.isfinite(combined[n]):
                    return
                plan = [(int(vm), int(host)) for vm, host in new.moves[n] if vm >= 0]
                self.keep(float(combined[n]), plan)

    def keep(self, combined: float, plan: list[tuple[int, int]]) -> None:
        """Remember an end state found by other means."""
        if set(plan) in self._known:
            return
        self._known.add(frozenset(plan))
        self.kept.append((combined, plan))
        self.kept.sort(key=lambda found: (round(found[0] / TOLERANCE), len(found[1])))
        del self.kept[KEPT:]
        self.best = self.kept[0]

    def prefer(self, plan: list[tuple[int, int]]) -> None:
        """Put a plan that serves as well as the best one before it."""
        self.best = (self.best[0], plan)
        self.kept.insert(0, self.best)


def _choose(generation: Generation, rows: np.ndarray) -> Generation:
    return Generation(generation.scores[rows], generation.free[rows], generation.moves[rows],
                      generation.mark[rows])


def _mixed(smooth: np.ndarray, combined: np.ndarray, count: int) -> np.ndarray:
    """Most by the smooth value, the others by the true one."""
    by_smooth = np.argsort(smooth, kind='stable')[:max(1, int(count * BY_SMOOTH))]
    taken = np.zeros(len(smooth), dtype=bool)
    taken[by_smooth] = True
    by_true = np.argsort(combined, kind='stable')
    by_true = by_true[~taken[by_true]][:count - len(by_smooth)]
    return np.concatenate([by_smooth, by_true])
