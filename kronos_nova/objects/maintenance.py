"""Maintenances. A maintenance is an operator's order to empty and service several hosts in
batches."""

import dataclasses
import datetime
from collections.abc import Mapping

# States of a maintenance.
RUNNING = 'running'
STOPPED = 'stopped'
"""State of a maintenance that an operator has stopped. No further host is begun until an operator
resumes the maintenance."""
DONE = 'done'

# States of a host in it, in order.
WAITING = 'waiting'
DRAINING = 'draining'
HOOK = 'hook'
"""State of a host that is empty and is being serviced. Its hook runs, or the operator has not yet
reported that the host is serviced."""
RETURNING = 'returning'
"""State of a host that is serviced and waits for its nova-compute. The host is released once its
nova-compute reports again."""
FINISHED = 'finished'
FAILED = 'failed'
"""State of a host whose hook failed. The host stays disabled, and the maintenance waits until an
operator resumes it."""
LEFT_OUT = 'left out'
"""State of a host that was not serviced, because an operator has released the host, removed it from
Nova, or taken it out of the scope before."""

AT_WORK = (DRAINING, HOOK, RETURNING)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceOptions:
    """The options of a maintenance.

    batch : maximum number of hosts that are serviced at the same time
    hook : command that services a host; its environment variable ``KRONOS_HOST`` has the name of
        the host. None if an operator services the hosts and reports each with ``maintenance done``
    keep_spare : number of hosts whose total room is kept free during the maintenance, so that
        further hosts may fail
    unmovable : treatment of servers that Nova cannot migrate live; the values are those of
        :class:`kronos_nova.drain.states.Drain`
    force : whether the servers of an emptied host may use up room that other servers need to
        restart elsewhere after the loss of their host
    """

    batch: int = 1
    hook: str | None = None
    keep_spare: int = 0
    with_stopped: bool = False
    parallel: int | None = None
    reason: str = ''
    unmovable: str = 'leave'
    force: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """The state of a maintenance, and the state of each of its hosts.

    hosts : {host: state of the host}, in the order in which the hosts are serviced
    runner : process that runs the maintenance
    runner_at : time of the last sign of life of ``runner``
    """

    uuid: str
    state: str
    requested_by: str
    requested_at: datetime.datetime
    options: MaintenanceOptions
    hosts: Mapping[str, str]
    runner: str | None = None
    runner_at: datetime.datetime | None = None

    def in_state(self, *states: str) -> list[str]:
        return [host for host, state in self.hosts.items() if state in states]

    @property
    def serviced(self) -> int:
        """The number of hosts that are serviced and released."""
        return len(self.in_state(FINISHED))

    def expected_end(self, now: datetime.datetime) -> datetime.datetime | None:
        """Return the expected end of the maintenance. The estimate assumes that each remaining host
        takes as long as the serviced hosts did on average.

        :returns: None if the maintenance is not running, no host is serviced yet, or no host
            remains
        """
        left = len(self.in_state(WAITING, *AT_WORK))
        if self.state != RUNNING or not self.serviced or not left:
            return None
        return now + left * (now - self.requested_at) / self.serviced
