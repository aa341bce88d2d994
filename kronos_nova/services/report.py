"""The report: sums of moves and of loads of hosts in a range of time. The report also compares the
loads after the first completed move with two other loads: the loads before this move, and an
estimate of the loads without any move."""

import collections
import dataclasses
import datetime
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

from kronos_client.contract import report as contract
from kronos_nova import clock
from kronos_nova.clock import DAY
from kronos_nova.db import move_queries
from kronos_nova.db import sums as db_sums
from kronos_nova.objects import plan as plans
from kronos_nova.operations import switching
from kronos_nova.services.context import Context

YEAR = datetime.timedelta(days=365)

UNMOVED = ('unmoved_hot_seconds', 'unmoved_contended_seconds')
LOADS = ('observed_seconds', 'hot_seconds', 'contended_seconds', *UNMOVED)
"""Names of the fields of a report that are sums of loads."""

Key = tuple[str | None, str | None, str | None]
"""The key of a group of sums: (month, project, aggregate). An element is None if the sums are not
grouped by this property."""
Days = tuple[datetime.date, datetime.date]
"""The first and the last day of a range."""


@dataclasses.dataclass(slots=True)
class _Sums:
    moves: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    servers: int = 0
    is_single: bool = True
    loads: db_sums.LoadSum | None = None


def show(context: Context, request: contract.ShowReport) -> contract.Report:
    """Return the sums of moves and loads between two times.

    :raises NotInScope: nothing is found, and Kronos does not plan for this aggregate
    """
    until = request.until or context.utcnow()
    since = request.since or clock.earlier(until, YEAR)
    known = db_sums.Sums(context.database)
    days = since.astimezone(datetime.UTC).date(), until.astimezone(datetime.UTC).date()
    found: dict[Key, _Sums] = collections.defaultdict(_Sums)
    _add_moves(found, known.ended(
        since, until, request.by, project_id=request.project, aggregate=request.aggregate))
    _add_dropped(found, known.moves(
        *days, request.by, project_id=request.project, aggregate=request.aggregate))
    # Hosts, and so their loads, belong to no project.
    if contract.PROJECT not in request.by and not request.project:
        _add_loads(found, known.loads(*days, request.by, request.aggregate))
    if request.aggregate and not found:
        switching.refuse_unknown(context.conf, request.aggregate)
    return contract.Report(
        since=since, until=until, oldest=_oldest(context, known),
        sums=[_view(key, sums) for key, sums in sorted(found.items(), key=_order)],
        comparison=_comparison(known, request, days))


def _add_moves(found: dict[Key, _Sums], ended: Iterable[tuple[db_sums.MoveSum, int]]) -> None:
    for each, servers in ended:
        _added(found, each).servers += servers


def _add_dropped(found: dict[Key, _Sums], dropped: Iterable[db_sums.MoveSum]) -> None:
    for each in dropped:
        _added(found, each).is_single = False


def _added(found: dict[Key, _Sums], each: db_sums.MoveSum) -> _Sums:
    """Add a MoveSum to the _Sums object with the same month, project and aggregate, and return this
    object."""
    sums = found[each.month, each.project, each.aggregate]
    sums.moves.update({name: getattr(each, name) for name in db_sums.FIGURES})
    return sums


def _add_loads(found: dict[Key, _Sums], loads: Iterable[db_sums.LoadSum]) -> None:
    for each in loads:
        found[each.month, None, each.aggregate].loads = each


def _order(found: tuple[Key, _Sums]) -> list[str]:
    return [value or '' for value in found[0]]


def _oldest(context: Context, known: db_sums.Sums) -> datetime.datetime | None:
    day = known.oldest_day()
    ends = [move_queries.oldest_end(context.database)]
    if day is not None:
        ends.append(datetime.datetime.combine(day, datetime.time(), datetime.UTC))
    return min((each for each in ends if each is not None), default=None)


def _view(key: Key, sums: _Sums) -> contract.Sums:
    month, project, aggregate = key
    loads: dict[str, Any] = {name: sums.loads and getattr(sums.loads, name) for name in LOADS}
    if sums.loads and sums.loads.replayed_seconds < sums.loads.observed_seconds:
        loads |= dict.fromkeys(UNMOVED)
    return contract.Sums(
        month=month, project=project, aggregate=aggregate,
        servers=sums.servers if sums.is_single else None,
        **{name: sums.moves[name] for name in db_sums.FIGURES}, **loads)


def _comparison(known: db_sums.Sums, request: contract.ShowReport,
                days: Days) -> contract.Comparison:
    """Compare the load on the days before the first completed move with the load on as many days
    after it, and return the comparison. The day of the move itself is left out."""
    first = known.first_move(request.aggregate)
    if request.project:
        return _uncompared('Hosts are of no project: loads are not compared for one.')
    if first is None:
        return _uncompared('No move was completed yet, so there is nothing to compare.')
    after = max(days[0], first + DAY), days[1]
    length = min(after[1] - after[0], first - DAY - datetime.date.min)
    before = first - DAY - length, first - DAY
    loads = known.loads(*after, (), request.aggregate) if length >= 0 * DAY else []
    later = _load(loads, after)
    earlier = _load(known.loads(*before, (), request.aggregate), before)
    unmoved = _load(loads, after, 'replayed_seconds', *UNMOVED)
    if later is None:
        said = (f'The report has no evaluation after {first}, the day of the first completed '
                'move.')
    elif earlier is None:
        said = (f'No evaluation before {first}, the day of the first completed move, is kept, so '
                'there is nothing to compare with.')
    else:
        said = (f'Before and after {first}, the day of the first completed move. Demand may have '
                'changed meanwhile.')
    if unmoved is not None:
        said += (' Without moves: the scores after it, with each server where it would be without '
                 f'the moves for load of the last {plans.REPLAYED.days} days.')
    return contract.Comparison(explanation=said, before=earlier, after=later,
                               without_moves=unmoved)


def _uncompared(explanation: str) -> contract.Comparison:
    return contract.Comparison(explanation=explanation, before=None, after=None)


def _load(loads: Sequence[db_sums.LoadSum], days: Days, covered: str = 'observed_seconds',
          hot: str = 'hot_seconds',
          contended: str = 'contended_seconds') -> contract.LoadOfTime | None:
    """Return the LoadOfTime of a range of days: the mean hot minutes and contended minutes per day.
    Hot minutes are the minutes in which a host has a score above 0.9, summed over all hosts.
    Contended minutes are the minutes in which a server is on a full host (a score of 1 or more),
    summed over all servers. Return None if no evaluation was made on these days.

    :param loads: list with one LoadSum, the sum over these days; empty if there is none
    :param days: (first day, last day)
    :param covered: name of the field of LoadSum with the seconds for which both figures are known
    :param hot: name of the field with the hot seconds
    :param contended: name of the field with the contended seconds
    """
    seconds = getattr(loads[0], covered) if loads else None
    if not seconds:
        return None
    [total] = loads
    observed = seconds / DAY.total_seconds()
    return contract.LoadOfTime(
        since=days[0], until=days[1], observed_days=observed,
        hot_minutes=getattr(total, hot) / 60 / observed,
        contended_minutes=getattr(total, contended) / 60 / observed)


FUNCTIONS = {contract.SHOW.name: show}
