"""The WSGI services of a box other than Nova's: placement, images, networks."""

import json
import sys

import requests

from tests.e2e.box import conffile
from tests.e2e.box.processes import Process
from tests.e2e.box.settings import LOOPBACK
from tests.e2e.box.settings import command
from tests.e2e.box.settings import installed


class Api:
    """A WSGI module under waitress, its configuration under ``etc/NAME`` of the box."""

    name = module = None

    def __init__(self, root, ports, env=None, processes=1):
        self.etc = root / 'etc' / self.name
        self.port = ports.take()
        self.url = f'http://{LOOPBACK}:{self.port}'
        self.access_log = root / 'log' / f'{self.name}-access.log'
        variable = f'OS_{self.name.upper()}_CONFIG_DIR'
        self.process = Process(
            f'{self.name}-api',
            [sys.executable, '-m', 'tests.e2e.box.serve', self.module, self.port,
             self.access_log, processes],
            root, env={variable: str(self.etc), **(env or {})}, ready=self._answers)

    def start(self):
        self.etc.mkdir(parents=True, exist_ok=True)
        self.process.start()

    def _answers(self):
        try:
            return requests.get(self.url, timeout=5).status_code < 500
        except (requests.ConnectionError, requests.Timeout):
            return False

    def requests_since(self, offset=0):
        """Return the entries of the access log from a byte on, as dicts, and the byte where it
        ends."""
        with self.access_log.open('rb') as log:
            log.seek(offset)
            lines = log.read()
        lines = lines[:lines.rfind(b'\n') + 1]
        return [json.loads(line) for line in lines.splitlines()], offset + len(lines)


class Placement(Api):
    name, module = 'placement', 'placement.wsgi.api'

    def configure(self, database, identity):
        conffile.write(self.etc / 'placement.conf', identity.middleware, {
            'api': {'auth_strategy': identity.strategy['placement']},
            'placement_database': {'connection': database.url('placement')}})


class Glance(Api):
    name, module = 'glance', 'glance.wsgi.api'

    def configure(self, database, identity):
        files = self.etc.parent.parent / 'images'
        files.mkdir(parents=True, exist_ok=True)
        self.etc.mkdir(parents=True, exist_ok=True)
        paste = identity.pipeline(installed('glance', 'etc/glance/glance-api-paste.ini'),
                                  self.etc / 'glance-api-paste.ini')
        conffile.write(self.etc / 'glance-api.conf', identity.middleware, {
            'DEFAULT': {'enabled_backends': 'file:file',
                        'worker_self_reference_url': self.url},
            'database': {'connection': database.url('glance')},
            'glance_store': {'default_backend': 'file'},
            'file': {'filesystem_store_datadir': files},
            'os_glance_staging_store': {'filesystem_store_datadir': files / 'staging'},
            'os_glance_tasks_store': {'filesystem_store_datadir': files / 'tasks'},
            'paste_deploy': {'flavor': 'keystone', 'config_file': paste}})


class Neutron(Api):
    """neutron's API with ml2 and no agents: networks and ports can be made, none is wired."""

    name, module = 'neutron', 'tests.e2e.box.neutron'

    def __init__(self, root, ports):
        super().__init__(root, ports, env={'OS_NEUTRON_CONFIG_FILES': 'neutron.conf'})

    def configure(self, database, identity):
        state = self.etc.parent.parent / 'state' / 'neutron'
        conffile.write(self.etc / 'neutron.conf', identity.middleware, {
            'DEFAULT': {'auth_strategy': identity.strategy['neutron'], 'core_plugin': 'ml2',
                        'service_plugins': '', 'state_path': state,
                        'transport_url': 'fake://',
                        'api_paste_config': installed('neutron', 'etc/neutron/api-paste.ini')},
            'ml2': {'type_drivers': 'local', 'tenant_network_types': 'local',
                    'mechanism_drivers': ''},
            'oslo_concurrency': {'lock_path': state / 'locks'},
            'database': {'connection': database.url('neutron')}})


class KronosApi:
    """kronos-api with its page, as an operator starts it; it wants keystone."""

    def __init__(self, root, ports):
        self.port = ports.take()
        self.url = f'http://{LOOPBACK}:{self.port}'
        self._conf = root / 'etc' / 'kronos-api.conf'
        self.process = Process(
            'kronos-api', [*command('kronos-nova', 'kronos-api'),
                           '--config-file', root / 'etc' / 'nova' / 'nova.conf',
                           '--config-file', self._conf], root, ready=self._answers)

    def start(self, timeout):
        conffile.write(self._conf, {'kronos_api': {'address': LOOPBACK, 'port': self.port}})
        self.process.start()
        self.process.wait_ready(timeout)

    def _answers(self):
        try:
            return requests.get(f'{self.url}/healthcheck', timeout=5).ok
        except (requests.ConnectionError, requests.Timeout):
            return False


class NovaApi(Api):
    name, module = 'nova', 'nova.wsgi.osapi_compute'

    def configure(self, identity):
        """nova.conf is there already: the API shares its folder with the other services."""
        identity.pipeline(installed('nova', 'etc/nova/api-paste.ini'), self.etc / 'api-paste.ini')
