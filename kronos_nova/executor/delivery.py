"""Delivery of the notifications that wait to be sent. One process sends the notifications of all
processes."""

import datetime
from collections.abc import Callable
from concurrent import futures

from oslo_log import log as logging

from kronos_nova.db import leases
from kronos_nova.db.engine import Database
from kronos_nova.db.outbox import Outbox
from kronos_nova.objects.notification import Notification

LOG = logging.getLogger(__name__)

LEASE_SECONDS = 60
"""Seconds for which a process has the lease to send notifications, unless the process renews the
lease. The process with the lease sends the notifications of all processes; other processes send
none. Raised, another process takes over later after a crash of the process with the lease; lowered,
two processes may send the same notifications while the broker is slow. Chosen above the time in
which one batch of notifications (:data:`BATCH`) is sent."""

BATCH = 20
"""Maximum number of notifications that are sent to the broker before the database records them as
sent. Raised, more notifications are sent twice if the process crashes; lowered, the database has
more transactions. Not measured."""

FIRST_PAUSE = 1
"""Seconds before the second attempt to send a notification that the broker refused. Each further
pause is twice as long, up to a minute (:data:`LONGEST_PAUSE`). Raised, notifications arrive later
after a short outage of the broker; lowered, more attempts are made while the broker is down. Not
measured."""
LONGEST_PAUSE = 60
"""Maximum seconds between two attempts to send notifications that the broker refused. Raised,
notifications arrive later after a long outage of the broker; lowered, more attempts are made while
the broker is down. Not measured."""


class Deliverer:
    """A sender of the notifications that wait in the control database. Each worker may have a
    Deliverer, but only the worker that holds the lease of this work sends notifications.

    :param send: function that sends a Notification, and raises an error if the broker does not
        accept the notification
    :param clock: returns the time
    :param most: returns the maximum number of notifications that may wait
    """

    def __init__(self, database: Database, worker: str, send: Callable[[Notification], None],
                 clock: Callable[[], datetime.datetime], most: Callable[[], int]):
        self._outbox = Outbox(database)
        self._leases = leases.Leases(database, worker, clock)
        self._send = send
        self._clock = clock
        self._most = most
        self._pause = 0
        self._not_before = clock()

    def deliver(self) -> None:
        """Send the waiting notifications, until none is left or the broker refuses one. If too many
        notifications wait, drop the oldest ones first. Do nothing while another process has the
        lease of this work, or for some time after the broker has refused a notification.

        :raises DBError: the control database cannot be reached
        """
        if self._clock() < self._not_before:
            return
        while self._has_work() and self._leases.hold(leases.NOTIFICATIONS, LEASE_SECONDS):
            self._bound()
            if not self._send_some():
                return

    def end(self) -> None:
        """Release the lease, so that another process can continue at once."""
        self._leases.release(leases.NOTIFICATIONS)

    def _has_work(self) -> bool:
        return bool(self._outbox.number() or self._outbox.waiting(1))

    def _bound(self) -> None:
        dropped = self._outbox.trim(self._most())
        if dropped:
            LOG.error('%d notifications were dropped: more were waiting for the broker than '
                      '[kronos] notification_backlog allows', dropped)

    def _send_some(self) -> bool:
        """Send a batch of notifications. Return True if the broker accepted the whole batch, False
        if the broker refused a notification."""
        waiting, sent, refusal = self._outbox.waiting(BATCH), [], None
        try:
            for each in waiting:
                self._send(each)
                sent.append(each.uuid)
        except Exception as error:  # errors of the driver, of kombu and of the operating system
            refusal = error
        if sent:
            self._outbox.mark_sent(sent, self._clock())
        if refusal is not None:
            self._wait(refusal)
            return False
        if self._pause:
            LOG.info('The broker accepts notifications again')
        self._pause = 0
        return True

    def _wait(self, error: Exception) -> None:
        if not self._pause:
            LOG.warning('Notifications wait, because the broker does not accept them: %s', error)
        self._pause = min(2 * self._pause or FIRST_PAUSE, LONGEST_PAUSE)
        self._not_before = self._clock() + datetime.timedelta(seconds=self._pause)


class BackgroundDeliverer:
    """A Deliverer that works in a thread of its own. So a broker that does not respond delays
    nothing else."""

    def __init__(self, deliverer: Deliverer):
        self._deliverer = deliverer
        self._pool = futures.ThreadPoolExecutor(1, thread_name_prefix='kronos-notifications')
        self._running: futures.Future[None] | None = None

    def tick(self) -> None:
        """Start a delivery of notifications in the background, unless one is in progress.

        :raises DBError: the previous delivery could not reach the control database
        """
        if self._running is not None:
            if not self._running.done():
                return
            done, self._running = self._running, None
            done.result()
        self._running = self._pool.submit(self._deliverer.deliver)

    def stop(self) -> None:
        """Wait until the notifications in delivery are sent or refused, and end the delivery."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._deliverer.end()
