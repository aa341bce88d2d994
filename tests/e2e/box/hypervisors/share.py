"""A host's share of this machine: a control group for all of its processes.

It is of version 2 and has no controllers: so it counts processor time and pressure also where
version 1 has the controllers.
"""

import contextlib
import os
import pathlib
import time
import uuid

from tests.e2e.box.settings import BoxError

FIRST = -20
"""The priority that comes before all others."""


class Share:
    """On record in ``run/NAME.group`` before it is made.

    :raises BoxError: this machine has no control groups of version 2
    """

    def __init__(self, name, root):
        self._record = root / 'run' / f'{name}.group'
        self.path = _hierarchy() / f'kronos-box-{uuid.uuid4().hex[:12]}-{name}'

    def make(self):
        self._record.write_text(str(self.path))
        self.path.mkdir()

    def enter(self):
        """The words before a command that is to count as the host's, with all that it starts."""
        return ['sh', '-c', f'echo $$ > {self.path}/cgroup.procs && exec "$@"', 'sh']

    def come_first(self):
        """Take no heed from now on of what else this machine does: on a cloud's host nothing else
        takes processor time from the guests.

        Where the kernel groups processes by session, a thread's priority counts only within its
        session, and the session has a priority of its own.
        """
        for thread in (self.path / 'cgroup.threads').read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.setpriority(os.PRIO_PROCESS, int(thread), FIRST)
        for process in (self.path / 'cgroup.procs').read_text().split():
            self._bring_session_first(pathlib.Path('/proc', process, 'autogroup'))

    @staticmethod
    def _bring_session_first(autogroup):
        # A kernel refuses too many changes in a short time.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for _attempt in range(20):
                try:
                    return autogroup.write_text(str(FIRST))
                except BlockingIOError:
                    time.sleep(0.2)


def _hierarchy():
    for line in pathlib.Path('/proc/self/mounts').read_text().splitlines():
        _device, where, kind, *_rest = line.split()
        if kind == 'cgroup2':
            return pathlib.Path(where)
    raise BoxError('This machine has no control groups of version 2. Mount them: '
                   'mkdir -p /sys/fs/cgroup/unified; mount -t cgroup2 none /sys/fs/cgroup/unified')
