"""The planner ``spread``, which searches the lowest combined imbalance that the budget of moves
permits. The problem is machine reassignment (Google, ROADEF/EURO challenge 2012) with the largest
difference of scores as the objective.

An *end state* is the assignment of instances to hosts after all moves of a plan. An end state can
be reached if the moves have a possible order: every rule holds after each move. The *cost* of an
end state is the combined imbalance plus the prices of the moves.
"""

import dataclasses
import functools
from collections.abc import Callable

import numpy as np

from kronos_nova.model import TOLERANCE
from kronos_nova.model import State
from kronos_nova.model import assignment
from kronos_nova.model.arrays import Move
from kronos_nova.model.program import Program
from kronos_nova.model.program import Solution
from kronos_nova.model.space import SearchSpace
from kronos_nova.objects.plan import SPREAD
from kronos_nova.planners import local_search
from kronos_nova.planners import order
from kronos_nova.planners.base import ENDS
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import SearchBudget
from kronos_nova.planners.base import Step
from kronos_nova.planners.greedy import Greedy
from kronos_nova.planners.population import End
from kronos_nova.planners.population import Incumbents
from kronos_nova.planners.population import Plan

ASKED = 16
"""Largest number of permitted moves for which the integer program is solved before the local
search. It is solved only in clusters in which most moves are impossible at first (:data:`TIGHT`).
Raised, plans of many moves take longer; lowered, plans that the local search does not find are
missed more often. Not measured."""
STUCK = 1e-3
"""Largest accepted difference of cost between the end state of the chosen plan and the best end
state found. An end state gives each instance a host. The two end states differ if the moves to the
best end state have no possible order. If the difference is larger, other plans are searched.
Raised, plans for full hosts are worse; lowered, plans take longer for gains that cannot be noticed.
Measured by ``bench constants``: no plan for 14 clouds changes with 1e-6 or 0.02."""
SLACK = 0.9
"""Share of the permitted moves that a search may use when it is repeated. A search is repeated if
its moves cannot be made one after the other. The first repetition may use this share, and each
further repetition half as many moves as the one before. Raised, fewer moves are left for instances
that have to wait on a third host; lowered, plans improve less than they could. Measured on 27
random clouds: with 0, one of the six whose policies leave hosts out ends with 22 % more
imbalance."""
SEARCHES = 3
"""Maximum number of searches for one plan. Each search starts from the state after the moves found
before, and may use the rest of the permitted moves. Raised, plans for full hosts take longer;
lowered, plans for full hosts are worse. Measured on 24 random clouds of nearly full hosts: with 1,
five plans end with up to 15 % more imbalance."""
BUDGET = SearchBudget(pairs=(200, 1500), stages=(1, 2, 3, 4), nodes=50, gap=1e-3)
"""Limits of the integer program that computes the best plan. In clusters up to the first number of
pairs, the program is always used. In clusters up to the second number, it is used in four cases:
members of a server group are kept apart; a policy has the weight 0; the moves to a better end state
cannot be made one after the other; most moves are impossible at first (see :data:`TIGHT`). The
program is solved with more stages until a plan is found that costs little more than the best end
state (:data:`STUCK`); each further number of stages takes 1 to 5 s of processor time. A thousand
pairs take 2 to 4 s. Measured by ``bench optimum``: without 4 stages, one of 12 plans was 9 %
worse."""
TIGHT = 0.5
"""Share of the candidate moves that decides whether an integer program is solved before the local
search. A candidate move is a pair of an instance and another host. The program comes first if less
than this share of the candidate moves are possible as the first move of a plan. Raised, the program
comes first in more clusters, and takes longer where the local search finds equally good plans;
lowered, plans that the local search does not find are missed more often. Measured by ``bench
constants``: no plan for 10 clouds changes with 0 or 2."""
TRIED_WHEN_LATE = 8
"""Number of end states that are tried even after the time limit. An end state gives each instance a
host. To try an end state is to search an order in which its moves are possible. Raised, evaluations
exceed their time limit by more; lowered, late evaluations more often end without a plan. Not
measured."""


class Spread:
    """A planner that looks for end states of low cost, and returns the moves to the cheapest end
    state that can be reached. An end state gives each instance a host. It can be reached if its
    moves have an order in which every rule holds after each move. The planner also considers the
    plan of the planner ``greedy``."""

    phase = SPREAD

    def plan(self, state: State, limits: Limits) -> list[Step]:
        if state.is_balanced or limits.budget < 1:
            return []
        capped = state.under(state.model.with_ceiling(state, limits.overload_ceiling))
        capped.settle()
        moves: list[tuple[int, int]] = []
        for _ in range(SEARCHES):
            left = dataclasses.replace(limits, budget=limits.budget - len(moves))
            more, goes_on = search(capped.after(moves), left)
            moves += more
            if not more or not goes_on or len(moves) >= limits.budget or limits.is_over:
                break
        moves = without_detours(capped, moves, State.objective)
        return order.carry_out(moves, state, lambda source: 'evens the load')


def without_detours(state: State, moves: list[tuple[int, int]],
                    cost: Callable[[State], float]) -> list[tuple[int, int]]:
    """Return the moves without needless moves of instances that move more than once. The other
    moves lead to no higher cost, and raise no imbalance above its threshold.

    :param state: the state before the moves
    :param cost: returns the cost of an end state
    """
    most = np.maximum(state.after(moves).imbalances(), state.problem.thresholds) + TOLERANCE
    return order.without_detours(state, moves, lambda after: (
        cost(after) if (after.imbalances() <= most).all() else np.inf))


def search(state: State, limits: Limits) -> tuple[list[tuple[int, int]], bool]:
    """Return two results. The first is the moves [(instance, destination)] to the best end state
    that can be reached, in a possible order. The second is True if the search found a better end
    state, but no possible order of the moves to it."""
    space = SearchSpace(state, limits.budget, hosts_that_matter(state, limits.budget))
    if len(space.hosts) < 2 or not len(space.vms):
        return [], False
    found = Incumbents([End(state.objective(), [])])
    best: list[tuple[int, int]] = []
    is_asked = limits.budget <= ASKED and is_tight(space, BUDGET.most_pairs)
    if is_asked and (gap := add_best(space, found, limits)) < np.inf:
        best = best_orderable(space, found, limits, best_possible(space, found, limits, [[]]))
        if gap <= 2 * BUDGET.gap and not is_stuck(state, best, found):
            return best, False
        if limits.is_over:
            return best, True

    @functools.cache
    def greedy() -> list[tuple[int, int]]:
        return [(step.vm, step.destination) for step in Greedy().plan(state.copy(), limits)]

    for _search in local_search.searches(space, found, limits):
        # The local search comes first: if the time is short, its plan is the better one.
        best = best_possible(space, found, limits, [[], best, greedy()])
        if is_stuck(state, best, found):
            break  # the more end states without an order are known, the fewer others are kept
    is_tiny = len(space.vms) * len(space.hosts) <= BUDGET.pairs[0]
    has_guards = bool((state.problem.policy_weights == 0.0).any())
    if not is_asked and (
            is_tiny or space.spacing or has_guards or is_stuck(state, best, found)):
        is_added = add_best(space, found, limits) < np.inf
        known = best_possible(space, found, limits, [[], best]) if is_added else best
        best = best_orderable(space, found, limits, known)
    goes_on = still = is_stuck(state, best, found)
    part = int(SLACK * limits.budget)
    while part and still and not limits.is_over:
        found = local_search.found_once(space, dataclasses.replace(limits, budget=part))
        best = best_possible(space, found, limits, [[], best])
        part, still = part // 2, is_stuck(state, best, found)
    return best, goes_on


def is_tight(space: SearchSpace, most_pairs: float) -> bool:
    """Return True if less than the share :data:`TIGHT` of the candidate moves are possible as the
    first move of a plan; False otherwise. Return False also for large clusters.

    :param most_pairs: number of pairs of an instance and a host above which a cluster counts as
        large
    """
    if len(space.vms) * len(space.hosts) > most_pairs:
        return False
    feasible = space.state.delta((space.vms[:, None], space.hosts)).feasible
    return feasible.sum() < TIGHT * len(space.vms) * (len(space.hosts) - 1)


def best_orderable(space: SearchSpace, found: Incumbents, limits: Limits,
                   best: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the plan ``best``, or a better one whose moves have a possible order, in this order.
    If ``best`` costs much more than the best end state, an integer program with stages of moves
    searches a better plan. In a later stage, moves can use room that an earlier stage freed.

    :param best: the best plan in ``found`` whose moves have a possible order
    """
    for rounds in BUDGET.stages[1:]:
        if not is_stuck(space.state, best, found):
            break
        some = Incumbents([End(space.state.objective(), [])])
        if add_best(space, some, limits, rounds) == np.inf:
            continue
        best = best_possible(space, some, limits, [[], best])
    return best


def is_stuck(state: State, moves: list[tuple[int, int]], found: Incumbents) -> bool:
    """Return True if the cost of the best end state in ``found`` is lower than the cost after
    ``moves`` by more than :data:`STUCK`; False otherwise."""
    return state.after(moves).objective() > found.best.cost + STUCK


def add_best(space: SearchSpace, found: Incumbents, limits: Limits, rounds: int = 1) -> float:
    """Compute the best end state by an integer program, and add this end state to ``found``.
    Nothing is added if the cluster is too large, or if the program finds no end state.

    :param rounds: number of stages of moves in the integer program. The moves of a stage use only
        room that was free before the stage. With one stage, this is not checked, and the moves to
        the end state may have no possible order
    :returns: share by which the cost of the added end state may be above the lowest possible cost;
        inf if no end state was added
    """
    program = program_of(space, BUDGET, limits, rounds=rounds)
    if program is None:
        return np.inf
    program.limit_moves(limits.budget)
    program.even_out(space.worst)
    solution = BUDGET.solve(program, limits)
    if solution is None:
        return np.inf
    plan = plan_of(space, program, solution)
    moves = [(int(space.vms[vm]), int(space.hosts[host])) for vm, host in plan]
    found.add(End(space.state.after(moves).objective(), plan))
    return (solution.cost - solution.bound) / max(solution.cost, BUDGET.gap)


def program_of(space: SearchSpace, search_budget: SearchBudget, limits: Limits,
               move: float | None = None, rounds: int = 1) -> Program | None:
    """Return an integer program that chooses the hosts of all instances of a space and keeps the
    load limits. Return None in four cases: the cluster is too large, the space does not have all
    hosts, a policy leaves hosts out of its imbalance, or the deadline has passed.

    :param move, rounds: as in :class:`~kronos_nova.model.program.Program`
    """
    state = space.state
    if (len(space.vms) * len(space.hosts) > search_budget.most_pairs or space.untouched
            or limits.is_over or space.problem.left_out is not None):
        return None
    program = Program(assignment.Assignment(state, state.model, space.vms[:0], space.vms,
                                            space.hosts, by_weight=True), move, rounds)
    program.keep_load_limits()
    return program


def plan_of(space: SearchSpace, program: Program, solution: Solution) -> Plan:
    """Return the moves of a solution, with instances and hosts as positions in the space."""
    return [(int(np.searchsorted(space.vms, vm)), int(np.searchsorted(space.hosts, host)))
            for vm, host in program.of.ended(solution).moves]


def hosts_that_matter(state: State, budget: int) -> np.ndarray:
    """Return the available hosts, sorted, to and from which a plan may move instances. For each
    policy, the result has the most loaded and the least loaded hosts: at least :data:`ENDS` of
    each, and more for a larger budget."""
    available = np.flatnonzero(state.problem.available)
    most = ENDS + budget // 2
    if state.problem.left_out is not None:
        most += int(state.problem.left_out.max())
    if len(available) <= 2 * most * len(state.problem.policies):
        return available
    matter: set[int] = set()
    for scores in state.scores[available].T:
        by_score = available[np.argsort(scores, kind='stable')]
        matter.update(by_score[:most].tolist(), by_score[-most:].tolist())
    return np.array(sorted(matter))


def best_possible(space: SearchSpace, found: Incumbents, limits: Limits,
                  known: list[list[tuple[int, int]]]) -> list[tuple[int, int]]:
    """Return the best plan that can be carried out, with its moves in an order in which each of
    them is possible. The candidates are the plans ``known`` and those in ``found``. If some moves
    of a plan in ``found`` are not possible, the candidate is the plan without these moves.

    :param known: plans whose moves have a possible order
    """
    state = space.state
    ends = [(end.cost, [(int(space.vms[vm]), int(space.hosts[host])) for vm, host in end.plan])
            for end in found.kept]
    ends.insert(0, (found.best.cost, trim(state, ends[0][1], space.worst, limits)))
    best = min(known, key=lambda moves: _rate_moves(state, moves))
    worth, is_improved = _rate_moves(state, best), False
    for number, (cost, plan) in enumerate(ends):
        if cost > (worth[0] + 1) * TOLERANCE or (
                (is_improved or number >= TRIED_WHEN_LATE) and limits.is_over):
            break
        ordering = order.Ordering(state, limits)
        ordering.do_all(plan)
        reached = _rate_moves(state, ordering.done)
        if (ordering.state.imbalances() <= space.worst).all() and reached < worth:
            best, worth, is_improved = ordering.done, reached, True
    return best


def _rate_moves(state: State, moves: list[tuple[int, int]]) -> tuple[int, int, int]:
    """Return the rating of moves as a tuple: the cost of the state after the moves, rounded to a
    multiple of the tolerance; the number of moves; and the MiB of memory of the moved instances. A
    smaller rating is better."""
    memory = sum(int(state.problem.memory_mb[vm]) for vm, _host in moves)
    return round(state.after(moves).objective() / TOLERANCE), len(moves), memory


def trim(state: State, plan: list[tuple[int, int]], worst: np.ndarray,
         limits: Limits) -> list[tuple[int, int]]:
    """Return the plan without needless moves, and with some moves replaced by moves of instances
    with less memory. The new plan has no higher cost than ``plan``, and no imbalance above
    ``worst``. A move is needless if the plan meets both conditions without the move.

    :param state: the state before the plan
    :param plan: (instance, destination), each instance once
    :param worst: float64 (P,), highest permitted imbalance of each policy after the plan
    """
    home, memory, after = state.vm_host, state.problem.memory_mb, state.after(plan)
    most = after.objective() + TOLERANCE

    def serves(*moves: Move) -> np.ndarray:
        delta = after.delta(*moves)
        return (delta.feasible & (after.objective() + delta.objective <= most)
                & (delta.imbalances <= worst).all(axis=-1))

    vms = np.array([vm for vm, _host in plan], dtype=np.intp)
    needless = vms[serves((vms, home[vms]))]
    for vm in sorted(needless.tolist(), key=lambda vm: -memory[vm]):
        if not limits.is_over and serves((vm, home[vm])):
            after.move(vm, home[vm])
    for vm, _host in plan:
        here = home[vm]
        if after.vm_host[vm] == here or limits.is_over:
            continue
        others = np.flatnonzero((after.vm_host == here) & (home == here)
                                & state.problem.movable & (memory < memory[vm]))
        others = others[serves((vm, here), (others, after.vm_host[vm]))]
        if len(others):
            after.move(int(others[memory[others].argmin()]), after.move(vm, here))
    moved = np.flatnonzero(after.vm_host != home)
    return list(zip(moved.tolist(), after.vm_host[moved].tolist(), strict=True))
