"""``kronos-api`` as a process: it starts, answers, and ends when it is told to."""

import os
import signal
import socket
import subprocess
import sys
import time

import requests

from kronos_nova.cmd import manage
from tests.unit.api import base

START = [sys.executable, '-c', 'import sys; from kronos_nova.cmd import start; '
         'sys.exit(start.api())']


class ProgramTest(base.ApiTestCase):
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

    def test_it_serves_until_it_is_told_to_end(self):
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

    def test_it_tells_its_version(self):
        done = subprocess.run([*START, '--version'], text=True, capture_output=True, timeout=60)
        self.assertEqual((0, f'kronos-api {manage.version_string()}', ''),
                         (done.returncode, done.stdout.strip(), done.stderr))
