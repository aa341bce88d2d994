"""Tables of worker processes, leases, and locks that serialize transactions."""

import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped
from sqlalchemy.orm import mapped_column

from kronos_nova.db.column_types import Timestamp
from kronos_nova.db.models.base import Base


class WorkerRow(Base):
    """A process and its last sign of life.

    A living process writes a new ``heartbeat_at`` every few seconds. Other processes only check
    whether ``heartbeat_at`` changes. They do not compare it with the time, because clocks of hosts
    may differ. ``role`` is ``executor`` for a process that carries out moves, and ``engine`` for a
    process that only plans. Workers of nova-scheduler have roles of their own. ``clock_skew`` is
    the number of seconds by which the clock of the process's host is ahead of the database's clock.
    """

    __tablename__ = 'workers'

    name: Mapped[str] = mapped_column(sa.String(255), primary_key=True)
    heartbeat_at: Mapped[datetime.datetime] = mapped_column(Timestamp, nullable=False)
    role: Mapped[str] = mapped_column(
        sa.String(16), nullable=False, default='executor', server_default='executor')
    clock_skew: Mapped[float | None] = mapped_column(sa.Double)


class SerializationLockRow(Base):
    """A lock that serializes transactions. A transaction takes the lock when it writes the row of
    the lock. So two transactions with the same lock never run at the same time."""

    __tablename__ = 'gates'

    name: Mapped[str] = mapped_column(sa.String(64), primary_key=True)
    passed: Mapped[int] = mapped_column(sa.Integer, nullable=False, default=0)


class LeaseRow(Base):
    """A lease, which is the right of one process to do some work for all processes. ``holder`` is
    the name of that process. ``expires_at`` is the end of the lease.

    ``progress_at`` is the time at which the last complete run of the work began; null for work that
    saves no progress. The next run examines only changes since this time.
    """

    __tablename__ = 'leases'

    name: Mapped[str] = mapped_column(sa.String(64), primary_key=True)
    holder: Mapped[str | None] = mapped_column(sa.String(255))
    expires_at: Mapped[datetime.datetime | None] = mapped_column(Timestamp)
    progress_at: Mapped[datetime.datetime | None] = mapped_column(Timestamp)
