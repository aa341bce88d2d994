"""The devstack plugin on a node of a cloud of several nodes, with devstack's functions recorded."""

import pathlib
import subprocess

import fixtures
import testtools

PLUGIN = pathlib.Path(__file__).parents[2] / 'devstack' / 'plugin.sh'
FUNCTIONS = """
function is_service_enabled { [[ " kronos $ENABLED " == *" $1 "* ]]; }
function echo_summary { echo "summary $*"; }
function sudo { :; }
function iniget_multiline { :; }
function iniset_multiline { echo "set $2.$3"; }
function iniset { echo "set $2.$3"; }
function database_connection_url { echo "mysql://controller/$1"; }
function recreate_database { echo "recreate $1"; }
function get_python_exec_prefix { echo "$NOVA_CONF_DIR"; }
NOVA_CONF=$NOVA_CONF_DIR/nova.conf
KRONOS_POLICIES_FILE=$NOVA_CONF_DIR/kronos-policies.yaml
"""


class NodesTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (self.folder / 'nova.conf').touch()
        for name in ('kronos-manage', 'kronos-status', 'kronos-test-config'):
            (self.folder / name).write_text(f'#!/bin/bash\necho run {name}\n')
            (self.folder / name).chmod(0o755)

    def ended(self, name, code):
        """Let a command end with an exit code."""
        (self.folder / name).write_text(f'#!/bin/bash\necho run {name}\nexit {code}\n')

    def stacked(self, *services):
        """Return the steps of the plugin on a node with ``services``."""
        steps = []
        for stage in ('post-config', 'extra', 'test-config'):
            done = subprocess.run(
                ['bash', '-ec', f'{FUNCTIONS}\nsource {PLUGIN} stack {stage}'],
                capture_output=True, text=True, timeout=60, env={
                    'PATH': '/usr/bin:/bin', 'ENABLED': ' '.join(services),
                    'NOVA_CONF_DIR': str(self.folder)})
            done.check_returncode()
            steps += done.stdout.splitlines()
            self.assertEqual('', done.stderr)
        return steps

    def test_the_controller_makes_and_checks_the_control_database(self):
        steps = self.stacked('n-api', 'n-cond', 'n-cpu')
        for step in ('recreate kronos', 'run kronos-manage', 'run kronos-status',
                     'run kronos-test-config'):
            self.assertIn(step, steps)

    def test_a_warning_does_not_end_stack_sh(self):
        """Such as one of a Prometheus that is installed later."""
        for code in (1, 3):
            self.ended('kronos-test-config', code)
            self.assertIn('summary kronos-test-config has found problems '
                          f'(exit code {code}), see above', self.stacked('n-api'))
        self.ended('kronos-test-config', 0)
        self.assertNotIn('problems', '\n'.join(self.stacked('n-api')))

    def test_databases_that_do_not_fit_end_stack_sh(self):
        self.ended('kronos-status', 2)
        self.assertRaises(subprocess.CalledProcessError, self.stacked, 'n-api')

    def test_another_compute_node_leaves_the_control_database_alone(self):
        steps = self.stacked('n-cpu')
        self.assertIn('set kronos_database.connection', steps)
        self.assertEqual([], [step for step in steps if not step.startswith(('set ', 'summary '))])
