"""Refusals of ``kronos-engine`` when it starts."""

import subprocess
import sys

from tests.unit.cmd import configured

ENGINE = 'import sys; from kronos_nova.cmd import start; sys.exit(start.engine())'


class EngineStartTest(configured.ConfiguredTestCase):
    def test_a_url_without_a_scheme(self):
        self.kronos += '\nrun_in = daemons'
        self.prometheus = 'prometheus:9090'
        self.write()
        done = subprocess.run([sys.executable, '-W', 'ignore', '-c', ENGINE,
                               '--config-file', self.conf],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(1, done.returncode, done.stderr)
        self.assertIn('[kronos_prometheus] url: "prometheus:9090" lacks http:// or https://: write '
                      'http://prometheus:9090', done.stderr)
        for inside in ('URIReference', 'Traceback'):
            self.assertNotIn(inside, done.stderr)
