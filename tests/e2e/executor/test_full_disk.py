"""The disk of a whole cloud fills up under services that run, and has room again later.

On it are MariaDB's and RabbitMQ's files, those of Nova and Kronos under ``state_path`` (locks,
claims), and the logs. The disk is a ``tmpfs`` of its own, which takes an administrator of this
machine to mount.
"""

import errno
import pathlib
import shutil
import subprocess
import tempfile
import time

from tests.e2e.executor import test_fault_table

DISK_MIB = 4096
"""Size of the disk in MiB, of which a cloud needs some hundreds. Raised, the tests take more of the
machine's memory. Lowered, the disk may fill up before the test fills it."""

FULL_SECONDS = 30
"""Seconds for which there is no room. Raised, more of what is buffered is written in that time.
Lowered, MariaDB, which looks for room every minute, may not notice."""

CHUNK = b'\0' * 2 ** 20


class FullDiskTest(test_fault_table.FaultTestCase):
    @classmethod
    def setUpClass(cls):
        cls.disk = pathlib.Path(tempfile.mkdtemp(prefix='kronos-disk-'))
        done = subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={DISK_MIB}m', 'tmpfs',
                               cls.disk], capture_output=True, text=True)
        if done.returncode:
            cls.disk.rmdir()
            raise cls.skipException(f'mount: {done.stderr}')
        cls.root = cls.disk / 'cloud'
        cls.root.mkdir()
        try:
            super().setUpClass()
        except BaseException:
            cls._unmount()
            raise

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls._unmount()

    @classmethod
    def _unmount(cls):
        subprocess.run(['umount', '--lazy', cls.disk], check=True)
        cls.disk.rmdir()

    def fill(self):
        """Fill the disk, and keep it full for a while."""
        filler = self.disk / 'filler'
        until = time.monotonic() + FULL_SECONDS
        try:
            with filler.open('wb', buffering=0) as file:
                while time.monotonic() < until:
                    self._fill_up(file)
                    time.sleep(0.1)
            self.assertLess(shutil.disk_usage(self.disk).free, len(CHUNK))
        finally:
            filler.unlink()

    @staticmethod
    def _fill_up(file):
        size = len(CHUNK)
        while size:
            try:
                file.write(CHUNK[:size])
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                size //= 2

    def test_moves_converge(self):
        self.moves_under(self.fill, may_lose=True)

    def test_a_drain_converges(self):
        self.drain_under(self.fill, may_lose=True)
