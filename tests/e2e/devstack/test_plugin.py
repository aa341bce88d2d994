"""The devstack plugin: its phases, run as stack.sh runs them, on a stock cloud."""

import os
import pathlib
import subprocess
import sys

from kronos_nova.objects import plan as plans
from tests.e2e import base
from tests.e2e import box
from tests.e2e.box.processes import wait_for

STACK = pathlib.Path(__file__).parent / 'stack.sh'
INTERVAL = 5


class PluginTest(base.CloudTestCase):
    settings = box.Settings(computes=2, driver='libvirt')

    def phase(self, *words):
        """Run a phase and return the plugin's output.

        The test fails where it failed.
        """
        done = subprocess.run([STACK, *words], capture_output=True, text=True, env={
            **os.environ, 'BOX': str(self.cloud.root), 'PYTHON': sys.executable,
            'DATABASE_URL': self.cloud.database.url('{}'),
            # What an operator writes into local.conf.
            'KRONOS_PROMETHEUS_URL': self.cloud.monitoring.url,
            'KRONOS_EVALUATION_INTERVAL': str(INTERVAL), 'KRONOS_INSTALL_PROMETHEUS': 'True'})
        said = done.stdout + done.stderr
        self.assertEqual(0, done.returncode, f'{words}: {said}')
        return said

    def evaluated(self):
        """Return whether all hosts were found balanced, or what was found wrong was planned for."""
        return {each['outcome'] for each in self.cloud.database.query(
            'kronos', 'SELECT outcome FROM cycles')} & {plans.BALANCED, plans.PLANNED}

    def test_a_stock_nova_has_kronos_after_stack_and_nothing_is_left_after_clean(self):
        for stage in ('pre-install', 'install', 'post-config'):
            self.phase('stack', stage)
        policies = self.cloud.nova.conf.parent / 'kronos-policies.yaml'
        self.assertTrue(policies.exists())
        # Again, as where a user stacks twice: nothing is doubled, and edits stay.
        policies.write_text(f'# ours\n{policies.read_text()}')
        before = self.cloud.nova.conf.read_text()
        self.phase('stack', 'post-config')
        self.assertEqual(before, self.cloud.nova.conf.read_text())
        self.assertEqual('# ours', policies.read_text().splitlines()[0])

        for daemon in self.cloud.nova.all():
            daemon.restart()
        self.cloud.wait_hosts()
        self.phase('stack', 'extra')
        self.assertNotIn('kronos-test-config has found problems',
                         self.phase('stack', 'test-config'))
        wait_for(self.evaluated, 60, lambda: self.cloud.database.query(
            'kronos', 'SELECT * FROM cycles'))
        self.assert_clean()

        self.phase('unstack')
        self.phase('clean')
        self.assertEqual(['restart prometheus', 'stop prometheus'],
                         (self.cloud.root / 'services').read_text().splitlines())
        self.assertFalse(policies.exists())
