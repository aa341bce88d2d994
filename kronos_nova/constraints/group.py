"""Server groups: all four policies, unless the soft ones are only to cost something.

Anti-affinity: at most ``max_server_per_host`` members on a host. Affinity: only to where every
other member is; where they are already apart, only to a host that has most of the others, so that a
broken group can be mended move by move and none gets worse.
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
        return (Spacing('group', _why, forbids),)


def _why(state, vm, host):
    rule = next(rule for rule in state.model.rules if isinstance(rule, Spacing))
    groups = state.model.memberships.of(vm)
    groups = groups[rule.forbids[groups]]
    permits = rule.permits_groups(state, groups, np.full(len(groups), vm),
                                  np.full(len(groups), host))
    against = state.problem.groups[groups[~permits][0]]
    name, soft = state.problem.hosts[host], '' if against.hard else 'soft-'
    if not against.anti:
        return f'other members of {soft}affinity group {against.name} are not on {name}'
    most = f'{against.max_per_host} members' if against.max_per_host > 1 else 'a member'
    return f'{name} has {most} of {soft}anti-affinity group {against.name}'
