"""Leases. A lease is the right of one process to do some work for all processes. If this process
dies, another process takes the work over."""

import datetime
from collections.abc import Callable

import sqlalchemy as sa

from kronos_nova.db import models
from kronos_nova.db.engine import Database
from kronos_nova.db.engine import count_changed
from kronos_nova.db.retry import retried

RECONCILER = 'reconciler'
RETENTION = 'retention'
NOTIFICATIONS = 'notifications'

CLOCKS_APART = 60
"""Maximum seconds by which the clocks of the nodes of a database cluster may differ. A lease is the
right of one process to do some work for all processes until the lease ends. If a lease ends too far
in the future, a wrong clock wrote the end, and another process takes over the lease. The limit is
twice the length of a lease (:data:`LONGER`) plus these seconds. Raised, a lease from a wrong clock
blocks the work for longer; lowered, a process may lose a valid lease because of a small difference
between clocks. Not measured."""

LONGER = 2
"""Factor by which the lease of another process may be longer than the leases of this process. A
lease is the right of one process to do some work for all processes until the lease ends. If a lease
is even longer, a wrong clock wrote its end, and this process takes over the lease. In addition, the
clocks may differ by :data:`CLOCKS_APART` seconds. Raised, a lease from a wrong clock blocks the
work for longer; lowered, a process whose options set longer leases may lose a valid lease. Chosen
because an operator can then double the length of leases on one host after the other."""


class Leases:
    """The leases of one process. A lease is the right to do some work for all processes.

    :param worker: name of this process
    :param clock: returns the time
    """

    def __init__(self, database: Database, worker: str, clock: Callable[[], datetime.datetime]):
        self.database = database
        self.worker = worker
        self.clock = clock

    @retried
    def hold(self, name: str, seconds: float) -> bool:
        """Take the lease of the work ``name`` for ``seconds``, or renew the lease if this process
        holds it.

        :returns: whether this process holds the lease now
        """
        now, lease = self.clock(), models.LeaseRow
        with self.database.writer() as session:
            return count_changed(session, sa.update(lease).where(
                lease.name == name,
                sa.or_(lease.holder == self.worker, lease.holder.is_(None),
                       lease.expires_at < now,
                       # The time was written by a wrong clock.
                       lease.expires_at > now + datetime.timedelta(
                           seconds=LONGER * seconds + CLOCKS_APART)),
            ).values(holder=self.worker, expires_at=now + datetime.timedelta(seconds=seconds))) == 1

    @retried
    def progress(self, name: str) -> datetime.datetime | None:
        """Return the time up to which the work ``name`` is done; None if no progress was saved."""
        with self.database.reader() as session:
            return session.scalar(sa.select(models.LeaseRow.progress_at).where(
                models.LeaseRow.name == name))

    @retried
    def advance(self, name: str, progress_at: datetime.datetime) -> None:
        """Save the time up to which the work ``name`` is done. Nothing is saved if this process no
        longer holds the lease."""
        with self.database.writer() as session:
            session.execute(sa.update(models.LeaseRow).where(
                models.LeaseRow.name == name, models.LeaseRow.holder == self.worker,
            ).values(progress_at=progress_at))

    @retried
    def release(self, name: str) -> None:
        """Release the lease of the work ``name``, so that another process can take the work at
        once."""
        with self.database.writer() as session:
            session.execute(sa.update(models.LeaseRow).where(
                models.LeaseRow.name == name, models.LeaseRow.holder == self.worker,
            ).values(holder=None, expires_at=None))
