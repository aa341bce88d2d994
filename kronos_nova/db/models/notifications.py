"""Tables of notifications to be sent, and of totals for monitoring."""

import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped
from sqlalchemy.orm import mapped_column

from kronos_nova.db.column_types import Text
from kronos_nova.db.column_types import Timestamp
from kronos_nova.db.models.base import Base


class NotificationRow(Base):
    """A notification that is to be sent, or was sent at ``sent_at``; see
    :class:`kronos_nova.objects.notification.Notification`. ``body`` is JSON. ``sequence`` is the
    position in the order of sending; null until a worker is about to send the notification."""

    __tablename__ = 'notifications'

    # Without this, SQLite reuses the number of the last row after it was deleted.
    id: Mapped[int] = mapped_column(sa.Integer, primary_key=True, autoincrement=True)
    uuid: Mapped[str] = mapped_column(sa.String(36), nullable=False)
    sequence: Mapped[int | None] = mapped_column(sa.Integer)
    event_type: Mapped[str] = mapped_column(sa.String(64), nullable=False)
    at: Mapped[datetime.datetime] = mapped_column(Timestamp, nullable=False)
    body: Mapped[str] = mapped_column(Text, nullable=False)
    sent_at: Mapped[datetime.datetime | None] = mapped_column(Timestamp)

    __table_args__ = (sa.Index('notifications_uuid_idx', 'uuid', unique=True),
                      sa.Index('notifications_sequence_idx', 'sequence', unique=True),
                      sa.Index('notifications_sent_at_idx', 'sent_at', 'sequence'),
                      sa.Index('notifications_at_idx', 'at'),
                      {'sqlite_autoincrement': True})


class CounterRow(Base):
    """A total for monitoring, as in :mod:`kronos_nova.db.counters`. ``labels`` is a JSON object."""

    __tablename__ = 'counters'

    name: Mapped[str] = mapped_column(sa.String(64), primary_key=True)
    labels: Mapped[str] = mapped_column(sa.String(512), primary_key=True)
    value: Mapped[float] = mapped_column(sa.Double, nullable=False)
