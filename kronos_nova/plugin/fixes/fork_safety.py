"""A separate placement client for each forked worker.

Nova's conductor uses its placement client before it forks. If placement, or a proxy in front of
placement, keeps connections open, all workers share the connection of this client. If two workers
send requests at the same time, a worker may get the answer to the other worker's request, or no
answer. An instance then ends in ERROR because of a ConnectFailure.

In each forked process, this fix resets ``nova.scheduler.client.report.PLACEMENTCLIENT``, a global
variable of Nova.

Launchpad: no bug is known. Option: ``[kronos_fixes] fork_safety``.
"""

import functools
import os

import nova.conf
from nova.scheduler.client import report

CONF = nova.conf.CONF

EXPECTED = {'nova.scheduler.client.report:report_client_singleton': ()}


def install() -> None:
    """Make each worker that is forked after this call create its own placement client, unless
    ``[kronos_fixes] fork_safety`` is off."""
    if CONF.kronos_fixes.fork_safety:
        _register()


@functools.cache
def _register() -> None:
    os.register_at_fork(after_in_child=_forget_client)


def _forget_client() -> None:
    report.PLACEMENTCLIENT = None
