"""Evaluations: the measured loads and imbalance of an aggregate, now and in the past."""

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
    """A host with its loads. ``state`` is ``up``, ``disabled``, ``down`` or ``forced down``.
    ``scores`` has the score in each policy, in the order of the evaluation's ``scored_by``, null
    where there is none. ``servers_after`` and ``scores_after`` are those after the plan of that
    evaluation. ``domains`` maps each level of failure domains, the largest first, to the domain of
    the host."""

    name: str
    state: str
    domains: dict[str, str]
    servers: int
    servers_after: int
    scores: list[float | None]
    scores_after: list[float | None]


class Immovable(Response):
    """The number of servers that Nova does not migrate live for one reason. ``can`` is ``cold`` if
    Nova can migrate them cold, or ``no``."""

    can: str
    why: str
    count: int


class Evaluation(Response):
    """The last evaluation of an aggregate. The figures of ``hosts`` are from ``measured_at``, which
    is earlier than ``evaluated_at`` where the last evaluation measured nothing. ``immovable``
    counts servers of every status."""

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
    """An earlier evaluation. ``imbalances`` are in the order of the ``policies`` of the history."""

    at: Time
    outcome: str
    imbalances: list[float | None]


class History(Response):
    """The imbalance of an aggregate over time. ``points`` has the oldest evaluation first. Where
    there are many evaluations, each point stands for several in a row, and is the one whose
    imbalance is farthest above its threshold. ``thresholds`` are those of the latest evaluation.
    ``oldest`` is the time of the first evaluation of the aggregate that is kept, null where none
    is."""

    since: Time
    until: Time
    oldest: Maybe
    policies: list[str]
    thresholds: list[float]
    points: list[Point]


class ShowHistory(Request):
    """A request for the history of an aggregate from ``since`` to ``until``. By default, ``until``
    is the present and ``since`` is ``hours`` earlier."""

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
