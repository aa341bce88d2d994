"""Tables of notifications to be sent, and of totals for monitoring."""

import sqlalchemy as sa

from kronos_nova.db.column_types import Text
from kronos_nova.db.column_types import Timestamp
from kronos_nova.db.models.base import Base


class NotificationRow(Base):
    """A notification that is to be sent, or was sent at ``sent_at``; see
    :class:`kronos_nova.objects.notification.Notification`. ``body`` is JSON. ``sequence`` is the
    position in the order of sending; null until a worker is about to send the notification."""

    __tablename__ = 'notifications'

    # Without this, SQLite reuses the number of the last row after it was deleted.
    id = sa.Column(sa.Integer, primary_key=True, autoincrement=True)
    uuid = sa.Column(sa.String(36), nullable=False)
    sequence = sa.Column(sa.Integer)
    event_type = sa.Column(sa.String(64), nullable=False)
    at = sa.Column(Timestamp, nullable=False)
    body = sa.Column(Text, nullable=False)
    sent_at = sa.Column(Timestamp)

    __table_args__ = (sa.Index('notifications_uuid_idx', 'uuid', unique=True),
                      sa.Index('notifications_sequence_idx', 'sequence', unique=True),
                      sa.Index('notifications_sent_at_idx', 'sent_at', 'sequence'),
                      sa.Index('notifications_at_idx', 'at'),
                      {'sqlite_autoincrement': True})


class CounterRow(Base):
    """A total for monitoring, as in :mod:`kronos_nova.db.counters`. ``labels`` is a JSON object."""

    __tablename__ = 'counters'

    name = sa.Column(sa.String(64), primary_key=True)
    labels = sa.Column(sa.String(512), primary_key=True)
    value = sa.Column(sa.Double, nullable=False)
