"""A real keystone on loopback: SQLite, Fernet tokens, and a cloud's few people."""

import pathlib
import socket
import subprocess
import sys
import time

import fixtures
import openstack
import requests

PASSWORD = 'secret'
ENDS_WITHIN = 30


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def wait_for(url, process, log):
    """Wait for any answer over HTTP."""
    deadline = time.monotonic() + 120
    while True:
        try:
            return requests.get(url, timeout=5)
        except requests.RequestException:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(pathlib.Path(log).read_text()[-3000:]) from None
            time.sleep(0.2)


class Process(fixtures.Fixture):
    """A process that is ended with the test.

    :param url: at which it answers
    """

    def __init__(self, url, words, log, **given):
        super().__init__()
        self._url, self._words, self._log, self._given = url, words, log, given

    def _setUp(self):
        with open(self._log, 'w') as log:
            process = subprocess.Popen(self._words, stdout=log, stderr=log, **self._given)
        self.addCleanup(self._end, process)
        wait_for(self._url, process, self._log)

    @staticmethod
    def _end(process):
        process.terminate()
        try:
            process.wait(ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Keystone(fixtures.Fixture):
    """``url`` is that of its API; ``admin`` is a connection of openstacksdk."""

    def _setUp(self):
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        port = free_port()
        self.url = f'http://127.0.0.1:{port}/v3'
        self.config = self.folder / 'keystone.conf'
        self.config.write_text(
            f'[DEFAULT]\nlog_file = {self.folder}/keystone.log\n'
            f'[database]\nconnection = sqlite:///{self.folder}/keystone.sqlite\n'
            f'[fernet_tokens]\nkey_repository = {self.folder}/fernet\n'
            f'[credential]\nkey_repository = {self.folder}/credential\n'
            '[token]\nprovider = fernet\n[identity]\npassword_hash_rounds = 4\n')
        self.manage('db_sync')
        self.manage('fernet_setup', '--keystone-user', 'root', '--keystone-group', 'root')
        self.manage('credential_setup', '--keystone-user', 'root', '--keystone-group', 'root')
        self.manage('bootstrap', '--bootstrap-password', PASSWORD, '--bootstrap-region-id', 'one',
                    '--bootstrap-public-url', self.url, '--bootstrap-internal-url', self.url,
                    '--bootstrap-admin-url', self.url)
        serve = ('import sys, waitress; sys.argv = ["keystone"]; '
                 'from keystone.wsgi.api import application; '
                 f'waitress.serve(application, host="127.0.0.1", port={port}, threads=4)')
        self.useFixture(Process(self.url, [sys.executable, '-c', serve], self.folder / 'out.log',
                                env={'OS_KEYSTONE_CONFIG_DIR': str(self.folder), 'PATH': '/bin'}))
        self.admin = openstack.connect(**self.login('admin', 'admin'))
        self.addCleanup(self.admin.close)

    def manage(self, *words):
        command = pathlib.Path(sys.executable).with_name('keystone-manage')
        done = subprocess.run([command, f'--config-file={self.config}', *words],
                              capture_output=True, text=True, timeout=120)
        if done.returncode:
            raise RuntimeError(f'{words[0]}: {done.stdout}{done.stderr}')

    def login(self, user, project):
        """The arguments of openstack.connect()."""
        return {'auth_url': self.url, 'username': user, 'password': PASSWORD,
                'project_name': project, 'user_domain_name': 'Default',
                'project_domain_name': 'Default', 'region_name': 'one',
                'identity_api_version': '3', 'load_yaml_config': False, 'load_envvars': False}

    def project(self, name):
        self.admin.identity.create_project(name=name, domain_id='default')

    def person(self, name, project, role):
        """A user with a role, which is made where there is none."""
        identity = self.admin.identity
        user = identity.create_user(name=name, password=PASSWORD, domain_id='default')
        found = identity.find_role(role) or identity.create_role(name=role)
        identity.assign_project_role_to_user(identity.find_project(project), user, found)

    def service(self, kind, url):
        """An entry of the catalogue."""
        made = self.admin.identity.create_service(type=kind, name=kind)
        for interface in ('public', 'internal'):
            self.admin.identity.create_endpoint(
                service_id=made.id, interface=interface, url=url, region_id='one')
