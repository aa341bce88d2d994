"""Daemons and commands while the control database is away."""

import pathlib
import subprocess
import sys
import time

import fixtures
import testtools

from tests.e2e.box.settings import command

# Alone in its process: a daemon chooses a backend of oslo.service for all of it.
PROGRAM = """
from oslo_config import cfg
from oslo_db import exception
from kronos_nova import conf as kronos_conf
from kronos_nova.cmd import daemon
conf = cfg.ConfigOpts()
kronos_conf.register_opts(conf)
conf([], default_config_files=[])
conf.set_override('connection', 'mysql+pymysql://kronos@127.0.0.1:1/kronos', 'kronos_database')
try:
    daemon.make_context(conf, ())
except exception.DBConnectionError:
    print('said')
"""


class DatabaseAwayTest(testtools.TestCase):
    def test_a_command_says_so_at_once(self):
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        config = folder / 'nova.conf'
        config.write_text(f'[DEFAULT]\nstate_path = {folder}\n[kronos_database]\n'
                          'connection = mysql+pymysql://kronos@127.0.0.1:1/kronos\n')
        for words in (('kronos-manage', 'status'), ('kronos-status', 'upgrade', 'check')):
            began = time.monotonic()
            done = subprocess.run(
                [*command('kronos-nova', words[0]), '--config-file', config, *words[1:]],
                capture_output=True, text=True, timeout=90)
            self.assertLess(time.monotonic() - began, 55)
            self.assertNotEqual(0, done.returncode)
            said = done.stdout + done.stderr
            self.assertIn('127.0.0.1', said)
            self.assertNotIn('Traceback', said)
            self.assertNotIn('attempts left', said)

    def test_a_tick_does_not_wait_for_it(self):
        began = time.monotonic()
        done = subprocess.run([sys.executable, '-c', PROGRAM], capture_output=True, text=True,
                              timeout=60)
        self.assertEqual('said\n', done.stdout, done.stderr[-500:])
        self.assertLess(time.monotonic() - began, 55)
