"""Correction of rows with times in the future, which a wrong clock wrote.

A time in the future is replaced by the time of the correction. If the start of a period, such as a
cooldown, is in the future, the period begins at the correction and keeps its length.
"""

import dataclasses
import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import orm

from kronos_nova.db import models
from kronos_nova.db.engine import Database
from kronos_nova.db.retry import retried
from kronos_nova.objects import hold
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans

TOLERANCE = datetime.timedelta(seconds=60)
"""Maximum time (60 seconds) by which a time in a row may be in the future without being corrected.
Raised, times of a wrong clock are corrected later; lowered, valid times may be corrected, because
the nodes of a database cluster have different clocks. Not measured."""


@dataclasses.dataclass(frozen=True, slots=True)
class DatedTable:
    """A table whose rows are searched for times in the future, which a wrong clock has written.

    done : columns with the times of past actions
    until : {column with the end of a period, such as a cooldown: column with its start}. The column
        with the start is one of ``done``
    states : states of the rows that are searched; empty for all rows. States of ended plans and
        moves are left out, because there may be millions of these rows
    """

    model: Any
    done: tuple[str, ...]
    until: dict[str, str] = dataclasses.field(default_factory=dict)
    states: tuple[str, ...] = ()


TABLES = (
    DatedTable(models.PlanRow, ('created_at', 'approved_at', 'finished_at', 'last_seen_at'),
               {'expires_at': 'created_at'}, plans.OPEN),
    DatedTable(models.MoveRow, ('created_at', 'checked_at', 'dispatched_at', 'requested_at',
                                'forced_at', 'finished_at', 'settled_at'),
               {'not_before': 'created_at'}, (moves.PLANNED, *moves.IN_FLIGHT)),
    DatedTable(models.CooldownRow, ('set_at',), {'until': 'set_at'}),
    DatedTable(models.QuarantineRow, ('created_at',), {'until': 'created_at'}),
    DatedTable(models.RefusalRow, ('refused_at',), {'until': 'refused_at'}),
    DatedTable(models.ScoreRow, ('at',)),
    DatedTable(models.CycleRow, ('started_at', 'finished_at', 'good_at'),
               {'not_before': 'started_at'}),
    DatedTable(models.WorkerRow, ('heartbeat_at',)),
    DatedTable(models.TaskRow, ('beat_at',)),
    DatedTable(models.LeaseRow, ('progress_at',)),
    DatedTable(models.DrainRow, ('requested_at', 'looked_at', 'finished_at'),
               {'deadline': 'requested_at'}),
    DatedTable(models.HoldRow, ('requested_at',), {'expires_at': 'requested_at'}, hold.OPEN),
    DatedTable(models.MaintenanceRow, ('requested_at', 'runner_at')))
"""The tables whose times affect decisions of Kronos. Times in other tables are not corrected,
because they only record past events."""


class FutureTimes:
    """The search for rows with times in the future, and the correction of these times."""

    def __init__(self, database: Database):
        self.database = database

    @retried
    def count(self, now: datetime.datetime) -> dict[str, int]:
        """Return ``{table: number of rows with times in the future}``. Tables without such rows are
        left out."""
        with self.database.reader() as session:
            found = {each.model.__tablename__: session.scalar(
                sa.select(sa.func.count()).select_from(each.model).where(_is_ahead(each, now)))
                for each in TABLES}
        return {name: number for name, number in found.items() if number}

    @retried
    def correct(self, now: datetime.datetime) -> dict[str, int]:
        """Set times in the future to ``now``. The end of a period, such as a cooldown, is moved by
        the same amount as the start of the period.

        :returns: ``{table: number of corrected rows}``
        """
        found = {}
        with self.database.writer() as session:
            for each in TABLES:
                changed = session.scalars(sa.select(each.model).where(_is_ahead(each, now))).all()
                for row in changed:
                    _correct(row, each, now)
                if changed:
                    found[each.model.__tablename__] = len(changed)
        return found


def _is_ahead(dated: DatedTable, now: datetime.datetime) -> sa.ColumnElement[bool]:
    is_ahead = sa.or_(*(getattr(dated.model, name) > now + TOLERANCE for name in dated.done))
    return sa.and_(dated.model.state.in_(dated.states), is_ahead) if dated.states else is_ahead


def _correct(row: orm.DeclarativeBase, dated: DatedTable, now: datetime.datetime) -> None:
    for name, origin in dated.until.items():
        until, since = getattr(row, name), getattr(row, origin)
        if until is not None and since is not None and since > now + TOLERANCE:
            setattr(row, name, until - (since - now))
    for name in dated.done:
        time = getattr(row, name)
        if time is not None and time > now + TOLERANCE:
            setattr(row, name, now)
