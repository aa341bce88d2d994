"""The planner that makes room for new servers, with the least memory to copy.

The new servers are modelled as instances on imaginary, draining hosts. An integer program
(:mod:`kronos_nova.model.assignment`) chooses the hosts of the new servers, and the moves of other
instances that make room. A possible order of the moves is found afterwards (:mod:`.order`).

If the moves to the cheapest end state have no possible order, the program is solved again with
several stages of moves. A move of a later stage can use room that an earlier stage freed. If the
program finds no plan, the :mod:`evacuator <.evacuate>` chooses the hosts one after the other.
"""

import collections

import numpy as np

from kronos_nova.model import State
from kronos_nova.model import assignment
from kronos_nova.model.program import Program
from kronos_nova.objects.plan import EVACUATE
from kronos_nova.planners import order
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import SearchBudget
from kronos_nova.planners.base import Step
from kronos_nova.planners.evacuate import Evacuator
from kronos_nova.planners.evacuate import waiting

BUDGET = SearchBudget(pairs=(400, 2_000, 8_000), stages=(1, 2, 3), nodes=2_000, gap=0.002,
                      move_mb=64.0, ends=8)
"""Limits of the integer program that makes room for new servers. A pair is an instance size and a
host. Clouds of 15 hosts need 1 to 300 nodes. A further end state is searched if Nova would choose
other NUMA cells than the program, with which the moves have no possible order; measured: of 60
clouds, one needed more than one end state."""


class RoomMaker:
    """A planner that moves all instances off the draining hosts. The instances on draining hosts
    stand for new servers. If some instances find no room on other hosts, as many instances as
    possible are moved."""

    phase = EVACUATE

    def plan(self, state: State, limits: Limits) -> list[Step]:
        limits.unplaced.clear()
        done = self._cheapest(state, limits)
        if done is None:
            others = state.copy()
            steps = Evacuator().plan(others, limits)
            stays = len(waiting(others))
            # Where nothing is placed, no moves are cheaper.
            done = self._cheapest(state, limits, stays) if steps and stays else None
            if done is None or _cost(state, done) >= _cost(
                    state, [(step.vm, step.destination) for step in steps]):
                done = [(step.vm, step.destination) for step in steps]
            is_placed = {vm for vm, _host in done}
            for vm in [vm for vm in limits.unplaced if vm in is_placed]:
                del limits.unplaced[vm]
        return order.carry_out(_to_least_loaded(state, done), state, lambda host: (
            f'makes room on {state.problem.hosts[host]} for new servers'))

    def _cheapest(self, state: State, limits: Limits,
                  stays: int = 0) -> list[tuple[int, int]] | None:
        """Return the moves of the cheapest plan by which all instances leave the draining hosts, in
        a possible order. Return None if no such plan is found.

        :param stays: number of instances that may stay on the draining hosts
        """
        problem = state.problem
        for pairs in BUDGET.pairs:
            hosts = assignment.roomiest(state, pairs) & problem.available
            begin, placed = self._elsewhere(state, problem.available & ~hosts)
            leaving = waiting(begin)
            others = np.flatnonzero(problem.movable & hosts[state.vm_host])
            for rounds in BUDGET.stages if len(leaving) else ():
                together = assignment.Assignment(begin, state.model.for_emptying, leaving, others,
                                                 np.flatnonzero(hosts))
                done, has_end = self._ordered(begin, together, rounds, limits, stays)
                if done is not None:
                    return placed + done
                if limits.is_over:
                    return None
                if not has_end:
                    break
            if not len(leaving):
                return placed
            if hosts[problem.available].all():
                break
        return None

    def _elsewhere(self, state: State,
                   hosts: np.ndarray) -> tuple[State, list[tuple[int, int]]]:
        """Move instances from the draining hosts to ``hosts``, where there is room without moves of
        other instances.

        :param hosts: bool (H,), hosts that the integer program leaves out
        :returns: (the state after these moves, the moves)
        """
        begin, placed, free = state.copy(), list[tuple[int, int]](), np.flatnonzero(hosts)
        for vm in waiting(state).tolist() if len(free) else ():
            fits = begin.delta((vm, free), model=state.model.for_emptying).feasible
            if fits.any():
                placed.append((vm, int(free[fits.argmax()])))
                begin.move(*placed[-1])
        return begin, placed

    def _ordered(self, state: State, together: assignment.Assignment, rounds: int,
                 limits: Limits, stays: int) -> tuple[list[tuple[int, int]] | None, bool]:
        """Return (moves, whether the integer program found any end state). A stage of the program
        is a set of moves that may use the room that earlier stages free. The moves lead to the
        cheapest end state that can be reached by moves one after the other, and are in a possible
        order. ``moves`` is None if no end state can be reached.

        If an instance has to wait on a third host on the way to an end state, another end state is
        searched as well, because it may need less memory to copy.

        :param rounds: number of stages of moves in the integer program
        :param stays: number of instances that may stay on the draining hosts
        """
        best: list[tuple[int, int]] | None = None
        for cut in range(BUDGET.ends):
            found = None if limits.is_over else self._end(together, rounds, limits, stays)
            if found is None or best and _cost(state, found[0]) >= _cost(state, best):
                return best, cut > 0
            moves, parts = found
            ordering = order.Ordering(state, limits, parts=parts)
            # A server that makes room may end elsewhere, where the rules of its group let it go.
            if ordering.do_all(moves) or len(waiting(ordering.state)) <= stays:
                if best is None or _cost(state, ordering.done) < _cost(state, best):
                    best = ordering.done
                waited = [move for move in moves if move[0] in _moved_twice(ordering.done)]
                if not waited:
                    return best, True
                together.forbid(*waited[0])
                continue
            refused = [(vm, host) for vm, host in moves
                       if vm in parts and ordering.state.vm_host[vm] != host]
            if not refused:
                break
            together.forbid(*refused[0])
        return best, True

    def _end(self, together: assignment.Assignment, rounds: int, limits: Limits,
             stays: int) -> tuple[list[tuple[int, int]], dict[int, tuple[int, ...]]] | None:
        """Find the cheapest end state in which the new servers have hosts, by an integer program.
        Its moves are in stages: the moves of a stage may use the room that earlier stages free.
        Return (moves, parts); None if no such end state is found. The moves lead to the end state,
        and begin with the moves of existing servers. ``parts`` is {instance: NUMA cells of its
        destination that the integer program chose}.

        :param rounds: number of stages of moves in the integer program
        :param stays: number of new servers that may have no host
        """
        program = Program(together, BUDGET.move_mb, rounds)
        program.keep_reserved_room()
        solution = BUDGET.solve(program, limits, is_short=stays > 0)
        ended = None if solution is None else together.ended(solution)
        if ended is None or len(ended.stays) > stays:
            return None
        problem = together.problem
        moves = sorted(ended.moves, key=lambda move: bool(problem.draining[
            problem.vm_host[move[0]]]))
        return moves, ended.parts


def _cost(state: State, moves: list[tuple[int, int]]) -> tuple[int, float]:
    """Return the cost of moves: minus the number of new servers that get a host, and the cost of
    the moves of other servers in MiB. A smaller cost is better."""
    problem = state.problem
    is_new = problem.draining[state.vm_host]
    return (-len({vm for vm, _host in moves if is_new[vm]}),
            sum(int(problem.memory_mb[vm]) + BUDGET.move_mb for vm, _host in moves
                if not is_new[vm]))


def _moved_twice(moves: list[tuple[int, int]]) -> set[int]:
    """Return the instances that are moved more than once."""
    count = collections.Counter(vm for vm, _host in moves)
    return {vm for vm, times in count.items() if times > 1}


def _to_least_loaded(state: State, moves: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ``moves`` with less loaded destinations for the existing servers that make room for
    new servers. Each existing server goes to the least loaded host that can take it, because the
    memory to copy is the same for all destinations. Hosts that a server leaves, and hosts that get
    a new server, are not chosen. If a move is not possible with the changed destinations, return
    ``moves`` unchanged."""
    problem, trial, found = state.problem, state.copy(), []
    is_new = {vm: bool(problem.draining[state.vm_host[vm]]) for vm, _host in moves}
    closed = {int(state.vm_host[vm]) for vm, _host in moves}
    closed |= {host for vm, host in moves if is_new[vm]}
    hosts = np.array([host for host in np.flatnonzero(problem.available).tolist()
                      if host not in closed], dtype=np.intp)
    for vm, meant in moves:
        chosen = meant
        if not is_new[vm] and meant not in closed and len(hosts):
            places = hosts[trial.delta((np.intp(vm), hosts)).feasible]
            loads = (trial.scores[places] + problem.weights[vm] * problem.host_scale[places]).max(
                axis=1, initial=0.0)
            if len(places):
                chosen = int(places[loads.argmin()])
        if not trial.delta((vm, chosen), model=trial.model.for_emptying).feasible:
            return moves
        trial.move(vm, chosen)
        found.append((vm, chosen))
    return found
