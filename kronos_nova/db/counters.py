"""Totals for monitoring, such as the number of completed moves. A total only grows. The totals are
stored, because a count of the journal's rows would fall when old rows are deleted.

A total grows in the transaction of the event that it counts. So if a process dies, no event is
missed or counted twice. There is one exception: if the connection is lost after a commit and before
its answer, the transaction is repeated and may count the event a second time.

The table also has the results of the last audit of allocations. Every audit replaces these results.
"""

import dataclasses
import json
from collections.abc import Collection
from collections.abc import Mapping

import sqlalchemy as sa
from oslo_db import exception as db_exc
from sqlalchemy import orm

from kronos_nova import clock
from kronos_nova.db import models
from kronos_nova.db.engine import Database
from kronos_nova.db.engine import count_changed
from kronos_nova.db.retry import retried
from kronos_nova.objects import move as moves

MOVES = 'moves'
MOVED_BYTES = 'moved_bytes'
MOVE_SECONDS = 'move_seconds'
"""Name of the total duration of completed moves, in seconds from the request to Nova until the
end."""
MOVES_BY_SECONDS = 'moves_by_seconds'
"""Name of the totals that count completed moves by duration. There is one total for each of the
bounds :data:`SECONDS`. The label ``le`` of a total is its bound. A move counts only in the total
with the smallest bound that is at least the duration of the move."""
CYCLES = 'cycles'
DROPPED_NOTIFICATIONS = 'dropped_notifications'
AUDIT_FINDINGS = 'audit_findings'
AUDITED_AT = 'audited_at'
"""Name of the row with the time of the last audit of allocations, in Unix seconds."""

SECONDS = (10, 30, 60, 120, 300, 600, 1800, float('inf'))
"""Upper bounds, in seconds, of the classes of durations by which completed moves are counted. With
more bounds, a chart of durations is finer and monitoring stores more series. Chosen to reach from
the move of a small idle guest to the default of ``migration_timeout``."""


@dataclasses.dataclass(frozen=True, slots=True)
class Total:
    """One total: its name, its labels and its value."""

    name: str
    labels: Mapping[str, str]
    value: float


class Counters:
    """The totals for monitoring in the control database, such as the number of moves and the bytes
    that moves have copied. A total is counted since the database was created, over all workers."""

    def __init__(self, database: Database):
        self.database = database

    @retried
    def read(self) -> list[Total]:
        with self.database.reader() as session:
            return [Total(row.name, json.loads(row.labels), row.value)
                    for row in session.scalars(sa.select(models.CounterRow).order_by(
                        models.CounterRow.name, models.CounterRow.labels))]

    @retried
    def note_audit(self, findings: Mapping[str, int], now: float) -> None:
        """Save the results of an audit of all allocations. The results of the previous audit are
        replaced.

        :param findings: {kind: number of findings}; kinds without findings have the number 0
        :param now: Unix seconds
        """
        row = models.CounterRow
        with self.database.writer() as session:
            session.execute(sa.delete(row).where(row.name.in_((AUDIT_FINDINGS, AUDITED_AT))))
            for kind, count in findings.items():
                add(session, AUDIT_FINDINGS, count, kind=kind)
            add(session, AUDITED_AT, now)


def add(session: orm.Session, name: str, amount: float = 1.0, **labels: object) -> None:
    """Add ``amount`` to a total, within a transaction of the caller.

    A transaction that adds to several totals has to do this in the order of their names. Otherwise
    two transactions may wait for each other's rows (deadlock).
    """
    key = {'name': name, 'labels': json.dumps(labels, sort_keys=True)}
    if _increase(session, key, amount):
        return
    try:
        with session.begin_nested():
            session.execute(sa.insert(models.CounterRow).values(value=amount, **key))
    except db_exc.DBDuplicateEntry:  # another worker inserted the row first
        _increase(session, key, amount)


def _increase(session: orm.Session, key: Mapping[str, str], amount: float) -> bool:
    row = models.CounterRow
    return count_changed(session, sa.update(row).where(
        row.name == key['name'], row.labels == key['labels'],
    ).values(value=row.value + amount)) == 1


def count_ended(session: orm.Session, uuids: Collection[str]) -> None:
    """Add moves that have just ended to the totals of moves, of moved bytes and of durations."""
    row = models.MoveRow
    for move in session.execute(sa.select(
            row.aggregate, row.phase, row.kind, row.state, row.error_type, row.memory_mb,
            row.requested_at, row.finished_at).where(row.uuid.in_(uuids))).all():
        is_completed = move.state == moves.COMPLETED
        seconds = clock.seconds_between(move.requested_at, move.finished_at)
        if is_completed:
            add(session, MOVED_BYTES, move.memory_mb * 2.0 ** 20, aggregate=move.aggregate)
        if is_completed and seconds is not None:
            add(session, MOVE_SECONDS, seconds)
        add(session, MOVES, aggregate=move.aggregate, phase=move.phase, kind=move.kind,
            state=move.state, error=move.error_type or '')
        if is_completed and seconds is not None:
            add(session, MOVES_BY_SECONDS, le=next(each for each in SECONDS if seconds <= each))
