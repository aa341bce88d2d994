"""The client of a planning process. The client starts the process as a child, and sends the process
one order after the other.

One process plans several cycles, because loading Nova takes seconds of CPU time, and because data
from placement can be reused. Each order is a line of JSON on the standard input of the process.
Each answer is a status on a separate pipe.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from collections.abc import Sequence
from typing import IO
from typing import cast

from oslo_config import cfg
from oslo_log import log as logging

from kronos_nova.engine import planning_worker

LOG = logging.getLogger(__name__)

MEMORY = {'MALLOC_ARENA_MAX': '1', 'MALLOC_MMAP_THRESHOLD_': str(1 << 20)}
"""Environment variables for glibc's malloc in the child, which keep its memory small. The child
reads large responses of other services in several threads. ``MALLOC_ARENA_MAX``: with several
arenas, each thread would leave memory in an arena that never shrinks. ``MALLOC_MMAP_THRESHOLD_``:
without a fixed threshold, glibc raises its threshold after the first large response. Later
responses would then be in the heap, and leave holes there."""

NICEST = 19
"""Largest niceness that a process can have, which is the lowest priority (no unit). Fixed by
Linux."""


Configuration = tuple[int | tuple[object, ...], ...]
"""A fingerprint of the configuration with which a child is started, see :func:`configuration`."""


@dataclasses.dataclass(frozen=True, slots=True)
class Command:
    """The command that starts a child.

    module : Python module that the child runs
    arguments : command-line arguments by which the child finds the configuration of this process
    """

    module: str
    arguments: Sequence[str]


class PlanningClient:
    """A planning process that was started as a child. ``popen`` is the Popen of the child. While
    ``is_leaving`` is true, the child accepts no further order.

    :param configuration: result of :func:`configuration` at the start of the child
    :param niceness: number that is added to the niceness of this process; the sum is the niceness
        of the child
    :raises OSError: no process can be started
    """

    def __init__(self, command: Command, configuration: Configuration, niceness: int):
        self.configuration = configuration
        self.is_leaving = False
        self._waited_before = 0.0
        ours, theirs = os.pipe()
        os.set_blocking(ours, False)
        self._answers = os.fdopen(ours, 'rb', buffering=0)
        argv = [sys.executable, '-m', command.module, '--answers', str(theirs), '--',
                *command.arguments]
        # The child is no server: it needs none of the green threads that this process may have.
        environment = {**os.environ, 'OS_NOVA_DISABLE_EVENTLET_PATCHING': '1', **MEMORY}
        try:
            self.popen = subprocess.Popen(  # noqa: S603
                argv, env=environment, stdin=subprocess.PIPE, pass_fds=(theirs,),
                # The child ignores signals to the process group of the service (SIGHUP, Ctrl-C).
                process_group=0)
        except OSError:
            self._answers.close()
            raise
        finally:
            os.close(theirs)
        self._orders = cast(IO[bytes], self.popen.stdin)
        # The niceness is set here and not by the child, because loading Nova, the first thing that
        # the child does, is half of its work.
        with _as_far_as_it_may():
            os.setpriority(os.PRIO_PROCESS, self.popen.pid, os.nice(0) + niceness)
        if niceness == NICEST:
            # To the kernel, a processor that only runs SCHED_IDLE processes counts as idle: another
            # process that wakes up there runs at once, whatever its session or systemd unit.
            with _as_far_as_it_may():
                os.sched_setscheduler(self.popen.pid, os.SCHED_IDLE, os.sched_param(0))

    def order(self, scopes: Sequence[str]) -> bool:
        """Send the child the order to plan some aggregates.

        :returns: whether the child received the order; False if the child has ended
        """
        self._waited_before = self._waited_ever()
        try:
            self._orders.write(json.dumps(list(scopes)).encode() + b'\n')
            self._orders.flush()
        except OSError:
            return False
        return self.popen.poll() is None

    def answer(self) -> int | None:
        """Return the status (:data:`planning_worker.PLANNED` or ``NOT_PLANNED``) with which the
        child has answered the last order. Return None if the child still works on the order, or
        ended without an answer."""
        said = self._answers.read(64)
        if not said:
            return None
        status, next_step = said.decode().split()
        self.is_leaving = next_step == planning_worker.LEAVES
        return int(status)

    def waited(self) -> float:
        """Return for how many seconds since its last order the child was ready to run, but had no
        processor. The result is 0 if the kernel does not count these seconds."""
        return self._waited_ever() - self._waited_before

    def _waited_ever(self) -> float:
        with contextlib.suppress(OSError), open(f'/proc/{self.popen.pid}/schedstat') as file:
            return int(file.read().split()[1]) / 1e9
        return 0.0

    def dismiss(self) -> None:
        """End the idle child, and close the pipes to it."""
        self.popen.kill()
        with contextlib.suppress(OSError):
            self._orders.close()
        self._answers.close()


@contextlib.contextmanager
def _as_far_as_it_may() -> Iterator[None]:
    """Log and suppress an OSError of the ``with`` block. The block sets the priority of a child. A
    container may forbid this, and the child then plans with its present priority."""
    try:
        yield
    except OSError as error:
        LOG.info('The priority of a planning process cannot be set to [kronos] planner_niceness. '
                 'The process continues, and may delay other services of this host: %s', error)


def configuration(conf: cfg.ConfigOpts) -> Configuration:
    """Return a fingerprint of the configuration with which a child is started. The fingerprint
    changes when a configuration file or ``planner_niceness`` changes."""
    files = [pathlib.Path(path) for path in conf.config_file or ()]
    for directory in conf.config_dir or ():
        files += sorted(pathlib.Path(directory).glob('*.conf'))
    return (conf.kronos.planner_niceness, *((str(path), *_state(path)) for path in files))


def _state(path: pathlib.Path) -> tuple[int | None, ...]:
    try:
        found = path.stat()
    except OSError:
        return (None,)
    return found.st_mtime_ns, found.st_size, found.st_ino
