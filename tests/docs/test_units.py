"""The systemd units that are installed."""

import pathlib
import re
import shutil
import subprocess
import tempfile

import testtools

from tests.docs import test_generated

UNITS = pathlib.Path(__file__).parents[2] / 'etc/systemd'
WORST_EXPOSURE = 25
"""Tenths of what systemd calls the exposure of a service: below 3 of 10 it says that it is OK."""

DAEMONS = {'kronos-api', 'kronos-engine', 'kronos-executor', 'kronos-exporter'}


class UnitsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        # As installed, but with programs that are there.
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        for path in UNITS.iterdir():
            text = re.sub('(?m)^ExecStart=kronos-[a-z]+', 'ExecStart=true',
                          path.read_text())
            (self.folder / path.name.replace('@.', '@gpu.')).write_text(text)

    def analyse(self, *arguments):
        done = subprocess.run(
            ['systemd-analyze', *arguments, *map(str, sorted(self.folder.iterdir()))],
            capture_output=True, text=True, timeout=60)
        return done.returncode, done.stderr

    def test_every_daemon_has_one_and_each_starts_a_daemon(self):
        # Without a folder: pip installs in /usr/local/bin or /usr/bin, and systemd finds both.
        started = {re.search('(?m)^ExecStart=([a-z/-]+)', path.read_text())[1]
                   for path in UNITS.iterdir()}
        self.assertEqual(DAEMONS, started)
        self.assertEqual(set(), DAEMONS - test_generated.console_scripts())

    def test_systemd_understands_them(self):
        self.assertEqual((0, ''), self.analyse('verify', '--man=no', '--recursive-errors=no'))

    def test_they_may_do_little_else(self):
        code, reported = self.analyse('security', '--offline=yes', f'--threshold={WORST_EXPOSURE}',
                                  '--no-pager')
        self.assertEqual(0, code, reported)
