"""Makes room for instances that have no place yet, with the least memory to copy.

Where the instances end, and who gives way, is one integer program
(:mod:`kronos_nova.model.assignment`); the order is found afterwards (:mod:`.order`). A program with
rounds, each solution of which has an order, is solved where the cheapest end has none. What takes
too large a program is left to the :mod:`evacuator <.evacuate>`, which chooses host after host.
"""

import numpy as np

from kronos_nova.model import State
from kronos_nova.model import assignment
from kronos_nova.model.program import Program
from kronos_nova.objects.plan import EVACUATE
from kronos_nova.planners import order
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import Step
from kronos_nova.planners.evacuate import Evacuator
from kronos_nova.planners.evacuate import waiting

PAIRS = 400, 2_000, 8_000
"""Pairs of size and host in one program, first and where that leaves new servers without a place.
Raised, more hosts are looked at together, in more time; lowered, fewer: only those with most free
room."""
GAP = 0.002
"""Part of its cost by which an end may be worse than the best. Raised, programs end sooner;
lowered, a few MiB less are copied."""
NODES = 2_000
"""Nodes of the branch and bound. Raised, more programs are solved to the end, in more time;
lowered, more end with the best that was found. Clouds of 15 hosts need 1 to 300."""
MOVE_MB = 64.0
"""MiB that a move costs in addition to the memory that it copies. Raised, fewer and larger
instances give way; lowered, more and smaller ones."""
CUTS = 8
"""Ends that are tried because Nova would choose other NUMA cells than a program. Raised, room is
found more often where cells are nearly full, in more time; of 60 clouds one needed more than 1."""
ROUNDS = 1, 2, 3
"""Rounds of the programs that are tried, one after the other, until an end has an order."""


class RoomMaker:
    """Moves all instances off the draining hosts; as many as possible if not all can."""

    phase = EVACUATE

    def plan(self, state: State, limits: Limits) -> list[Step]:
        limits.unplaced.clear()
        done = self._cheapest(state, limits)
        if done is None:
            return Evacuator().plan(state, limits)
        return order.carry_out(done, state, lambda host: (
            f'makes room on {state.problem.hosts[host]} for new servers'))

    def _cheapest(self, state: State, limits: Limits) -> list[tuple[int, int]] | None:
        """The moves, in order, of the cheapest end with one in which all instances leave."""
        problem, leaving = state.problem, waiting(state)
        for pairs in PAIRS:
            hosts = assignment.roomiest(state, pairs) & problem.available
            others = np.flatnonzero(problem.movable & hosts[state.vm_host])
            for rounds in ROUNDS:
                together = assignment.Assignment(state, state.model.for_emptying, leaving, others,
                                                 np.flatnonzero(hosts))
                done, has_end = self._ordered(state, together, rounds, limits)
                if done is not None or limits.is_over:
                    return done
                if not has_end:
                    break
            if hosts[problem.available].all():
                break
        return None

    def _ordered(self, state: State, together: assignment.Assignment, rounds: int,
                 limits: Limits) -> tuple[list[tuple[int, int]] | None, bool]:
        """The moves, in order, of the cheapest end that has one; and whether there is any end."""
        for cut in range(CUTS):
            moves = None if limits.is_over else self._end(together, rounds, limits)
            if moves is None:
                return None, cut > 0
            ordering = order.Ordering(state, limits)
            if ordering.do_all(moves):
                return ordering.done, True
            if not self._forbid(together, moves, ordering):
                break
        return None, True

    def _end(self, together: assignment.Assignment, rounds: int,
             limits: Limits) -> list[tuple[int, int]] | None:
        """The moves of the cheapest end, those of others before those of new servers; None where
        not all find a place."""
        program = Program(together, MOVE_MB, rounds)
        program.keep_reserved_room()
        solution = program.solve(limits.deadline - limits.clock(), GAP, NODES)
        ended = None if solution is None else together.ended(solution)
        if ended is None or len(ended.stays):
            return None
        problem = together.problem
        return sorted(ended.moves, key=lambda move: bool(problem.draining[
            problem.vm_host[move[0]]]))

    def _forbid(self, together: assignment.Assignment, moves: list[tuple[int, int]],
                ordering: order.Ordering) -> bool:
        """Forbid the first move that could not be made, where Nova chooses other NUMA cells than
        the program; returns whether there is one."""
        cells = together.problem.cells
        for vm, host in moves:
            if ordering.state.vm_host[vm] != host and cells is not None and cells.kind[vm]:
                together.forbid(vm, host)
                return True
        return False
