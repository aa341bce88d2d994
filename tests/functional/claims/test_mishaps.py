"""The disk is full, read-only or the file locked: nova-compute goes on."""

import pathlib
import sqlite3
import subprocess

import prometheus_client

from tests.functional.claims import base

ONE, TWO = (1, 512, 1), (2, 1024, 2)


class MishapTestCase(base.ClaimsTestCase):
    hosts = ('host1',)

    def unsaved(self):
        return prometheus_client.REGISTRY.get_sample_value('kronos_claims_unsaved')

    def assertInMemoryOnly(self):  # noqa: N802
        """Servers come and go, usage is right, the trouble is said once and shown in a metric."""
        first = self.boot('host1')
        self.boot('host1')
        self._delete_server(first)
        self.audit()
        self.assertEqual(ONE, self.usage('host1'))
        self.assertEqual(1, self.stdlog.logger.output.count('claims of this host cannot be saved'))
        self.assertEqual(1, self.unsaved())

    def assertMended(self):  # noqa: N802
        self.audit()
        self.assertClaimsAreUsage()
        self.assertEqual(0, self.unsaved())
        self.assertEqual(1, self.stdlog.logger.output.count('can be saved again'))
        self.assertSurvivesRestart()


class LockedTest(MishapTestCase):
    def test_a_file_that_another_process_has_locked(self):
        other = sqlite3.connect(f'{self.state}/claim.sqlite')
        self.addCleanup(other.close)
        other.execute('BEGIN IMMEDIATE')
        self.assertInMemoryOnly()
        other.rollback()
        self.assertMended()


class FileSystemTest(MishapTestCase):
    """On a file system of its own, which takes an administrator of this machine to mount."""

    def make_state_path(self):
        path = super().make_state_path()
        self.mount(path, '-t', 'tmpfs', '-o', 'size=512k', 'tmpfs')
        self.addCleanup(subprocess.run, ['umount', '--lazy', path], check=False)
        return path

    def mount(self, path, *options):
        done = subprocess.run(['mount', *options, path], capture_output=True, text=True)
        if done.returncode:
            self.skipTest(f'mount: {done.stderr}')

    def test_a_full_disk(self):
        filler = pathlib.Path(self.state, 'filler')
        with self.assertRaises(OSError), filler.open('wb', buffering=0) as file:
            while True:
                file.write(b'\0' * 4096)
        self.assertInMemoryOnly()
        filler.unlink()
        self.assertMended()

    def test_a_file_system_that_became_read_only(self):
        self.tracker('host1').ledger.store.close()
        self.mount(self.state, '-o', 'remount,ro')
        self.assertInMemoryOnly()
        self.mount(self.state, '-o', 'remount,rw')
        self.assertMended()

    def test_a_directory_that_was_never_writable(self):
        self.tracker('host1').ledger.store.close()
        for path in pathlib.Path(self.state).glob('claim.sqlite*'):
            path.unlink()
        self.mount(self.state, '-o', 'remount,ro')
        self.restart('host1')
        self.assertInMemoryOnly()
        self.mount(self.state, '-o', 'remount,rw')
        self.assertMended()
