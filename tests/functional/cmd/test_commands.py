"""The commands as programs, on the Nova that is installed."""

import json
import pathlib
import subprocess

import fixtures
import testtools

from tests.e2e.box.settings import command


class CommandsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.conf = folder / 'nova.conf'
        self.conf.write_text(f'[DEFAULT]\nstate_path = {folder}\n')

    def run_command(self, name, *words):
        """(exit code, what it said)"""
        done = subprocess.run([*command('kronos-nova', name), f'--config-file={self.conf}', *words],
                              capture_output=True, text=True, timeout=120)
        said = done.stdout + done.stderr
        for noise in ('eventlet', 'Eventlet', 'native threading', 'backend', 'Traceback'):
            self.assertNotIn(noise, said)
        return done.returncode, said

    def test_nova_is_read_in_threads_without_a_word_of_how(self):
        code, said = self.run_command('kronos-manage', 'allocations', 'audit')
        self.assertEqual((1, '[placement]: has no credentials: auth_type is not set. Set '
                          'auth_type, auth_url, username, password, project_name and the domains '
                          'as for the services of Nova, or read the nova.conf of nova-conductor.'),
                         (code, said.strip()))

    def test_this_nova_fits(self):
        self.assertEqual(0, self.run_command('kronos-manage', 'db', 'sync')[0])
        code, said = self.run_command('kronos-status', 'upgrade', 'check')
        self.assertEqual((0, 2), (code, said.count('Success')), said)

    def test_kronos_test_config_says_so_too(self):
        for role, managers in (('conductor', 'Conductor and Scheduler'), ('compute', 'Compute')):
            _code, said = self.run_command('kronos-test-config', '--role', role, '-f', 'json')
            report = json.loads(said[:said.rindex('}') + 1])
            found = {row['check']: row for row in report['checks']}
            self.assertEqual(('ok', f"it fits Nova's {managers}"),
                             (found['plugin']['state'], found['plugin']['detail']))

    def test_what_most_commands_do_not_need_is_not_loaded(self):
        """Half of the time that a stop takes on a busy machine would be that."""
        self.run_command('kronos-manage', 'db', 'sync')
        [python, path] = command('kronos-nova', 'kronos-manage')
        done = subprocess.run(
            [python, '-X', 'importtime', path, f'--config-file={self.conf}', 'pause'],
            capture_output=True, text=True, timeout=120)
        self.assertEqual(0, done.returncode, done.stderr)
        loaded = {line.rpartition('|')[2].strip() for line in done.stderr.splitlines()}
        self.assertIn('sqlalchemy', loaded)
        self.assertEqual(set(), loaded & {'alembic', 'nova', 'numpy', 'openstack', 'pydantic',
                                          'eventlet', 'oslo_messaging'})
