"""Sums by day, which outlive what they are made of: moves that are dropped, and loads of hosts.

A move that is dropped is added to the sums of its day in the same transaction, so that each move is
counted once: in the journal, or here.
"""

import collections
import dataclasses
import datetime
from collections.abc import Collection
from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy import orm

from kronos_nova.db import models
from kronos_nova.db.engine import Database
from kronos_nova.db.retry import retried
from kronos_nova.objects import move as moves


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MoveSum:
    """The moves of a day in an aggregate and a project that were dropped. ``project_id`` is None
    where it was not known."""

    day: datetime.date
    aggregate: str
    project_id: str | None
    completed: int
    failed: int
    abandoned: int
    memory_mb: int
    seconds: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LoadSum:
    """The load of an aggregate's hosts in a day.

    observed_seconds : that evaluations with data cover
    hot_seconds : of hosts above 0.9 in a policy
    contended_seconds : of servers on hosts that are full in a policy
    replayed_seconds : of the observed ones, for which the next two are known
    unmoved_hot_seconds, unmoved_contended_seconds : as above, as they would be without moves
    """

    day: datetime.date
    aggregate: str
    observed_seconds: float
    hot_seconds: float
    contended_seconds: float
    replayed_seconds: float = 0.0
    unmoved_hot_seconds: float = 0.0
    unmoved_contended_seconds: float = 0.0


LOADS = ('observed_seconds', 'hot_seconds', 'contended_seconds', 'replayed_seconds',
         'unmoved_hot_seconds', 'unmoved_contended_seconds')
"""What is summed of loads, by the names of the columns."""


def add_moves(session: orm.Session, uuids: Collection[str]) -> None:
    """Add moves that are about to be dropped to the sums of their days."""
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
"""What is summed of moves, by the names of the columns."""


def figures(move: sa.Row) -> dict[str, float]:
    """What one move adds to a sum."""
    is_complete = move.state == moves.COMPLETED
    took = (move.finished_at - move.requested_at).total_seconds() if (
        is_complete and move.requested_at) else 0.0
    return {move.state: 1, 'memory_mb': move.memory_mb if is_complete else 0, 'seconds': took}


class Sums:
    """Sums of days that are kept."""

    def __init__(self, database: Database):
        self.database = database

    @retried
    def moves(self, since: datetime.date, until: datetime.date,
              **wanted: str | None) -> list[MoveSum]:
        """Those of the days of a time, both included.

        :param wanted: column to the value that it must have; None is any
        """
        found = self._read(models.MoveSumRow, since, until, wanted)
        return [MoveSum(day=row.day, aggregate=row.aggregate, project_id=row.project_id or None,
                        **{name: getattr(row, name) for name in FIGURES}) for row in found]

    @retried
    def loads(self, since: datetime.date, until: datetime.date,
              aggregate: str | None) -> list[LoadSum]:
        """Those of the days of a time, both included.

        :param aggregate: its name; None is any
        """
        found = self._read(models.LoadSumRow, since, until, {'aggregate': aggregate})
        return [LoadSum(day=row.day, aggregate=row.aggregate,
                        **{name: getattr(row, name) for name in LOADS}) for row in found]

    def _read(self, row, since, until, wanted):
        with self.database.reader() as session:
            return session.scalars(sa.select(row).where(
                row.day >= since, row.day <= until, *(
                    getattr(row, name) == value for name, value in wanted.items()
                    if value is not None)).order_by(row.day)).all()

    @retried
    def oldest_day(self) -> datetime.date | None:
        """The first day with moves that were dropped, None if there is none."""
        with self.database.reader() as session:
            return session.scalar(sa.select(sa.func.min(models.MoveSumRow.day)))

    @retried
    def first_move(self, aggregate: str | None) -> datetime.date | None:
        """The day on which the first move that is known was completed, None if none was.

        :param aggregate: its name; None is any
        """
        move, row = models.MoveRow, models.MoveSumRow
        with self.database.reader() as session:
            kept = session.scalar(_limited(sa.select(sa.func.min(move.finished_at)).where(
                move.state == moves.COMPLETED), move, aggregate))
            summed = session.scalar(_limited(sa.select(sa.func.min(row.day)).where(
                row.completed > 0), row, aggregate))
        return min(_known((kept and kept.date(), summed)), default=None)


def _limited(query, model, aggregate):
    return query if aggregate is None else query.where(model.aggregate == aggregate)


def _known(days: Iterable[datetime.date | None]) -> list[datetime.date]:
    return [day for day in days if day is not None]
