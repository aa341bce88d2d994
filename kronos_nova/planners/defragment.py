"""The planner that makes room for new servers by joining the free room of several hosts
(defragmentation).

Free room is counted in slots. A slot is the room that one new server needs. The new servers are
modelled as instances that have to leave an imaginary host. There are more of these instances than
could fit on the real hosts, so that their number does not limit the plan. An integer program
(:mod:`kronos_nova.model.assignment`) finds the end state in which most of these instances fit on
the real hosts. A possible order of the moves is found afterwards (:mod:`.order`).
"""

import numpy as np

from kronos_nova.model import State
from kronos_nova.model import assignment
from kronos_nova.model.program import Program
from kronos_nova.objects.plan import EVACUATE
from kronos_nova.planners import order
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import SearchBudget
from kronos_nova.planners.base import Step
from kronos_nova.planners.evacuate import waiting

BUDGET = SearchBudget(pairs=(20_000,), nodes=50, gap=0.03, move_mb=64.0)
"""Limits of the integer program that joins fragments of free room, so that more new servers fit. A
pair is an instance size and a host. Measured by ``bench fragments`` in two published mappings of
servers to 279 hosts: plans of 50 moves take 8.5 and 14.0 s of processor time on a slow machine. If
the gap is a share of the whole cost, they take 7.1 s each, and one of the two plans makes room for
one server less. With 200 nodes, plans make room for as many servers."""


class Defragmenter:
    """A planner that moves instances so that as many new servers as possible fit into the cloud.
    The problem has an imaginary draining host, and an instance on this host for each new server.
    The plan moves only instances of the real hosts."""

    phase = EVACUATE

    def plan(self, state: State, limits: Limits) -> list[Step]:
        problem, leaving = state.problem, waiting(state)
        hosts = assignment.roomiest(state, BUDGET.most_pairs) & problem.available
        others = np.flatnonzero(problem.movable & hosts[state.vm_host])
        if not len(leaving) or not len(others):
            return []
        # The servers that move obey all rules. So do the moves below.
        together = assignment.Assignment(state, state.model, leaving, others, np.flatnonzero(hosts))
        program = Program(together, BUDGET.move_mb, slot=int(leaving[0]))
        program.keep_reserved_room()
        program.limit_moves(limits.budget)
        solution = BUDGET.solve(program, limits, is_short=True)
        if solution is None:
            return []
        ended = together.ended(solution)
        moves = [move for move in ended.moves if not problem.draining[problem.vm_host[move[0]]]]
        ordering = order.Ordering(state, limits, parts=ended.parts)
        for vm, host in ordering.do_meant(moves):
            self._do_elsewhere(ordering, vm, host, int(leaving[0]), np.flatnonzero(hosts))
        return order.carry_out(ordering.done, state, lambda host: (
            f'makes room on {problem.hosts[host]} for new servers'))

    def _do_elsewhere(self, ordering: order.Ordering, vm: int, meant: int, slot: int,
                      hosts: np.ndarray) -> None:
        """Move an instance to the host on which the instance takes up the fewest slots. A slot is
        the room that one new server needs. Of equal hosts, ``meant`` is preferred. The instance
        stays if the destination would lose at least as many slots as the present host would gain.

        :param meant: the host to which the integer program moves the instance
        :param slot: index of an instance that stands for a new server; a slot has the size of this
            instance
        :param hosts: intp (n,), possible destinations
        """
        state, home = ordering.state, ordering.state.vm_host[vm]
        possible = hosts[state.delta((vm, hosts)).feasible]
        before = state.slots(slot, possible)
        most = state.slots(slot, np.array([home]))[0]
        best: tuple[float, bool, int] | None = None
        for host, now in zip(possible.tolist(), before.tolist(), strict=True):
            source = state.move(vm, host)
            lost = now - state.slots(slot, np.array([host]))[0]
            gained = state.slots(slot, np.array([source]))[0] - most
            state.move(vm, source)
            found = float(lost - gained), host != meant, host
            if found[0] < 0 and (best is None or found < best):
                best = found
        if best is not None:
            ordering.do(vm, best[2])
