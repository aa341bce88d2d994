"""Sums of moves and of loads of hosts, by day. The sums are kept longer than the moves and
evaluations themselves.

A move is added to the sums of its day in the transaction that deletes it from the journal. So each
move is counted once: either in the journal or in the sums.
"""

import collections
import dataclasses
import datetime
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.ext import compiler
from sqlalchemy.sql import functions

from kronos_nova import clock
from kronos_nova.db import models
from kronos_nova.db.engine import Database
from kronos_nova.db.retry import retried
from kronos_nova.objects import move as moves

MONTH, PROJECT, AGGREGATE = BY = ('month', 'project', 'aggregate')
"""Keys by which sums can be grouped."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MoveSum:
    """A sum of moves that ended, for one group of moves. The fields ``month``, ``project`` and
    ``aggregate`` identify the group.

    month : month in the form ``2026-11``; None if the sums are not grouped by month
    project : uuid of a project; None if the project was not known, or if the sums are not grouped
        by project
    aggregate : name of an aggregate; None if the sums are not grouped by aggregate
    memory_mb, seconds : memory in MiB and duration in seconds of the completed moves
    """

    month: str | None
    project: str | None
    aggregate: str | None
    completed: int
    failed: int
    abandoned: int
    memory_mb: int
    seconds: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LoadSum:
    """A sum of the load of hosts. ``month`` and ``aggregate`` have the same meaning as in
    :class:`MoveSum`.

    observed_seconds : seconds for which evaluations had data about the load, summed over aggregates
    hot_seconds : seconds for which a host has a score above 0.9 in a policy, summed over hosts
    contended_seconds : seconds for which a server is on a host that is full in a policy (score of
        1 or more), summed over servers
    replayed_seconds : number of the observed seconds for which the two ``unmoved`` fields could be
        estimated
    unmoved_hot_seconds, unmoved_contended_seconds : estimates of the hot and contended seconds if
        Kronos had made no moves
    """

    month: str | None
    aggregate: str | None
    observed_seconds: float
    hot_seconds: float
    contended_seconds: float
    replayed_seconds: float
    unmoved_hot_seconds: float
    unmoved_contended_seconds: float


LOADS = ('observed_seconds', 'hot_seconds', 'contended_seconds', 'replayed_seconds',
         'unmoved_hot_seconds', 'unmoved_contended_seconds')
"""Names of the columns that are sums of loads."""


def add_moves(session: orm.Session, uuids: Collection[str]) -> None:
    """Add moves to the sums of their days. The caller deletes these moves in the same
    transaction."""
    move, row = models.MoveRow, models.MoveSumRow
    found: dict[tuple, collections.Counter] = collections.defaultdict(collections.Counter)
    for each in session.execute(sa.select(
            move.finished_at, move.aggregate, move.project_id, move.state, move.memory_mb,
            move.requested_at).where(move.uuid.in_(uuids)).with_for_update()):
        found[(each.finished_at.date(), each.aggregate, each.project_id or '')].update(
            figures(each))
    for key, sums in found.items():
        names = dict(zip(('day', 'aggregate', 'project_id'), key, strict=True))
        known = session.scalars(sa.select(row).filter_by(**names).with_for_update()).one_or_none()
        if known is None:
            known = row(**names, **dict.fromkeys(FIGURES, 0))
            session.add(known)
        for name in FIGURES:
            setattr(known, name, getattr(known, name) + sums[name])


FIGURES = ('completed', 'failed', 'abandoned', 'memory_mb', 'seconds')
"""Names of the columns that are sums of moves."""


def figures(move: sa.Row) -> dict[str, float]:
    """Return the amounts that one move adds to the sums, as {name of a column: amount}."""
    is_complete = move.state == moves.COMPLETED
    took = clock.seconds_between(move.requested_at, move.finished_at) if is_complete else None
    return {move.state: 1, 'memory_mb': move.memory_mb if is_complete else 0,
            'seconds': took or 0.0}


class SecondsBetween(functions.FunctionElement):
    """An SQL expression for the seconds from one time to a later time. Each database computes the
    seconds with a function of its own."""

    type = sa.Float()
    inherit_cache = True


@compiler.compiles(SecondsBetween)
def _epochs(element: SecondsBetween, compiling: sa.Compiled, **more: Any) -> str:
    earlier, later = element.clauses
    return (f'EXTRACT(EPOCH FROM ({compiling.process(later, **more)} - '
            f'{compiling.process(earlier, **more)}))')


@compiler.compiles(SecondsBetween, 'sqlite')
def _julian_days(element: SecondsBetween, compiling: sa.Compiled, **more: Any) -> str:
    earlier, later = element.clauses
    return (f'((julianday({compiling.process(later, **more)}) - '
            f'julianday({compiling.process(earlier, **more)})) * 86400.0)')


@compiler.compiles(SecondsBetween, 'mysql', 'mariadb')
def _differences(element: SecondsBetween, compiling: sa.Compiled, **more: Any) -> str:
    earlier, later = element.clauses
    return (f'(TIMESTAMPDIFF(MICROSECOND, {compiling.process(earlier, **more)}, '
            f'{compiling.process(later, **more)}) / 1000000.0)')


class Sums:
    """A reader of sums in the control database: numbers, memory and durations of moves that have
    ended, and load of hosts."""

    def __init__(self, database: Database):
        self.database = database

    @retried
    def moves(self, since: datetime.date, until: datetime.date, by: Collection[str],
              **wanted: str | None) -> list[MoveSum]:
        """Return the sums of moves that were deleted from the journal, from day ``since`` to day
        ``until``, both included. The day of a move is the day of its end.

        :param by: keys of :data:`BY` by which the sums are grouped
        :param wanted: {column: required value of the column}; None permits any value
        """
        return [MoveSum(
            month=key.get(MONTH), project=key.get(PROJECT) or None, aggregate=key.get(AGGREGATE),
            seconds=float(figures.pop('seconds')),
            **{name: int(value) for name, value in figures.items()})
            for key, figures in self._read(models.MoveSumRow, FIGURES, since, until, by, wanted)]

    @retried
    def ended(self, since: datetime.datetime, until: datetime.datetime, by: Collection[str],
              **wanted: str | None) -> list[tuple[MoveSum, int]]:
        """Return sums of the moves that ended between two times and are still in the journal.

        :param by: keys of :data:`BY` by which the moves are grouped
        :param wanted: {column: required value of the column}; None permits any value
        :returns: for each group, (sum of its moves, number of different servers with completed
            moves)
        """
        move = models.MoveRow
        keys = [column for name in BY if name in by
                for column in _columns(move, name, move.finished_at)]
        is_done = move.state == moves.COMPLETED
        figures = {state: sa.case((move.state == state, 1), else_=0) for state in moves.TERMINAL}
        # A move without requested_at, or whose clock was set back, adds no seconds.
        is_timed = is_done & (move.finished_at > move.requested_at)
        figures |= {'memory_mb': sa.case((is_done, move.memory_mb), else_=0), 'seconds': sa.case(
            (is_timed, SecondsBetween(move.requested_at, move.finished_at)), else_=0.0)}
        query = sa.select(
            *keys, *(sa.func.sum(value).label(name) for name, value in figures.items()),
            sa.func.count(sa.distinct(sa.case((is_done, move.instance_uuid)))).label('servers'),
        ).where(move.state.in_(moves.TERMINAL), move.finished_at >= since,
                move.finished_at <= until, *(getattr(move, name) == value
                                             for name, value in wanted.items()
                                             if value is not None)).group_by(*keys)
        with self.database.reader() as session:
            return [(MoveSum(
                month=_month(each) if MONTH in by else None,
                project=each.project or None if PROJECT in by else None,
                aggregate=each.aggregate if AGGREGATE in by else None,
                seconds=round(float(each.seconds), 3),
                **{name: int(getattr(each, name)) for name in FIGURES if name != 'seconds'},
            ), each.servers) for each in session.execute(query) if each.completed is not None]

    @retried
    def loads(self, since: datetime.date, until: datetime.date, by: Collection[str],
              aggregate: str | None) -> list[LoadSum]:
        """Return the sums of loads from day ``since`` to day ``until``, both included.

        :param by: keys of :data:`BY` by which the sums are grouped; ``project`` is ignored, because
            hosts belong to no project
        :param aggregate: name of the aggregate; None for all aggregates
        """
        return [LoadSum(month=key.get(MONTH), aggregate=key.get(AGGREGATE),
                        **{name: float(value) for name, value in figures.items()})
                for key, figures in self._read(
                    models.LoadSumRow, LOADS, since, until,
                    [name for name in by if name != PROJECT], {'aggregate': aggregate})]

    def _read(self, row: Any, names: Collection[str], since: datetime.date, until: datetime.date,
              by: Collection[str],
              wanted: Mapping[str, str | None]) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
        """Yield ({key: value}, {column: sum}) for each group of rows. Rows are in one group if they
        have the same value for each key in ``by``. The database computes the sums."""
        keys = [column for name in BY if name in by for column in _columns(row, name, row.day)]
        query = sa.select(*keys, sa.func.count().label('count_'), *(
            sa.func.sum(getattr(row, name)).label(name) for name in names)).where(
                row.day >= since, row.day <= until, *(
                    getattr(row, name) == value for name, value in wanted.items()
                    if value is not None)).group_by(*keys).order_by(*keys)
        with self.database.reader() as session:
            found = session.execute(query).all()
        for each in found:
            if not each.count_:  # without keys, a sum over no rows is still one row
                continue
            key = {name: getattr(each, name) for name in (PROJECT, AGGREGATE) if name in by}
            if MONTH in by:
                key[MONTH] = _month(each)
            yield key, {name: getattr(each, name) for name in names}

    @retried
    def oldest_day(self) -> datetime.date | None:
        """Return the first day that has sums of moves; None if there is none."""
        with self.database.reader() as session:
            return session.scalar(sa.select(sa.func.min(models.MoveSumRow.day)))

    @retried
    def first_move(self, aggregate: str | None) -> datetime.date | None:
        """Return the day of the first completed move, whether the move is still in the journal or
        only in the sums; None if no move was completed.

        :param aggregate: name of the aggregate; None for all aggregates
        """
        move, row = models.MoveRow, models.MoveSumRow
        with self.database.reader() as session:
            kept = session.scalar(_limited(sa.select(sa.func.min(move.finished_at)).where(
                move.state == moves.COMPLETED), move, aggregate))
            summed = session.scalar(_limited(sa.select(sa.func.min(row.day)).where(
                row.completed > 0), row, aggregate))
        return min(_known((kept and kept.date(), summed)), default=None)


def _columns(row: Any, name: str,
             time: orm.InstrumentedAttribute[Any]) -> tuple[sa.ColumnElement[Any], ...]:
    """Return the columns by which a query has to group rows, so that it returns one sum for each
    value of a key. For the key ``month``, these are two columns: the year and the number of the
    month.

    :param row: model of the table
    :param name: the key, one of :data:`BY`
    :param time: the column that has the time or day
    """
    if name == MONTH:
        return (sa.extract('year', time).label('year'), sa.extract('month', time).label('number'))
    column = row.project_id if name == PROJECT else row.aggregate
    return (column.label(name),)


def _month(found: sa.Row) -> str:
    return f'{int(found.year)}-{int(found.number):02}'


def _limited(query: sa.Select[Any], model: Any, aggregate: str | None) -> sa.Select[Any]:
    return query if aggregate is None else query.where(model.aggregate == aggregate)


def _known(days: Iterable[datetime.date | None]) -> list[datetime.date]:
    return [day for day in days if day is not None]
