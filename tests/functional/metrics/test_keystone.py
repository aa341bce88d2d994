"""A Prometheus behind a real keystone, entered as Aetos is: a token in X-Auth-Token, GET alone."""

import threading
import urllib.parse
import wsgiref.simple_server

import fixtures
import requests
import testtools
from keystonemiddleware import auth_token
from oslo_config import cfg

from kronos_nova import conf as kronos_conf
from kronos_nova import exception
from kronos_nova.metrics import prometheus
from tests.functional.osc import keystone as ks
from tests.functional.prometheus import Prometheus


class Handler(wsgiref.simple_server.WSGIRequestHandler):
    def log_message(self, *args):
        pass


class Aetos(fixtures.Fixture):
    """keystonemiddleware before a Prometheus: a role opens it, and nothing but GET is known.

    :ivar tokens: what was sent, in order
    """

    def __init__(self, keystone, backend):
        self.keystone, self.backend, self.tokens = keystone, backend, []

    def _setUp(self):
        # Not the global one, which is Nova's in other tests.
        own = cfg.ConfigOpts()
        own([], default_config_files=[])
        checked = auth_token.AuthProtocol(self.forward, {
            'oslo_config_config': own, 'auth_type': 'password',
            'auth_url': self.keystone.url, 'username': 'aetos',
            'password': ks.PASSWORD, 'project_name': 'service', 'user_domain_name': 'Default',
            'project_domain_name': 'Default', 'token_cache_time': '-1',
            'www_authenticate_uri': self.keystone.url})

        def application(environ, start_response):
            self.tokens.append(environ.get('HTTP_X_AUTH_TOKEN'))
            return checked(environ, start_response)

        server = wsgiref.simple_server.make_server('127.0.0.1', 0, application,
                                                   handler_class=Handler)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url = f'http://127.0.0.1:{server.server_port}'

    def forward(self, environ, start_response):
        if not {'admin', 'service'} & {*environ['HTTP_X_ROLES'].split(',')}:
            start_response('403 Forbidden', [])
            return [b'RBAC Authorization Failed']
        if environ['REQUEST_METHOD'] != 'GET':
            start_response('405 Method Not Allowed', [])
            return [b'']
        query = urllib.parse.parse_qs(environ['QUERY_STRING'])
        found = requests.get(f'{self.backend}{environ["PATH_INFO"]}', params=query, timeout=30)
        start_response(f'{found.status_code} {found.reason}', [])
        return [found.content]


class KeystoneTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.keystone = self.useFixture(ks.Keystone())
        self.keystone.project('service')
        self.keystone.person('aetos', 'service', 'service')
        self.keystone.person('kronos', 'service', 'service')
        self.keystone.person('rita', 'service', 'other')
        self.aetos = self.useFixture(Aetos(self.keystone, self.useFixture(Prometheus([])).url))

    def client(self, **login):
        login = {'auth_type': 'password', 'auth_url': self.keystone.url, 'username': 'kronos',
                 'password': ks.PASSWORD, 'project_name': 'service',
                 'user_domain_name': 'Default', 'project_domain_name': 'Default', **login}
        path = self.useFixture(fixtures.TempDir()).join('nova.conf')
        with open(path, 'w') as file:
            file.write(f'[kronos_prometheus]\nurl = {self.aetos.url}\nauth_section = aetos\n'
                       'max_retries = 0\ntimeout = 30\n[aetos]\n')
            file.writelines(f'{key} = {value}\n' for key, value in login.items())
        conf = cfg.ConfigOpts()
        kronos_conf.register_opts(conf)
        conf([], default_config_files=[path])
        return prometheus.from_conf(conf)

    def value(self, client):
        sample, = client.instant('vector(7)').samples
        return sample.value

    def test_a_revoked_token_is_renewed(self):
        client = self.client()
        self.assertEqual([7.0, 7.0], [self.value(client), self.value(client)])
        first, again = self.aetos.tokens
        self.assertEqual(first, again)
        requests.delete(f'{self.keystone.url}/auth/tokens', timeout=30, headers={
            'X-Auth-Token': first, 'X-Subject-Token': first}).raise_for_status()
        self.assertEqual(7.0, self.value(client))
        self.assertEqual(first, self.aetos.tokens[2])
        self.assertNotIn(self.aetos.tokens[3], (first, None))
        self.assertEqual(4, len(self.aetos.tokens))

    def test_what_is_refused_names_the_remedy(self):
        wrong = self.client(password='guess')
        error = self.assertRaises(exception.MetricsDenied, wrong.instant, 'vector(7)')
        for word in ('keystone', 'refuses the user of [aetos]', 'auth_section'):
            self.assertIn(word, str(error))
        self.assertNotIn('guess', str(error))
        role = self.client(username='rita')
        error = self.assertRaises(exception.MetricsDenied, role.instant, 'vector(7)')
        for word in ('[aetos]', 'service role', 'RBAC Authorization Failed'):
            self.assertIn(word, str(error))
        outside = prometheus.PrometheusClient(
            prometheus.Endpoint(url=self.aetos.url), max_retries=0)
        error = self.assertRaises(exception.MetricsDenied, outside.instant, 'vector(7)')
        self.assertIn('set auth_section', str(error))
