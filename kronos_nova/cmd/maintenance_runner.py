"""The runner of a maintenance, which empties hosts, runs the hook for empty hosts, and releases
serviced hosts.

The whole state of a maintenance is in the control database. So if the process that runs a
maintenance dies, another process can continue the maintenance.
"""

import contextlib
import dataclasses
import os
import signal
import subprocess
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence

from kronos_nova import exception
from kronos_nova import plural
from kronos_nova.db.drains import Drains
from kronos_nova.db.maintenances import Maintenances
from kronos_nova.drain import states as drains
from kronos_nova.drain.states import Drain
from kronos_nova.executor.hosts import HostApi
from kronos_nova.objects import maintenance as m

HOST_VARIABLE = 'KRONOS_HOST'
"""Name of the environment variable in which a hook finds the name of the empty host."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """The dependencies of a MaintenanceRunner.

    maintenances, drains : stores in the control database
    hosts : HostApi
    fits : function (hosts, later hosts) that returns the first of ``hosts``, as many as can be
        empty at the same time. Their servers are not moved to the later hosts, which are serviced
        afterwards
    drain : function (host, hosts to avoid as destinations) that returns the Drain of the host
    say : function that prints a line
    run_hook : function (hook, host) that starts the hook, and returns the hook's process
    """

    maintenances: Maintenances
    drains: Drains
    hosts: HostApi
    fits: Callable[[Sequence[str], Sequence[str]], list[str]]
    drain: Callable[[str, tuple[str, ...]], Drain]
    say: Callable[[str], None]
    run_hook: Callable[[str, str], subprocess.Popen[bytes]]


def start_hook(command: str, host: str) -> subprocess.Popen[bytes]:
    """Start a hook for an empty host. A hook is a shell command. It runs in a new session of the
    operating system."""
    return subprocess.Popen(  # noqa: S602  # nosec B602 - the operator's own
        command, shell=True, env={**os.environ, HOST_VARIABLE: host}, start_new_session=True,
        stdin=subprocess.DEVNULL)


class MaintenanceRunner:
    """The runner of one maintenance. Each call of :meth:`advance` carries out the next steps."""

    def __init__(self, dependencies: Dependencies, uuid: str):
        self.dependencies = dependencies
        self.uuid = uuid
        self._hooks: dict[str, subprocess.Popen[bytes]] = {}
        self._said: dict[str, str] = {}

    def advance(self) -> m.Maintenance:
        """Take all steps that are possible now, and return the Maintenance as it is afterwards."""
        found = self.dependencies.maintenances.get(self.uuid)
        if found.state == m.DONE:
            return found
        for host in found.in_state(*m.AT_WORK):
            # An error of one host must not stop the others and their hooks.
            with self._report_errors(host):
                self._steps[found.hosts[host]](self, found, host)
        found = self.dependencies.maintenances.get(self.uuid)
        if found.state == m.RUNNING and not found.in_state(m.FAILED):
            self._begin_next(found)
        return self.dependencies.maintenances.get(self.uuid)

    def end(self) -> None:
        """Send SIGTERM to the hooks that run. The process calls this method before it ends."""
        for process in self._hooks.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)

    def _begin_next(self, found: m.Maintenance) -> None:
        waiting = found.in_state(m.WAITING)
        free = found.options.batch - len(found.in_state(*m.AT_WORK))
        if not waiting or free < 1:
            return
        with self._report_errors(waiting[0]):
            if any([self._leave_out_if_removed(host) for host in waiting[:free]]):
                return  # The next advance begins with the hosts that remain.
            for host in self.dependencies.fits(waiting[:free], waiting[free:]):
                # The check takes a while, in which the maintenance may have been stopped.
                if self.dependencies.maintenances.get(self.uuid).state != m.RUNNING:
                    return
                self._begin(found, host)

    def _leave_out_if_removed(self, host: str) -> bool:
        """Leave a host out of the maintenance if the host was removed from Nova. Return whether the
        host is left out."""
        if self.dependencies.hosts.service(host) is not None:
            return False
        drain = self.dependencies.drains.latest(host)
        if drain is not None:
            self.dependencies.drains.enter(drain, (*drains.ACTIVE, *drains.OVER),
                                           drains.RELEASING)
        self._leave_out(host, drains.GONE)
        return True

    def _leave_out(self, host: str, why: object) -> None:
        self.dependencies.maintenances.set_host(self.uuid, host, m.LEFT_OUT)
        self._tell(host, f'{m.LEFT_OUT}: {why}')

    def _begin(self, found: m.Maintenance, host: str) -> None:
        known = self.dependencies.drains.latest(host)
        if known is not None and (known.state in drains.ACTIVE or (
                known.state == drains.EMPTY and self._is_empty(host))):
            self._to(host, m.DRAINING)
        else:
            self._request(found, host)

    def _request(self, found: m.Maintenance, host: str) -> None:
        """Request the drain of a host. If the host is in no aggregate for which Kronos plans,
        because the aggregate or the options have changed, leave the host out."""
        later = tuple(other for other in found.in_state(m.WAITING) if other != host)
        try:
            drain = self.dependencies.drain(host, later)
        except exception.NotInScope as error:
            self._leave_out(host, error)
            return
        self.dependencies.drains.request([drain])
        self._to(host, m.DRAINING)

    def _drained(self, found: m.Maintenance, host: str) -> None:
        """Take the next step for a host that is emptied. While its drain is in progress, the record
        of the drain is enough: if the host was removed from Nova, the drain is ended. In other
        states Nova is asked, because the next step depends on the answer."""
        drain = self._drain_in_force(host)
        is_in_progress = drain is not None and drain.state in drains.ACTIVE
        if not is_in_progress and self._leave_out_if_removed(host):
            return
        if drain is None:
            self._to(host, m.LEFT_OUT)
        elif drain.state == drains.EMPTY and not self._is_empty(host):
            self._tell(host, 'is not empty any more, or was enabled: not serviced before that is '
                             'corrected')
        elif drain.state == drains.EMPTY:
            self._to(host, m.HOOK)
            if not found.options.hook:
                self._tell(host, f'empty; service it, then "kronos-manage maintenance done {host}"')
        elif drain.state == drains.OVERDUE:
            self._request(found, host)
        elif drain.state == drains.BLOCKED and drain.left is not None:
            self._tell(host, f'blocked by {len(drain.blocked)} of '
                             f'{plural.count(drain.left, "server")}; see '
                             f'"kronos-manage host status {host}"')
        elif drain.left is not None:
            waits = f'; waits for {drain.waits_for}' if drain.waits_for else ''
            self._tell(host, f'{plural.count(drain.left, "server")} left{waits}')

    def _drain_in_force(self, host: str) -> Drain | None:
        """Return the newest drain of a host. Return None if this drain is released or about to be
        released. The record of a drain is deleted some time after the drain was released."""
        drain = self.dependencies.drains.latest(host)
        return None if drain is None or drain.state in drains.OPENED else drain

    def _is_empty(self, host: str) -> bool:
        """Return True if Nova confirms that the host is disabled and empty. Servers that the drain
        of the host has stopped do not count. The answer has to come from Nova, because running
        servers on the host would not survive the hook."""
        service = self.dependencies.hosts.service(host)
        if service is None or service.status != 'disabled':
            return False
        drain = self.dependencies.drains.latest(host)
        return all(drain is not None and drain.has_stopped(each.uuid, each.status)
                   for each in self.dependencies.hosts.servers_on(host))

    def _hooked(self, found: m.Maintenance, host: str) -> None:
        if host in self._hooks:
            self._watch_hook(host, self._hooks[host])
        elif self._drain_in_force(host) is None:
            self._to(host, m.LEFT_OUT)
        elif found.options.hook and self._is_empty(host):
            self._hooks[host] = self.dependencies.run_hook(found.options.hook, host)
            self._tell(host, 'the hook runs')
        elif found.options.hook:
            # The host may have changed since it was empty, because an earlier run died or a hook
            # failed.
            self._to(host, m.DRAINING)

    def _watch_hook(self, host: str, process: subprocess.Popen[bytes]) -> None:
        code = process.poll()
        if code is None:
            return
        # The process is forgotten last: without the record of its end, the hook would run again.
        self._to(host, m.FAILED if code else m.RETURNING)
        del self._hooks[host]
        if code:
            self._tell(host, f'the hook ended with {code}. The host stays disabled, and nothing '
                             'goes on. Correct the cause, then "kronos-manage maintenance resume".')

    def _returned(self, _found: m.Maintenance, host: str) -> None:
        drain = self.dependencies.drains.latest(host)
        if drain is None or drain.state == drains.RELEASED:
            self._to(host, m.FINISHED)
            return
        service = self.dependencies.hosts.service(host)
        if service is None or service.state != 'up':
            self._tell(host, 'waits until nova-compute reports; "kronos-manage host release '
                             f'{host}" continues without it')
            return
        self.dependencies.drains.enter(drain, (*drains.ACTIVE, *drains.OVER), drains.RELEASING)

    _steps = {m.DRAINING: _drained, m.HOOK: _hooked, m.RETURNING: _returned}

    def _to(self, host: str, state: str) -> None:
        self.dependencies.maintenances.set_host(self.uuid, host, state)
        self._tell(host, state)

    @contextlib.contextmanager
    def _report_errors(self, host: str) -> Iterator[None]:
        """Print an error of Kronos that is raised in the block, instead of raising it. The next
        :meth:`advance` repeats the step."""
        try:
            yield
        except exception.KronosException as error:
            self._tell(host, f'tried again soon: {error}')

    def _tell(self, host: str, text: str) -> None:
        if self._said.get(host) != text:
            self._said[host] = text
            self.dependencies.say(f'{host}: {text}')
