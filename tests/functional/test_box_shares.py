"""The shares of this machine that hosts of the cloud in a box use, and their end with the box."""

import os
import pathlib
import re
import time

import fixtures
import testtools

from tests.e2e.box import processes
from tests.e2e.box.hypervisors import views
from tests.e2e.box.hypervisors.share import Share

BUSY_SECONDS = 0.3


@testtools.skipIf(os.geteuid(), 'only root makes control groups')
class ShareTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (self.root / 'run').mkdir()
        self.share = Share('compute1', self.root)
        self.share.make()
        self.addCleanup(processes.stop_recorded, self.root)

    def start(self, script):
        process = processes.Process('program', ['sh', '-c', script], self.root,
                                    enter=self.share.enter)
        process.start()
        self.addCleanup(process.kill)

    def cpu_and_memory(self, view):
        """Seconds used, seconds idle, KiB used."""
        view.refresh(time.time())
        folder = self.root / 'proc'
        _cpu, user, _nice, system, idle, *_rest = (folder / 'stat').read_text().split()
        total, free = (int(re.search(rf'{name}: (\d+) kB', (folder / 'meminfo').read_text())[1])
                       for name in ('MemTotal', 'MemAvailable'))
        return (int(user) + int(system)) / views.TICKS, int(idle) / views.TICKS, total - free

    def test_a_host_has_used_what_its_processes_have_used_and_no_more(self):
        begun = time.time()
        view = views.View(self.share.path, self.root / 'proc', 2 ** 20, begun)
        self.assertEqual((0.0, 0), self.cpu_and_memory(view)[::2])
        self.start('while :; do :; done')
        processes.wait_for(lambda: self.cpu_and_memory(view)[0] >= BUSY_SECONDS, 60, 'no time')
        before = time.time()
        used, idle, memory = self.cpu_and_memory(view)
        self.assertGreater(used + idle, (before - begun) * views.CPUS - 0.2)
        self.assertLess(used + idle, (time.time() - begun) * views.CPUS + 0.2)
        self.assertGreater(memory, 100)
        self.assertLess(memory, 10_000)

    def test_it_ends_with_the_box_and_with_it_who_left_its_session(self):
        self.start('setsid sleep 1000 & wait')
        members = self.share.path / 'cgroup.procs'
        processes.wait_for(lambda: len(members.read_text().split()) == 2, 20,
                           'no process joined the share')
        pids = members.read_text().split()
        processes.stop_recorded(self.root)
        self.assertFalse(self.share.path.exists())
        self.assertEqual([None, None], [processes.start_time(pid) for pid in pids])
        processes.stop_recorded(self.root)
