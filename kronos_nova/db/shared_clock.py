"""The time that all hosts share, which is the time of the control database.

Times that several hosts compare are all taken from this clock, not from the clocks of hosts. Each
process reads the time of the database every few seconds. Between two readings, the process adds the
time that its monotonic clock measures. So a change of the host's clock has no effect.

On SQLite, which serves one host, the database's clock is the clock of that host. In a Galera
cluster, each node has its own clock. So these times are exact enough only for intervals of minutes
and more. Whether a process is alive is never decided by these times (see
kronos_nova.executor.liveness).
"""

import datetime
import threading
import time
from collections.abc import Callable

import sqlalchemy as sa
from oslo_db import exception as db_exc
from oslo_log import log as logging

from kronos_nova import clock
from kronos_nova import exception

LOG = logging.getLogger(__name__)

MOST_SKEW_SECONDS = 5.0
"""Maximum seconds by which the clock of a host may differ from the clock of the control database.
While the difference is larger, Kronos on this host neither plans nor takes over moves of other
workers. Raised, samples of Prometheus may be older than Kronos assumes; lowered, a slow answer of
the database counts as a wrong clock. Chosen far above the milliseconds by which synchronised clocks
differ."""

INTERVAL_SECONDS = 10.0
"""Seconds between two comparisons of the host's clock with the clock of the control database.
Raised, a wrong clock is noticed later; lowered, the database has more queries, each of which takes
0.2 ms. The interval was not measured."""

_QUESTIONS = {
    'sqlite': "SELECT strftime('%Y-%m-%d %H:%M:%f', 'now')",
    'mysql': 'SELECT UTC_TIMESTAMP(6)',
    'mariadb': 'SELECT UTC_TIMESTAMP(6)',
    'postgresql': "SELECT timezone('UTC', clock_timestamp())"}


class SharedClock:
    """A callable that returns the database's time, as an aware datetime.

    While the database does not answer, the clock continues from the last answer. Before the first
    answer, the clock returns the host's time.

    :param engine: engine of the control database; the engine does not connect before the first call
    :param wall: returns the host's time
    :param monotonic: returns seconds of a clock that is never set
    """

    def __init__(self, engine: sa.Engine, wall: Callable[[], datetime.datetime] = clock.utcnow,
                 monotonic: Callable[[], float] = time.monotonic):
        self._engine = engine
        self._wall = wall
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._next = float('-inf')
        # Time of the database, and monotonic seconds at that moment.
        self._answer: tuple[datetime.datetime, float] | None = None
        self._skew: float | None = None
        self._reported: float | None = None

    def __call__(self) -> datetime.datetime:
        self._ask_if_due()
        if self._answer is None:
            return self._wall()
        then, at = self._answer
        return then + datetime.timedelta(seconds=self._monotonic() - at)

    def skew(self) -> float | None:
        """Return the seconds by which the host's clock is ahead of the database's clock; None while
        the difference is not known."""
        self._ask_if_due()
        return self._skew

    def check(self) -> None:
        """Compare the clock of the host with the clock of the database.

        :raises ClockSkewed: the clocks differ by more than :data:`MOST_SKEW_SECONDS`. The text of
            the error has the difference. The text changes only when the difference has changed by
            more than :data:`MOST_SKEW_SECONDS`, because callers log an error again when its text
            changes
        """
        skew = self.skew()
        if skew is None or abs(skew) <= MOST_SKEW_SECONDS:
            self._reported = None
            return
        # The reported difference stays the same while it changes little, because a problem is
        # logged again when its text changes.
        if self._reported is None or abs(skew - self._reported) > MOST_SKEW_SECONDS:
            self._reported = skew
        raise exception.ClockSkewed(seconds=self._reported)

    def is_right(self) -> bool:
        """Return whether the host's clock differs from the database's clock by a few seconds at
        most. The result is True while the difference is not known."""
        try:
            self.check()
        except exception.ClockSkewed:
            return False
        return True

    def _ask_if_due(self) -> None:
        if self._monotonic() < self._next or not self._lock.acquire(blocking=False):
            return
        try:
            self._next = self._monotonic() + INTERVAL_SECONDS
            self._ask()
        except (db_exc.DBError, sa.exc.SQLAlchemyError) as error:
            LOG.debug('The time of the control database cannot be read: %s', error)
        finally:
            self._lock.release()

    def _ask(self) -> None:
        with self._engine.connect() as connection:
            question = sa.text(_QUESTIONS[self._engine.dialect.name])
            before = self._monotonic()
            found = connection.scalar(question)
            after, wall = self._monotonic(), self._wall()
        took = after - before
        then = clock.parsed(str(found)) + datetime.timedelta(seconds=took / 2)
        self._answer = then, after
        ahead = (wall - then).total_seconds()
        # The database's time may be earlier or later by half of the duration of the query.
        self._skew = max(abs(ahead) - took / 2, 0.0) * (1 if ahead > 0 else -1)
