"""The process that plans: it is started once and given one order after another.

Loading Nova and everything else takes seconds of the processor, and what it has read of placement
can be kept: a process that planned lately is the one to plan next. Orders go to its standard input,
a line of JSON each; answers, a status each, come back by a pipe of their own.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Sequence

from oslo_log import log as logging

from kronos_nova.engine import planning_worker

LOG = logging.getLogger(__name__)

MEMORY = {'MALLOC_ARENA_MAX': '1', 'MALLOC_MMAP_THRESHOLD_': str(1 << 20)}
"""For the child's malloc, where it is glibc's. Answers are read in threads of their own, and each
would leave the memory that it took in an arena that is never shrunk; answers of some MB, which come
from the heap once the first was freed, would leave holes in it."""

NICEST = 19
"""Largest niceness of a process (no unit). Fixed by POSIX."""


@dataclasses.dataclass(frozen=True, slots=True)
class Command:
    """The start of a child: its module, and the command line that gave this process its
    configuration."""

    module: str
    arguments: Sequence[str]


class PlanningClient:
    """A running child. ``popen`` is the process itself; once it ``is_leaving`` it takes no orders.

    :param command: Command
    :param configuration: what :func:`configuration` said when it was started
    :param niceness: added to that of this process
    :raises OSError: there is no process to spare
    """

    def __init__(self, command, configuration, niceness):
        self.configuration = configuration
        self.is_leaving = False
        self._waited_before = 0.0
        self._answers, theirs = os.pipe()
        os.set_blocking(self._answers, False)
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
            os.close(self._answers)
            raise
        finally:
            os.close(theirs)
        # The niceness is set here and not by the child, because loading Nova is half of its work.
        with _as_far_as_it_may():
            os.setpriority(os.PRIO_PROCESS, self.popen.pid, os.nice(0) + niceness)
        if niceness == NICEST:
            # To the kernel, a processor that only runs SCHED_IDLE processes counts as idle: another
            # process that wakes up there runs at once, whatever its session or systemd unit.
            with _as_far_as_it_may():
                os.sched_setscheduler(self.popen.pid, os.SCHED_IDLE, os.sched_param(0))

    def order(self, scopes):
        """Let it plan some aggregates.

        :returns: whether the order reached it; it does not when the worker has ended meanwhile
        """
        self._waited_before = self._waited_ever()
        try:
            self.popen.stdin.write(json.dumps(list(scopes)).encode() + b'\n')
            self.popen.stdin.flush()
        except OSError:
            return False
        return self.popen.poll() is None

    def answer(self):
        """Return the status of the order, or None while it works or if it ended without an
        answer."""
        with contextlib.suppress(BlockingIOError):
            said = os.read(self._answers, 64)
            if said.endswith(b'\n'):
                status, next_step = said.decode().split()
                self.is_leaving = next_step == planning_worker.LEAVES
                return int(status)
        return None

    def waited(self):
        """Return the seconds since the last order for which the process was ready to run and waited
        for a processor; 0 where the kernel does not count them."""
        return self._waited_ever() - self._waited_before

    def _waited_ever(self):
        with contextlib.suppress(OSError), open(f'/proc/{self.popen.pid}/schedstat') as file:
            return int(file.read().split()[1]) / 1e9
        return 0.0

    def dismiss(self):
        """End the worker, which is idle."""
        self.popen.kill()
        self.forget()

    def forget(self):
        """Forget a child that has ended or will end."""
        with contextlib.suppress(OSError):
            self.popen.stdin.close()
        if self._answers is not None:
            os.close(self._answers)
            self._answers = None


@contextlib.contextmanager
def _as_far_as_it_may():
    """Ignore errors of setting priorities. Containers forbid this in many ways, and a child plans
    without them."""
    try:
        yield
    except OSError as error:
        LOG.info('A planning process takes more of the processor than [kronos] planner_niceness '
                 'says, for its priority cannot be set: %s', error)


def configuration(conf):
    """Return a fingerprint of the current configuration files of an oslo.config object and of the
    options that the process was started with. The fingerprint differs where one of them has
    changed."""
    files = [pathlib.Path(path) for path in conf.config_file or ()]
    for directory in conf.config_dir or ():
        files += sorted(pathlib.Path(directory).glob('*.conf'))
    return (conf.kronos.planner_niceness, *((str(path), *_state(path)) for path in files))


def _state(path):
    try:
        found = path.stat()
    except OSError:
        return (None,)
    return found.st_mtime_ns, found.st_size, found.st_ino
