"""``kronos-api`` as a process: it starts, answers, and ends on a signal."""

import datetime
import os
import signal
import socket
import subprocess
import sys
import time

import requests
from keystonemiddleware import fixture as keystone_fixture

from kronos_nova import clock
from kronos_nova.cmd import api
from kronos_nova.cmd import manage
from tests.unit.api import base
from tests.unit.cmd import configured

START = [sys.executable, '-c', 'import sys; from kronos_nova.cmd import start; '
         'sys.exit(start.api())']


class ProgramTestCase(base.ApiTestCase):
    def setUp(self):
        super().setUp()
        with socket.socket() as probe:
            probe.bind(('127.0.0.1', 0))
            self.port = probe.getsockname()[1]
        self.config = self.folder / 'nova.conf'
        self.config.write_text(self.config.read_text().replace(
            '[kronos_api]\n', f'[kronos_api]\nport = {self.port}\n'))

    def start(self):
        process = subprocess.Popen([*START, f'--config-file={self.config}'], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process


class ProgramTest(ProgramTestCase):
    def test_it_serves_until_it_is_stopped(self):
        manage.main([f'--config-file={self.config}', 'db', 'sync', 'control'])
        process, deadline = self.start(), time.monotonic() + 60
        while True:
            try:
                answer = requests.get(f'http://127.0.0.1:{self.port}/v1/plans', timeout=5)
                break
            except requests.ConnectionError:
                self.assertIsNone(process.poll())
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.1)
        self.assertEqual(401, answer.status_code)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(0, process.wait(30))

    def test_a_web_server_can_load_it(self):
        manage.main([f'--config-file={self.config}', 'db', 'sync', 'control'])
        done = subprocess.run(
            [sys.executable, '-c', 'from kronos_nova.cmd import wsgi; wsgi.application.__call__'],
            env={**os.environ, 'OS_KRONOS_CONFIG_FILES': str(self.config)}, capture_output=True,
            text=True, timeout=60)
        self.assertEqual(0, done.returncode, done.stderr)

    def test_without_its_database_it_does_not_start_and_says_why(self):
        process = self.start()
        _out, said = process.communicate(timeout=60)
        self.assertEqual(1, process.returncode)
        self.assertIn('kronos-manage db sync', said)

    def refused(self):
        """Return what the program says that does not start."""
        manage.main([f'--config-file={self.config}', 'db', 'sync', 'control'])
        process = self.start()
        _out, said = process.communicate(timeout=60)
        self.assertEqual(1, process.returncode)
        self.assertNotIn('Traceback', said)
        return said

    def test_a_port_that_is_taken_is_named_with_its_remedy(self):
        with socket.create_server(('127.0.0.1', self.port)):
            said = self.refused()
        self.assertIn(f'[kronos_api] port: 127.0.0.1 port {self.port}: ', said)
        self.assertIn('port to a free port', said)

    def test_invalid_values_are_named_at_the_start_instead_of_failing_every_request(self):
        self.config.write_text(self.config.read_text().replace(
            '[kronos_api]\n', '[kronos_executor]\nmax_concurrent_migrations = few\n'
                              '[kronos_api]\nthreads = many\n'))
        said = self.refused()
        for part in ("[kronos_api] threads: 'many' is no whole number",
                     "[kronos_executor] max_concurrent_migrations: 'few' is no whole number"):
            self.assertIn(part, said)

    def test_a_database_that_takes_connections_and_says_nothing_is_reported_soon(self):
        with socket.create_server(('127.0.0.1', 0)) as silent:
            self.config.write_text(
                f'{self.config.read_text()}\n[kronos_database]\n'
                f'connection = mysql+pymysql://k:k@127.0.0.1:{silent.getsockname()[1]}/kronos\n')
            process = self.start()
            _out, said = process.communicate(timeout=60)
        self.assertEqual(1, process.returncode)
        self.assertIn('the control database does not answer', said)
        self.assertNotIn('Traceback', said)

    def test_an_invalid_policy_file_ends_the_start(self):
        manage.main([f'--config-file={self.config}', 'db', 'sync', 'control'])
        for text in ('{{{', '- a'):
            (self.folder / 'policy.yaml').write_text(text)
            process = self.start()
            _out, said = process.communicate(timeout=60)
            self.assertEqual(1, process.returncode, text)
            self.assertIn('policy_file', said)
            self.assertNotIn('Traceback', said)

    def test_it_tells_its_version(self):
        done = subprocess.run([*START, '--version'], text=True, capture_output=True, timeout=60)
        self.assertEqual((0, f'kronos-api {manage.version_string()}', ''),
                         (done.returncode, done.stdout.strip(), done.stderr))


class WiringTest(configured.ConfiguredTestCase):
    """The parts of the program, with a cloud that answers over HTTP."""

    def test_whether_a_host_can_be_drained_is_asked_of_the_cloud_and_of_prometheus(self):
        self.kronos += '\nrun_in = daemons'
        self.write()
        with open(self.conf, 'a') as file:
            file.write('[keystone_authtoken]\nwww_authenticate_uri = http://keystone.invalid/v3\n')
        keystone = self.useFixture(keystone_fixture.AuthTokenFixture())
        keystone.add_token_data(token_id='t', user_id='u', user_name='jane', role_list=['admin'],
                                expires=clock.utcnow() + datetime.timedelta(days=1))
        client = base.client(api.make(api.load([f'--config-file={self.conf}'])))
        answer = client.simulate_post('/v1/drains', headers={'X-Auth-Token': 't'},
                                      json={'hosts': ['cmp1'], 'check': True})
        self.assertEqual(202, answer.status_code, answer.text)
        [checked] = answer.json['checked']
        self.assertEqual(('cmp1', 1), (checked['host'], checked['servers']))
