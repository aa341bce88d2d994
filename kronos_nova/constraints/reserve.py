"""Room for some hosts' worth of instances stays free."""

import numpy as np

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.model import Problem
from kronos_nova.model.rules import ReservedRoom
from kronos_nova.objects.snapshot import Snapshot


class Reserve:
    """Room of the ``reserve_hosts`` largest hosts, which stays free. It is counted on hosts in use:
    otherwise packing would fill them to the last and the reserve would be on empty hosts, which are
    switched off."""

    @staticmethod
    def compile(problem: Problem, snapshot: Snapshot,
                rules: ConstraintRules) -> tuple[ReservedRoom, ...]:
        count = rules.reserve_hosts
        if not count:
            return ()
        limits = problem.limits[:len(problem.hosts)][problem.available]
        needed = np.sort(limits, axis=0)[::-1][:count].sum(axis=0)

        return (ReservedRoom(needed=needed, why=lambda state, vm, host: (
            f'the hosts in use would keep less than {count} hosts\' worth of room free')),)
