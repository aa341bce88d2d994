"""Keeps for each host a folder like /proc with what node_exporter reads there.

    python -m tests.e2e.box.hypervisors.views CONTROL_GROUP=FOLDER ...

As if the host had this machine for itself: what its processes used is used, all else is idle or
free.
"""

import os
import pathlib
import re
import signal
import sys
import time

INTERVAL = 0.25
"""Seconds between two looks; short beside the time between two scrapes."""

CPUS = os.cpu_count()
TICKS = os.sysconf('SC_CLK_TCK')
PAGE_KB = os.sysconf('SC_PAGE_SIZE') // 1024
PRESSURE = 'cpu', 'memory', 'io'


class View:
    """
    :param group: the host's control group
    :param folder: where it is shown
    :param memory_kb: what the host has; libvirt tells Nova the same
    :param now: seconds since the epoch
    """

    def __init__(self, group, folder, memory_kb, now):
        self._group, self._folder = group, folder
        self._memory_kb, self._started = memory_kb, now
        self._idle = 0
        (folder / 'pressure').mkdir(parents=True, exist_ok=True)

    def refresh(self, now):
        self._write('stat', self._stat(now))
        self._write('meminfo', self._meminfo())
        for what in PRESSURE:
            measured = self._group / f'{what}.pressure'
            if measured.exists():
                self._write(f'pressure/{what}', measured.read_text())

    def _write(self, name, text):
        partial = self._folder / f'{name}.new'
        partial.write_text(text)
        partial.rename(self._folder / name)

    def _stat(self, now):
        """All CPUs alike: how much each one did is not counted."""
        used = dict(line.split() for line in (self._group / 'cpu.stat').read_text().splitlines())
        user, system = (int(used[f'{mode}_usec']) * TICKS // 1_000_000
                        for mode in ('user', 'system'))
        # No counter goes back, though time and use are not read in the same moment.
        self._idle = max(self._idle, int((now - self._started) * TICKS * CPUS) - user - system)
        lines = [_cpu('', 1, user, system, self._idle),
                 *(_cpu(number, CPUS, user, system, self._idle) for number in range(CPUS))]
        return '\n'.join([*lines, f'btime {int(self._started)}', ''])

    def _meminfo(self):
        pids = (self._group / 'cgroup.procs').read_text().split()
        free = max(self._memory_kb - sum(map(_resident_kb, pids)), 0)
        return ''.join(f'{name}: {kb} kB\n' for name, kb in (
            ('MemTotal', self._memory_kb), ('MemFree', free), ('MemAvailable', free)))


def _cpu(number, cpus, user, system, idle):
    return f'cpu{number} {user // cpus} 0 {system // cpus} {idle // cpus} 0 0 0 0 0 0'


def _resident_kb(pid):
    try:
        return int(pathlib.Path(f'/proc/{pid}/statm').read_text().split()[1]) * PAGE_KB
    except (FileNotFoundError, ProcessLookupError):
        return 0


def main(*pairs):
    memory_kb = int(re.search(r'MemTotal: +(\d+) kB', pathlib.Path('/proc/meminfo').read_text())[1])
    views = [View(*map(pathlib.Path, pair.split('=')), memory_kb, time.time()) for pair in pairs]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    while True:
        for view in views:
            view.refresh(time.time())
        time.sleep(INTERVAL)


if __name__ == '__main__':
    main(*sys.argv[1:])
