"""The planner that empties hosts that an operator disabled.

Hosts are emptied one after the other: each instance, the largest first, goes to the host after
which the imbalance is lowest. Where that leaves instances behind, the destinations of all instances
are chosen together, and other instances make room if necessary
(:mod:`kronos_nova.model.assignment`). The order of the moves is found afterwards (:mod:`.order`).

Empty hosts matter more than even loads. Where every destination makes the imbalance of some policy
worse, an instance goes to the destination that makes it worse by the least. It goes to a host that
ends above the overload ceiling only if all possible hosts would. Where the load of an instance or
of its destinations is not known, room alone decides: the largest instance goes first, to the host
with most room (Graham's LPT rule, 1969).
"""

import dataclasses
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence

import numpy as np

from kronos_nova.model import Model
from kronos_nova.model import State
from kronos_nova.model import assignment
from kronos_nova.model.program import PASSING
from kronos_nova.model.program import Program
from kronos_nova.objects.plan import EVACUATE
from kronos_nova.planners import order
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import NoPlace
from kronos_nova.planners.base import Step
from kronos_nova.planners.base import StepRecorder
from kronos_nova.planners.best_move import least_harmful

BY_ROOM = '; its load is not known, so room alone decides where it goes'
BY_ROOM_THERE = '; of no host with room is the load known, so room alone decides where it goes'
AHEAD = 400
"""Least number of moves that are searched ahead when hosts are emptied. One plan may have fewer;
then the first moves leave room for later ones. Raised, plans for many hosts take longer; lowered,
the first moves take room that later moves need. Not measured."""
PAIRS = 2_000, 6_000, 20_000
"""Maximum numbers of pairs of a kind of instances and a host in the integer program that empties
hosts. They are tried in this order until all instances can leave. Raised, more hosts are
considered, and plans take longer; lowered, only the hosts with most free room are considered, and
more instances stay. Not measured."""
GAP = 0.01
"""Part of the least cost by which the solution of the integer program may be worse. The program
chooses destinations when hosts are emptied. Raised, large programs take less time; lowered, plans
copy a few GiB less of the instances that make room. Not measured."""
NODES = 200
"""Maximum number of branch-and-bound nodes of the integer program that empties hosts. Raised, plans
take longer; lowered, more plans are not the best. Chosen above the 1 to 50 nodes that programs of
ten hosts need."""
CHECKED = 20_000
"""Number of moves that may be repeated on a copy of the cluster to find needless ones. Each takes
some 0.1 ms. Raised, large plans take longer; lowered, only small plans are free of needless moves.
Not measured."""
ROUNDS = 6
"""Maximum number of end states that are tried to empty hosts. An end state says which instance ends
on which host. The next one is tried if its moves cannot be made one after the other. If none can be
reached, hosts are emptied only in part. Raised, more hosts are emptied where others are nearly
full, and plans take longer; lowered, fewer hosts are emptied there. Measured: with this value the
hosts of all 300 clouds of ``bench optimum`` are emptied."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Way:
    """A sequence of moves that empties hosts. ``stays`` is the number of instances that are left on
    these hosts.

    moves : (instance, destination, text that is added to the reason of the move), in order"""

    moves: list[tuple[int, int, str]]
    stays: int


class Evacuator:
    """A planner that empties the draining hosts, with as few instances left behind as possible.

    Hosts are emptied one after the other, the host with the least memory to copy first, so that
    some hosts are completely empty even if a plan is cut off. Instances whose moves are likely to
    fail again are moved last, so that other instances do not wait for them.
    """

    phase = EVACUATE

    def plan(self, state: State, limits: Limits) -> list[Step]:
        limits.unplaced.clear()
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
    """Choose a destination for each instance, host after host. It is the host with which the
    imbalance stays lowest."""
    moves: list[tuple[int, int, str]] = []
    trial, stays = state.copy(), 0
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
    """Return the instances to be moved, in the order in which places are searched for them."""
    problem, vms = state.problem, waiting(state)
    hosts = state.vm_host[vms]
    to_copy = np.bincount(hosts, problem.memory_mb[vms], len(problem.hosts))
    size = assignment.parts_of_free_room(state, vms)
    return vms[np.lexsort((vms, -problem.memory_mb[vms], -size, hosts, to_copy[hosts],
                           problem.doubtful[vms]))].tolist()


def _place(state: State, vm: int, within: Model, forced_within: Model) -> tuple[int, str] | None:
    """Return (destination, text that is added to the reason of the move) for an instance; None if
    no host may take the instance.

    :param within: the model with the overload ceiling
    :param forced_within: the model for emptying with the overload ceiling
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
    """Return a _Way that leaves fewer instances on their hosts than ``way``; ``way`` itself if none
    is found.

    Each round makes two choices for some of the hosts together: the instances that go to these
    hosts, and the instances that make room there. The places of all other instances do not change
    in this round.
    """
    forced = state.under(state.model.for_emptying)
    model = forced.model.with_ceiling(state, limits.overload_ceiling)
    places = {vm: host for vm, host, _words in way.moves}
    forbidden: list[tuple[int, int]] = []
    is_proven = False
    for _round in range(ROUNDS):
        is_proven = _choose_places(forced, model, places, forbidden, limits)
        done, without_order = _ordered(forced, list(places.items()), limits)
        made = dict(done)
        stays = sum(1 for vm in waiting(state).tolist() if vm not in made)
        if stays < way.stays:
            way = _Way([(vm, host, '') for vm, host in _needed(forced, done)], stays)
        if not without_order or limits.is_over:
            break
        forbidden.append(without_order[0])
        for vm, _host in without_order:
            del places[vm]
    moved = {vm for vm, _host, _words in way.moves}
    stay = [vm for vm in waiting(state).tolist() if vm not in moved]
    limits.unplaced.update(_why(forced, stay, is_proven))
    return way


def _why(state: State, stay: list[int], is_proven: bool) -> Iterator[tuple[int, NoPlace]]:
    """Yield (instance, why it finds no place) for the instances that stay.

    :param is_proven: whether it is proven that no fewer can stay
    """
    if not stay:
        return
    problem, leaving = state.problem, waiting(state)
    others = np.flatnonzero(problem.movable & ~problem.draining[state.vm_host])
    every = assignment.Assignment(state, state.model, leaving, leaving[:0],
                                  np.flatnonzero(~problem.draining))
    for vm in stay:
        bound = every.is_exact and every.why_too_large(vm, others) or every.why_too_little
        if bound:
            yield vm, NoPlace(bound, is_proven=True)
        elif is_proven:
            yield vm, NoPlace('of all ways to place what has to leave, also if others give way, '
                              'none leaves fewer behind', is_proven=True)
        else:
            yield vm, NoPlace('no way was found to place it within the work of one plan; there may '
                              'be one', is_proven=False)


def _solved(together: assignment.Assignment, limits: Limits) -> assignment.Ended | None:
    """Return the end state in which the fewest of the instances that have to leave stay. Of end
    states that are equal in this, the one with the least load above limits is returned, and of
    these the one that copies the least memory of other instances. None if no end state was found in
    time."""
    program = Program(together)
    program.keep_load_limits(price=PASSING)
    program.keep_reserved_room()
    solution = program.solve(limits.deadline - limits.clock(), GAP, NODES)
    return None if solution is None else together.ended(solution)


def _assignment(state: State, model: Model, leaving: Sequence[int] | np.ndarray,
                hosts: np.ndarray) -> assignment.Assignment:
    """Make the assignment of instances that leave and of others that may give way.

    :param hosts: bool (H,), possible destinations, whose own instances may make room
    """
    others = state.problem.movable & hosts[state.vm_host]
    return assignment.Assignment(state, model, np.array(leaving, dtype=np.intp),
                                 np.flatnonzero(others), np.flatnonzero(hosts))


def _choose_places(state: State, model: Model, places: dict[int, int],
                   forbidden: list[tuple[int, int]], limits: Limits) -> bool:
    """Change the destinations of instances, those of some hosts at a time, so that fewer instances
    stay, until no such change is found.

    :param places: {instance: its destination} of the instances that move; changed in place
    :param forbidden: pairs of instance and host for which no order of moves was found
    :returns: whether it is proven that no fewer can stay
    """
    in_turn, is_proven = _in_turn(state), False
    for pairs in PAIRS:
        is_whole = False
        while left := [vm for vm in in_turn if vm not in places]:
            if limits.is_over:
                return False
            now = state.after(places.items())
            reach = assignment.roomiest(now, pairs)
            here = left if is_whole else assignment.first_that_fit(now, left, reach)
            lifted = [vm for vm in in_turn if vm in places and reach[places[vm]]]
            begin = state.after((vm, host) for vm, host in places.items() if vm not in set(lifted))
            together = _assignment(begin, model, lifted + here, reach)
            for pair in forbidden:
                together.forbid(*pair)
            ended = _solved(together, limits)
            is_proven = (ended is not None and ended.is_proven and not forbidden
                         and len(lifted) + len(here) == len(in_turn)
                         and bool((reach | state.problem.draining).all()))
            if ended is None or len(ended.stays) >= len(here):
                if len(here) == len(left):
                    break
                is_whole = True  # Later instances may fit although these do not.
                continue
            for vm in lifted:
                del places[vm]
            places.update(ended.moves)
    return is_proven


def _ordered(state: State, moves: Iterable[tuple[int, int]],
             limits: Limits) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return two lists: the moves that can be made one after the other, in this order, and the
    moves that cannot be made. Hosts are emptied in turn, and moves that make room are made when
    they are needed. Where that leaves moves that cannot be made, all moves that make room are tried
    first instead."""
    problem, moves = state.problem, list(moves)
    turn = {vm: n for n, vm in enumerate(_in_turn(state))}
    leaving = sorted((move for move in moves if move[0] in turn), key=lambda move: turn[move[0]])
    others = [move for move in moves if move[0] not in turn]
    # The moves of the first host need not be together in the list, because doubtful instances of
    # all hosts are at its end.
    first = [move for move in leaving if state.vm_host[move[0]] == state.vm_host[leaving[0][0]]]
    rest = [move for move in leaving if state.vm_host[move[0]] != state.vm_host[leaving[0][0]]]
    free = dataclasses.replace(limits, budget=len(moves) + len(problem.hosts))
    best: tuple[list[tuple[int, int]], list[tuple[int, int]]] = [], moves
    for sequence in ([*first, *others, *rest], [*others, *leaving]):
        ordering = order.Ordering(state, free)
        ordering.do_all(sequence)
        made = dict(ordering.done)
        left = [move for move in sequence if made.get(move[0]) != move[1]]
        if len(left) < len(best[1]):
            best = ordering.done, left
        if not left:
            break
    return best


def _needed(state: State, moves: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the moves without needless ones. A move of an instance that need not leave is needless
    if all other moves are possible without it."""
    others = dict.fromkeys(vm for vm, _host in moves
                           if not state.problem.draining[state.vm_host[vm]])
    if len(others) * len(moves) > CHECKED:
        return moves
    for vm in reversed(others):
        rest = [move for move in moves if move[0] != vm]
        if _are_possible(state, rest):
            moves = rest
    return moves


def _are_possible(state: State, moves: list[tuple[int, int]]) -> bool:
    """Return whether moves may be made one after the other."""
    trial = state.copy()
    for vm, host in moves:
        if not trial.delta((vm, host)).feasible:
            return False
        trial.move(vm, host)
    return True


def by_room(state: State, vm: int) -> list[int]:
    """Return the hosts to which an instance may go when its host is to be emptied, the least full
    first."""
    hosts = np.flatnonzero(state.delta((vm, np.arange(len(state.problem.hosts))),
                                       model=state.model.for_emptying).feasible)
    return hosts[np.argsort(state.fill[hosts], kind='stable')].tolist()


def waiting(state: State) -> np.ndarray:
    """Return intp: the instances on draining hosts that may be moved and have not left yet."""
    return np.flatnonzero(state.problem.draining[state.vm_host] & state.problem.evacuable)
