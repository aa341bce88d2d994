"""Server groups: all four policies, unless the soft ones are only to cost something.

Anti-affinity: at most ``max_server_per_host`` members on a host. Affinity: only to where every
other member is; where they are already apart, only to a host that has most of the others, so that a
broken group can be mended move by move and none gets worse.

In a drain the soft ones give way where the host could not be emptied otherwise. To Nova they are a
preference, and a tenant who makes a group has no say in whether a host is taken out of service.
"""

import numpy as np

from kronos_nova.simulation.rules import Spacing


class GroupRule:
    @staticmethod
    def compile(problem, snapshot, rules):
        forbids = np.array([one.hard or rules.soft_groups_veto for one in problem.groups],
                           dtype=bool)
        if not forbids.any():
            return ()
        hard = np.array([one.hard for one in problem.groups], dtype=bool)
        return (Spacing('group', _why, forbids, hard | (not rules.soft_groups_yield)),)


def _why(state, vm, host):
    rule = next(rule for rule in state.model.rules if isinstance(rule, Spacing))
    groups = state.model.memberships.of(vm)
    groups = groups[rule.forbids[groups]]
    permits = rule.permits_groups(state, groups, np.full(len(groups), vm),
                                  np.full(len(groups), host))
    broken = [state.problem.groups[group] for group in groups[~permits]]
    against = next((each for each in broken if each.hard), broken[0])
    name, soft = state.problem.hosts[host], '' if against.hard else 'soft-'
    if not against.anti:
        return f'other members of {soft}affinity group {against.name} are not on {name}'
    most = f'{against.max_per_host} members' if against.max_per_host > 1 else 'a member'
    return f'{name} has {most} of {soft}anti-affinity group {against.name}'
