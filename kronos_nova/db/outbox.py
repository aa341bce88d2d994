"""Notifications that wait to be sent or were sent.

A notification is written in the transaction that makes the change, so that no notification is
missing or wrong if a process dies. A notification is marked as sent after the broker has accepted
it. If the sending process dies between these two steps, the notification is sent a second time.
"""

import datetime
import json
from collections.abc import Collection

import sqlalchemy as sa
from oslo_utils import uuidutils
from sqlalchemy import orm

from kronos_nova.db import counters
from kronos_nova.db import models
from kronos_nova.db.engine import Database
from kronos_nova.db.engine import count_changed
from kronos_nova.db.retry import retried
from kronos_nova.objects import notification as n

NUMBERING = 'notifications'
"""Name of the lock that a process holds while it gives numbers to notifications. The column
``passed`` of the lock's row has the last number."""

BATCH = 500
"""Maximum number of notifications in one batch. One transaction gives numbers to a batch of new
notifications. One query reads a batch of notifications that wait to be sent. Notifications are sent
in the order of their numbers. Raised, a transaction holds locks for more than a few milliseconds;
lowered, there are more transactions and queries. Not measured."""


def add(session: orm.Session, event_type: str, payload: object, now: datetime.datetime) -> None:
    """Add a notification, within the transaction of the change that the notification reports.

    :param payload: one of :data:`kronos_nova.objects.notification.PAYLOADS`
    """
    session.execute(sa.insert(models.NotificationRow).values(
        uuid=uuidutils.generate_uuid(), event_type=event_type, at=now,
        body=json.dumps(n.primitive(payload))))


def count_dropped(session: orm.Session, ids: Collection[int]) -> int:
    """Add the notifications that were not sent to the total of dropped notifications. The caller
    deletes the notifications in the same transaction.

    :returns: number of notifications that were not sent
    """
    row = models.NotificationRow
    count = session.scalars(sa.select(sa.func.count()).select_from(row).where(
        row.id.in_(ids), row.sent_at.is_(None))).one()
    if count:
        counters.add(session, counters.DROPPED_NOTIFICATIONS, count)
    return count


class Outbox:
    """The notifications in the control database."""

    def __init__(self, database: Database):
        self.database = database

    @retried
    def number(self) -> int:
        """Give numbers to at most BATCH notifications that have no number, in the order in which
        they were written.

        Notifications are not numbered in the transaction that writes them, for two reasons. If this
        transaction were rolled back, a number would be missing. And if this transaction took a long
        time, notifications of other transactions, with higher numbers, would be sent before its
        notification.

        :returns: number of notifications that were numbered
        """
        row, lock = models.NotificationRow, models.SerializationLockRow
        unnumbered = sa.select(row.id).where(row.sequence.is_(None)).order_by(row.id).limit(BATCH)
        with self.database.reader() as session:
            if not session.scalars(unnumbered).first():
                return 0
        with self.database.writer() as session:
            mine = lock.name == NUMBERING
            session.execute(sa.update(lock).where(mine).values(passed=lock.passed))
            last = session.scalars(sa.select(lock.passed).where(mine)).one()
            ids = session.scalars(unnumbered).all()
            session.execute(sa.update(row), [
                {'id': number, 'sequence': sequence}
                for sequence, number in enumerate(ids, last + 1)])
            session.execute(sa.update(lock).where(mine).values(passed=last + len(ids)))
            return len(ids)

    @retried
    def waiting(self, limit: int = BATCH) -> list[n.Notification]:
        """Return at most ``limit`` notifications that have a number and were not sent, in the order
        of their numbers."""
        row = models.NotificationRow
        query = sa.select(row).where(row.sent_at.is_(None), row.sequence.is_not(None)).order_by(
            row.sequence).limit(limit)
        with self.database.reader() as session:
            return [n.Notification(uuid=each.uuid, sequence=each.sequence, at=each.at,
                                   event_type=each.event_type, body=json.loads(each.body))
                    for each in session.scalars(query) if each.sequence is not None]

    @retried
    def mark_sent(self, uuids: Collection[str], now: datetime.datetime) -> None:
        row = models.NotificationRow
        with self.database.writer() as session:
            session.execute(sa.update(row).where(row.uuid.in_(uuids)).values(sent_at=now))

    @retried
    def trim(self, most: int) -> int:
        """Delete the oldest waiting notifications, so that at most ``most`` wait to be sent.

        :returns: number of notifications that were deleted
        """
        row = models.NotificationRow
        waits = sa.and_(row.sent_at.is_(None), row.sequence.is_not(None))
        with self.database.reader() as session:
            last = session.scalar(sa.select(row.sequence).where(waits).order_by(
                row.sequence.desc()).offset(most).limit(1))
        if last is None:
            return 0
        with self.database.writer() as session:
            count = count_changed(session, sa.delete(row).where(waits, row.sequence <= last))
            if count:
                counters.add(session, counters.DROPPED_NOTIFICATIONS, count)
            return count
