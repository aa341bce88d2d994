"""Reports: what moves there were, in sums, and how loaded the hosts were before and after them."""

import datetime
from typing import Annotated
from typing import Literal

import msgspec

from kronos_client.contract.base import Maybe
from kronos_client.contract.base import Name
from kronos_client.contract.base import Request
from kronos_client.contract.base import Response
from kronos_client.contract.base import Time
from kronos_client.contract.operation import Operation

MONTH, PROJECT, AGGREGATE = BY = ('month', 'project', 'aggregate')
"""The keys of sums."""


class Sums(Response):
    """Sums over the moves that ended in a time, and over the loads of the hosts in its days (UTC).

    month : ``2026-11``, in UTC; null where sums are not by month, as project and aggregate
    project : uuid; also null for moves whose project is not known
    servers : that were moved, each counted once; null where some of the moves are not kept singly
        any more
    memory_mb, seconds : of the completed moves: size of their servers, from request to end
    observed_seconds : of the aggregates, that evaluations with data cover; null where none is kept
        and in sums by project, as the next two
    hot_seconds : of hosts above 0.9 in a policy
    contended_seconds : of servers whose host is full in a policy
    unmoved_hot_seconds, unmoved_contended_seconds : as they would be without moves; null where that
        is known for less than observed_seconds
    """

    month: str | None
    project: str | None
    aggregate: str | None
    completed: int
    failed: int
    abandoned: int
    servers: int | None
    memory_mb: int
    seconds: float
    observed_seconds: float | None
    hot_seconds: float | None
    contended_seconds: float | None
    unmoved_hot_seconds: float | None = None
    unmoved_contended_seconds: float | None = None


class LoadOfTime(Response):
    """The load of hosts from one day to another (UTC), both included, in minutes a day and
    aggregate: of hosts above 0.9, and of servers whose host is full."""

    since: datetime.date
    until: datetime.date
    observed_days: float
    hot_minutes: float
    contended_minutes: float


class Comparison(Response):
    """The load after the first completed move, and as long before it. Either is null where no
    evaluation of its time is kept. ``without_moves`` is the load after it as it would be without
    the moves of four weeks, by the scores of the same evaluations. ``explanation`` says what is
    compared, or why nothing is."""

    explanation: str
    before: LoadOfTime | None
    after: LoadOfTime | None
    without_moves: LoadOfTime | None = None


class Report(Response):
    """``oldest`` is the time at which the first move in the sums ended."""

    since: Time
    until: Time
    oldest: Maybe
    sums: list[Sums]
    comparison: Comparison


class ShowReport(Request):
    """Without ``by`` there is one sum of all. ``since`` is a year before ``until`` by default,
    ``until`` is now. Of moves that are not kept singly, and of loads, whole days (UTC) count."""

    by: Annotated[list[Literal['month', 'project', 'aggregate']], msgspec.Meta(max_length=3)] = []
    since: Maybe = None
    until: Maybe = None
    project: Name | None = None
    aggregate: Name | None = None


SHOW = Operation(
    name='report:show', command='report', method='GET', path='/v1/report', request=ShowReport,
    response=Report, is_slow=True, refusals=(404,),
    summary='Sums of moves and loads by month, project and aggregate, before and after.')

OPERATIONS = (SHOW,)
