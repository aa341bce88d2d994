"""The repair of violated rules and server groups by an integer program. The program chooses the
hosts of all instances together, so that other instances can make room."""

from collections.abc import Callable
from collections.abc import Iterator

import numpy as np

from kronos_nova.model import State
from kronos_nova.model.assignment import Assignment
from kronos_nova.model.program import HARD
from kronos_nova.model.program import Program
from kronos_nova.planners import order
from kronos_nova.planners.base import Choice
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import SearchBudget

BUDGET = SearchBudget(pairs=(20_000,), stages=(1, 2), nodes=2_000, gap=1e-6)
"""Limits of the integer program that repairs rules. The pairs allow some 60 hosts with 5 instances
each, for which a program takes a second. The gap is small because violated rules make up nearly all
of the cost; the rest is the memory that the moves copy. Chosen among values that lead to the same
plans in all clouds of the tests."""

GIVES_WAY = 'makes room for what a rule would have elsewhere'
"""Reason of a move of an instance that violates no rule (text, no unit). Fixed."""


def plans(state: State, limits: Limits, broken: np.ndarray, should: bool = False,
          placements: bool = False,
          why: Callable[[int], str] = lambda vm: GIVES_WAY) -> Iterator[list[Choice]]:
    """Yield plans that repair violations, the next one with more stages of moves. Stop after a plan
    that reaches the end state which the program chose. Yield nothing if the cluster is too large or
    no solution is found.

    :param state: the state before any move
    :param broken: bool (G,), true for the violated server groups and rules to repair
    :param should: whether preferences count
    :param placements: whether instances leave hosts that operators' rules forbid
    :param why: called with an instance; returns the purpose of its move
    """
    problem = state.problem
    hosts = np.flatnonzero(problem.available)
    vms = np.flatnonzero(problem.movable & problem.available[state.vm_host])
    if not len(vms) or len(vms) * len(hosts) > BUDGET.most_pairs:
        return
    for rounds in BUDGET.stages:
        if limits.is_over:
            return
        program = Program(Assignment(state, state.model, vms[:0], vms, hosts, repaired=broken),
                          rounds=rounds)
        program.keep_load_limits()
        program.keep_reserved_room()
        program.limit_moves(limits.budget)
        program.keep_wishes(should)
        penalty = 1.0 + program.most_wishes
        program.repair_members(broken, penalty)
        if placements:
            program.repair_placements(penalty)
        solution = BUDGET.solve(program, limits)
        if solution is None:
            continue
        ordering = order.Ordering(state, limits)
        is_whole = ordering.do_all(program.of.ended(solution).moves)

        def violations(after: State) -> float:
            return _violations(after, broken, should, placements)

        # If some moves have no order, others may make room for them in vain.
        done = order.without_detours(state, ordering.done, violations, every=not is_whole)
        last = {vm: n for n, (vm, _host) in enumerate(done)}
        yield [(vm, host, why(vm) if n == last[vm] else order.WAITS)
               for n, (vm, host) in enumerate(done)]
        if is_whole:
            return


def _violations(state: State, broken: np.ndarray, should: bool, placements: bool) -> float:
    """Return the sum of the penalties of violations. The unit is the penalty of a member that
    violates a soft group. The parameters are those of :func:`plans`."""
    model = state.model
    hard, soft = model.misplaced(state, broken)
    found = HARD * hard + soft
    if placements:
        found += HARD * int(model.astray(state).sum())
    if should and model.prices.preferences is not None:
        found += float(model.prices.preferences.at(
            np.arange(len(state.vm_host)), state.vm_host).sum())
    return found
