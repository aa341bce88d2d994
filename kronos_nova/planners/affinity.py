"""Repairs server groups whose members are where their policy does not want them."""

import numpy as np

from kronos_nova.constraints.base import Constraints
from kronos_nova.objects.plan import AFFINITY
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import Step
from kronos_nova.planners.outcome import Outlook
from kronos_nova.planners.outcome import Teller
from kronos_nova.planners.search import Ties
from kronos_nova.planners.search import gentlest
from kronos_nova.simulation import Group
from kronos_nova.simulation import State


class AffinityEnforcer:
    """Of all moves that mend something, the one that leaves the lowest combined imbalance, again
    and again.

    :param hard: mend affinity and anti-affinity
    :param soft: mend soft-affinity and soft-anti-affinity
    """

    phase = AFFINITY

    def __init__(self, hard: bool = True, soft: bool = True):
        self._enforced = {True: hard, False: soft}

    def plan(self, state: State, constraints: Constraints, limits: Limits) -> list[Step]:
        steps, ties = [], Ties(state.problem)
        while len(steps) < limits.budget and not limits.is_over:
            groups = [group for group in state.problem.groups
                      if self._enforced[group.hard] and violations(state, group)]
            step = self._mend(state, constraints, groups, ties)
            if step is None:
                break
            steps.append(step)
        return steps

    def _mend(self, state, constraints, groups, ties):
        broken = {}
        for group in groups:
            for vm in group.members[state.problem.movable[group.members]]:
                broken.setdefault(int(vm), []).append(group)
        outlook = Outlook(state)
        pair = gentlest(outlook, sorted(broken), lambda vm: (
            constraints.mask(state, vm) & _mending(state, broken[vm], vm)), ties)
        if pair is None:
            return None
        names = ', '.join(group.name for group in broken[pair[0]])
        return Teller(state).take(*pair, f'repairs server group {names}')


def violations(state: State, group: Group) -> int:
    """How many members are not where the group's policy wants them; 0 if it is kept."""
    counts = np.bincount(state.vm_host[group.members])
    if group.anti:
        return int(np.maximum(counts - group.max_per_host, 0).sum())
    return int(len(group.members) - counts.max())


def _mending(state, groups, vm):
    """bool (H,): where the instance makes the violations of one of the groups fewer."""
    size = len(state.problem.hosts)
    mending = np.zeros(size, dtype=bool)
    for group in groups:
        counts = np.bincount(state.vm_host[group.members], minlength=size)
        here = counts[state.vm_host[vm]]
        if group.anti:
            if here > group.max_per_host:
                mending |= counts < group.max_per_host
        elif here < counts.max():
            mending |= counts == counts.max()
        else:  # as many here as anywhere: a part as large elsewhere may take it in
            mending |= counts == here
    return mending
