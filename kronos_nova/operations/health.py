"""The health of an aggregate, as one figure for a dashboard or an alert."""

from collections.abc import Iterable
from collections.abc import Mapping

from kronos_client.contract.status import Aggregate
from kronos_client.contract.status import DrainState
from kronos_nova.drain import states as drains
from kronos_nova.objects import plan as plans

BEST = 100.0
"""Points of an aggregate without any problem (no unit). Fixed, so that a score reads as a
percentage."""

IMBALANCE = 40.0
HOT = 25.0
DRAINS = 15.0
GROUPS = 10.0
DATA = 10.0
"""Points that each kind of problem costs at most (no unit). Their sum is :data:`BEST`, so that an
aggregate with all problems has a score of 0. Raised, one kind hides the others; lowered, the others
hide it. Not measured."""

MANY = 0.25
"""Part of the hosts that must be hot for all points of :data:`HOT` to be lost. Raised, few hot
hosts cost less; lowered, more. Where a quarter of the hosts has next to nothing left, capacity
helps and balancing does not."""


def score(aggregate: Aggregate, hosts: Mapping[str, int],
          drained: Iterable[DrainState]) -> float | None:
    """Return a score from 0 to 100; None where it is not known, because no evaluation was made or
    the last one failed.

    Lost are 40 for an imbalance of twice its threshold or more, in the worst policy, and for less
    in proportion; 25 for a quarter of hot hosts or more, and for fewer in proportion; 15 for a
    host in the aggregate that cannot be emptied although it is to be; 10 for a broken server group
    with a hard policy; 10 for policies without data, in proportion.

    :param hosts: ``hosts``, ``hot_hosts`` and ``broken_groups`` of the last evaluation
    """
    if aggregate.outcome in (None, plans.FAILED):
        return None
    blind = [policy for policy in aggregate.policies if policy.imbalance is None]
    is_stuck = any(each.state in (drains.BLOCKED, drains.OVERDUE)
                   and each.aggregate == aggregate.name for each in drained)
    return BEST - (
        IMBALANCE * max(map(_excess, aggregate.policies), default=0.0)
        + HOT * min(1.0, _part(hosts.get('hot_hosts', 0), hosts.get('hosts', 0)) / MANY)
        + DRAINS * is_stuck
        + GROUPS * (hosts.get('broken_groups', 0) > 0)
        + DATA * _part(len(blind), len(aggregate.policies)))


def _excess(policy):
    """Return 0 for a figure at its threshold or below, 1 at twice the threshold or above."""
    if policy.imbalance is None or policy.imbalance <= policy.threshold:
        return 0.0
    if not policy.threshold:
        return 1.0
    return min(1.0, policy.imbalance / policy.threshold - 1.0)


def _part(some, total):
    return some / total if total else 0.0
