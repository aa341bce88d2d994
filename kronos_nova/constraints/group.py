"""Server groups: all four policies, unless the soft ones are only to cost something."""

import numpy as np


class GroupRule:
    """Anti-affinity: at most ``max_per_host`` members on a host. Affinity: only to where every
    other member is; where they are already apart, only to a host that has most of the others, so
    that a broken group can be mended move by move and none gets worse.
    """

    reason = 'group'

    def __init__(self, problem, snapshot, rules):
        self._groups = tuple(group for group in problem.groups
                             if group.hard or rules.soft_groups_veto)
        self._of_vm = {}
        for group in self._groups:
            for vm in group.members:
                self._of_vm.setdefault(int(vm), []).append(group)
        # All groups' members in one row, so that a whole column costs a few passes.
        self._vms = np.concatenate([g.members for g in self._groups] or [np.zeros(0, dtype=int)])
        self._group_of = np.repeat(np.arange(len(self._groups)),
                                   [len(g.members) for g in self._groups])
        self._anti = np.array([g.anti for g in self._groups], dtype=bool)
        self._most = np.array([g.max_per_host for g in self._groups], dtype=int)

    @property
    def idle(self):
        return not self._groups

    def mask(self, state, vm):
        permitted = np.ones(len(state.problem.hosts), dtype=bool)
        for group in self._of_vm.get(int(vm), ()):
            permitted &= self._mask_of(state, group, vm)
        return permitted

    def _mask_of(self, state, group, vm):
        others = group.members[group.members != vm]
        counts = np.bincount(state.vm_host[others], minlength=len(state.problem.hosts))
        if group.anti:
            return counts < group.max_per_host
        return counts == counts.max()

    def column(self, state, host):
        permitted = np.ones(len(state.problem.vms), dtype=bool)
        here = state.vm_host[self._vms] == host
        counts = np.bincount(self._group_of[here], minlength=len(self._groups))
        full = self._anti & (counts >= self._most)
        permitted[self._vms[full[self._group_of]]] = False
        apart = ~self._anti[self._group_of] & (counts[self._group_of] < self._most_others(state))
        permitted[self._vms[apart]] = False
        return permitted

    def _most_others(self, state):
        """intp, for every member in the row: how many of the others the host has that has most."""
        size = len(state.problem.hosts)
        places, place, counts = np.unique(self._group_of * size + state.vm_host[self._vms],
                                          return_inverse=True, return_counts=True)
        groups = places // size
        first, second = np.zeros((2, len(self._groups)), dtype=np.intp)
        np.maximum.at(first, groups, counts)
        is_first = counts == first[groups]
        ties = np.bincount(groups[is_first], minlength=len(self._groups))
        np.maximum.at(second, groups[~is_first], counts[~is_first])
        alone_on_first = is_first[place] & (ties[self._group_of] == 1)
        without = np.maximum(first - 1, second)[self._group_of]
        return np.where(alone_on_first, without, first[self._group_of])

    def permits(self, state, vm, host):
        return self._against(state, vm, host) is None

    def why(self, state, vm, host):
        group = self._against(state, vm, host)
        name = state.problem.hosts[host]
        if group.anti:
            return f'{name} has a member of {"" if group.hard else "soft-"}anti-affinity group ' \
                   f'{group.name}'
        return f'other members of {"" if group.hard else "soft-"}affinity group {group.name} are ' \
               f'not on {name}'

    def _against(self, state, vm, host):
        return next((group for group in self._of_vm.get(int(vm), ())
                     if not self._mask_of(state, group, vm)[host]), None)
