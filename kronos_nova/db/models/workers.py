"""Workers, leases, and locks that serialize transactions."""

import sqlalchemy as sa

from kronos_nova.db.column_types import Timestamp
from kronos_nova.db.models.base import Base


class WorkerRow(Base):
    """A process that lives writes another ``heartbeat_at`` with every tick: that the time changes
    is the sign of life. ``role`` is ``executor``, which carries out moves, or ``engine``, which
    only plans. ``clock_skew`` is by how many seconds the clock of its host is ahead of the
    database's.
    """

    __tablename__ = 'workers'

    name = sa.Column(sa.String(255), primary_key=True)
    heartbeat_at = sa.Column(Timestamp, nullable=False)
    role = sa.Column(sa.String(16), nullable=False, default='executor', server_default='executor')
    clock_skew = sa.Column(sa.Double)


class SerializationLockRow(Base):
    """One row that is written first by every transaction that must not run beside another of its
    kind."""

    __tablename__ = 'gates'

    name = sa.Column(sa.String(64), primary_key=True)
    passed = sa.Column(sa.Integer, nullable=False, default=0)


class LeaseRow(Base):
    """Work that one process does for all, who that is and until when.

    ``progress_at`` is as far as it has come; what that means is the work's own affair.
    """

    __tablename__ = 'leases'

    name = sa.Column(sa.String(64), primary_key=True)
    holder = sa.Column(sa.String(255))
    expires_at = sa.Column(Timestamp)
    progress_at = sa.Column(Timestamp)
