"""The planner that empties draining hosts: hosts that an operator disabled or drains.

Draining hosts are emptied one after the other. The largest instance goes first. Each instance goes
to the host for which the combined imbalance is lowest afterwards. If no destination is found for
some instances, an integer program (:mod:`kronos_nova.model.assignment`) chooses the destinations of
several instances together. Instances of other hosts may then move to make room. A possible order of
the moves is found afterwards (:mod:`.order`).

Empty hosts matter more than even loads, so an instance moves even if every destination raises the
imbalance. The overload ceiling is a score that no host should exceed. A destination that would
exceed the ceiling is chosen only if every possible destination would exceed it. If the load of the
instance or of its possible destinations is not known, the instance goes to the host with most room.
To choose the largest instance first and the emptiest host for it is Graham's LPT rule (1969).
"""

import dataclasses
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence

import numpy as np

from kronos_nova.model import TOLERANCE
from kronos_nova.model import Model
from kronos_nova.model import State
from kronos_nova.model import assignment
from kronos_nova.model.program import PASSING
from kronos_nova.model.program import Program
from kronos_nova.objects.plan import EVACUATE
from kronos_nova.planners import order
from kronos_nova.planners.base import AHEAD
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import NoPlace
from kronos_nova.planners.base import SearchBudget
from kronos_nova.planners.base import Step
from kronos_nova.planners.base import StepRecorder
from kronos_nova.planners.best_move import least_harmful

BUDGET = SearchBudget(pairs=(2_000, 6_000, 20_000), nodes=200, gap=0.01, ends=6)
"""Limits of the integer program that empties hosts. A pair is an instance size and a host. The cost
is the memory of instances on other hosts that move to make room. Measured by ``bench optimum``:
programs of ten hosts need 1 to 50 nodes, and with six end states the hosts of all 300 clouds are
emptied. No plan of 30 clouds depends on a quarter or four times of a number (``bench
constants``)."""
CHECKED = 20_000
"""Maximum number of moves that are simulated to find needless moves in a plan. A needless move is
one without which all other moves are possible. Each simulated move takes some 0.1 ms. A plan that
would need more simulated moves is not checked. Raised, large plans take longer; lowered, more large
plans keep needless moves. Not measured."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Way:
    """A sequence of moves that empties draining hosts.

    moves : (instance, destination, text that is added to the reason of the move), in order
    stays : number of instances that stay on draining hosts
    emptied : number of draining hosts that the moves empty
    """

    moves: list[tuple[int, int, str]]
    stays: int
    emptied: int

    @property
    def rating(self) -> tuple[int, int]:
        """The rating of the sequence; a smaller rating is better. The first number is the number of
        instances that stay. Of sequences with equally many, the one that empties most hosts is the
        best."""
        return self.stays, -self.emptied


class Evacuator:
    """A planner that empties the draining hosts and leaves as few instances behind as possible.

    Hosts are emptied one after the other. The first is the host from which least memory has to be
    copied. So some hosts are completely empty even if only the first moves of a plan are made.
    Instances whose moves are likely to fail again are moved last, so that other instances do not
    wait for them.
    """

    phase = EVACUATE

    def plan(self, state: State, limits: Limits) -> list[Step]:
        limits.unplaced.clear()
        way = _one_by_one(state, limits)
        if way.stays and not limits.is_over:
            way = _together(state, way, limits)
        return _recorded(state, way, limits)


def _recorded(state: State, way: _Way, limits: Limits) -> list[Step]:
    problem, moves, steps = state.problem, _within_budget(state, way.moves, limits.budget), []
    recorder = StepRecorder(state)
    for vm, host, addition in moves:
        source = int(state.vm_host[vm])
        why = (f'empties {problem.hosts[source]}, which is disabled' if problem.draining[source]
               else f'makes room on {problem.hosts[source]} for what leaves disabled hosts')
        steps.append(recorder.record(vm, host, why + addition))
    if len(moves) < min(limits.budget, len(way.moves)):
        made = {vm for vm, _host, _text in moves}
        too_many = NoPlace('other servers have to make room first, and the plan may have too few '
                           'moves for that (max_migrations_per_cycle)', is_proven=False,
                           word='budget')
        limits.unplaced.update((vm, too_many) for vm, _host, _text in way.moves
                               if vm not in made and problem.draining[state.vm_host[vm]])
    return steps


def _within_budget(state: State, moves: list[tuple[int, int, str]],
                   budget: int) -> list[tuple[int, int, str]]:
    """Return the moves of a plan, at most ``budget`` of ``moves``. A move that makes room is in the
    plan only if a move that needs this room is in the plan as well. Otherwise, the next plan could
    choose another way and move the same instance again.

    :param moves: (instance, destination, text) in order
    """
    makes_room = not state.problem.draining[state.vm_host[[vm for vm, _host, _text in moves]]].all()
    if len(moves) <= budget or not makes_room:
        return moves[:budget]
    forced, recorder = state.under(state.model.for_emptying), StepRecorder(state.copy())
    steps = [recorder.record(vm, host, '') for vm, host, _text in moves]
    needed = order.dependencies(steps, forced)
    chosen: set[int] = set()
    for n, step in enumerate(steps):
        if state.problem.draining[step.source]:
            chosen = next((found for found in (chosen | {n}, chosen | _with_all(n, needed))
                           if len(found) <= budget and order.state_after(
                               forced, [moves[each][:2] for each in sorted(found)])), chosen)
        if len(chosen) == budget:
            break
    return [moves[n] for n in sorted(chosen)]


def _with_all(n: int, needed: Sequence[Sequence[int]]) -> set[int]:
    """Return the position of a move and the positions of all moves for which it waits.

    :param needed: for each move, the positions of the moves for which it waits immediately
    """
    found, waits = set[int](), [n]
    while waits:
        last = waits.pop()
        if last not in found:
            found.add(last)
            waits.extend(needed[last])
    return found


def _one_by_one(state: State, limits: Limits) -> _Way:
    """Return moves that empty the draining hosts, one host after the other. The destination of each
    instance is the host for which the combined imbalance is lowest after the move."""
    trial = state.copy()
    moves, stays = _place_each(trial, _in_turn(state), _within(state, limits), limits)
    return _Way(moves, stays, len(_emptied(state, trial)))


def _emptied(state: State, after: State) -> np.ndarray:
    """Return intp: the draining hosts that have instances in ``state`` and none in ``after``."""
    return np.flatnonzero(state.problem.draining & (state.guests > 0) & (after.guests == 0))


def _within(state: State, limits: Limits) -> tuple[Model, Model]:
    """Return two models with one more rule: no host may exceed the overload ceiling. The first is
    the model of the state. The second is this model without the rules that may be relaxed when
    hosts are emptied."""
    strict, forced = (model.with_ceiling(state, limits.overload_ceiling)
                      for model in (state.model, state.model.for_emptying))
    return strict, forced


def _place_each(trial: State, vms: list[int], within: tuple[Model, Model],
                limits: Limits) -> tuple[list[tuple[int, int, str]], int]:
    """Move one instance after the other to the destination that :func:`_place` chooses. Instances
    without a destination are tried again after the others, as long as one of them can be moved,
    because some rules permit a destination only after other instances have moved.

    :param trial: the state before the moves; changed to the state after the moves
    :param within: models as in :func:`_place`
    :returns: the moves, each with the text that is added to its reason; and the number of instances
        without a destination
    """
    moves: list[tuple[int, int, str]] = []
    stay: list[int] = []
    is_first, count = True, 0
    while vms and (is_first or len(vms) < count):
        is_first, count, stay = False, len(vms), []
        for vm in vms:
            if len(moves) >= limits.budget + AHEAD or limits.is_over:
                return moves, len(stay)
            found = _place(trial, vm, *within)
            if found is None:
                stay.append(vm)
            else:
                trial.move(vm, found[0])
                moves.append((vm, *found))
        vms = stay
    return moves, len(stay)


def _in_turn(state: State) -> list[int]:
    """Return the instances that have to leave the draining hosts, in the order in which their
    destinations are chosen."""
    problem, vms = state.problem, waiting(state)
    hosts = state.vm_host[vms]
    to_copy = np.bincount(hosts, problem.memory_mb[vms], len(problem.hosts))
    size = assignment.parts_of_free_room(state, vms)
    return vms[np.lexsort((vms, -problem.memory_mb[vms], -size, hosts, to_copy[hosts],
                           problem.doubtful[vms]))].tolist()


def _place(state: State, vm: int, within: Model, forced_within: Model) -> tuple[int, str] | None:
    """Choose a destination for an instance. Return (destination, text that is added to the reason
    of the move); None if no host may take the instance.

    :param within: the model of the state with one more rule: no host may exceed the overload
        ceiling
    :param forced_within: the model ``within`` without the rules that may be relaxed when hosts are
        emptied
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
    unknown = ('its load is not known' if state.problem.unweighed[vm]
               else 'of no host with room is the load known')
    return hosts[0], f'; {unknown}, so room alone decides where it goes'


def _together(state: State, way: _Way, limits: Limits) -> _Way:
    """Return a sequence of moves that leaves fewer instances on the draining hosts than ``way``
    does, or equally many and more empty hosts. Return ``way`` if no such sequence is found.

    The search has several steps. Each step takes some of the possible destinations, and solves an
    integer program for them: it chooses which instances move to these hosts, and which instances of
    these hosts move away to make room. All other instances keep their destinations in this step.
    """
    forced = state.under(state.model.for_emptying)
    model = forced.model.with_ceiling(state, limits.overload_ceiling)
    places = {vm: host for vm, host, _words in way.moves}
    forbidden: list[tuple[int, int]] = []
    least = 0
    for _round in range(BUDGET.ends):
        least = max(least, _choose_places(forced, model, places, forbidden, limits))
        _empty_more_hosts(forced, model, places, forbidden, limits)
        done, without_order = _ordered(forced, list(places.items()), limits)
        trial = forced.after(done)
        left = set(waiting(trial).tolist())
        others, _count = _place_each(trial, [vm for vm in _in_turn(state) if vm in left],
                                     _within(state, limits), limits)
        done = [*done, *((vm, host) for vm, host, _words in others)]
        found = _Way([], len(waiting(trial)), len(_emptied(state, trial)))
        if found.rating < way.rating:
            way = dataclasses.replace(
                found, moves=[(vm, host, '') for vm, host in _needed(
                    forced, done, limits.overload_ceiling)])
        if not without_order or limits.is_over:
            break
        forbidden.append(without_order[0])
        for vm, _host in without_order:
            del places[vm]
    moved = {vm for vm, _host, _words in way.moves}
    stay = [vm for vm in waiting(state).tolist() if vm not in moved]
    limits.unplaced.update(_why(forced, stay, len(stay) <= least))
    return way


def _why(state: State, stay: list[int], is_proven: bool) -> Iterator[tuple[int, NoPlace]]:
    """Yield (instance, NoPlace with the reason) for each instance that stays.

    :param stay: the instances for which no destination was found
    :param is_proven: whether it is proven that no plan leaves fewer than ``len(stay)`` instances
        behind
    """
    if not stay:
        return
    problem, leaving = state.problem, waiting(state)
    others = np.flatnonzero(problem.movable & ~problem.draining[state.vm_host])
    every = assignment.Assignment(state, state.model, leaving, leaving[:0],
                                  np.flatnonzero(~problem.draining))
    hosts = np.unique(state.vm_host[leaving]).tolist()
    sources = tuple(hosts) if len(hosts) > 1 else ()
    for vm in stay:
        if every.is_exact and (too_large := every.why_too_large(vm, others)):
            yield vm, NoPlace(too_large, is_proven=True)
        elif every.why_too_little:
            yield vm, NoPlace(every.why_too_little, is_proven=True, sources=sources)
        elif is_proven:
            yield vm, NoPlace(f'no single resource is too small, but {len(stay)} of the servers '
                              'that need a host find none, however the other servers that may be '
                              'moved make room', is_proven=True, sources=sources)
        else:
            yield vm, NoPlace('no way was found to place it within the work of one plan; there may '
                              'be one', is_proven=False)


def _solved(together: assignment.Assignment, limits: Limits,
            to_empty: np.ndarray | None = None) -> assignment.Ended | None:
    """Return the best end state; None if no end state was found before ``limits.deadline``.

    The best end state leaves the fewest instances on the draining hosts. Of equal end states, the
    best empties the most hosts of ``to_empty``. Of end states that are still equal, the best has
    the least load above the load limits of the model. If these loads are equal as well, the best
    end state is the one for which the least memory is copied to make room.

    :param to_empty: intp, draining hosts of which no two have instances of one kind; None if the
        number of emptied hosts does not count
    """
    program = Program(together)
    program.keep_load_limits(price=PASSING)
    program.keep_reserved_room()
    if to_empty is not None:
        program.reward_emptied(to_empty)
    solution = BUDGET.solve(program, limits, is_short=to_empty is not None)
    return None if solution is None else together.ended(solution)


def _assignment(state: State, model: Model, leaving: Sequence[int] | np.ndarray, hosts: np.ndarray,
                is_by_source: bool = False) -> assignment.Assignment:
    """Return the input of the integer program, with the instances that leave and the instances that
    may make room.

    :param leaving: the instances that leave
    :param hosts: bool (H,), possible destinations, whose own instances may make room
    :param is_by_source: True if instances of two draining hosts must not be of one kind
    """
    others = state.problem.movable & hosts[state.vm_host]
    sources = np.where(state.problem.draining[state.vm_host], state.vm_host, -1)
    return assignment.Assignment(state, model, np.array(leaving, dtype=np.intp),
                                 np.flatnonzero(others), np.flatnonzero(hosts),
                                 sets=sources if is_by_source else None)


def _choose_places(state: State, model: Model, places: dict[int, int],
                   forbidden: list[tuple[int, int]], limits: Limits) -> int:
    """Change the destinations in ``places`` so that fewer instances stay on draining hosts. Stop
    when no such change is found. Each change chooses the destinations on some of the hosts
    together, by an integer program.

    :param places: {instance: destination} of the instances that move; changed in place
    :param forbidden: pairs (instance, host) of moves for which no possible order was found
    :returns: the number of instances that every plan leaves on draining hosts, by a proof; 0 if
        nothing is proven
    """
    in_turn, least, reach = _in_turn(state), 0, ~state.problem.draining
    for pairs in BUDGET.pairs:
        is_whole = False
        while left := [vm for vm in in_turn if vm not in places]:
            if limits.is_over:
                return least
            now = state.after(places.items())
            reach = assignment.roomiest(now, pairs)
            here = left if is_whole else assignment.first_that_fit(now, left, reach)
            lifted = [vm for vm in in_turn if vm in places and reach[places[vm]]]
            begin = state.after((vm, host) for vm, host in places.items() if vm not in set(lifted))
            together = _assignment(begin, model, lifted + here, reach)
            for pair in forbidden:
                together.forbid(*pair)
            ended = _solved(together, limits)
            if not forbidden and len(lifted) == len(places) and len(here) == len(left):
                least = max(least, _proven_to_stay(state, reach, ended))
            if ended is None or len(ended.stays) >= len(here):
                if len(here) == len(left):
                    break
                is_whole = True  # Later instances may fit although these do not.
                continue
            for vm in lifted:
                del places[vm]
            places.update(ended.moves)
    if left and not forbidden and not places.keys() <= set(in_turn) and not limits.is_over:
        # Nothing is proven by a program that begins after other instances have made room.
        ended = _solved(_assignment(state, model, in_turn, reach), limits)
        least = max(least, _proven_to_stay(state, reach, ended))
        if ended is not None and len(ended.stays) < len(left):
            places.clear()
            places.update(ended.moves)
    return least


def _empty_more_hosts(state: State, model: Model, places: dict[int, int],
                      forbidden: list[tuple[int, int]], limits: Limits) -> None:
    """Change the destinations in ``places`` so that more draining hosts are emptied, and no more
    instances stay. Change nothing if no such destinations are found, or if all instances leave.

    :param places, forbidden: as in :func:`_choose_places`
    """
    in_turn = _in_turn(state)
    left = [vm for vm in in_turn if vm not in places]
    sources = np.unique(state.vm_host[in_turn])
    if not left or len(sources) < 2 or limits.is_over:
        return
    # In the program, equal instances of two draining hosts do not count once.
    reach = assignment.roomiest(state, BUDGET.most_pairs // len(sources))
    lifted = [vm for vm in in_turn if vm in places and reach[places[vm]]]
    begin = state.after((vm, host) for vm, host in places.items() if vm not in set(lifted))
    guests = np.bincount(begin.vm_host[[*lifted, *left]], minlength=len(begin.guests))
    together = _assignment(begin, model, lifted + left, reach, is_by_source=True)
    for pair in forbidden:
        together.forbid(*pair)
    ended = _solved(together, limits, np.flatnonzero((guests > 0) & (guests == begin.guests)))
    if ended is None or len(ended.stays) > len(left):
        return
    others = {vm: host for vm, host in places.items() if vm not in set(lifted)} | dict(ended.moves)
    emptied = [len(_emptied(state, state.after(each.items()))) for each in (places, others)]
    if len(ended.stays) < len(left) or emptied[1] > emptied[0]:
        places.clear()
        places.update(others)


def _proven_to_stay(state: State, reach: np.ndarray, ended: assignment.Ended | None) -> int:
    """Return the number of instances that every plan leaves on draining hosts; 0 if nothing is
    proven.

    :param reach: bool (H,), the possible destinations in the integer program
    :param ended: the best end state of all instances that have to leave, from ``state``
    """
    is_everywhere = (reach | state.problem.draining).all()
    return len(ended.stays) if ended is not None and ended.is_proven and is_everywhere else 0


def _ordered(state: State, moves: Iterable[tuple[int, int]],
             limits: Limits) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return two lists: the moves in a possible order, and the moves that cannot be made.

    Up to two orders are tried. The first one begins with the moves off the first draining host,
    then the moves that make room, then all other moves. If some moves cannot be made in this order,
    a second one is tried, which begins with the moves that make room. The order in which more moves
    can be made is returned.
    """
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


def _needed(state: State, moves: list[tuple[int, int]],
            ceiling: float) -> list[tuple[int, int]]:
    """Return the moves without needless moves. A move that makes room is needless if all other
    moves are possible without it, and hosts end no further above the overload ceiling. Large plans
    (see :data:`CHECKED`) are returned unchanged.

    :param ceiling: the overload ceiling, a score
    """
    others = dict.fromkeys(vm for vm, _host in moves
                           if not state.problem.draining[state.vm_host[vm]])
    if len(others) * len(moves) > CHECKED:
        return moves
    limit = np.maximum(ceiling, state.scores)

    def above(after: State) -> float:
        return float(np.maximum(after.scores - limit, 0.0).sum())

    most = above(state.after(moves)) + TOLERANCE
    for vm in reversed(others):
        rest = [move for move in moves if move[0] != vm]
        after = order.state_after(state, rest)
        if after is not None and above(after) <= most:
            moves = rest
    return moves


def by_room(state: State, vm: int) -> list[int]:
    """Return the hosts to which an instance on a draining host may go, the least full host
    first."""
    hosts = np.flatnonzero(state.delta((vm, np.arange(len(state.problem.hosts))),
                                       model=state.model.for_emptying).feasible)
    return hosts[np.argsort(state.fill[hosts], kind='stable')].tolist()


def waiting(state: State) -> np.ndarray:
    """Return intp: the instances that are on draining hosts and may be moved."""
    return np.flatnonzero(state.problem.draining[state.vm_host] & state.problem.evacuable)
