"""masakari's API and engine, out of an environment of their own: they need other versions of
libraries than Nova does."""

import pathlib
import subprocess

import requests
from keystoneauth1 import adapter
from keystoneauth1 import session

from tests.e2e.box import conffile
from tests.e2e.box import identity
from tests.e2e.box.processes import Process
from tests.e2e.box.settings import LOOPBACK
from tests.e2e.box.settings import SOURCE
from tests.e2e.box.settings import BoxError

SERVICE = 'instance-ha'


class Masakari:
    """The services next to a cloud with keystone that runs.

    :param venv: folder of the environment
    """

    def __init__(self, cloud, venv, port):
        self.cloud, self.venv = cloud, pathlib.Path(venv)
        self.url = f'http://{LOOPBACK}:{port}'
        self._conf = cloud.root / 'etc' / 'masakari' / 'masakari.conf'
        self.processes = [Process(
            f'masakari-{name}', [self.venv / 'bin' / f'masakari-{name}', '--config-file',
                                 self._conf], cloud.root, env={'PYTHONPATH': ''}, ready=ready)
            for name, ready in (('api', self._answers), ('engine', None))]
        self.port = port

    def start(self, timeout):
        database = self.cloud.database
        database.query(None, 'CREATE DATABASE masakari CHARACTER SET utf8mb3')
        keystone = self.cloud.identity
        conffile.write(self._conf, keystone.middleware, {
            'DEFAULT': {
                'auth_strategy': 'keystone', 'masakari_api_listen': LOOPBACK,
                'masakari_api_listen_port': self.port, 'masakari_api_workers': 1,
                'transport_url': self.cloud.broker.url,
                'os_privileged_user_name': 'admin',
                'os_privileged_user_password': identity.PASSWORD,
                'os_privileged_user_tenant': 'admin',
                'os_privileged_user_auth_url': f'{keystone.url}/v3',
                'os_user_domain_name': 'Default', 'os_project_domain_name': 'Default',
                'os_region_name': identity.REGION,
                'nova_catalog_admin_info': 'compute:compute:publicURL',
                'wait_period_after_service_update': 1, 'wait_period_after_evacuation': 5,
                'retry_notification_new_status_interval': 1,
                'process_unfinished_notifications_interval': 2,
                'duplicate_notification_detection_interval': 0},
            'wsgi': {'api_paste_config': self.venv / 'etc/masakari/api-paste.ini'},
            'database': {'connection': database.url('masakari')},
            'taskflow': {'connection': database.url('masakari')}})
        self._sync_database()
        self._register()
        for process in self.processes:
            process.start()
            process.wait_ready(timeout)

    def stop(self):
        for process in self.processes:
            if process.alive():
                process.stop()

    def _sync_database(self):
        done = subprocess.run(
            [self.venv / 'bin' / 'masakari-manage', '--config-file', self._conf, 'db', 'sync'],
            capture_output=True, text=True, cwd=SOURCE.parent)
        if done.returncode:
            raise BoxError(f'masakari-manage db sync: {done.stdout}{done.stderr}')

    def _register(self):
        """Add the service to keystone's catalogue."""
        keystone = self.cloud.identity
        api = adapter.Adapter(session.Session(auth=keystone.plugin(keystone.url)), 'identity',
                              endpoint_override=f'{keystone.url}/v3')
        made = api.post('/services', json={'service': {'type': SERVICE, 'name': 'masakari'}})
        api.post('/endpoints', json={'endpoint': {
            'service_id': made.json()['service']['id'], 'interface': 'public',
            'region_id': identity.REGION, 'url': f'{self.url}/v1'}})

    @property
    def api(self):
        """An adapter of its API, for an administrator."""
        keystone = self.cloud.identity
        return adapter.Adapter(session.Session(auth=keystone.plugin(keystone.url)), SERVICE,
                               endpoint_override=f'{self.url}/v1')

    def watch(self, hosts):
        """Have it watch hosts, in one segment."""
        made = self.api.post('/segments', json={'segment': {
            'name': 'rack', 'recovery_method': 'auto', 'service_type': 'COMPUTE'}})
        self.segment = made.json()['segment']['uuid']
        for host in hosts:
            self.api.post(f'/segments/{self.segment}/hosts', json={'host': {
                'name': host, 'type': 'COMPUTE', 'control_attributes': 'SSH'}})

    def host(self, name):
        """Return what it has of a host."""
        found = self.api.get(f'/segments/{self.segment}/hosts').json()['hosts']
        return next(each for each in found if each['name'] == name)

    def set_maintenance(self, name, value):
        self.api.put(f'/segments/{self.segment}/hosts/{self.host(name)["uuid"]}',
                     json={'host': {'on_maintenance': value}})

    def notify(self, host, at):
        """Report that a host has failed, as its monitor does; return the HTTP status.

        :param at: when, an ISO time
        """
        return self.api.post('/notifications', raise_exc=False, json={'notification': {
            'type': 'COMPUTE_HOST', 'hostname': host, 'generated_time': at,
            'payload': {'event': 'STOPPED', 'cluster_status': 'OFFLINE',
                        'host_status': 'NORMAL'}}}).status_code

    def notifications(self):
        return self.api.get('/notifications').json()['notifications']

    def _answers(self):
        try:
            return requests.get(self.url, timeout=5).status_code < 500
        except (requests.ConnectionError, requests.Timeout):
            return False
