"""Refusals of ``kronos-engine`` and ``kronos-executor`` when they start."""

import subprocess
import sys

import ddt

from tests.unit.cmd import configured

PROGRAM = 'import sys; from kronos_nova.cmd import start; sys.exit(start.{}())'


@ddt.ddt
class EngineStartTest(configured.ConfiguredTestCase):
    def start(self, program, *arguments):
        """Start a daemon that refuses to start, and return what it says."""
        done = subprocess.run([sys.executable, '-W', 'ignore', '-c', PROGRAM.format(program),
                               '--config-file', self.conf, *arguments],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(1, done.returncode, done.stderr)
        self.assertNotIn('Traceback', done.stderr)
        return done.stderr

    @ddt.data(('engine',), ('executor', '--unassigned'))
    def test_a_process_without_the_time_of_its_steps(self, words):
        self.kronos += ('\nrun_in = daemons\n'
                        '[kronos_executor]\npoll_interval = often\ndrain_timeout = long')
        self.write()
        said = self.start(*words)
        for part in ("[kronos_executor] poll_interval: 'often' is no number",
                     "[kronos_executor] drain_timeout: 'long' is no number"):
            self.assertIn(part, said)

    def test_a_url_without_a_scheme(self):
        self.kronos += '\nrun_in = daemons'
        self.prometheus = 'prometheus:9090'
        self.write()
        said = self.start('engine')
        self.assertIn('[kronos_prometheus] url: "prometheus:9090" lacks http:// or https://: write '
                      'http://prometheus:9090', said)
        self.assertNotIn('URIReference', said)
