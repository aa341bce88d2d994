"""The same result with less: moves that the end state does not need, and smaller instances; what
scheduling texts call compaction of a solution."""

import numpy as np

from kronos_nova.planners.base import Limits
from kronos_nova.planners.incumbents import End
from kronos_nova.planners.incumbents import Incumbents
from kronos_nova.simulation import TOLERANCE
from kronos_nova.simulation.space import SearchSpace


def drop(space: SearchSpace, found: Incumbents, limits: Limits) -> None:
    """Take out of the best plan, one after the other, moves without which it costs no more; the
    biggest memory first."""
    plan = found.best.plan
    while plan and not limits.is_over:
        scores, free = _without_each(space, plan)
        prices = space.price_of(plan) - np.array([space.price_of([move]) for move in plan])
        costs = space.combined(scores) + prices
        is_legal = space.is_legal(scores.max(axis=0), scores.min(axis=0), free)
        needless = np.flatnonzero((costs <= found.best.cost + TOLERANCE) & is_legal)
        if not len(needless):
            return
        n = max(needless, key=lambda n: (space.memory[plan[n][0]], -n))
        plan = plan[:n] + plan[n + 1:]
        found.keep(End(float(costs[n]), plan))


def _without_each(space: SearchSpace, plan) -> tuple[np.ndarray, np.ndarray]:
    """The end states of a plan without its first move, without its second, ..."""
    scores, free = (np.repeat(end, len(plan), axis=2) for end in space.after([plan]))
    vms, hosts = np.array(plan, dtype=np.intp).T
    space.shift(scores, free, np.arange(len(plan)), vms, hosts, sign=-1)
    return scores, free


def cheapen(space: SearchSpace, found: Incumbents, limits: Limits) -> None:
    """Replace instances of the best plan by neighbours with less memory that serve as well."""
    cost, plan = found.best.cost, found.best.plan
    for n, (_vm, host) in enumerate(plan):
        if limits.is_over:
            break
        other = _cheaper(space, plan, n, cost)
        if other is not None:
            plan = plan[:n] + [(other, host)] + plan[n + 1:]
    if plan != found.best.plan:
        found.prefer(End(cost, plan))


def _cheaper(space: SearchSpace, plan, n: int, cost: float) -> int | None:
    vm, host = plan[n]
    moved = {other for other, _ in plan}
    residents = space.residents[space.home[vm]]
    others = [int(other) for other in residents[space.may_go(residents, host)]
              if space.memory[other] < space.memory[vm] and other not in moved]
    if not others:
        return None
    rest = plan[:n] + plan[n + 1:]
    scores, free = (np.repeat(end, len(others), axis=2) for end in space.after([rest]))
    space.shift(scores, free, np.arange(len(others)), np.array(others), np.full(len(others), host))
    costs = space.combined(scores) + space.price_of(rest) + space.prices(
        np.array(others), np.full(len(others), host))
    serves = (costs <= cost + TOLERANCE) & space.is_legal(
        scores.max(axis=0), scores.min(axis=0), free)
    return min((other for row, other in enumerate(others) if serves[row]),
               key=lambda other: (space.memory[other], other), default=None)
