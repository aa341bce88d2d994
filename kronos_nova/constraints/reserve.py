"""The rule that keeps room free on the hosts in use. The free room must be at least the total room
of the n largest hosts. The option ``reserve_hosts`` is n."""

import numpy as np

from kronos_nova import plural
from kronos_nova.constraints.availability import is_up
from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.model import Problem
from kronos_nova.model.rules import ReservedRoom
from kronos_nova.objects.snapshot import Snapshot


class Reserve:
    """A constraint that keeps room free on the hosts in use. The free room must be at least the
    total room of the n largest hosts. The option ``reserve_hosts`` is n. Free room on empty hosts
    does not count, because empty hosts may be switched off. A host whose load is not known counts,
    because its room is known."""

    @staticmethod
    def compile(problem: Problem, snapshot: Snapshot,
                rules: ConstraintRules) -> tuple[ReservedRoom, ...]:
        count = rules.reserve_hosts
        if not count:
            return ()
        counted = problem.available | is_up(problem, snapshot, rules)
        limits = problem.limits[:len(problem.hosts)][counted]
        needed = np.sort(limits, axis=0)[::-1][:count].sum(axis=0)

        return (ReservedRoom(needed=needed, counted=counted, why=lambda state, vm, host: (
            f'the hosts in use would keep less than the room of {plural.count(count, "host")} '
            'free')),)
