"""The rule that forbids moves that violate the policies of server groups.

By default, the rule applies hard and soft policies. If ``soft_group_cost`` is set, the rule applies
only hard policies, and a violation of a soft policy has a penalty instead.

Anti-affinity permits at most ``max_server_per_host`` members on a host. Affinity permits a member
to go only to the host of the other members. If the other members are on several hosts, the member
may go only to the hosts with the most other members. So a violated group is repaired move by move,
and no move adds a violation.

If a host cannot be emptied otherwise, a drain relaxes soft policies, because Nova treats soft
policies as preferences. So the owner of a group cannot prevent the maintenance of a host.
"""

import numpy as np

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.model import Problem
from kronos_nova.model.rules import GroupPolicy
from kronos_nova.objects.snapshot import Snapshot


class GroupRule:
    @staticmethod
    def compile(problem: Problem, snapshot: Snapshot,
                rules: ConstraintRules) -> tuple[GroupPolicy, ...]:
        forbids = np.array([not one.rule and (one.hard or rules.soft_group_cost is None)
                            for one in problem.groups], dtype=bool)
        if not forbids.any():
            return ()
        hard = np.array([one.hard for one in problem.groups], dtype=bool)
        yields = np.array([one.yields for one in problem.groups], dtype=bool)
        return (GroupPolicy(forbids=forbids,
                            firm=~yields & (hard | (not rules.soft_groups_yield))),)
