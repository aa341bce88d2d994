"""Tables of worker processes, leases, and locks that serialize transactions."""

import sqlalchemy as sa

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

    name = sa.Column(sa.String(255), primary_key=True)
    heartbeat_at = sa.Column(Timestamp, nullable=False)
    role = sa.Column(sa.String(16), nullable=False, default='executor', server_default='executor')
    clock_skew = sa.Column(sa.Double)


class SerializationLockRow(Base):
    """A lock that serializes transactions. A transaction takes the lock when it writes the row of
    the lock. So two transactions with the same lock never run at the same time."""

    __tablename__ = 'gates'

    name = sa.Column(sa.String(64), primary_key=True)
    passed = sa.Column(sa.Integer, nullable=False, default=0)


class LeaseRow(Base):
    """A lease, which is the right of one process to do some work for all processes. ``holder`` is
    the name of that process. ``expires_at`` is the end of the lease.

    ``progress_at`` is the time at which the last complete run of the work began; null for work that
    saves no progress. The next run examines only changes since this time.
    """

    __tablename__ = 'leases'

    name = sa.Column(sa.String(64), primary_key=True)
    holder = sa.Column(sa.String(255))
    expires_at = sa.Column(Timestamp)
    progress_at = sa.Column(Timestamp)
