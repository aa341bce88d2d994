"""The rule that forbids moves that violate the policies of server groups.

By default, the rule applies all four policies. If ``soft_group_cost`` is set, the rule applies only
the two hard policies, and violations of soft policies have a price instead.

Anti-affinity permits at most ``max_server_per_host`` members on a host. Affinity permits a member
to go only to the host of all other members. If members are already on several hosts, a member may
go only to one of the hosts with the most other members. So a violated group can be repaired move by
move, and no move adds a violation.

In a drain, soft policies are relaxed if the host cannot be emptied otherwise. Nova treats soft
policies as preferences. A tenant who creates a group must not be able to prevent maintenance of a
host.
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
