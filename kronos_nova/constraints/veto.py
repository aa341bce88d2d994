"""Constraints that forbid single moves for reasons that are known before planning."""

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.model import Problem
from kronos_nova.model.rules import ForbiddenPairs
from kronos_nova.objects.snapshot import Snapshot


class SchedulerVeto:
    @staticmethod
    def compile(problem: Problem, snapshot: Snapshot,
                rules: ConstraintRules) -> tuple[ForbiddenPairs, ...]:
        """Return the rule that keeps instances off hosts that Nova's scheduler refused in a dry
        run."""
        return _if_any(ForbiddenPairs(
            problem, rules.vetoes, 'refused',
            lambda state, vm, host: rules.vetoes[problem.vms[vm], problem.hosts[host]],
            is_provisional=True))


class Returning:
    @staticmethod
    def compile(problem: Problem, snapshot: Snapshot,
                rules: ConstraintRules) -> tuple[ForbiddenPairs, ...]:
        """Return the rule that keeps instances off hosts that they left recently, so that instances
        do not move back and forth."""
        return _if_any(ForbiddenPairs(
            problem, rules.returns, 'returning', yields=True,
            why=lambda state, vm, host: f'the instance left {problem.hosts[host]} not long ago'))


def _if_any(pairs: ForbiddenPairs) -> tuple[ForbiddenPairs, ...]:
    return (pairs,) if len(pairs) else ()
