"""Daemons outside Nova while something that they need is away."""

import subprocess
import sys
import time

import testtools

# Alone in its process: a daemon chooses a backend of oslo.service for all of it.
PROGRAM = """
from oslo_config import cfg
from oslo_db import exception
from kronos_nova import conf as kronos_conf
from kronos_nova.cmd import daemon
conf = cfg.ConfigOpts()
kronos_conf.register_opts(conf)
conf([], default_config_files=[])
conf.set_override('connection', 'mysql+pymysql://nobody@127.0.0.1:1/kronos', 'kronos_database')
try:
    daemon.make_context(conf, ())
except exception.DBConnectionError:
    print('said')
"""


class DatabaseAwayTest(testtools.TestCase):
    def test_a_tick_does_not_wait_for_it(self):
        began = time.monotonic()
        done = subprocess.run([sys.executable, '-c', PROGRAM], capture_output=True, text=True,
                              timeout=60)
        self.assertEqual('said\n', done.stdout, done.stderr[-500:])
        self.assertLess(time.monotonic() - began, 55)
