"""What drains need beside their moves: the service disabled first, and enabled at the end."""

import datetime

from oslo_log import log as logging

from kronos_nova import exception
from kronos_nova.db.drains import Drains
from kronos_nova.executor.hosts import HostApi
from kronos_nova.objects import drain as drains

LOG = logging.getLogger(__name__)

OVER = (drains.EMPTY, drains.OVERDUE)
"""States in which nothing is moved, and the host stays disabled until it is released."""

LOOK_AGAIN = datetime.timedelta(seconds=15)
"""Between two questions to Nova whether a host is still disabled; a drain may last for days."""

PREFIX = 'kronos drain'
"""Begins the reason with which Kronos disables a service, and by which it knows its own again."""


class DrainService:
    """One worker's part; any number of workers may do it side by side, and each step may be done
    twice.

    :param ports: ExecutorPorts
    """

    def __init__(self, ports, hosts: HostApi):
        self.drains = Drains(ports.journal.database)
        self.utcnow = ports.utcnow
        self.aggregates = ports.aggregates
        self.hosts = hosts
        self._seen_closed_at = {}   # {uuid of a drain: when its host was last seen disabled}

    def tick(self):
        """
        :raises DBError: the control database cannot be reached
        """
        known = self.drains.in_states((*drains.ACTIVE, *OVER, drains.RELEASING))
        self._seen_closed_at = {drain.uuid: self._seen_closed_at.get(drain.uuid)
                                for drain in known}
        for drain in known:
            if drain.aggregate not in self.aggregates:
                continue
            try:
                self._step(drain)
            except exception.NovaClientError as error:
                LOG.warning('The drain of %s waits: %s', drain.host, error)

    def _step(self, drain):
        if drain.state == drains.RELEASING:
            self._release(drain)
        elif (drain.state in drains.ACTIVE and drain.deadline is not None
              and drain.deadline <= self.utcnow()):
            self._give_up(drain)
        elif drain.state == drains.REQUESTED:
            self._close(drain)
        else:
            self._see_whether_it_is_closed(drain)

    def _close(self, drain):
        service = self.hosts.service(drain.host)
        if service is None:
            self.drains.change(drain, drains.ACTIVE, state=drains.BLOCKED,
                               problem='Nova has no nova-compute of that name any more')
            return
        # Nobody else may have been first and died before the row was written.
        is_ours = service.status != 'disabled' or _is_ours(service.disabled_reason)
        if service.status != 'disabled':
            self.hosts.disable(drain.host, reason(drain))
        if self.drains.change(drain, (drains.REQUESTED,), state=drains.DRAINING, is_ours=is_ours):
            LOG.info('Host %s is drained by order of %s%s', drain.host, drain.requested_by,
                     f': {drain.reason}' if drain.reason else '')

    def _see_whether_it_is_closed(self, drain):
        """Somebody who enables the host by hand wants it to be used."""
        now, seen_at = self.utcnow(), self._seen_closed_at[drain.uuid]
        if seen_at is not None and now - seen_at < LOOK_AGAIN:
            return
        self._seen_closed_at[drain.uuid] = now
        service = self.hosts.service(drain.host)
        if service is not None and service.status == 'enabled' and self.drains.change(
                drain, (drain.state,), state=drains.RELEASED, finished_at=now):
            LOG.info('Host %s was enabled by hand: its drain has ended', drain.host)

    def _give_up(self, drain):
        if self.drains.change(drain, drains.ACTIVE, state=drains.OVERDUE,
                              finished_at=self.utcnow()):
            LOG.warning('The drain of %s is given up: its deadline has passed with %s servers '
                        'left. The host stays disabled.', drain.host, drain.left)

    def _release(self, drain):
        service = self.hosts.service(drain.host)
        # Whoever disabled it since, for a reason of their own, wants it so.
        if service is not None and drain.is_ours and _is_ours(service.disabled_reason):
            self.hosts.enable(drain.host)
        if self.drains.change(drain, (drains.RELEASING,), state=drains.RELEASED,
                              finished_at=self.utcnow()):
            LOG.info('Host %s is released', drain.host)


def reason(drain) -> str:
    """The reason that Nova shows of a service that a drain disabled."""
    said = f'{PREFIX} by {drain.requested_by}'
    return (f'{said}: {drain.reason}' if drain.reason else said)[:255]


def _is_ours(disabled_reason):
    return (disabled_reason or '').startswith(PREFIX)
