"""Queries for the event stream of kronos-api: plans, moves and evaluations that are in progress or
have ended lately.

The queries run every second, so each query uses an index and reads no report.
"""

import datetime
from collections.abc import Sequence
from typing import Any
from typing import TypeVar

import sqlalchemy as sa

from kronos_nova.db import models
from kronos_nova.db.engine import Database
from kronos_nova.db.journal import rows
from kronos_nova.db.retry import retried
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans

_Row = TypeVar('_Row', models.PlanRow, models.MoveRow)


@retried
def plan_records(database: Database, since: datetime.datetime) -> list[plans.PlanRecord]:
    """Return PlanRecords, without reports, of the open plans, and of the plans that were made or
    ended since a time."""
    plan = models.PlanRow
    return [rows.record(plans.PlanRecord, row, report=None) for row in _found(
        database, plan, plan.state.in_(plans.OPEN), plan.created_at >= since,
        plan.finished_at >= since)]


@retried
def move_records(database: Database, since: datetime.datetime) -> list[moves.MoveRecord]:
    """Return MoveRecords of the moves that wait or run, and of the moves that ended since a
    time."""
    move = models.MoveRow
    return [rows.move_record(row) for row in _found(
        database, move, move.state.in_((moves.PLANNED, *moves.IN_FLIGHT)),
        sa.and_(move.state.in_(moves.TERMINAL), move.finished_at >= since))]


@retried
def evaluations(database: Database) -> Sequence[Any]:
    """Return [(aggregate, end of the last evaluation, outcome of the last evaluation)]. Aggregates
    whose first evaluation has not ended are left out."""
    cycle = models.CycleRow
    with database.reader() as session:
        return session.execute(sa.select(cycle.aggregate, cycle.finished_at, cycle.outcome).where(
            cycle.finished_at.is_not(None))).all()


def _found(database: Database, model: type[_Row],
           *conditions: sa.ColumnElement[bool]) -> list[_Row]:
    """Return the rows that meet at least one of the conditions. Each condition has its own query,
    so that the database uses the index for this condition."""
    with database.reader() as session:
        return list({row.uuid: row for condition in conditions
                     for row in session.scalars(sa.select(model).where(condition))}.values())
