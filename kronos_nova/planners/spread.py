"""Spread: the least combined imbalance that the budget can buy."""

import itertools
import math

import numpy as np

from kronos_nova.constraints.base import Constraints
from kronos_nova.objects.plan import SPREAD
from kronos_nova.planners import order
from kronos_nova.planners import trim
from kronos_nova.planners.arena import Arena
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import Step
from kronos_nova.planners.beam import Beam
from kronos_nova.planners.beam import Width
from kronos_nova.planners.greedy import Greedy
from kronos_nova.planners.outcome import Outlook
from kronos_nova.planners.smooth import Smooth
from kronos_nova.simulation import TOLERANCE
from kronos_nova.simulation import State

TEMPERATURES = (0.08, 0.25, 0.03)
"""Of the first searches, as parts of the combined imbalance to begin with."""
MANY_HOSTS = 60
TEMPERATURES_OF_MANY = (0.035, 0.08, 0.25)
"""The same for many hosts: the more there are near the top, the less each may count."""
COOLER = (0.3, 0.15, 0.6, 0.1)
"""The same for the repairs, as parts of the best found."""
DESTROYED = (2, 3, 4)
SUBSETS = 40
TRIED_WHEN_LATE = 8
"""Plans for which an order is looked for, even after the deadline, as long as none has one."""
PATIENCE = 24
"""Repairs without success after which the search ends: every combination of the above twice."""


class Spread:
    """A beam search at several temperatures, then rounds in which some moves of the best plan are
    taken back and replaced by others, as long as the effort allowed for a cluster of this size
    lasts. Ends with the moves that the result needs, in an order that the constraints permit."""

    phase = SPREAD

    def plan(self, state: State, constraints: Constraints, limits: Limits) -> list[Step]:
        if Outlook(state).is_balanced or limits.budget < 1:
            return []
        constraints = order.below_ceiling(constraints, state, limits)
        arena = Arena(state, constraints, limits)
        if len(arena.hosts) < 2 or not len(arena.vms):
            return []
        beam = Beam(arena, limits)
        first = start_with_greedy(beam, state, constraints, limits)
        search(beam, limits)
        trim.drop(beam)
        trim.cheapen(beam)
        hops = best_possible(beam, state, constraints, limits, first)
        return order.carry_out(hops, state, lambda hop: 'evens the load')


def start_with_greedy(beam: Beam, state: State, constraints: Constraints,
                      limits: Limits) -> list[order.Hop]:
    """What ``greedy`` would do: the plan to beat."""
    trial = state.copy()
    steps = Greedy().plan(trial, constraints, limits)
    beam.keep(trial.combined(), beam.arena.plan_of(trial))
    return [order.Hop(step.vm, step.source, step.destination) for step in steps]


def best_possible(beam: Beam, state: State, constraints: Constraints, limits: Limits,
                  first: list[order.Hop]) -> list[order.Hop]:
    """Of the plans found, the best for which there is an order, or the part of one that ends best;
    ``first`` if none is better."""
    arena, best = beam.arena, (_end_of(first, state), first)
    for number, (combined, plan) in enumerate(beam.kept):
        if combined > best[0] + TOLERANCE or (
                (best[1] or number >= TRIED_WHEN_LATE) and limits.is_over):
            break
        run = order.Run(state, constraints, limits)
        run.do_all([(int(arena.vms[vm]), int(arena.hosts[host])) for vm, host in plan])
        reached = (state.combined(), list(run.hops))
        if (state.imbalances() <= arena.worst).all() and _is_better(reached, best, state):
            best = reached
        run.undo()
    return best[1]


def _end_of(hops: list[order.Hop], state: State) -> float:
    trial = state.copy()
    for hop in hops:
        trial.move(hop.vm, hop.destination)
    return trial.combined()


def _is_better(one, other, state: State) -> bool:
    """Lower combined imbalance; then fewer moves; then less memory to copy."""
    if abs(one[0] - other[0]) > TOLERANCE:
        return one[0] < other[0]
    memory = state.problem.memory_mb
    costs = [(len(hops), sum(int(memory[hop.vm]) for hop in hops)) for _, hops in (one, other)]
    return costs[0] < costs[1]


def search(beam: Beam, limits: Limits) -> None:
    arena = beam.arena
    effort, width = effort_for(arena, limits.budget)
    is_large = len(arena.hosts) > MANY_HOSTS
    for part in TEMPERATURES_OF_MANY if is_large else TEMPERATURES:
        if beam.looked_at < effort and not limits.is_over:
            smooth = Smooth(arena, max(part * arena.start, 1e-4))
            beam.run(smooth, [[]], limits.budget, width)
    chance, trimmed = np.random.default_rng(0), np.inf
    idle = 0
    for turn in itertools.count():
        if beam.looked_at >= effort or idle >= PATIENCE or limits.is_over or not beam.best[1]:
            return
        idle += 1
        if beam.best[0] < trimmed:
            trim.drop(beam)
            trimmed, idle = beam.best[0], 0
        repair(beam, limits, turn, chance, width)


def repair(beam: Beam, limits: Limits, turn: int, chance, width: Width) -> None:
    """Take some moves of the best plan back, in many ways at once, and search on from there."""
    combined, plan = beam.best
    count = min(len(plan), DESTROYED[turn % len(DESTROYED)])
    subsets = _subsets(len(plan), count, chance)
    bases = [[move for n, move in enumerate(plan) if n not in subset] for subset in subsets]
    smooth = Smooth(beam.arena, max(COOLER[turn % len(COOLER)] * combined, 1e-4))
    narrow = Width(max(4, width.plans * count // 6), width.hosts)
    beam.run(smooth, bases, min(limits.budget - len(plan) + count, count + 2), narrow)


def _subsets(size: int, count: int, chance) -> list[tuple[int, ...]]:
    """All ways to take ``count`` of ``size`` moves back, or some of them."""
    if math.comb(size, count) > 10 * SUBSETS:
        return [tuple(chance.choice(size, count, replace=False)) for _ in range(SUBSETS)]
    every = list(itertools.combinations(range(size), count))
    if len(every) <= SUBSETS:
        return every
    return [every[n] for n in chance.choice(len(every), SUBSETS, replace=False)]


def effort_for(arena: Arena, budget: int) -> tuple[float, Width]:
    """How many pairs to rate in all, and how broadly, for a cluster of this size."""
    pairs = len(arena.hosts) * len(arena.vms)
    effort = float(np.clip(6e6 * (pairs / 1440) ** 0.5, 1e6, 2.4e7))
    hosts = 60 if len(arena.hosts) <= MANY_HOSTS else 40
    per_plan = min(pairs, hosts * hosts * max(1, len(arena.vms) // len(arena.hosts)))
    plans = int(np.clip(effort / 6 / (per_plan * budget), 1, 200))
    return effort, Width(plans, hosts)
