"""Maintenances, in which hosts are serviced one after the other."""

import dataclasses
import datetime
from collections.abc import Mapping

# States of a maintenance.
RUNNING = 'running'
STOPPED = 'stopped'
"""The maintenance is stopped: no further host is begun. It can be resumed."""
DONE = 'done'

# States of a host in it, in order.
WAITING = 'waiting'
DRAINING = 'draining'
HOOK = 'hook'
"""The host is empty, and the hook runs, or the operator has not reported that it is serviced."""
RETURNING = 'returning'
"""The host is serviced, and is released once its nova-compute reports again."""
FINISHED = 'finished'
FAILED = 'failed'
"""The hook of the host failed. The host stays disabled, and the maintenance waits until an operator
resumes it."""
LEFT_OUT = 'left out'
"""The host was released before it was serviced."""

AT_WORK = (DRAINING, HOOK, RETURNING)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceOptions:
    """Options of a maintenance.

    batch : maximum number of hosts that are serviced at the same time
    hook : command that services the host named in its environment; None: the maintenance waits for
        ``maintenance done``
    keep_spare : number of hosts whose whole room has to stay free
    unmovable : as of :class:`kronos_nova.drain.states.Drain`
    force : whether a host is emptied even if the loss of other hosts is then no longer covered
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
    """A maintenance and its progress.

    hosts : {host: its state}, in the order in which the hosts are serviced
    runner : the process that runs the maintenance; ``runner_at`` is the time of its last sign of
        life
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
        """Return the expected end, if the remaining hosts take as long as the others did.

        :returns: None where the maintenance is not running, or no host is serviced yet
        """
        left = len(self.in_state(WAITING, *AT_WORK))
        if self.state != RUNNING or not self.serviced or not left:
            return None
        return now + left * (now - self.requested_at) / self.serviced
