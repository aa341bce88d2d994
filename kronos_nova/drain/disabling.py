"""The disabling and enabling of nova-compute services for drains. The nova-compute service of a
host is disabled when the drain of the host begins, and is enabled when the drain is released."""

import dataclasses
import datetime
from collections.abc import Callable
from collections.abc import Iterable

from oslo_db import exception as db_exc
from oslo_log import log as logging

from kronos_nova import exception
from kronos_nova import plural
from kronos_nova.db.cycles import Cycles
from kronos_nova.db.drains import Drains
from kronos_nova.drain import states as drains
from kronos_nova.executor.high_availability import HighAvailability
from kronos_nova.executor.high_availability import NoHighAvailability
from kronos_nova.executor.hosts import HostApi
from kronos_nova.executor.hosts import ServerOnHost
from kronos_nova.executor.ports import ExecutorPorts

LOG = logging.getLogger(__name__)

LOOK_AGAIN_SECONDS = 15
"""Seconds between two checks of the host of a drain. A check finds out whether an operator has
enabled the host again, and whether an emptied host has servers again. Raised, servers are moved off
for longer after an operator has enabled the host; lowered, Nova gets more requests, for as long as
the drain lasts. Not measured."""

RUNNING, OFF = 'ACTIVE', 'SHUTOFF'
"""Statuses of a server in Nova: running (before the drain stops the server) and stopped."""

UNCONFIRMED = 'VERIFY_RESIZE'
"""Status of a server that waits for its resize to be confirmed or reverted. Nova does not start
such a server."""

WHO = 'the drain service'
"""Name of the drain service in the journal. The journal shows this name for moves that the drain
service ends."""

PREFIX = 'kronos drain'
"""Beginning of the disabled reason of services that Kronos disables. By this beginning, Kronos
recognises the services that it has disabled."""


HA_REASONS = ('Masakari', 'instanceha')
"""Beginnings of the disabled reasons that services for high availability set. These are the default
of ``[kronos_executor] ha_disabled_reasons``."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Timer:
    """The deadline of a drain, as UTC time and as time of this process's monotonic clock.

    deadline : the deadline as UTC time
    ends_at : the deadline in seconds of the monotonic clock
    """

    deadline: datetime.datetime
    ends_at: float


class DrainService:
    """The part of a service that disables and enables nova-compute on drained hosts. Any number of
    workers may run a DrainService at the same time, because a repeated step has no effect.

    :param executor_ports: ExecutorPorts
    :param ha_reasons: function that returns ``[kronos_executor] ha_disabled_reasons``
    :param ha: HighAvailability
    """

    def __init__(self, executor_ports: ExecutorPorts, hosts: HostApi,
                 ha_reasons: Callable[[], Iterable[str]] = lambda: HA_REASONS,
                 ha: HighAvailability | None = None):
        self.drains = Drains(executor_ports.journal.database)
        self.utcnow = executor_ports.utcnow
        self._seconds = executor_ports.seconds
        self.aggregates = executor_ports.aggregates
        self.hosts = hosts
        self.ha_reasons = ha_reasons
        self.ha = ha or NoHighAvailability()
        # By uuid of a drain: the time of the last check of its host, and the timer of its deadline.
        self._seen_at: dict[str, float | None] = {}
        self._timers: dict[str, _Timer] = {}

    def tick(self) -> None:
        """Do the next step of every drain: disable, check or enable the service of its host, or
        stop or start its servers. A host is disabled, and servers are stopped, only by workers that
        carry out moves of the aggregate. Every worker does all other steps, because the aggregate
        may have been renamed, or removed from ``[kronos] aggregates``, since the drain began.

        :raises DBError: the control database cannot be reached
        :raises Exception: the first unexpected error of a drain, after the steps of all drains
        """
        known = self.drains.in_states((*drains.ACTIVE, *drains.OVER, drains.RELEASING))
        self._seen_at = {drain.uuid: self._seen_at.get(drain.uuid) for drain in known}
        self._timers = {drain.uuid: self._timer(drain, drain.deadline)
                        for drain in known if drain.deadline}
        unexpected: list[Exception] = []
        for drain in known:
            try:
                self._step(drain)
            except exception.NovaClientError as error:
                LOG.warning('The drain of host %s cannot continue now, and is tried again: %s',
                            drain.host, error)
            except db_exc.DBError:
                raise
            except Exception as error:
                unexpected.append(error)
        if unexpected:
            raise unexpected[0]

    def _step(self, drain: drains.Drain) -> None:
        if drain.state == drains.RELEASING:
            self._release(drain)
        elif drain.state in drains.ACTIVE and self._is_over(drain):
            self._give_up(drain)
        elif drain.state == drains.REQUESTED:
            if drain.aggregate in self.aggregates:
                self._close(drain)
        else:
            self._see_what_is_left_of_it(drain)

    def _timer(self, drain: drains.Drain, deadline: datetime.datetime) -> _Timer:
        """Return the timer of a drain. The deadline is converted to the monotonic clock when this
        process first reads the deadline. So later corrections of the system clock have no
        effect."""
        known = self._timers.get(drain.uuid)
        if known is not None and known.deadline == deadline:
            return known
        left = (deadline - self.utcnow()).total_seconds()
        return _Timer(deadline, self._seconds() + left)

    def _is_over(self, drain: drains.Drain) -> bool:
        timer = self._timers.get(drain.uuid)
        return timer is not None and timer.ends_at <= self._seconds()

    def _close(self, drain: drains.Drain) -> None:
        service = self.hosts.service(drain.host)
        if service is None:
            self._end(drain, drains.GONE, problem=drains.GONE)
            return
        self._leave_alone(drain)
        is_ours = (drain.is_ours or service.status != 'disabled'
                   or _is_ours(service.disabled_reason))
        if service.status != 'disabled':
            self.hosts.disable(drain.host, reason(drain))
        if self.drains.enter(drain, (drains.REQUESTED,), drains.DRAINING, is_ours=is_ours):
            LOG.info('The drain of host %(host)s begins, by order of %(operator)s%(reason)s',
                     {'host': drain.host, 'operator': drain.requested_by,
                      'reason': f': {drain.reason}' if drain.reason else ''})
        elif self.drains.get(drain.uuid).state in drains.OPENED:
            # The drain was released during the request to Nova to disable the host.
            self._open(drain)

    def _leave_alone(self, drain: drains.Drain) -> None:
        """Ask the service for high availability not to act on the host, because the host may be
        rebooted during its drain. Send no request if that service does not watch the host.

        The request is recorded before it is sent. So the request is reverted after the drain even
        if this worker dies in between.
        """
        is_wanted = drain.is_unwatched or self.ha.is_watched(drain.host)
        if is_wanted and self.drains.note(drain, drains.ACTIVE, is_unwatched=True):
            self.ha.watch(drain.host, False)

    def _watch_again(self, drain: drains.Drain) -> None:
        if self.drains.get(drain.uuid).is_unwatched:
            self.ha.watch(drain.host, True)

    def _see_what_is_left_of_it(self, drain: drains.Drain) -> None:
        """Check a disabled host, but not more often than every :data:`LOOK_AGAIN_SECONDS`.

        * If an operator has enabled the host by hand, the drain ends.
        * If the host was removed from Nova before it was empty, the drain ends as well. Until then,
          Kronos would not balance the aggregate. If the host was removed later, the drain gets a
          problem that names the remedy.
        * If an empty host has servers again, such as after a reverted cold migration, the drain
          continues.
        * If no servers are left except servers that the drain is to stop, these servers are
          stopped.
        """
        now, seen_at = self._seconds(), self._seen_at[drain.uuid]
        if seen_at is not None and now - seen_at < LOOK_AGAIN_SECONDS:
            return
        self._seen_at[drain.uuid] = now
        service = self.hosts.service(drain.host)
        if drain.state in drains.OVER:
            problem = '' if service else (
                f'{drains.GONE}; {drains.released_by(drain.host)}')
            if problem != drain.problem:
                self.drains.note(drain, drains.OVER, problem=problem)
        if service is None:
            if drain.state in drains.ACTIVE:
                self._end(drain, drains.GONE, problem=drains.GONE)
        elif service.status == 'enabled':
            self._end(drain, 'the host was enabled by hand')
        elif drain.state == drains.EMPTY:
            # Servers with unconfirmed migrations do not count: they run on other hosts, and it is
            # for their tenants to confirm.
            self._go_on_with(drain, sum(
                not (server.is_unsettled or drain.has_stopped(server.uuid, server.status))
                for server in self.hosts.servers_on(drain.host)))
        elif (drain.state == drains.BLOCKED and (drain.to_stop or drain.stopped)
              and drain.aggregate in self.aggregates):
            self._stop_rest(drain)

    def _stop_rest(self, drain: drains.Drain) -> None:
        """Stop the servers that Nova does not migrate live, as the operator requested with the
        drain. Each server is recorded before the request to Nova. So the server is started again
        after the drain even if this worker dies in between.

        :raises NovaClientError: Nova failed for a server; the other servers were stopped
        """
        servers = {each.uuid: each for each in self.hosts.servers_on(drain.host)
                   if not each.is_unsettled}
        # Servers that have left the host in the meantime are found at the release.
        stopped = {**drain.stopped}
        stopped |= {uuid: drains.STOPPED for uuid in servers.keys() & stopped
                    if drain.has_stopped(uuid, servers[uuid].status)}
        wanted = [uuid for uuid in drain.to_stop
                  if uuid in servers and servers[uuid].status == RUNNING
                  and not (servers[uuid].task_state or servers[uuid].is_locked)]
        stopped |= dict.fromkeys(wanted, drains.STOPPING)
        if stopped != drain.stopped and not self.drains.note(
                drain, (drains.BLOCKED,), stopped=stopped):
            return
        failed: list[exception.NovaClientError] = []
        for uuid in wanted:
            LOG.info('Server %s is stopped until host %s is released, as %s requested with the '
                     'drain', uuid, drain.host, drain.requested_by)
            try:
                self.hosts.stop(uuid)
            except exception.NovaClientError as error:
                failed.append(error)
        if drains.STOPPED in stopped.values() and stopped != drain.stopped:
            Cycles(self.drains.database).expedite(drain.aggregate)
        if failed:
            raise failed[0]

    def _start_again(self, drain: drains.Drain) -> bool:
        """Start the servers that a drain has stopped, each on the host where the server is now.

        :returns: True if no server is left to be started; False otherwise
        :raises NovaClientError: Nova failed for a server; the other servers were started
        """
        known = self.drains.get(drain.uuid).stopped
        if not known:
            return True
        servers = {each.uuid: each for each in self.hosts.servers_on(drain.host)}
        left, failed = dict[str, str](), list[exception.NovaClientError]()
        for uuid, state in known.items():
            after: str | None = state
            try:
                after = self._start(drain, uuid, state, servers.get(uuid) or
                                    self.hosts.server(uuid))
            except exception.NovaClientError as error:
                failed.append(error)
            if after is not None:
                left[uuid] = after
        if left != known:
            self.drains.note(drain, (drains.RELEASING,), stopped=left)
        if failed:
            raise failed[0]
        return not left

    def _start(self, drain: drains.Drain, uuid: str, state: str,
               server: ServerOnHost | None) -> str | None:
        """Start a server that a drain has stopped, if the server is still off and was not started
        before.

        :param state: state of the server in the drain
        :returns: the new state; None if nothing is left to do, or if an operator has to do it
        """
        if server is not None and server.status == UNCONFIRMED:
            LOG.warning('Server %s, which the drain of host %s stopped, cannot be started again: '
                        'it has a resize or cold migration that is not confirmed. Confirm or '
                        'revert the migration, and start the server by hand.', uuid, drain.host)
        if server is None or server.status != OFF and not server.task_state:
            return None    # the server is deleted, or runs again
        if server.status != OFF or server.task_state:
            return state
        if state == drains.STARTING:
            LOG.warning('Server %s, which the drain of host %s stopped, is still %s after a '
                        'request to start it. Start the server by hand.', uuid, drain.host,
                        server.status)
            return None
        self.hosts.start(uuid)
        return drains.STARTING

    def _end(self, drain: drains.Drain, why: str, problem: str = '') -> None:
        now = self.utcnow()
        self._watch_again(drain)
        new = drains.RELEASING if drain.stopped else drains.RELEASED
        if self.drains.end(drain, (drain.state,), new, now, WHO, finished_at=now, problem=problem):
            LOG.info('The drain of host %s has ended, because %s', drain.host, why)
            Cycles(self.drains.database).expedite(drain.aggregate)

    def _go_on_with(self, drain: drains.Drain, left: int) -> None:
        if left and self.drains.enter(drain, (drains.EMPTY,), drains.DRAINING, left=left,
                                      finished_at=None):
            LOG.warning('The drain of host %s continues: the host was empty, but has %s '
                        'again', drain.host, plural.count(left, 'server'))

    def _give_up(self, drain: drains.Drain) -> None:
        """End a drain whose deadline has passed.

        * If the drain has disabled the host, the host stays disabled, and the drain is overdue. The
          drain may still have the state REQUESTED, because a worker died, or Nova's answer was
          lost, before the drain was recorded as begun.
        * Otherwise the drain is released. Servers that an earlier drain of the host has stopped are
          started again.
        """
        now, is_requested = self.utcnow(), drain.state == drains.REQUESTED
        if is_requested and not self._is_disabled_by_us(drain):
            self._watch_again(drain)
            new = drains.RELEASING if drain.stopped else drains.RELEASED
            if self.drains.end(drain, (drains.REQUESTED,), new, now, WHO, finished_at=now):
                LOG.warning('The drain of host %s is given up: its deadline passed before the '
                            'drain began. The host was not disabled.', drain.host)
        elif self.drains.end(
                drain, (drains.REQUESTED,) if is_requested else (drains.DRAINING, drains.BLOCKED),
                drains.OVERDUE, now, WHO, finished_at=now, is_ours=is_requested or drain.is_ours):
            LOG.warning('The drain of host %s is given up: its deadline has passed%s. The '
                        'host stays disabled.', drain.host,
                        '' if drain.left is None
                        else f' with {plural.count(drain.left, "server")} left')

    def _is_disabled_by_us(self, drain: drains.Drain) -> bool:
        service = self.hosts.service(drain.host)
        return (service is not None and service.status == 'disabled'
                and _is_ours(service.disabled_reason))

    def _release(self, drain: drains.Drain) -> None:
        now, seen_at = self._seconds(), self._seen_at[drain.uuid]
        if drain.stopped and seen_at is not None and now - seen_at < LOOK_AGAIN_SECONDS:
            return
        self._seen_at[drain.uuid] = now
        self._open(drain)
        if self._start_again(drain) and self.drains.enter(
                drain, (drains.RELEASING,), drains.RELEASED, finished_at=self.utcnow()):
            LOG.info('Host %s is released', drain.host)
            Cycles(self.drains.database).expedite(drain.aggregate)

    def _open(self, drain: drains.Drain) -> None:
        """Enable the nova-compute service of a host that a drain disabled.

        The service is enabled if its disabled reason is one of two kinds:

        * the reason of a drain
        * a reason with which software for high availability has replaced the reason of the drain.
          This software may regard a reboot during a drain as a failure.

        With any other reason, an operator has disabled nova-compute, and nova-compute stays
        disabled.
        """
        self._watch_again(drain)
        service = self.hosts.service(drain.host)
        if service is None:
            return
        given = service.disabled_reason or ''
        if _is_ours(given):
            self.hosts.enable(drain.host)
        elif self.drains.get(drain.uuid).is_ours and given.startswith(tuple(self.ha_reasons())):
            LOG.info('Host %s is enabled, because its drain has ended. The disabled reason "%s" is '
                     'not that of the drain, but begins with an entry of [kronos_executor] '
                     'ha_disabled_reasons.',
                     drain.host, given)
            self.hosts.enable(drain.host)


def reason(drain: drains.Drain) -> str:
    """Return the disabled reason for the service that a drain disables. Nova shows this reason."""
    said = f'{PREFIX} by {drain.requested_by}'
    return (f'{said}: {drain.reason}' if drain.reason else said)[:255]


def _is_ours(disabled_reason: str | None) -> bool:
    return (disabled_reason or '').startswith(PREFIX)
