"""Names of processes. The journal and the locks record these names to show which process owns a
move or a lock."""

import functools
import os

from oslo_utils import uuidutils


def name(host: str) -> str:
    """Return the name of this process. The name contains the name of the host, and no later process
    gets the same name."""
    return _name(host, os.getpid())


@functools.cache
def _name(host: str, pid: int) -> str:
    # A container may have the same pids after a restart.
    return f'{host}:{pid}:{uuidutils.generate_uuid()[:8]}'
