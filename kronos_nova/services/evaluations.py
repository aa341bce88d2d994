"""Operations on evaluations: show the last evaluation of an aggregate, or the imbalance of an
aggregate over time."""

import collections
import datetime
from collections.abc import Iterable

from kronos_client.contract import evaluations as contract
from kronos_client.contract import plans
from kronos_client.contract.status import OneAggregate
from kronos_nova import clock
from kronos_nova.db import cycles
from kronos_nova.db import evaluations
from kronos_nova.objects.host_load import HostLoad
from kronos_nova.objects.plan import Immovable
from kronos_nova.operations import overview
from kronos_nova.operations import switching
from kronos_nova.services import plans as plan_service
from kronos_nova.services.context import Context

MOST_POINTS = 480
"""Maximum number of points in the chart of an aggregate's imbalance over time. If there are more
evaluations, one point stands for several consecutive evaluations, and shows the evaluation with the
imbalance farthest above the threshold. Raised, responses are larger; lowered, short peaks look
longer. Chosen as one point for every second pixel of a wide chart."""


def show(context: Context, request: OneAggregate) -> contract.Evaluation:
    """Return the last evaluation of an aggregate.

    :raises NotInScope: Kronos does not plan for this aggregate
    """
    name = request.aggregate
    switching.refuse_unknown(context.conf, name, is_single=True)
    last = cycles.Cycles(context.database).of_aggregate(name)
    report = overview.report_of(last)
    policies, stayed = (report.policies, overview.stayed(report)) if report else ((), ())
    measured_at, hosts = evaluations.Evaluations(context.database).hosts(name)
    scored_by = sorted({policy for host in hosts for policy in host.scores})
    return contract.Evaluation(
        aggregate=name, evaluated_at=None if last is None else last.finished_at,
        outcome=None if last is None else last.outcome, reason=overview.reason(report),
        mode=report.mode if report else '', planner=report.planner if report else '',
        policies=[plans.PlannedPolicy.made_from(each) for each in policies],
        warnings=list(report.warnings) if report else [],
        not_moved=[plan_service.stayed(word, count) for word, count in stayed],
        measured_at=measured_at, scored_by=scored_by,
        hosts=[_host(each, scored_by) for each in hosts],
        immovable=_immovable(report.immovable if report else ()))


def _immovable(found: Iterable[Immovable]) -> list[contract.Immovable]:
    """Return the number of immovable servers for each reason, the most frequent reason first."""
    counts = collections.Counter((each.can, each.why) for each in found)
    return [contract.Immovable(can=can, why=why, count=count) for (can, why), count in sorted(
        counts.items(), key=lambda item: (-item[1], item[0]))]


def _host(load: HostLoad, scored_by: Iterable[str]) -> contract.LoadedHost:
    pairs = [load.scores.get(policy, (None, None)) for policy in scored_by]
    return contract.LoadedHost.made_from(
        load, scores=[before for before, _after in pairs],
        scores_after=[after for _before, after in pairs])


def history(context: Context, request: contract.ShowHistory) -> contract.History:
    """Return the imbalances of an aggregate over time: the results of its evaluations between two
    times.

    :raises NotInScope: Kronos does not plan for this aggregate
    """
    name = request.aggregate
    switching.refuse_unknown(context.conf, name, is_single=True)
    until = request.until or context.utcnow()
    since = request.since or clock.earlier(
        until, datetime.timedelta(hours=request.hours))
    known = evaluations.Evaluations(context.database)
    found = known.between(name, since, until)
    latest = {policy: pair[1] for each in found for policy, pair in each.policies.items()}
    policies = sorted(latest)
    return contract.History(
        since=since, until=until, oldest=known.oldest(name), policies=policies,
        thresholds=[latest[name] for name in policies],
        points=[contract.Point(at=each.at, outcome=each.outcome, imbalances=[
            each.policies[policy][0] if policy in each.policies else None for policy in policies])
            for each in evaluations.thinned(found, MOST_POINTS)])


FUNCTIONS = {contract.SHOW.name: show, contract.HISTORY.name: history}
