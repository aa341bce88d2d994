"""A server with a NUMA topology needs cells of a host that have room for its parts."""

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.model import Problem
from kronos_nova.model.rules import CellRoom
from kronos_nova.objects import host_checks
from kronos_nova.objects.snapshot import Snapshot


class NumaCells:
    @staticmethod
    def compile(problem: Problem, snapshot: Snapshot,
                rules: ConstraintRules) -> tuple[CellRoom, ...]:
        if problem.cells is None or host_checks.NUMA not in rules.host_checks:
            return ()
        return (CellRoom(),)
