"""Operations for those who watch: who they are, what was measured, and how that went."""

import datetime
from typing import Annotated

import msgspec

from kronos_nova.api import views as v
from kronos_nova.api.call import Call
from kronos_nova.api.call import Operation
from kronos_nova.contract import plans
from kronos_nova.db import cycles
from kronos_nova.db import evaluations
from kronos_nova.operations import overview
from kronos_nova.operations import switching

MOST_POINTS = 480
"""Of a history: one for every other pixel of a wide drawing."""


class Access(v.View):
    """Whoever asks, until when the token is valid, and the operations that the policy permits."""

    user: str
    project: str | None
    is_system: bool
    roles: list[str]
    expires_at: v.Maybe
    may: list[str]


class LoadedHost(v.View):
    """A host: ``up``, ``disabled``, ``down`` or ``forced down``. The figures of ``scores`` are in
    the order of ``scored_by``, null where there is none; those ``after`` are what the plan of that
    evaluation leads to."""

    name: str
    state: str
    servers: int
    servers_after: int
    scores: list[float | None]
    scores_after: list[float | None]


class Evaluation(v.View):
    """The last evaluation of an aggregate. The hosts are as they were at ``measured_at``: one that
    measured nothing leaves those of the one before."""

    aggregate: str
    evaluated_at: v.Maybe
    outcome: str | None
    reason: str
    mode: str
    planner: str
    policies: list[plans.PlannedPolicy]
    warnings: list[str]
    not_moved: list[plans.Stayed]
    measured_at: v.Maybe
    scored_by: list[str]
    hosts: list[LoadedHost]


class Point(v.View):
    """An evaluation of the past; the imbalances are in the order of ``policies``."""

    at: v.Time
    outcome: str
    imbalances: list[float | None]


class History(v.View):
    """Imbalance over time, the oldest first. Of evaluations that lie too close together the worst
    is shown. ``thresholds`` are the latest."""

    since: v.Time
    policies: list[str]
    thresholds: list[float]
    points: list[Point]


class HoursQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    hours: Annotated[int, msgspec.Meta(ge=1, le=24 * 366)] = 24


def show_access(call: Call) -> Access:
    return v.view(Access, call.identity, roles=sorted(call.identity.roles))


def show_evaluation(call: Call) -> Evaluation:
    services, name = call.services, call.path['aggregate']
    switching.refuse_unknown(services.conf, name)
    last = cycles.Cycles(services.database).of_aggregate(name)
    report = overview.report_of(last)
    policies, stayed = (report.policies, overview.stayed(report)) if report else ((), ())
    measured_at, hosts = evaluations.Evaluations(services.database).hosts(name)
    scored_by = sorted({policy for host in hosts for policy in host.scores})
    return Evaluation(
        aggregate=name, evaluated_at=last and last.finished_at,
        outcome=last and last.outcome, reason=overview.reason(report),
        mode=report.mode if report else '', planner=report.planner if report else '',
        policies=[plans.PlannedPolicy.made_from(each) for each in policies],
        warnings=list(report.warnings) if report else [],
        not_moved=[plans.Stayed(reason=word, count=count) for word, count in stayed],
        measured_at=measured_at, scored_by=scored_by,
        hosts=[_host(each, scored_by) for each in hosts])


def _host(load, scored_by):
    pairs = [load.scores.get(policy, (None, None)) for policy in scored_by]
    return v.view(LoadedHost, load, scores=[before for before, _after in pairs],
                  scores_after=[after for _before, after in pairs])


def show_history(call: Call) -> History:
    services, name = call.services, call.path['aggregate']
    switching.refuse_unknown(services.conf, name)
    since = services.utcnow() - datetime.timedelta(hours=call.query.hours)
    found = evaluations.Evaluations(services.database).since(name, since)
    latest = {policy: pair[1] for each in found for policy, pair in each.policies.items()}
    policies = sorted(latest)
    return History(
        since=since, policies=policies, thresholds=[latest[name] for name in policies],
        points=[Point(at=each.at, outcome=each.outcome, imbalances=[
            each.policies[policy][0] if policy in each.policies else None for policy in policies])
            for each in evaluations.thinned(found, MOST_POINTS)])


OPERATIONS = (
    Operation(method='GET', path='/v1/access', name='access:show', run=show_access, gives=Access,
              summary='Who the token is of, and which operations the policy permits it.'),
    Operation(method='GET', path='/v1/aggregates/{aggregate}/evaluation', name='evaluations:show',
              run=show_evaluation, gives=Evaluation, refusals=(404,),
              summary='The last evaluation of an aggregate: policies, hosts, what stays and why.'),
    Operation(method='GET', path='/v1/aggregates/{aggregate}/history', name='evaluations:history',
              run=show_history, gives=History, query=HoursQuery, refusals=(404,),
              summary='How the imbalance of an aggregate went.'),
)
