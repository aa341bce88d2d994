"""Queries for the Prometheus exporter. They count rows of the control database by state, and read
the last scores."""

import dataclasses
import datetime
from collections.abc import Mapping

import sqlalchemy as sa

from kronos_nova.db import claim_models
from kronos_nova.db import models
from kronos_nova.db.engine import Database
from kronos_nova.db.retry import retried
from kronos_nova.objects import move as moves


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """Counts of rows of the control database, and other values that the exporter reads from it.

    moves : {state: number of moves that wait or run}
    repairs : {(kind, state): number of repairs of allocations}
    resting : number of servers that are not moved for some time, because Nova refused several hosts
        for them
    scores : {(host, policy): last score}
    notifications : number of notifications that wait to be sent
    claims : {state: number of claims that compute hosts store in the control database}
    size : size of the database in bytes
    """

    moves: Mapping[str, int]
    repairs: Mapping[tuple[str, str], int]
    resting: int
    scores: Mapping[tuple[str, str], float]
    notifications: int
    claims: Mapping[str, int]
    size: float


_TABLES = ('SELECT SUM(data_length + index_length) FROM information_schema.tables '
           'WHERE table_schema = DATABASE()')

_SIZES = {
    'sqlite': 'SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()',
    'postgresql': 'SELECT pg_database_size(current_database())', 'mysql': _TABLES,
    'mariadb': _TABLES}
"""{SQL dialect: query for the size of the database in bytes}. The results of MySQL and MariaDB are
some seconds old."""


@retried
def count_rows(database: Database, now: datetime.datetime,
               measured_since: datetime.datetime | None = None) -> RowCounts:
    """Return the RowCounts of the control database.

    :param measured_since: time of the oldest scores that are returned; None for all scores
    """
    move, repair = models.MoveRow, models.RepairRow
    refusal, score = models.RefusalRow, models.ScoreRow
    claim, count = claim_models.CentralClaim, sa.func.count()
    with database.reader() as session:
        return RowCounts(
            moves=dict(session.execute(sa.select(move.state, count).where(
                move.state.in_((moves.PLANNED, *moves.IN_FLIGHT))).group_by(
                    move.state)).tuples().all()),
            repairs={(kind, state): number for kind, state, number in session.execute(
                sa.select(repair.kind, repair.state, count).group_by(repair.kind, repair.state))},
            resting=session.scalars(sa.select(count).select_from(refusal).where(
                refusal.until > now)).one(),
            scores={(host, policy): value for host, policy, value in session.execute(
                sa.select(score.host, score.policy, score.value).where(
                    sa.true() if measured_since is None else score.at >= measured_since))},
            notifications=session.scalars(sa.select(count).select_from(
                models.NotificationRow).where(models.NotificationRow.sent_at.is_(None))).one(),
            claims=dict(session.execute(
                sa.select(claim.state, count).group_by(claim.state)).tuples().all()),
            size=float(session.scalar(sa.text(_SIZES[session.get_bind().dialect.name]))))
