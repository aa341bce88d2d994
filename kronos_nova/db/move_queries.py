"""Queries of moves for commands and the API, by state, host, time and other columns."""

import datetime
from collections.abc import Collection

import sqlalchemy as sa

from kronos_nova import exception
from kronos_nova.db import models
from kronos_nova.db.engine import Database
from kronos_nova.db.journal import rows
from kronos_nova.db.retry import retried
from kronos_nova.objects.move import TERMINAL
from kronos_nova.objects.move import MoveRecord


@retried
def moves(database: Database, limit: int, marker: str | None = None,
          states: Collection[str] = (), host: str | None = None,
          since: datetime.datetime | None = None, until: datetime.datetime | None = None,
          begun_by: datetime.datetime | None = None, **wanted: str | None) -> list[MoveRecord]:
    """Return at most ``limit`` moves. Moves of the newest plan come first; the moves of a plan are
    in the order of the plan.

    :param marker: uuid of the last move of the previous page
    :param host: source or destination of the moves
    :param since: leave out moves that ended before this time
    :param until: leave out moves that were planned after this time
    :param begun_by: leave out moves that were requested from Nova after this time, or not at all
    :param wanted: {column: value that it must have}; None permits any value
    :raises MoveNotFound: there is no move with the uuid ``marker``
    """
    move = models.MoveRow
    conditions = [getattr(move, name) == value for name, value in wanted.items()
                  if value is not None]
    if states:
        conditions.append(move.state.in_(states))
    if host is not None:
        conditions.append(sa.or_(move.source == host, move.destination == host))
    if since is not None:
        conditions.append(sa.or_(move.finished_at.is_(None), move.finished_at >= since))
    if until is not None:
        conditions.append(move.created_at <= until)
    if begun_by is not None:
        conditions.append(move.requested_at <= begun_by)
    query = sa.select(move).where(*conditions).order_by(
        move.created_at.desc(), move.plan_uuid, move.ordinal).limit(limit)
    with database.reader() as session:
        if marker is not None:
            last = rows.find(session, move, marker, exception.MoveNotFound(move=marker))
            query = query.where(sa.or_(
                move.created_at < last.created_at,
                sa.and_(move.created_at == last.created_at, sa.or_(
                    move.plan_uuid > last.plan_uuid,
                    sa.and_(move.plan_uuid == last.plan_uuid, move.ordinal > last.ordinal)))))
        return [rows.move_record(row) for row in session.scalars(query)]


@retried
def oldest_end(database: Database) -> datetime.datetime | None:
    """Return the earliest end of a stored move; None if no stored move has ended."""
    move = models.MoveRow
    with database.reader() as session:
        return min(filter(None, (session.scalar(sa.select(sa.func.min(move.finished_at)).where(
            move.state == state)) for state in sorted(TERMINAL))), default=None)


@retried
def knows_server(database: Database, uuid: str) -> bool:
    """Return whether the control database has a move or a quarantine of a server, or a record that
    Nova refused hosts for the server."""
    with database.reader() as session:
        return any(session.scalar(sa.select(sa.literal(1)).where(
            row.instance_uuid == uuid).limit(1)) for row in (
                models.MoveRow, models.QuarantineRow, models.RefusalRow))
