"""Debian's Prometheus on a loopback port, scraping exporters of the test."""

import os
import shutil
import subprocess
import time

import bcrypt
import fixtures
import requests
import yaml

from tests.e2e.box import settings


class Prometheus(fixtures.Fixture):
    """A real server.

    :param jobs: Prometheus' ``scrape_configs``
    :param data: folder of its database; without one it begins with an empty one
    :param login: (user, password) that it asks for
    """

    def __init__(self, jobs, interval='500ms', data=None, login=None):
        self.login = login
        self.jobs = jobs
        self.data = data
        self.interval = interval

    def _setUp(self):
        program = shutil.which('prometheus')
        if program is None:
            raise RuntimeError('prometheus is not installed; see bindep.txt')
        folder = self.useFixture(fixtures.TempDir()).path
        config = os.path.join(folder, 'prometheus.yml')
        data = self.data or os.path.join(folder, 'data')
        with open(config, 'w') as file:
            yaml.safe_dump({'global': {'scrape_interval': self.interval,
                                       'scrape_timeout': self.interval},
                            'scrape_configs': self.jobs}, file)
        words = []
        if self.login:
            user, password = self.login
            words = [f'--web.config.file={os.path.join(folder, "web.yml")}']
            with open(os.path.join(folder, 'web.yml'), 'w') as file:
                yaml.safe_dump({'basic_auth_users': {user: bcrypt.hashpw(
                    password.encode(), bcrypt.gensalt(4)).decode()}}, file)
        port = settings.Ports().take()
        self.url = f'http://127.0.0.1:{port}'
        with open(os.path.join(folder, 'log'), 'wb') as log:
            process = subprocess.Popen(
                [program, f'--config.file={config}', f'--storage.tsdb.path={data}',
                 f'--web.listen-address=127.0.0.1:{port}', *words], stdout=log, stderr=log)
        self.addCleanup(process.wait, 20)
        self.addCleanup(process.terminate)
        self._wait(process, log.name)

    def _wait(self, process, log):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            try:
                if requests.get(f'{self.url}/-/ready', timeout=1, auth=self.login).ok:
                    return
            except requests.RequestException:
                pass
            time.sleep(0.05)
        with open(log) as file:
            raise RuntimeError(f'Prometheus did not start: {file.read()[-2000:]}')
