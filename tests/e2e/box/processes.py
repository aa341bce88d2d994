"""Processes of a box: started in a group of their own, on record, and ended by that record.

Each has a file ``run/NAME.pid`` under the box' root with its pid and start time, so that
later programs (``stop``, the janitor, the next start) end these processes and no others. For
namespaces that were made for the box there is ``run/NAME.namespace``, with the name of a mount that
they alone have: whatever runs in them is ended. Of its control groups there is ``run/NAME.group``:
they are removed.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from tests.e2e.box.settings import PYTHONPATH
from tests.e2e.box.settings import SOURCE
from tests.e2e.box.settings import BoxError

STOP_SECONDS = 8.0

MARK = 'run/box'
"""A file that only the folder of a box has."""


class Process:
    """One component's process, with its log at ``log/NAME.log``."""

    def __init__(self, name, argv, root, env=None, ready=None, enter=list):
        """
        :param ready: called without arguments until it returns true
        :param enter: says at each start which words go before the command
        """
        self.name = name
        self.log = pathlib.Path(root) / 'log' / f'{name}.log'
        self._argv = [str(arg) for arg in argv]
        self._record = pathlib.Path(root) / 'run' / f'{name}.pid'
        temporary = pathlib.Path(root) / 'tmp'
        self.env = {**os.environ, 'PYTHONPATH': PYTHONPATH, 'TMPDIR': str(temporary),
                    **(env or {})}
        self._folders = self.log.parent, self._record.parent, temporary
        self._ready = ready
        self._enter = enter
        self._popen = None

    def run_instead(self, interpreter_and_program, words=2):
        """Replace the first ``words`` of its command; before it starts."""
        self._argv[:words] = [str(word) for word in interpreter_and_program]

    @property
    def pid(self):
        return self._popen.pid

    def start(self):
        for folder in self._folders:
            folder.mkdir(parents=True, exist_ok=True)
        with self.log.open('ab') as log:
            self._popen = subprocess.Popen(
                [*self._enter(), *self._argv], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=self.env, cwd=SOURCE, start_new_session=True)
        self._record.write_text(f'{self.pid} {start_time(self.pid)}')

    def alive(self):
        return self._popen is not None and self._popen.poll() is None

    def wait_ready(self, timeout):
        """Wait until it serves.

        :raises BoxError: when it ended or the time is over; with the end of its log
        """
        def served():
            if not self.alive():
                raise BoxError(f'{self.name} ended at start:\n{self.tail()}')
            return self._ready is None or self._ready()
        wait_for(served, timeout, lambda: f'{self.name} is not ready:\n{self.tail()}')

    def tail(self, lines=25):
        return '\n'.join(self.log.read_text(errors='replace').splitlines()[-lines:])

    def children(self):
        """Pids of its direct children, oldest first: the workers of a forking service, whichever
        of its threads forked them."""
        listed = [path.read_text() for path in
                  pathlib.Path(f'/proc/{self.pid}/task').glob('*/children')]
        return sorted(int(pid) for each in listed for pid in each.split())

    def kill(self):
        """End it and everything in its group at once, as a crash would."""
        _signal(self.pid, signal.SIGKILL)
        self._popen.wait()
        self._record.unlink(missing_ok=True)

    def stop(self, timeout=STOP_SECONDS):
        _signal(self.pid, signal.SIGTERM, group=False)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(timeout)
        self.kill()


class Janitor:
    """The process that ends the box when this one dies; see janitor.py."""

    def __init__(self, root, keep):
        self._argv = [sys.executable, '-m', 'tests.e2e.box.janitor', str(root),
                      'keep' if keep else 'remove']
        self._popen = None

    def start(self):
        self._popen = subprocess.Popen(self._argv, stdin=subprocess.PIPE, cwd=SOURCE,
                                       start_new_session=True)

    def dismiss(self):
        """The box lives on without its owner, or is gone already."""
        if self._popen:
            self._popen.communicate(b'.')
            self._popen = None


def prepare(root):
    """Make the folder of a box."""
    for name in ('run', 'log'):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / MARK).touch()


@contextlib.contextmanager
def folder(prefix):
    """A new folder for processes and their files, which end with it, or with this process, in
    whatever way that ends."""
    root = pathlib.Path(tempfile.mkdtemp(prefix=prefix))
    janitor = Janitor(root, keep=False)
    janitor.start()
    try:
        yield root
    finally:
        stop_recorded(root)
        remove(root)
        janitor.dismiss()


def start_time(pid):
    """Clock ticks from boot to the start of a process, None when there is no such process."""
    try:
        stat = pathlib.Path(f'/proc/{pid}/stat').read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(')')[2].split()
    return None if fields[0] == 'Z' else int(fields[19])


def stop_recorded(root, timeout=STOP_SECONDS):
    """End every process that is on record under ``root``; harmless when repeated.

    Asks first and kills what is left after ``timeout`` seconds, children included.
    """
    records = {path: _read(path) for path in (pathlib.Path(root) / 'run').glob('*.pid')}
    running = {path: pid for path, (pid, started) in records.items()
               if started is not None and start_time(pid) == started}
    for pid in running.values():
        _signal(pid, signal.SIGTERM, group=False)
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline and any(start_time(pid) for pid in running.values()):
        _reap(running.values())
        time.sleep(0.1)
    for pid in running.values():
        _signal(pid, signal.SIGKILL)
    _reap(running.values())
    namespaces = [*(pathlib.Path(root) / 'run').glob('*.namespace')]
    for path in namespaces:
        end_namespace(path.read_text())
    groups = [*(pathlib.Path(root) / 'run').glob('*.group')]
    for path in groups:
        remove_group(pathlib.Path(path.read_text()))
    for path in (*records, *namespaces, *groups):
        path.unlink(missing_ok=True)


def in_namespace(mark):
    """Pids of all that sees a mount whose source has this name. A namespace of the box is known by
    that, as the kernel gives the number of one that is gone to the next."""
    found = []
    for path in pathlib.Path('/proc').glob('[0-9]*/mountinfo'):
        with contextlib.suppress(OSError):
            if f' {mark} ' in path.read_text():
                found.append(int(path.parent.name))
    return found


def end_namespace(mark):
    """Kill all processes of a mount namespace."""
    if os.getpid() in in_namespace(mark):
        raise BoxError('This is the mount namespace that everybody is in')
    # Until there is none: one that is about to be killed may start another.
    while found := in_namespace(mark):
        for pid in found:
            _signal(pid, signal.SIGKILL, group=False)
        _reap(found)
        time.sleep(0.05)


def remove_group(path):
    """Remove a control group, and kill what is still in it; harmless when repeated."""
    if path.is_dir():
        (path / 'cgroup.kill').write_text('1')
        wait_for(lambda: 'populated 0' in (path / 'cgroup.events').read_text(), STOP_SECONDS,
                 f'{path} has processes that cannot be killed')
        path.rmdir()


def check(root):
    """
    :raises BoxError: it is not the folder of a box, and may not be deleted
    """
    if not (root / MARK).exists():
        raise BoxError(f'{root} is not the folder of a box')


def remove(root):
    """Delete a box' files; what still writes there was just killed, hence the second try."""
    for _attempt in range(2):
        shutil.rmtree(root, ignore_errors=True)


def wait_for(condition, timeout, message, interval=0.1):
    """Call ``condition`` until it returns something true, which is returned.

    :param message: text, or a callable that gives it
    :raises BoxError: when the time is over
    """
    deadline = time.monotonic() + timeout
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise BoxError(f'After {timeout:.0f} s: {message() if callable(message) else message}')
        time.sleep(interval)
    return result


def _read(path):
    with contextlib.suppress(ValueError, OSError):
        pid, started = path.read_text().split()
        return int(pid), int(started)
    return 0, None


def _signal(pid, number, group=True):
    with contextlib.suppress(ProcessLookupError):
        (os.killpg if group else os.kill)(pid, number)


def _reap(pids):
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
