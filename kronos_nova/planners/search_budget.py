"""Limits of the integer programs that planners solve. The limits count work and not time, so that a
plan does not depend on the speed of the machine."""

import dataclasses

from kronos_nova.model.program import Program
from kronos_nova.model.program import Solution
from kronos_nova.planners.base import Limits


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SearchBudget:
    """Limits of the integer programs of one planner. A *stage* is a group of moves, and a move of a
    later stage can use room that an earlier stage freed.

    pairs : largest numbers of pairs of an instance and a host in a program; equal instances count
        once where a planner says so. A planner with several numbers solves the program with each
        number in this order, until it finds what it looks for. Raised, more hosts are considered,
        or larger clusters get the best plan, and plans take longer; lowered, better plans are
        missed more often
    stages : numbers of stages of moves in a program. A planner with several numbers solves the
        program with each number in this order, until the moves can be made one after the other.
        With more numbers, more plans are found where hosts are nearly full, and a search without a
        result takes longer
    nodes : maximum number of branch-and-bound nodes of a program, divided by its number of stages.
        Raised, plans take longer; lowered, the best possible plan is missed more often
    gap : relative gap, as a share of the cost, at which a program stops. The solution then costs at
        most this share more than the cheapest solution. Raised, plans take less time; lowered, they
        are slightly better
    move_mb : fixed cost of a move, in MiB, in addition to the memory that the move copies. Raised,
        plans have fewer moves, of larger instances; lowered, plans have more moves, of smaller
        instances
    ends : maximum number of end states that are tried. If the moves to one end state have no
        possible order, the next end state is searched. Raised, more plans are found where hosts are
        nearly full, and a search without a result takes longer
    """

    pairs: tuple[int, ...]
    stages: tuple[int, ...] = (1,)
    nodes: int
    gap: float
    move_mb: float = 0.0
    ends: int = 1

    @property
    def most_pairs(self) -> int:
        """The largest number of pairs of an instance and a host in a program."""
        return self.pairs[-1]

    def solve(self, program: Program, limits: Limits) -> Solution | None:
        """Return the best solution that is found within the limits; None if none is found.

        :param limits: the limits of the planner, whose deadline ends the search as well
        """
        return program.solve(limits.deadline - limits.clock(), self.gap,
                             self.nodes // program.rounds)
