"""Operations on evaluations: the measured loads and the imbalance of an aggregate, now and in the
past."""

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
    """A host and its loads in an evaluation. ``state`` is ``up``, ``disabled``, ``down`` or
    ``forced down``. ``scores`` are the host's scores by policy, in the order of the evaluation's
    ``scored_by``; a score is null if it is unknown. ``servers_after`` and ``scores_after`` are the
    expected values after the plan of the evaluation. ``domains`` maps each level of failure
    domains, the largest first, to the domain of the host."""

    name: str
    state: str
    domains: dict[str, str]
    servers: int
    servers_after: int
    scores: list[float | None]
    scores_after: list[float | None]


class Immovable(Response):
    """The number of servers that Nova cannot migrate live for one reason. ``can`` is ``cold`` if
    Nova can migrate these servers cold, else ``no``."""

    can: str
    why: str
    count: int


class Evaluation(Response):
    """The last evaluation of an aggregate. ``measured_at`` is the time at which the figures of
    ``hosts`` were measured. If the last evaluation measured nothing, the figures are from an
    earlier evaluation. ``immovable`` has the numbers of servers that Nova cannot migrate live, by
    reason. Servers of every status count, also stopped servers."""

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
    """An evaluation in the history of an aggregate. ``imbalances`` are in the order of the
    ``policies`` of the history."""

    at: Time
    outcome: str
    imbalances: list[float | None]


class History(Response):
    """The imbalance of an aggregate over time. ``points`` are sorted by time, the oldest first. If
    there are many evaluations, each point stands for several successive evaluations, and shows the
    evaluation whose imbalance is farthest above the threshold. ``thresholds`` are the thresholds at
    the latest evaluation. ``oldest`` is the time of the first recorded evaluation of the aggregate;
    null if no evaluation is recorded."""

    since: Time
    until: Time
    oldest: Maybe
    policies: list[str]
    thresholds: list[float]
    points: list[Point]


class ShowHistory(Request):
    """A request for the history of an aggregate from ``since`` to ``until``. By default, ``until``
    is the present, and ``since`` is ``hours`` before ``until``."""

    aggregate: str
    hours: Annotated[int, msgspec.Meta(ge=1, le=24 * 366)] = 24
    since: Maybe = None
    until: Maybe = None


SHOW = Operation(
    name='evaluations:show', method='GET', path='/v1/aggregates/{aggregate}/evaluation',
    request=OneAggregate, response=Evaluation, refusals=(404,),
    summary='The last evaluation of an aggregate: policies, hosts, and why servers stay.')
HISTORY = Operation(
    name='evaluations:history', method='GET', path='/v1/aggregates/{aggregate}/history',
    request=ShowHistory, response=History, refusals=(404,),
    summary='The imbalance of an aggregate over time.')

OPERATIONS = (SHOW, HISTORY)
