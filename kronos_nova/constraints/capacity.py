"""The rules that keep instances off hosts without enough room, as placement and Nova define room.

Placement requires capacity in every resource class, and limits the amount that one consumer may
allocate (``min_unit``, ``max_unit`` and ``step_size``). For an instance with a NUMA topology, Nova
requires NUMA cells of the host with room for the cells of the instance.
"""

import numpy as np

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.model import Problem
from kronos_nova.model import Rule
from kronos_nova.model import State
from kronos_nova.model.keys import equal_rows
from kronos_nova.model.rules import AllowedHosts
from kronos_nova.model.rules import CellRoom
from kronos_nova.model.rules import Room
from kronos_nova.objects import host_checks
from kronos_nova.objects.snapshot import Snapshot


class Capacity:
    @staticmethod
    def compile(problem: Problem, snapshot: Snapshot, rules: ConstraintRules) -> tuple[Rule, ...]:
        return (*_units(problem), Room(reason='capacity'))


class NumaCells:
    @staticmethod
    def compile(problem: Problem, snapshot: Snapshot,
                rules: ConstraintRules) -> tuple[CellRoom, ...]:
        if problem.cells is None or host_checks.NUMA not in rules.host_checks:
            return ()
        return (CellRoom(),)


def _units(problem: Problem) -> tuple[AllowedHosts, ...]:
    """Return the rule that applies the ``min_unit``, ``max_unit`` and ``step_size`` of placement.
    The rule keeps an instance off a host that does not permit the amounts that the instance
    allocates. Return no rule if all hosts permit all amounts."""
    if problem.min_unit is None or problem.max_unit is None or problem.step_size is None:
        return ()
    kind = equal_rows(problem.demands)
    sizes = problem.demands[np.unique(kind, return_index=True)[1]][:, None, :]
    every = np.arange(len(problem.resource_classes))
    row = problem.row(np.arange(len(problem.hosts))[:, None], every)
    least, most, step = (units[row, every] for units in (
        problem.min_unit, problem.max_unit, problem.step_size))
    wrong = (sizes != 0) & ((sizes < least) | (sizes > most) | (sizes % step != 0))

    def why(state: State, vm: int, host: int) -> str:
        c = int(wrong[kind[vm], host].argmax())
        return (f'{problem.hosts[host]} does not give {problem.demands[vm, c]:g} '
                f'{problem.resource_classes[c]} to one instance: from {least[host, c]:g} to '
                f'{most[host, c]:g} in steps of {step[host, c]:g}')

    if not wrong.any():
        return ()
    return (AllowedHosts(reason='capacity', why=why, kind=kind, allowed=~wrong.any(axis=2)),)
