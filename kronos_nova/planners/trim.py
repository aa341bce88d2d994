"""The same result with less: moves that the end state does not need, and smaller instances."""

import numpy as np

from kronos_nova.planners.arena import Arena
from kronos_nova.planners.beam import Beam
from kronos_nova.planners.beam import End
from kronos_nova.simulation import TOLERANCE


def drop(beam: Beam) -> None:
    """Take out of the best plan, one after the other, moves without which it costs no more; the
    biggest memory first."""
    arena = beam.arena
    plan = beam.best.plan
    while plan and not beam.limits.is_over:
        scores, free = _without_each(arena, plan)
        prices = arena.price_of(plan) - np.array([arena.price_of([move]) for move in plan])
        costs = arena.combined(scores) + prices
        is_legal = arena.is_legal(scores.max(axis=0), scores.min(axis=0), free)
        needless = np.flatnonzero((costs <= beam.best.cost + TOLERANCE) & is_legal)
        if not len(needless):
            return
        n = max(needless, key=lambda n: (arena.memory[plan[n][0]], -n))
        plan = plan[:n] + plan[n + 1:]
        beam.keep(End(float(costs[n]), plan))


def _without_each(arena: Arena, plan) -> tuple[np.ndarray, np.ndarray]:
    """The end states of a plan without its first move, without its second, ..."""
    scores, free = (np.repeat(end, len(plan), axis=2) for end in arena.after([plan]))
    vms, hosts = np.array(plan, dtype=np.intp).T
    arena.shift(scores, free, np.arange(len(plan)), vms, hosts, sign=-1)
    return scores, free


def cheapen(beam: Beam) -> None:
    """Replace instances of the best plan by neighbours with less memory that serve as well."""
    arena = beam.arena
    cost, plan = beam.best.cost, beam.best.plan
    for n, (_vm, host) in enumerate(plan):
        if beam.limits.is_over:
            break
        found = _cheaper(arena, plan, n, cost)
        if found is not None:
            plan = plan[:n] + [(found, host)] + plan[n + 1:]
    if plan != beam.best.plan:
        beam.prefer(End(cost, plan))


def _cheaper(arena: Arena, plan, n: int, cost: float) -> int | None:
    vm, host = plan[n]
    moved = {other for other, _ in plan}
    residents = arena.residents[arena.home[vm]]
    others = [int(other) for other in residents[np.isfinite(arena.door(host)[residents])]
              if arena.memory[other] < arena.memory[vm] and other not in moved]
    if not others:
        return None
    rest = plan[:n] + plan[n + 1:]
    scores, free = (np.repeat(end, len(others), axis=2) for end in arena.after([rest]))
    arena.shift(scores, free, np.arange(len(others)), np.array(others), np.full(len(others), host))
    costs = arena.combined(scores) + arena.price_of(rest) + arena.prices(
        np.array(others), np.full(len(others), host))
    serves = (costs <= cost + TOLERANCE) & arena.is_legal(
        scores.max(axis=0), scores.min(axis=0), free)
    return min((other for row, other in enumerate(others) if serves[row]),
               key=lambda other: (arena.memory[other], other), default=None)
