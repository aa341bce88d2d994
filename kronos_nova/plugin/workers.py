"""What workers are not to share with the process that they were forked from.

Nova's conductor tries its client of placement before it forks. Where placement or a proxy in front
of it keeps connections open, that one is then every worker's, and two that ask at once get each
other's answers, or none: an instance ends in ERROR by a ConnectFailure.
"""

import functools
import os

from nova.scheduler.client import report

EXPECTED = {'nova.scheduler.client.report:report_client_singleton': ()}


@functools.cache
def part():
    """Have each worker that is forked from now on make a client of its own."""
    os.register_at_fork(after_in_child=_forget_client)


def _forget_client():
    report.PLACEMENTCLIENT = None
