"""The rule that keeps as much room free on the hosts in use as ``reserve_hosts`` hosts have."""

import numpy as np

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.model import Problem
from kronos_nova.model.rules import ReservedRoom
from kronos_nova.objects.snapshot import Snapshot


class Reserve:
    """A constraint that keeps as much room free as the ``reserve_hosts`` largest hosts have. Only
    free room on hosts in use counts, because empty hosts may be switched off. If free room on empty
    hosts counted, packing could fill all hosts in use."""

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
