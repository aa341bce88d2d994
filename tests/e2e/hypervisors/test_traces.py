"""Hosts alone, without Nova: outside their namespaces nothing is touched, and nothing is left."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import testtools

from tests.e2e.box import processes
from tests.e2e.box.hypervisors import namespaces
from tests.e2e.box.hypervisors.host import OURS
from tests.e2e.box.settings import SOURCE

HOSTS = '''
import pathlib, sys, time
from tests.e2e.box import processes
from tests.e2e.box.hypervisors.host import Hypervisors
from tests.e2e.box.settings import Ports

root = pathlib.Path(sys.argv[1])
janitor = processes.Janitor(root, keep=False)
janitor.start()
Hypervisors(['compute1', 'compute2'], root, Ports(), is_shared=sys.argv[2] == 'shared').start(60)
print('up', flush=True)
time.sleep(600)
'''

LIBVIRTS = tuple(f'{path}/libvirt' for path in OURS if not path.endswith('libvirt'))


class HostsTestCase(testtools.TestCase):
    def folder(self):
        """For the files of hosts, which end with the test."""
        root = pathlib.Path(tempfile.mkdtemp(prefix='kronos-hosts-'))
        for folder in ('run', 'log'):
            (root / folder).mkdir()
        self.addCleanup(processes.remove, root)
        self.addCleanup(processes.stop_recorded, root)
        return root


class StorageTest(HostsTestCase):
    def test_it_can_be_filled_again_and_again(self):
        root = self.folder()
        (root / 'instances').mkdir()
        storage = namespaces.Storage('storage', root, root / 'instances')
        storage.start(60)
        folder = storage.seen_from_here
        for number in range(3):
            storage.fill()
            self.assertRaises(OSError, (folder / f'{number}').touch)
            storage.empty()
            (folder / f'{number}').write_bytes(bytes(2 ** 20))


class MachineTest(HostsTestCase):
    def start(self):
        root = self.folder()
        machine = namespaces.Machine('host', root)
        machine.start(60)
        return machine, root

    def test_what_is_left_of_one_is_not_taken_for_another(self):
        """The kernel soon gives the number of a namespace that is gone to another."""
        gone, root = self.start()
        number = pathlib.Path(f'/proc/{gone.process.pid}/ns/mnt').readlink()
        gone.process.kill()
        while True:
            other, _root = self.start()
            if pathlib.Path(f'/proc/{other.process.pid}/ns/mnt').readlink() == number:
                break
        processes.stop_recorded(root)
        self.assertTrue(other.process.alive())


class TracesTest(HostsTestCase):
    def start(self, storage):
        """Two hosts, and the script that they belong to; (it, their folder)"""
        root = self.folder()
        script = subprocess.Popen([sys.executable, '-c', HOSTS, str(root), storage], cwd=SOURCE,
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(script.kill)
        self.assertEqual('up', script.stdout.readline().strip())
        return script, root

    def outside(self):
        """List the networks, mounts, and libvirt's and the guests' files."""
        return {'links': run('ip', '-brief', 'address'), 'mounts': run('cat', '/proc/self/mounts'),
                'namespaces': run('ip', 'netns', 'list'),
                **{path: sorted((str(file), file.stat().st_mtime)
                                for file in pathlib.Path(path).rglob('*'))
                   for path in ('/etc/libvirt', *LIBVIRTS)}}

    def groups(self):
        return run('find', '/sys/fs/cgroup', '-name', 'kronos-box-*')

    def check(self, storage):
        before, groups = self.outside(), self.groups()
        script, root = self.start(storage)
        inside = {path.read_text() for path in (root / 'run').glob('*.namespace')}
        self.assertEqual(before, self.outside())
        os.kill(script.pid, signal.SIGKILL)
        processes.wait_for(lambda: not root.exists(), 60, f'{root} is left')
        self.assertEqual((before, groups), (self.outside(), self.groups()))
        self.assertEqual([], [pid for mark in inside for pid in processes.in_namespace(mark)])

    def test_a_script_that_is_killed_leaves_nothing_of_hosts_with_disks_of_their_own(self):
        self.check('local')

    def test_a_script_that_is_killed_leaves_nothing_of_hosts_with_a_shared_folder(self):
        self.check('shared')


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
