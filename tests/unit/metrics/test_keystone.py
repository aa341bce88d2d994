"""A Prometheus behind keystone: tokens are had, renewed when refused, and never shown."""

import json
import logging

import ddt
import fixtures
from oslo_config import cfg

from kronos_nova import conf as kronos_conf
from kronos_nova import exception
from kronos_nova.conf import unknown_options
from kronos_nova.metrics import prometheus
from tests.unit.fakes_web_server import say
from tests.unit.metrics.test_prometheus import CPU
from tests.unit.metrics.test_prometheus import TWO_HOSTS
from tests.unit.metrics.test_prometheus import ClientTestCase

REFUSED = json.dumps({'error': {'code': 401, 'title': 'Unauthorized',
                                'message': 'The request you have made requires authentication.'}})
KEYSTONE = {'WWW_Authenticate': 'Keystone uri="http://keystone:5000"'}


class Keystone:
    """Answers POST /v3/auth/tokens with token-1, token-2 and so on.

    :param lifetime: the end of each token
    """

    def __init__(self, expires='2099-01-01T00:00:00.000000Z'):
        self.expires, self.given, self.status = expires, [], 201

    def __call__(self, handler):
        if handler.command == 'GET':
            url = f'http://{handler.headers["Host"]}/v3/'
            body = {'version': {'id': 'v3.14', 'status': 'stable',
                                'links': [{'rel': 'self', 'href': url}]}}
            return say(200, json.dumps(body).encode(), Content_Type='application/json')(handler)
        if self.status != 201:
            return say(self.status, REFUSED.encode(), Content_Type='application/json')(handler)
        self.given.append(f'token-{len(self.given) + 1}')
        body = {'token': {'methods': ['password'], 'user': {'id': 'u', 'name': 'kronos'},
                          'expires_at': self.expires, 'issued_at': '2026-01-01T00:00:00.000000Z'}}
        return say(201, json.dumps(body).encode(), Content_Type='application/json',
                   X_Subject_Token=self.given[-1])(handler)


class Aetos:
    """Answers a GET with a valid token, and 401 or 405 otherwise, as keystonemiddleware does."""

    def __init__(self, keystone):
        self.keystone, self.revoked, self.status = keystone, set(), 200

    def __call__(self, handler):
        token = handler.headers.get('X-Auth-Token')
        if token not in self.keystone.given or token in self.revoked:
            return say(401, REFUSED.encode(), **KEYSTONE)(handler)
        if handler.command != 'GET':
            return say(405, b'Method Not Allowed')(handler)
        return say(self.status, TWO_HOSTS if self.status == 200 else b'Forbidden')(handler)


@ddt.ddt
class KeystoneTest(ClientTestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger(level=logging.DEBUG))
        self.keystone = Keystone()
        self.aetos = Aetos(self.keystone)
        self.identity = self.serve(self.keystone)
        self.server = self.serve(self.aetos)

    def conf(self, section='aetos', login=None, **options):
        login = {'auth_type': 'password', 'auth_url': f'{self.identity.url}/v3',
                 'username': 'kronos', 'password': 's3cret', 'project_name': 'service',
                 'user_domain_name': 'Default', 'project_domain_name': 'Default',
                 **(login or {})}
        options = {'url': self.server.url, 'max_retries': 0, 'auth_section': section, **options}
        path = self.file('\n'.join(
            [f'[{section}]', *(f'{key} = {value}' for key, value in login.items() if value),
             '[kronos_prometheus]', *(f'{key} = {value}' for key, value in options.items())]
        ).encode())
        conf = cfg.ConfigOpts()
        kronos_conf.register_opts(conf)
        conf([], default_config_files=[path])
        return conf

    def from_conf(self, *args, **options):
        return prometheus.from_conf(self.conf(*args, **options))

    def tokens(self):
        return [headers.get('X-Auth-Token') for _, _, headers, _ in self.server.requests]

    def test_one_token_serves_all_queries(self):
        client = self.from_conf()
        for _ in range(3):
            self.assertEqual(2, len(client.query(CPU).samples))
        self.assertEqual((['token-1'] * 3, ['token-1']), (self.tokens(), self.keystone.given))
        self.assertNotIn('Authorization', self.server.requests[0][2])

    def test_a_token_that_is_refused_is_renewed_once(self):
        client = self.from_conf()
        client.query(CPU)
        self.aetos.revoked.add('token-1')
        self.assertEqual(2, len(client.query(CPU).samples))
        self.assertEqual(['token-1', 'token-1', 'token-2'], self.tokens())

    def test_a_token_is_renewed_before_it_expires(self):
        self.keystone.expires = '2000-01-01T00:00:00.000000Z'
        client = self.from_conf()
        client.query(CPU)
        client.query(CPU)
        self.assertEqual(['token-1', 'token-2'], self.tokens())

    def test_a_new_token_that_is_refused_too_is_an_error(self):
        self.aetos.revoked.update({'token-1', 'token-2'})
        error = self.assertRaises(exception.MetricsDenied, self.from_conf().query, CPU)
        self.assertEqual(2, len(self.tokens()))
        for word in ('auth_section', '[aetos]', 'auth_url', 'requires authentication'):
            self.assertIn(word, str(error))

    def test_a_role_that_is_missing(self):
        self.aetos.status = 403
        error = self.assertRaises(exception.MetricsDenied, self.from_conf().query, CPU)
        for word in ('[aetos]', 'service role'):
            self.assertIn(word, str(error))

    def test_a_long_query_is_a_get(self):
        self.from_conf().instant('up or ' * 1000)
        self.assertEqual('GET', self.server.requests[-1][0])

    @ddt.data((401, exception.MetricsDenied, 'refuses the user of [aetos]'),
              (503, exception.MetricsUnreachable, 'gives no token for [aetos]'))
    @ddt.unpack
    def test_a_keystone_that_gives_no_token(self, status, error_class, words):
        self.keystone.status = status
        error = self.assertRaises(error_class, self.from_conf().query, CPU)
        self.assertIn(words, str(error))
        self.assertIn('auth_section', str(error))

    def test_no_keystone_at_all(self):
        client = self.from_conf(login={'auth_url': 'http://127.0.0.1:1/v3'})
        self.assertRaises(exception.MetricsUnreachable, client.query, CPU)

    def test_secrets_are_in_no_log_and_no_error(self):
        self.aetos.revoked.update({'token-1', 'token-2'})
        client = self.from_conf()
        error = self.assertRaises(exception.MetricsDenied, client.query, CPU)
        for secret in ('s3cret', 'token-1', 'token-2'):
            self.assertNotIn(secret, f'{error} {self.log.output}')
        self.assertIn('aetos', str(error))

    def test_a_server_behind_keystone_names_the_option(self):
        client = self.client(self.server.url)
        error = self.assertRaises(exception.MetricsDenied, client.query, CPU)
        self.assertIn('behind keystone: set auth_section', str(error))

    @ddt.data({'auth_type': None}, {'auth_type': 'passwort'}, {'auth_url': None})
    def test_a_group_that_is_not_enough(self, login):
        error = self.assertRaises(exception.ConfigurationError, self.from_conf, login=login)
        for word in ('[aetos], which [kronos_prometheus] auth_section names', 'Give auth_type'):
            self.assertIn(word, str(error))

    @ddt.data({'username': 'x'}, {'bearer_token': 'x'})
    def test_one_way_alone(self, options):
        error = self.assertRaises(exception.ConfigurationError, self.from_conf, **options)
        self.assertIn('auth_section', str(error))

    def test_its_own_group_is_refused(self):
        conf = self.conf()
        conf.set_override('auth_section', 'kronos_prometheus', 'kronos_prometheus')
        error = self.assertRaises(exception.ConfigurationError, prometheus.from_conf, conf)
        self.assertIn('its own group', str(error))

    def test_options_that_another_registered_with_other_words(self):
        conf = self.conf('keystone_authtoken')
        conf.register_opts([cfg.StrOpt('cafile', help='Other words.'),
                            cfg.BoolOpt('insecure', default=False, help='Others.'),
                            cfg.StrOpt('auth_type', help='The same.')], 'keystone_authtoken')
        self.assertEqual(2, len(prometheus.from_conf(conf).query(CPU).samples))

    def test_a_group_of_our_prefix_is_no_typo(self):
        self.assertEqual([], unknown_options.unknown_keys(self.conf('kronos_aetos')))
        problem, = unknown_options.unknown_keys(
            self.conf('kronos_aetos', login={'pasword': 'x'}))
        self.assertIn('pasword', problem)
