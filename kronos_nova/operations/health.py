"""The health of an aggregate, as one number from 0 to 100 for a dashboard or an alert."""

from collections.abc import Iterable
from collections.abc import Mapping

from kronos_client.contract.status import Aggregate
from kronos_client.contract.status import DrainState
from kronos_client.contract.status import Policy
from kronos_nova.drain import states as drains
from kronos_nova.objects import plan as plans

BEST = 100.0
"""Health score of an aggregate that has no problem (no unit). Fixed by the range of the score, from
0 to 100."""

IMBALANCE = 40.0
HOT = 25.0
DRAINS = 15.0
GROUPS = 10.0
DATA = 10.0
"""Maximum points that each kind of problem takes from the health score of an aggregate.

- ``IMBALANCE``: imbalance above the threshold
- ``HOT``: hot hosts, whose score is above 0.9 in some policy
- ``DRAINS``: hosts that cannot be emptied
- ``GROUPS``: violated server groups
- ``DATA``: policies without data

The sum of the points is 100: an aggregate with all problems has a score of 0. Raised, a kind of
problem has more influence on the score; lowered, the other kinds have more influence. Not
measured."""

MANY = 0.25
"""Share of hot hosts in an aggregate at which all points for hot hosts are taken from the health
score. A smaller share takes fewer points in proportion. Raised, a few hot hosts take fewer points;
lowered, a few hot hosts take more points. Chosen because balancing does not help if a quarter of
the hosts is hot."""


def score(aggregate: Aggregate, hosts: Mapping[str, int],
          drained: Iterable[DrainState]) -> float | None:
    """Return the health score of an aggregate, from 0 to 100; None if there was no evaluation, or
    if the last evaluation failed.

    The score is 100 minus the points for five kinds of problems:

    - imbalance of the worst policy: up to 40 points, which are reached at twice the threshold
    - hot hosts: up to 25 points, which are reached if a quarter of the hosts is hot
    - a drained host that cannot be emptied: 15 points
    - a violated hard policy of a server group: 10 points
    - policies without data: up to 10 points, which are reached if no policy has data

    :param hosts: the counts ``hosts``, ``hot_hosts`` and ``broken_groups`` of the last evaluation
    :param drained: drains of all aggregates
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


def _excess(policy: Policy) -> float:
    """Return the excess of a policy's imbalance over its threshold, from 0 to 1. The excess is 0 up
    to the threshold, rises linearly above it, and reaches 1 at twice the threshold."""
    if policy.imbalance is None or policy.imbalance <= policy.threshold:
        return 0.0
    if not policy.threshold:
        return 1.0
    return min(1.0, policy.imbalance / policy.threshold - 1.0)


def _part(some: int, total: int) -> float:
    return some / total if total else 0.0
