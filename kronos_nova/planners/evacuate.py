"""Empties hosts that an operator disabled.

First one host after the other: the largest instance first, each to where it does least harm. Where
that leaves instances behind, the ends of all of them are chosen together, and other instances give
way if they must (:mod:`.assignment`). The order is found afterwards (:mod:`.order`).

That a host becomes empty matters more than how loaded the others are. What no destination takes
without spoiling a policy goes where it spoils least, and makes a host pass the overload ceiling
only if every other would as well. What it is not known of how loaded it or its destinations are
goes by room alone: the largest first, to where most is left (Graham's LPT rule, 1969).
"""

import dataclasses
from collections.abc import Iterable

import numpy as np

from kronos_nova.model import Model
from kronos_nova.model import State
from kronos_nova.objects.plan import EVACUATE
from kronos_nova.planners import order
from kronos_nova.planners.assignment import Assignment
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import Step
from kronos_nova.planners.best_move import least_harmful
from kronos_nova.planners.steps import StepRecorder

BY_ROOM = '; its load is not known, so room alone decides where it goes'
BY_ROOM_THERE = '; of no host with room is the load known, so room alone decides where it goes'
AHEAD = 400
"""Moves that are planned at least, whatever the budget, so that the first ones leave room for the
others. Raised, plans of few moves for many hosts take longer; lowered, they may block each other."""
VARIABLES = 30_000
"""Pairs of kind and host in one program. Raised, more hosts are looked at together, in more time;
lowered, fewer: then only those with most room."""
ROUNDS = 6
"""Ends that are tried for an order before the evacuation is done in part."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Way:
    """moves : (instance, destination, what is said of the choice), in order; stays : instances
    that do not leave"""

    moves: list[tuple[int, int, str]]
    stays: int


class Evacuator:
    """Of the ways to empty the draining hosts, the first that leaves no instance behind, else the
    one that leaves fewest.

    Hosts are emptied one after the other, the one with the least memory to copy first, so that a
    plan which is cut leaves whole hosts empty. Instances of which another try is likely to fail are
    the last, so that they do not keep the others from their turn.
    """

    phase = EVACUATE

    def plan(self, state: State, limits: Limits) -> list[Step]:
        way = _one_by_one(state, limits)
        if way.stays and not limits.is_over:
            way = _together(state, way, limits)
        return _recorded(state, way, limits)


def _recorded(state: State, way: _Way, limits: Limits) -> list[Step]:
    problem, recorder, steps = state.problem, StepRecorder(state), []
    for vm, host, addition in way.moves[:limits.budget]:
        source = int(state.vm_host[vm])
        why = (f'empties {problem.hosts[source]}, which is disabled' if problem.draining[source]
               else f'makes room on {problem.hosts[source]} for what leaves disabled hosts')
        steps.append(recorder.record(vm, host, why + addition))
    return steps


def _one_by_one(state: State, limits: Limits) -> _Way:
    """Each instance to where it does least harm, host after host."""
    trial, moves, stays = state.copy(), [], 0
    within = [model.with_ceiling(state, limits.overload_ceiling)
              for model in (state.model, state.model.for_emptying)]
    for vm in _in_turn(state):
        if len(moves) >= max(limits.budget, AHEAD) or limits.is_over:
            break
        found = _place(trial, vm, *within)
        if found is None:
            stays += 1
        else:
            trial.move(vm, found[0])
            moves.append((vm, *found))
    return _Way(moves, stays)


def _in_turn(state: State) -> list[int]:
    """The instances to be moved, in the order in which a place is looked for."""
    problem, vms = state.problem, waiting(state)
    hosts = state.vm_host[vms]
    to_copy = np.bincount(hosts, problem.memory_mb[vms], len(problem.hosts))
    return vms[np.lexsort((vms, -problem.memory_mb[vms], -_size(state, vms), hosts,
                           to_copy[hosts], problem.doubtful[vms]))].tolist()


def _size(state: State, vms: np.ndarray) -> np.ndarray:
    """float64 (n,): the part of all free room that each instance needs, in the class in which that
    is most."""
    problem = state.problem
    count = len(problem.hosts)
    free = np.maximum((problem.limits - state.used)[:count][problem.available], 0.0).sum(axis=0)
    return (problem.demands[vms] / np.maximum(free, 1.0)).max(axis=1, initial=0.0)


def _place(state: State, vm: int, within: Model, forced_within: Model) -> tuple[int, str] | None:
    """(destination, what is to be said of the choice), or None.

    :param within, forced_within: the model, and that for emptying, with the overload ceiling
    """
    if not state.problem.unweighed[vm]:
        pair = (least_harmful(state, [vm], model=within)
                or least_harmful(state, [vm], is_forced=True, model=forced_within)
                or least_harmful(state, [vm], is_forced=True))
        if pair:
            return pair[1], ''
    hosts = by_room(state, vm)
    if not hosts:
        return None
    return hosts[0], BY_ROOM if state.problem.unweighed[vm] else BY_ROOM_THERE


def _together(state: State, way: _Way, limits: Limits) -> _Way:
    """A way on which fewer stay than on another one, or that one."""
    model = state.model.for_emptying
    assignment = _assignment(state, model.with_ceiling(state, limits.overload_ceiling), way)
    for _round in range(ROUNDS):
        ended = assignment.solve(limits.deadline - limits.clock())
        if ended is None or len(ended.stays) >= way.stays:
            break
        ordering, waiting_ = _ordered(state.under(model), ended.moves, limits)
        left = sum(1 for vm, _host in waiting_ if state.problem.draining[state.vm_host[vm]])
        if left + len(ended.stays) < way.stays:
            way = _Way([(vm, host, '') for vm, host in ordering], left + len(ended.stays))
        if not waiting_ or limits.is_over:
            break
        assignment.forbid(*waiting_[0])
    return way


def _assignment(state: State, model: Model, way: _Way) -> Assignment:
    problem = state.problem
    hosts = np.flatnonzero(problem.available)
    others = np.flatnonzero(problem.movable & problem.available[state.vm_host])
    return Assignment(state, model, waiting(state), others, hosts)


def _ordered(state: State, moves: Iterable[tuple[int, int]],
             limits: Limits) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The moves that have an order, in it, and those that have none: host after host, those that
    make room when they are needed; else these first."""
    problem, moves = state.problem, list(moves)
    turn = {vm: n for n, vm in enumerate(_in_turn(state))}
    leaving = sorted((move for move in moves if move[0] in turn), key=lambda move: turn[move[0]])
    others = [move for move in moves if move[0] not in turn]
    first = [move for move in leaving
             if leaving and state.vm_host[move[0]] == state.vm_host[leaving[0][0]]]
    free = dataclasses.replace(limits, budget=len(moves) + len(problem.hosts))
    best: tuple[list[tuple[int, int]], list[tuple[int, int]]] = [], moves
    for sequence in ([*first, *others, *leaving[len(first):]], [*others, *leaving]):
        ordering = order.Ordering(state, free)
        ordering.do_all(sequence)
        made = dict(ordering.done)
        left = [move for move in sequence if made.get(move[0]) != move[1]]
        if len(left) < len(best[1]):
            best = ordering.done, left
        if not left:
            break
    return best


def by_room(state: State, vm: int) -> list[int]:
    """The hosts to which an instance may go when its host is to be emptied, the least full
    first."""
    hosts = np.flatnonzero(state.delta((vm, np.arange(len(state.problem.hosts))),
                                       model=state.model.for_emptying).feasible)
    return hosts[np.argsort(state.fill[hosts], kind='stable')].tolist()


def waiting(state: State) -> np.ndarray:
    """intp: the instances that the evacuator may still move."""
    return np.flatnonzero(state.problem.draining[state.vm_host] & state.problem.evacuable)
