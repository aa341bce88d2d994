"""The rules that keep each instance in its Nova cell and, if configured, in its availability
zone."""

from collections.abc import Sequence

import numpy as np

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.model import Problem
from kronos_nova.model import State
from kronos_nova.model.rules import AllowedHosts
from kronos_nova.objects.snapshot import DEFAULT_ZONE
from kronos_nova.objects.snapshot import Snapshot


class Cell:
    @staticmethod
    def compile(problem: Problem, snapshot: Snapshot,
                rules: ConstraintRules) -> tuple[AllowedHosts, ...]:
        """Return the rule that keeps each instance in its Nova cell. A live migration cannot go to
        another cell."""
        cells = {host.name: host.cell for host in snapshot.hosts}
        return _partition(problem, 'cell', [cells[host] for host in problem.hosts])


class Zone:
    @staticmethod
    def compile(problem: Problem, snapshot: Snapshot,
                rules: ConstraintRules) -> tuple[AllowedHosts, ...]:
        """Return the rule that keeps each instance in its availability zone; no rule unless
        ``restrict_to_az`` is set."""
        if not rules.restrict_to_az:
            return ()
        zones = snapshot.zones()
        return _partition(problem, 'availability zone',
                          [zones.get(host, DEFAULT_ZONE) for host in problem.hosts])


def _partition(problem: Problem, noun: str,
               part_of_host: Sequence[str]) -> tuple[AllowedHosts, ...]:
    names, part = np.unique(np.array(part_of_host, dtype=str), return_inverse=True)
    if len(names) < 2:
        return ()

    def why(state: State, vm: int, host: int) -> str:
        return (f'{problem.hosts[host]} is in {noun} {names[part[host]]}, the instance in '
                f'{names[part[problem.vm_host[vm]]]}')

    # No move leaves a cell or zone, so that of an instance is that of its present host.
    return (AllowedHosts(reason='zone', why=why, kind=part[problem.vm_host],
                         allowed=np.arange(len(names))[:, None] == part),)
