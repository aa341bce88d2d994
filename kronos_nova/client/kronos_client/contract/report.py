"""Operations on reports: sums over moves, and the loads of hosts before and after the moves."""

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

By = Literal['month', 'project', 'aggregate']
BY: tuple[By, By, By] = ('month', 'project', 'aggregate')
"""Properties by which the sums of a report can be grouped."""
MONTH, PROJECT, AGGREGATE = BY


class Sums(Response):
    """Sums over the moves that ended in a range of time, and over the loads of hosts in the days
    (UTC) of this range. Sums can be grouped by ``month``, ``project`` and ``aggregate``. These
    fields are then the month, project and aggregate of the group. A field by which the sums are not
    grouped is null.

    month : such as ``2026-11``, in UTC
    project : uuid; null also for moves whose project is unknown
    servers : number of different servers that were moved; null if records of single moves are no
        longer kept
    memory_mb, seconds : sums over completed moves: MiB of memory of the moved servers, and seconds
        from the request of a move to its end
    observed_seconds : seconds for which evaluations had data, summed over aggregates; null in sums
        by project, and if no loads are kept
    hot_seconds : seconds for which a host has a score above 0.9 in at least one policy, summed over
        hosts; null if ``observed_seconds`` is null
    contended_seconds : seconds for which a server is on a full host, summed over servers; null if
        ``observed_seconds`` is null. A host is full if its score in at least one policy is 1 or
        more
    unmoved_hot_seconds, unmoved_contended_seconds : ``hot_seconds`` and ``contended_seconds`` as
        estimated without the moves that balance load; null unless all of ``observed_seconds`` have
        an estimate
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
    """The loads from the day ``since`` to the day ``until`` (UTC), both included. ``observed_days``
    is the time for which evaluations had data, summed over aggregates.

    ``hot_minutes`` and ``contended_minutes`` are means for one day of one aggregate.
    ``hot_minutes`` is the time with a score above 0.9, summed over the hosts. ``contended_minutes``
    is the time on a full host, summed over the servers."""

    since: datetime.date
    until: datetime.date
    observed_days: float
    hot_minutes: float
    contended_minutes: float


class Comparison(Response):
    """The loads ``before`` and ``after`` the first completed move, over ranges of time of the same
    length. ``before`` or ``after`` is null if no evaluation of its range is kept. ``without_moves``
    estimates the loads in the range of ``after`` as if Kronos had not balanced load. Each
    evaluation makes this estimate: it computes the scores of hosts as if its servers were on the
    hosts where they would be without the balancing moves of the previous four weeks.
    ``explanation`` says what is compared, or why nothing is compared."""

    explanation: str
    before: LoadOfTime | None
    after: LoadOfTime | None
    without_moves: LoadOfTime | None = None


class Report(Response):
    """Sums over moves and loads, and a comparison of loads. ``oldest`` is the time since which
    moves are known, in any aggregate: the end of the oldest move that has a record of its own, or
    the beginning of the oldest day that has sums of moves, whichever is earlier. ``oldest`` is null
    if no move is recorded."""

    since: Time
    until: Time
    oldest: Maybe
    sums: list[Sums]
    comparison: Comparison


class ShowReport(Request):
    """A request for sums over moves and loads. ``by`` are the properties by which the sums are
    grouped; without ``by``, there is one sum of everything. By default, ``until`` is the present,
    and ``since`` is a year earlier. Loads are summed for whole days (UTC). Moves whose single
    records are no longer kept are summed for whole days as well."""

    by: Annotated[list[By], msgspec.Meta(max_length=3)] = []
    since: Maybe = None
    until: Maybe = None
    project: Name | None = None
    aggregate: Name | None = None


SHOW = Operation(
    name='report:show', command='report', method='GET', path='/v1/report', request=ShowReport,
    response=Report, is_slow=True, refusals=(404,),
    summary='Totals of moves and of loads by month, project and aggregate.')

OPERATIONS = (SHOW,)
