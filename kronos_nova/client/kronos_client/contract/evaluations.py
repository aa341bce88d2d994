"""Evaluations: what was measured of an aggregate, and how that changed."""

from typing import Annotated

import msgspec

from kronos_client.contract.base import Maybe
from kronos_client.contract.base import Request
from kronos_client.contract.base import Response
from kronos_client.contract.base import Time
from kronos_client.contract.operation import Operation
from kronos_client.contract.plans import PlannedPolicy
from kronos_client.contract.plans import Stayed
from kronos_client.contract.status import OneAggregate


class LoadedHost(Response):
    """A host: ``up``, ``disabled``, ``down`` or ``forced down``. The figures of ``scores`` are in
    the order of ``scored_by``, null where there is none; those ``after`` are what the plan of that
    evaluation leads to. ``domains`` maps levels of failure domains to those of the host, the
    largest first."""

    name: str
    state: str
    domains: dict[str, str]
    servers: int
    servers_after: int
    scores: list[float | None]
    scores_after: list[float | None]


class Immovable(Response):
    """The number of servers that Nova does not migrate live for one reason: ``can`` is ``cold`` or
    ``no``."""

    can: str
    why: str
    count: int


class Evaluation(Response):
    """The last evaluation of an aggregate. The hosts are as they were at ``measured_at``: one that
    measured nothing leaves those of the one before. ``immovable`` counts servers whatever their
    status."""

    aggregate: str
    evaluated_at: Maybe
    outcome: str | None
    reason: str
    mode: str
    planner: str
    policies: list[PlannedPolicy]
    warnings: list[str]
    not_moved: list[Stayed]
    measured_at: Maybe
    scored_by: list[str]
    hosts: list[LoadedHost]
    immovable: list[Immovable] = []


class Point(Response):
    """An evaluation of the past; the imbalances are in the order of ``policies``."""

    at: Time
    outcome: str
    imbalances: list[float | None]


class History(Response):
    """Imbalance over time, the oldest first. Of evaluations that lie too close together the worst
    is shown. ``thresholds`` are the latest. ``oldest`` is the time of the first evaluation that is
    kept of the aggregate, null where none is."""

    since: Time
    until: Time
    oldest: Maybe
    policies: list[str]
    thresholds: list[float]
    points: list[Point]


class ShowHistory(Request):
    """An aggregate between ``since`` and ``until``. ``until`` is now by default, ``since`` is
    ``hours`` before it."""

    aggregate: str
    hours: Annotated[int, msgspec.Meta(ge=1, le=24 * 366)] = 24
    since: Maybe = None
    until: Maybe = None


SHOW = Operation(
    name='evaluations:show', method='GET', path='/v1/aggregates/{aggregate}/evaluation',
    request=OneAggregate, response=Evaluation, refusals=(404,),
    summary='The last evaluation of an aggregate: policies, hosts, what stays and why.')
HISTORY = Operation(
    name='evaluations:history', method='GET', path='/v1/aggregates/{aggregate}/history',
    request=ShowHistory, response=History, refusals=(404,),
    summary='The imbalance of an aggregate over time.')

OPERATIONS = (SHOW, HISTORY)
