"""The same result with less: moves that the end state does not need, and smaller instances."""

import numpy as np

from kronos_nova.planners.arena import Arena
from kronos_nova.planners.beam import Beam
from kronos_nova.simulation import TOLERANCE


def drop(beam: Beam) -> None:
    """Take out of the best plan, one after the other, moves without which it ends no worse;
    the biggest memory first."""
    arena = beam.arena
    combined, plan = beam.best
    while plan:
        scores, free = _without_each(arena, plan)
        values = arena.combined(scores)
        needless = np.flatnonzero((values <= combined + TOLERANCE) & arena.is_legal(scores, free))
        if not len(needless):
            return
        n = max(needless, key=lambda n: (arena.memory[plan[n][0]], -n))
        plan = plan[:n] + plan[n + 1:]
        beam.keep(float(values[n]), plan)


def _without_each(arena: Arena, plan) -> tuple[np.ndarray, np.ndarray]:
    """The end states of a plan without its first move, without its second, ..."""
    scores, free = (np.repeat(end, len(plan), axis=0) for end in arena.after([plan]))
    vms, hosts = np.array(plan, dtype=np.intp).T
    arena.shift(scores, free, np.arange(len(plan)), vms, hosts, sign=-1)
    return scores, free


def cheapen(beam: Beam) -> None:
    """Replace instances of the best plan by neighbours with less memory that serve as well."""
    arena = beam.arena
    combined, plan = beam.best
    for n, (_vm, host) in enumerate(plan):
        found = _cheaper(arena, plan, n, combined)
        if found is not None:
            plan = plan[:n] + [(found, host)] + plan[n + 1:]
    if plan != beam.best[1]:
        beam.prefer(plan)


def _cheaper(arena: Arena, plan, n: int, combined: float) -> int | None:
    vm, host = plan[n]
    moved = {other for other, _ in plan}
    others = [int(other) for other in arena.residents[arena.home[vm]]
              if arena.memory[other] < arena.memory[vm] and other not in moved
              and arena.permitted(other)[host]]
    if not others:
        return None
    scores, free = arena.after([plan[:n] + plan[n + 1:]])
    scores, free = np.repeat(scores, len(others), axis=0), np.repeat(free, len(others), axis=0)
    arena.shift(scores, free, np.arange(len(others)), np.array(others), np.full(len(others), host))
    serves = (arena.combined(scores) <= combined + TOLERANCE) & arena.is_legal(scores, free)
    return min((other for row, other in enumerate(others) if serves[row]),
               key=lambda other: (arena.memory[other], other), default=None)
