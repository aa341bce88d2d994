"""A cloud's API, a Prometheus, a database, and a daemon's nova.conf that leads to them."""

import contextlib
import io
import json
import pathlib
import re
import time
import urllib.parse

import fixtures
import testtools

from kronos_nova.cmd import manage
from tests.unit.fakes_web_server import WebServer
from tests.unit.inventory.fakes_public_api import Cloud
from tests.unit.inventory.fakes_public_api import server
from tests.unit.inventory.fakes_public_api import service

POLICIES = """policies:
  - {name: cpu, mode: spread, weight: 1.0, threshold: 0.1, imbalance_query: load,
     vm_profile_query: weight}
"""


REFUSED = b'{"status": "error", "errorType": "bad_data", "error": "parse error"}'
"""In place of series: the answer to a query whose PromQL is wrong."""


class ConfiguredTestCase(testtools.TestCase):
    transport_url = 'fake://'

    def setUp(self):
        super().setUp()
        self.cloud = Cloud()
        self.cloud.services = [service(f'cmp{n}') for n in (1, 2, 3)] + [service('metal')]
        self.cloud.aggregates[0]['hosts'] = ['cmp1', 'cmp2']
        self.cloud.servers = [server(1, 'cmp1'), server(2, 'cmp2')]
        self.series = {'vector': [({}, 1)],
                       'load': [({'host': f'cmp{n}'}, 0.1 * n) for n in (1, 2, 3)],
                       'weight': [({'uuid': s['id']}, 0.1) for s in self.cloud.servers]}
        self.warnings = []
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (self.folder / 'policies.yaml').write_text(POLICIES)
        self.api = self.useFixture(self.cloud.fixture()).url
        self.prometheus = self.useFixture(WebServer(self.answer)).url
        self.kronos = 'include_unassigned_hosts = true\naggregates = gpu'
        self.write()
        with contextlib.redirect_stdout(io.StringIO()):
            manage.main(['--config-file', self.conf, 'db', 'sync', 'control'])

    def write(self):
        self.conf = str(self.folder / 'nova.conf')
        pathlib.Path(self.conf).write_text(
            f'[DEFAULT]\nstate_path = {self.folder}\ntransport_url = {self.transport_url}\n'
            '[oslo_messaging_notifications]\ndriver = kronos\n'
            f'[kronos]\npolicies_file = {self.folder}/policies.yaml\n{self.kronos}\n'
            f'[kronos_prometheus]\nurl = {self.prometheus}\nmax_retries = 0\n'
            '[kronos_nova]\nauth_type = admin_token\ntoken = t\n'
            f'endpoint = {self.api}\nendpoint_override = {self.api}/compute/v2.1\n'
            f'placement_endpoint_override = {self.api}/placement\n')

    def answer(self, handler):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(handler.path).query).get('query', [''])
        series = self.series.get(re.match(r'\w*', query[0])[0])
        series = series(query[0]) if callable(series) else series
        body = b'<html>' if series is None else REFUSED if series is REFUSED else json.dumps({
            'status': 'success', 'warnings': self.warnings,
            'data': {'resultType': 'vector', 'result': [
                {'metric': labels, 'value': [time.time(), str(value)]}
                for labels, value in series]}}).encode()
        handler.send_response(400 if series is REFUSED else 200)
        handler.send_header('Content-Length', str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
