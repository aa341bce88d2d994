"""Sums of the journal's moves."""

import collections
import dataclasses
import datetime

from kronos_client.contract import report as contract
from kronos_nova.db import move_queries
from kronos_nova.objects import move as moves
from kronos_nova.operations import switching
from kronos_nova.services.context import Context

YEAR = datetime.timedelta(days=365)


@dataclasses.dataclass(slots=True)
class _Sums:
    states: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    servers: set = dataclasses.field(default_factory=set)
    memory_mb: int = 0
    seconds: float = 0.0


def show(context: Context, request: contract.ShowReport) -> contract.Report:
    """
    :raises NotInScope: no move is found, and Kronos does not look after the aggregate
    """
    until = request.until or context.utcnow()
    since = request.since or until - YEAR
    found: dict[tuple, _Sums] = collections.defaultdict(_Sums)
    for move in move_queries.ended(context.database, since, until, project_id=request.project,
                                   aggregate=request.aggregate):
        _add(found[_key(move, request.by)], move)
    if request.aggregate and not found:
        switching.refuse_unknown(context.conf, request.aggregate)
    return contract.Report(
        since=since, until=until, oldest=move_queries.oldest_end(context.database), sums=[
            _view(key, sums) for key, sums in sorted(found.items(), key=_order)])


def _key(move, by):
    month = f'{move.finished_at:%Y-%m}'
    return (month if contract.MONTH in by else None,
            move.project_id if contract.PROJECT in by else None,
            move.aggregate if contract.AGGREGATE in by else None)


def _order(found):
    return [value or '' for value in found[0]]


def _add(sums, move):
    sums.states[move.state] += 1
    if move.state == moves.COMPLETED:
        sums.servers.add(move.instance_uuid)
        sums.memory_mb += move.memory_mb
        if move.requested_at:
            sums.seconds += (move.finished_at - move.requested_at).total_seconds()


def _view(key, sums):
    month, project, aggregate = key
    return contract.MoveSums(
        month=month, project=project, aggregate=aggregate, servers=len(sums.servers),
        memory_mb=sums.memory_mb, seconds=sums.seconds,
        **{state: sums.states[state] for state in (moves.COMPLETED, moves.FAILED,
                                                   moves.ABANDONED)})


FUNCTIONS = {contract.SHOW.name: show}
