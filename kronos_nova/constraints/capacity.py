"""A destination must have room in placement's terms, in every resource class, and give one consumer
as much as the instance needs."""

import numpy as np

from kronos_nova.model.keys import equal_rows
from kronos_nova.model.rules import AllowedHosts
from kronos_nova.model.rules import Room


class Capacity:
    @staticmethod
    def compile(problem, snapshot, rules):
        return (*_units(problem), Room(reason='capacity'))


def _units(problem):
    """Placement judges ``min_unit``, ``max_unit`` and ``step_size`` for each consumer."""
    if problem.min_unit is None:
        return ()
    kind = equal_rows(problem.demands)
    sizes = problem.demands[np.unique(kind, return_index=True)[1]][:, None, :]
    every = np.arange(len(problem.resource_classes))
    row = problem.row(np.arange(len(problem.hosts))[:, None], every)
    least, most, step = (units[row, every] for units in (
        problem.min_unit, problem.max_unit, problem.step_size))
    wrong = (sizes != 0) & ((sizes < least) | (sizes > most) | (sizes % step != 0))

    def why(state, vm, host):
        c = int(wrong[kind[vm], host].argmax())
        return (f'{problem.hosts[host]} does not give {problem.demands[vm, c]:g} '
                f'{problem.resource_classes[c]} to one instance: from {least[host, c]:g} to '
                f'{most[host, c]:g} in steps of {step[host, c]:g}')

    if not wrong.any():
        return ()
    return (AllowedHosts(reason='capacity', why=why, kind=kind, allowed=~wrong.any(axis=2)),)
