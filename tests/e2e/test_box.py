"""Promises of the cloud in a box to its users."""

import json
import os
import pathlib
import signal
import subprocess
import sys

import fixtures
import numpy
import testtools

from tests.e2e import box
from tests.e2e.box import processes

BUSY = 40.0
RATE = 'rate(libvirt_domain_info_cpu_time_seconds_total[5s]) / libvirt_domain_info_virtual_cpus'


class OwnerTest(testtools.TestCase):
    """A process that started a box by hand is killed without a chance to clean up."""

    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / 'box'
        self.owner = subprocess.Popen(
            [sys.executable, '-m', 'tests.e2e.box', 'start', '--computes', '1', '--kronos',
             '--root', str(self.root)],
            stdout=subprocess.PIPE, text=True, cwd=processes.SOURCE)
        self.addCleanup(self.owner.stdout.close)
        self.addCleanup(self.owner.wait)
        self.addCleanup(self.owner.kill)

    def addresses(self):
        """Return where everything is, as it prints when everything runs."""
        printed = ''
        for line in self.owner.stdout:
            printed += line if printed or line.startswith('{') else ''
            if line.startswith('}'):
                return json.loads(printed)
        raise box.BoxError('the box did not start')

    def running(self):
        """Pids of everything that mentions the box, the janitor among them."""
        found = set()
        for folder in pathlib.Path('/proc').glob('[0-9]*'):
            try:
                words = (folder / 'cmdline').read_bytes() + (folder / 'environ').read_bytes()
            except OSError:
                continue
            if os.fsencode(self.root) in words:
                found.add(int(folder.name))
        return found

    def test_nothing_outlives_an_owner_that_is_killed(self):
        self.assertEqual(str(self.root), self.addresses()['root'])
        self.assertGreater(len(self.running()), 10)
        self.owner.send_signal(signal.SIGKILL)
        processes.wait_for(lambda: not self.running(), 60,
                           lambda: f'still there: {self.running()}')
        self.assertFalse(self.root.exists())


class TraceTest(testtools.TestCase):
    """Prometheus reports a recorded load for the guests."""

    def test_guests_are_as_busy_as_the_trace_says(self):
        trace = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / 'trace.npz'
        numpy.savez(trace, load=numpy.full((3, 288), BUSY))
        with box.Cloud(box.Settings(computes=1, trace=trace)) as cloud:
            cloud.client.create_flavor('m1.small', vcpus=2, ram=512)
            [server] = cloud.boot('web', flavor='m1.small')
            processes.wait_for(lambda: round(self.busy(cloud, server), 1) == round(BUSY / 100, 1),
                               60, lambda: f'the server is {self.busy(cloud, server)} busy')

    def busy(self, cloud, server):
        """Share of its CPUs that Prometheus thinks a server uses."""
        return {labels['uuid']: value for labels, value in cloud.monitoring.query(RATE)}.get(
            server, 0)
