"""How spread searches. With few moves: from nothing, from one big move each, and by repair of the
best it has; with many moves: by local search from one plan on. The repairs are large neighbourhood
search (Shaw 1998), also called ruin and recreate (Schrimpf et al. 2000)."""

import itertools
import math

import numpy as np

from kronos_nova.planners import trim
from kronos_nova.planners.base import Limits
from kronos_nova.planners.beam import LEVEL
from kronos_nova.planners.beam import Beam
from kronos_nova.planners.beam import End
from kronos_nova.planners.beam import Width
from kronos_nova.planners.generation import Plan
from kronos_nova.planners.local_search import LocalSearch
from kronos_nova.planners.softened_max import SoftenedMax
from kronos_nova.planners.substitution import substitute
from kronos_nova.simulation import TOLERANCE

EFFORT = 1e8
"""For a small cluster; see :attr:`Beam.effort`."""
FEW_PAIRS = 20000
GROWTH = 0.4
"""With more pairs of instance and host than that, by which power of them the effort grows."""
MOVES_PER_HOST, MOST_TIMES = 2, 4
"""With a budget of more moves for each host, how many times more effort at most."""
LONG_TIMES = 2
"""How many times more for long plans."""
MOST_HOSTS = 40
FIRST_SHARE = 1 / 8
"""Of the effort, for each of the first searches."""
NARROW, MOST_PLANS = 8, 120
DIVE_SHARE = 0.25
"""Of the effort, for the first of the long plans, at most."""
TEMPERATURES = (0.08, 0.25, 0.03)
"""Of the first searches, as parts of the combined imbalance to begin with."""
MANY_HOSTS = 60
TEMPERATURES_OF_MANY = (0.035, 0.08, 0.25)
"""The same for many hosts: the more there are near the top, the less each may count."""
COLDEST = 1e-4
ROOTED_SHARE = 0.3
FEWEST_ROOTS, MOST_ROOTS = 8, 60
PER_ROOT = 3
PER_INSTANCE = 4
"""Destinations that are tried for each of the biggest instances."""
COOLER = (0.3, 0.15, 0.6, 0.1, 1.2)
"""Temperatures of the repairs, as parts of the best found."""
DESTROYED = (2, 3, 4, 6)
SUBSETS = 40
POOL = 8
SUBSTITUTED = 8
"""Ends whose instances are exchanged for others in the end: the best have their flows in common."""
PATIENCE = 30
"""Repairs without success after which the search ends."""


class Search:
    """One search, in three stages, or two.

    A beam search at some temperatures finds what many small moves together can do. It seldom
    begins with moving the biggest instances, after which everything looks different: so there is a
    second one whose plans each begin with such a move, and are compared with their like only.
    In the end the best of both are repaired: some moves are taken back, in many ways at once, and
    others are searched for, while the effort lasts that a cluster of this size is worth. The fewer
    of it is left, the fewer plans are worked on.

    Where plans may have a move for every host and more, and only few such plans fit side by side, a
    single one is made, and what is left of the effort goes to a local search.
    """

    def __init__(self, beam: Beam, limits: Limits):
        self.beam, self.space, self.limits = beam, beam.space, limits
        pairs = len(self.space.hosts) * len(self.space.vms)
        per_host = limits.budget / len(self.space.hosts)
        self.effort = EFFORT * max(1.0, pairs / FEW_PAIRS) ** GROWTH * min(
            max(1.0, per_host / MOVES_PER_HOST), MOST_TIMES)
        plans = self._plans_for(FIRST_SHARE)
        self.is_long = plans < NARROW and limits.budget >= len(self.space.hosts)
        self.effort *= LONG_TIMES if self.is_long else 1
        self.width = Width(int(np.clip(plans, 1, MOST_PLANS)), MOST_HOSTS)
        self.chance = np.random.default_rng(0)

    def begin(self) -> None:
        """Find a plan quickly, so that there is one if time is short."""
        width, levels = Width(1, MOST_HOSTS), self.limits.budget
        if self.is_long:
            each = LEVEL + width.cost(self.space)
            levels = min(levels, int(DIVE_SHARE * self.effort / each))
        self.beam.run(self._smooth(self._temperatures[0] * self.space.start), [[]], levels, width)

    def run(self) -> None:
        if self.is_long:
            left = self.effort - self.beam.effort
            LocalSearch(self.beam, self.limits).run(self.beam.best.plan, left)
        elif self.width.plans == 1:
            self._repair_all([self.beam.best])
        else:
            self._repair_all([*self._from_nothing(), *self._from_big_moves()])
        if len(self.space.hosts) <= MANY_HOSTS:
            for end in self.beam.kept[:SUBSTITUTED]:
                substitute(self.beam, end)
        trim.drop(self.beam)
        trim.cheapen(self.beam)

    @property
    def _temperatures(self) -> tuple[float, ...]:
        return TEMPERATURES_OF_MANY if len(self.space.hosts) > MANY_HOSTS else TEMPERATURES

    @property
    def _is_over(self) -> bool:
        return self.beam.effort >= self.effort or self.limits.is_over

    def _plans_for(self, share: float) -> int:
        """How many plans side by side a part of the effort is enough for."""
        levels = max(1, self.limits.budget)
        each = self.effort * share / levels - LEVEL
        return int(each / Width(1, MOST_HOSTS).cost(self.space))

    def _smooth(self, temperature: float) -> SoftenedMax:
        return SoftenedMax(self.space, max(temperature, COLDEST))

    def _from_nothing(self) -> list[End]:
        for part in self._temperatures:
            if not self._is_over:
                self.beam.run(self._smooth(part * self.space.start), [[]], self.limits.budget,
                              self.width)
        return [self.beam.best]

    def _from_big_moves(self) -> list[End]:
        roots = min(MOST_ROOTS, self._plans_for(ROOTED_SHARE) // PER_ROOT)
        plans = self._big_moves(roots) if roots >= FEWEST_ROOTS else []
        if not plans or self.limits.budget <= 2:
            return []
        width = Width(len(plans) * PER_ROOT, MOST_HOSTS, PER_ROOT)
        found = self.beam.run(self._smooth(TEMPERATURES[0] * self.space.start), plans,
                              self.limits.budget - 1, width, range(len(plans)))
        return [end for end in found if end is not None]

    def _big_moves(self, count: int) -> list[Plan]:
        space = self.space
        weight = space.weights @ space.policy_weights
        load = space.scores @ space.policy_weights
        plans = []
        for vm in np.argsort(-weight, kind='stable')[:-(-count // PER_INSTANCE)]:
            hosts = np.flatnonzero(space.permitted(int(vm)))
            hosts = hosts[np.argsort(load[hosts], kind='stable')[:PER_INSTANCE]]
            plans += [[(int(vm), int(host))] for host in hosts]
        return plans[:count]

    def _repair_all(self, pool: list[End]) -> None:
        begin, idle, best = self.beam.effort, 0, math.inf
        for turn in itertools.count():
            if self._is_over or idle >= PATIENCE or not self.beam.best.plan:
                return
            idle += 1
            if self.beam.best.cost < best - TOLERANCE:
                trim.drop(self.beam)
                best, idle = self.beam.best.cost, 0
            done = (self.beam.effort - begin) / (self.effort - begin)
            size = max(1, int(POOL * (1 - 1.3 * done)))
            pool = self._repair(_distinct([self.beam.best, *pool])[:size], turn)

    def _repair(self, pool: list[End], turn: int) -> list[End]:
        """Take some moves of each plan back, in many ways at once, and search on from there."""
        count, budget = DESTROYED[turn % len(DESTROYED)], self.limits.budget
        bases, roots, depth = [], [], 0
        for root, end in enumerate(pool):
            size, taken = len(end.plan), min(len(end.plan), count)
            for subset in self._subsets(size, taken, SUBSETS // len(pool)):
                bases.append([move for n, move in enumerate(end.plan) if n not in subset])
                roots.append(root)
            depth = max(depth, min(budget - size, 2 + (budget - size) // 10) + taken)
        plans = max(4, self.width.plans * count // 6)
        width = Width(plans, MOST_HOSTS, -(-plans // len(pool)))
        smooth = self._smooth(COOLER[turn % len(COOLER)] * self.beam.best.cost)
        found = self.beam.run(smooth, bases, depth, width, roots)
        return [old if new is None or new.cost >= old.cost else new
                for old, new in zip(pool, found, strict=True)]

    def _subsets(self, size: int, count: int, most: int) -> list[tuple[int, ...]]:
        """All ways to take ``count`` of ``size`` moves back, or some of them."""
        if math.comb(size, count) > 10 * most:
            return [tuple(self.chance.choice(size, count, replace=False)) for _ in range(most)]
        every = list(itertools.combinations(range(size), count))
        if len(every) <= most:
            return every
        return [every[n] for n in self.chance.choice(len(every), most, replace=False)]


def _distinct(pool: list[End]) -> list[End]:
    """Without doubles and empty plans, best first."""
    seen, kept = {frozenset()}, []
    for end in sorted(pool, key=lambda end: end.cost):
        moves = frozenset(end.plan)
        if moves not in seen:
            seen.add(moves)
            kept.append(end)
    return kept
