"""Reports: sums over moves, and the loads of hosts before and after them."""

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
"""Properties by which moves can be summed."""


class Sums(Response):
    """Sums over the moves that ended in a range of time, and over the loads of hosts in the days
    (UTC) of this range. ``month``, ``project`` and ``aggregate`` name the part of the moves and
    loads that is summed up; each of them is null where the sums are not grouped by it.

    month : such as ``2026-11``, in UTC
    project : uuid; null also for moves whose project is not known
    servers : number of servers that were moved, each counted once; null where the single moves are
        no longer kept
    memory_mb, seconds : sums over completed moves: MiB of memory of the server, seconds from
        request to end
    observed_seconds : seconds of an aggregate for which evaluations had data. This field,
        ``hot_seconds`` and ``contended_seconds`` are null in sums by project, and where no loads
        are kept
    hot_seconds : seconds of a host with a score above 0.9 in a policy
    contended_seconds : seconds of a server on a host that is full in a policy
    unmoved_hot_seconds, unmoved_contended_seconds : hot and contended seconds that there would be
        without moves; null where they are not known for all of ``observed_seconds``
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
    """The loads from the day ``since`` to the day ``until`` (UTC), both included. ``hot_minutes``
    are minutes of hosts with a score above 0.9, ``contended_minutes`` minutes of servers on full
    hosts, both for each day and aggregate."""

    since: datetime.date
    until: datetime.date
    observed_days: float
    hot_minutes: float
    contended_minutes: float


class Comparison(Response):
    """The loads ``before`` and ``after`` the first completed move, over times of the same length.
    Each of them is null where no evaluation of its time is kept. ``without_moves`` has the loads
    after the first completed move as they would be without the moves of four weeks, computed from
    the scores of the same evaluations. ``explanation`` says what is compared, or why nothing is
    compared."""

    explanation: str
    before: LoadOfTime | None
    after: LoadOfTime | None
    without_moves: LoadOfTime | None = None


class Report(Response):
    """Sums over moves and loads. ``oldest`` is the time at which the first move in the sums
    ended."""

    since: Time
    until: Time
    oldest: Maybe
    sums: list[Sums]
    comparison: Comparison


class ShowReport(Request):
    """A request for sums over moves and loads. Without ``by`` everything is in one sum. By default,
    ``until`` is the present and ``since`` is a year earlier. Loads, and moves that are no longer
    kept singly, are counted by whole days (UTC)."""

    by: Annotated[list[Literal['month', 'project', 'aggregate']], msgspec.Meta(max_length=3)] = []
    since: Maybe = None
    until: Maybe = None
    project: Name | None = None
    aggregate: Name | None = None


SHOW = Operation(
    name='report:show', command='report', method='GET', path='/v1/report', request=ShowReport,
    response=Report, is_slow=True, refusals=(404,),
    summary='Totals of moves and of loads by month, project and aggregate.')

OPERATIONS = (SHOW,)
