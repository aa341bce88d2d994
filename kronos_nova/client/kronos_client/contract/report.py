"""Reports: what moves there were, in sums."""

from typing import Literal

from kronos_client.contract.base import Maybe
from kronos_client.contract.base import Name
from kronos_client.contract.base import Request
from kronos_client.contract.base import Response
from kronos_client.contract.base import Time
from kronos_client.contract.operation import Operation

MONTH, PROJECT, AGGREGATE = BY = ('month', 'project', 'aggregate')
"""What sums can be made for."""


class MoveSums(Response):
    """Sums over the moves that ended in a time.

    month : ``2026-11``, in UTC; null where sums are not by month, as project and aggregate
    project : uuid; also null for moves whose project is not known
    servers : that were moved, each counted once
    memory_mb, seconds : of the completed moves: size of their servers, from request to end
    """

    month: str | None
    project: str | None
    aggregate: str | None
    completed: int
    failed: int
    abandoned: int
    servers: int
    memory_mb: int
    seconds: float


class Report(Response):
    """``oldest`` is when the first move that the journal still has has ended."""

    since: Time
    until: Time
    oldest: Maybe
    sums: list[MoveSums]


class ShowReport(Request):
    """Without ``by`` there is one sum of all. ``since`` is a year before ``until`` by default,
    ``until`` is now."""

    by: list[Literal['month', 'project', 'aggregate']] = []
    since: Maybe = None
    until: Maybe = None
    project: Name | None = None
    aggregate: Name | None = None


SHOW = Operation(
    name='report:show', command='report', method='GET', path='/v1/report', request=ShowReport,
    response=Report, is_slow=True, refusals=(404,),
    summary='Sums of moves by month, project and aggregate.')

OPERATIONS = (SHOW,)
