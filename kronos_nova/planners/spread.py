"""Spread: the least combined imbalance that the budget can buy."""

import numpy as np

from kronos_nova.constraints.base import Constraints
from kronos_nova.objects.plan import SPREAD
from kronos_nova.planners import order
from kronos_nova.planners.arena import Arena
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import Step
from kronos_nova.planners.beam import Beam
from kronos_nova.planners.beam import End
from kronos_nova.planners.greedy import Greedy
from kronos_nova.planners.improve import Search
from kronos_nova.planners.outcome import Outlook
from kronos_nova.simulation import TOLERANCE
from kronos_nova.simulation import State

ENDS = 50
TRIED_WHEN_LATE = 8
"""Plans for which an order is looked for, even after the deadline, as long as none has one."""


class Spread:
    """Begins with what ``greedy`` would do, searches for better end states, and makes the best one
    to which there is an order of moves that the constraints permit."""

    phase = SPREAD

    def plan(self, state: State, constraints: Constraints, limits: Limits) -> list[Step]:
        if Outlook(state).is_balanced or limits.budget < 1:
            return []
        constraints = order.below_ceiling(constraints, state, limits)
        arena = Arena(state, constraints, limits, hosts_that_matter(state, limits.budget))
        if len(arena.hosts) < 2 or not len(arena.vms):
            return []
        beam = Beam(arena, limits)
        search = Search(beam, limits)
        search.begin()
        first = as_greedy(beam, state, constraints, limits)
        search.run()
        hops = best_possible(beam, state, constraints, limits, first)
        return order.carry_out(hops, state, lambda hop: 'evens the load')


def as_greedy(beam: Beam, state: State, constraints: Constraints,
              limits: Limits) -> list[order.Hop]:
    """What ``greedy`` would do: a plan to beat, and if nothing it touches is left out of the search
    one to begin with."""
    trial, arena = state.copy(), beam.arena
    steps = Greedy().plan(trial, constraints, limits)
    if np.isin([(step.source, step.destination) for step in steps], arena.hosts).all():
        plan = arena.plan_of(trial)
        beam.keep(End(trial.combined() + arena.price_of(plan), plan))
    return [order.Hop(step.vm, step.source, step.destination) for step in steps]


def hosts_that_matter(state: State, budget: int) -> np.ndarray:
    """Of the available hosts those at the ends of some policy, about as many as a plan could touch;
    sorted."""
    available = np.flatnonzero(state.problem.available)
    most = ENDS + budget // 2
    if len(available) <= 2 * most * len(state.problem.policies):
        return available
    matter = set()
    for scores in state.scores[available].T:
        by_score = available[np.argsort(scores, kind='stable')]
        matter.update(by_score[:most].tolist(), by_score[-most:].tolist())
    return np.array(sorted(matter))


def best_possible(beam: Beam, state: State, constraints: Constraints, limits: Limits,
                  first: list[order.Hop]) -> list[order.Hop]:
    """Of the plans found, the best for which there is an order, or the part of one that ends best;
    ``first`` if none is better."""
    arena = beam.arena
    best = min(([], first), key=lambda hops: _worth(state, hops, limits))
    worth, is_improved = _worth(state, best, limits), False
    for number, end in enumerate(beam.kept):
        if end.cost > (worth[0] + 1) * TOLERANCE or (
                (is_improved or number >= TRIED_WHEN_LATE) and limits.is_over):
            break
        run = order.Run(state, constraints, limits)
        run.do_all([(int(arena.vms[vm]), int(arena.hosts[host])) for vm, host in end.plan])
        hops, is_legal = list(run.hops), (state.imbalances() <= arena.worst).all()
        run.undo()
        reached = _worth(state, hops, limits)
        if is_legal and reached < worth:
            best, worth, is_improved = hops, reached, True
    return best


def _worth(state: State, hops: list[order.Hop], limits: Limits) -> tuple[int, int, int]:
    """What is left of the combined imbalance plus the price of the moves, in units of the
    tolerance; then how many moves; then their memory. The smaller, the better."""
    trial, price = state.copy(), 0.0
    for hop in hops:
        trial.move(hop.vm, hop.destination)
        price += limits.prices.of(hop.vm, hop.source, hop.destination)
    memory = sum(int(state.problem.memory_mb[hop.vm]) for hop in hops)
    return round((trial.combined() + price) / TOLERANCE), len(hops), memory
