"""GETs that follow in the track of one of keystoneauth's, against a web server."""

import pathlib
import ssl

import fixtures
import testtools
from keystoneauth1 import adapter
from keystoneauth1 import exceptions
from keystoneauth1 import session
from keystoneauth1 import token_endpoint

from kronos_nova.placement.shortcut import Answer
from kronos_nova.placement.shortcut import Shortcut
from tests.unit.fakes_web_server import WebServer
from tests.unit.fakes_web_server import say
from tests.unit.fakes_web_server import say_in_turn
from tests.unit.fakes_web_server import self_signed

VERSION = {'OpenStack-API-Version': 'placement 1.38', 'Accept': 'application/json'}


class RenewedToken(token_endpoint.Token):
    """A token that is another one once it was refused."""

    def invalidate(self):
        self.token = 'renewed'
        return True


class Counted(adapter.Adapter):
    """``requests`` are the paths that were left to it."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.requests = []

    def request(self, path, *args, **kwargs):
        self.requests.append(path)
        return super().request(path, *args, **kwargs)


class ShortcutTestCase(testtools.TestCase):
    def serve(self, *responds, tls=None):
        self.server = self.useFixture(WebServer(say_in_turn(*responds), tls))
        return self.server

    def shortcut(self, **options):
        auth = RenewedToken(f'{self.server.url}/placement', 'first')
        self.adapter = Counted(session.Session(auth=auth, **options), service_type='placement',
                               user_agent='kronos')
        return Shortcut(self.adapter)

    def ask(self, shortcut, path, method='GET', **kwargs):
        return shortcut.request(path, method, headers=VERSION, raise_exc=False, **kwargs)


class ShortcutTest(ShortcutTestCase):
    def test_gets_follow_the_first_one(self):
        server = self.serve(say(200, b'{}'))
        shortcut = self.shortcut()
        for path in ('/resource_providers', '/allocations/a', '/allocations/b?c=d,e'):
            self.assertEqual((200, b'{}'), self.said(self.ask(shortcut, path)))
        self.assertEqual(['/resource_providers'], self.adapter.requests)
        self.assertEqual(['/placement/resource_providers', '/placement/allocations/a',
                          '/placement/allocations/b?c=d,e'],
                         [path for _method, path, _headers, _body in server.requests])
        first, *others = [headers for _method, _path, headers, _body in server.requests]
        self.assertEqual([first, first], others)
        self.assertEqual(('first', 'placement 1.38', 'kronos'), tuple(
            first[name] for name in ('X-Auth-Token', 'OpenStack-API-Version', 'User-Agent')))

    def said(self, answer):
        return answer.status_code, answer.content

    def test_what_is_written_is_the_adapters(self):
        server = self.serve(say(200, b'{}'))
        shortcut = self.shortcut()
        for _twice in range(2):
            self.ask(shortcut, '/allocations')
            self.ask(shortcut, '/allocations', 'POST', json={'a': 1})
        self.assertEqual(['/allocations'] * 3, self.adapter.requests)
        self.assertEqual(('POST', b'{"a": 1}'), (server.requests[-1][0], server.requests[-1][3]))

    def test_a_token_that_is_refused_is_renewed(self):
        server = self.serve(say(200), say(401), say(401), say(200, b'here'))
        shortcut = self.shortcut()
        self.ask(shortcut, '/')
        for path in ('/a', '/b'):
            self.assertEqual(b'here', self.ask(shortcut, path).content)
        self.assertEqual(['/', '/a'], self.adapter.requests)
        self.assertEqual(['first', 'first', 'first', 'renewed', 'renewed'],
                         [headers['X-Auth-Token'] for _m, _p, headers, _b in server.requests])

    def test_other_statuses_are_the_adapters(self):
        for status in (403, 404, 500, 503):
            self.serve(say(200), say(status), say(status, b'why'), say(200))
            shortcut = self.shortcut()
            self.ask(shortcut, '/')
            self.assertEqual((status, b'why'), self.said(self.ask(shortcut, '/a')))
            self.assertEqual(200, self.ask(shortcut, '/b').status_code)
            self.assertEqual(['/', '/a'], self.adapter.requests)

    def test_redirects_are_the_adapters(self):
        away = self.useFixture(WebServer(say(200, b'away')))
        self.serve(say(200), say(302, Location=away.url + '/a'))
        shortcut = self.shortcut()
        self.ask(shortcut, '/')
        for _twice in range(2):
            self.assertEqual(b'away', self.ask(shortcut, '/a').content)
        self.assertEqual(['/', '/a', '/a'], self.adapter.requests)

    def test_a_server_that_is_gone_is_an_error_of_the_adapter(self):
        self.serve(say(200))
        shortcut = self.shortcut()
        self.ask(shortcut, '/')
        self.server.server.shutdown()
        self.server.server.server_close()
        self.assertRaises(exceptions.ConnectFailure, self.ask, shortcut, '/a')

    def test_the_sessions_time_out_is_kept(self):
        silent = self.serve(say(200), lambda handler: handler.rfile.read(1))
        shortcut = self.shortcut(timeout=0.2)
        self.ask(shortcut, '/')
        self.assertRaises(exceptions.ConnectTimeout, self.ask, shortcut, '/a')
        self.assertEqual(3, len(silent.requests))  # ours, and the adapter's own

    def test_where_there_is_a_proxy_all_is_the_adapters(self):
        proxy = self.serve(say(200, b'{}'))
        self.useFixture(fixtures.EnvironmentVariable('http_proxy', proxy.url))
        shortcut = Shortcut(Counted(session.Session(auth=token_endpoint.Token(
            'http://placement.invalid', 'first')), service_type='placement'))
        for _twice in range(2):
            self.assertEqual(b'{}', self.ask(shortcut, '/a').content)
        self.assertEqual(['/a', '/a'], shortcut._adapter.requests)


class TlsTest(ShortcutTestCase):
    def setUp(self):
        super().setUp()
        self.pem = self.certificate('server.pem')
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.pem)
        self.context.load_verify_locations(self.pem)
        self.context.verify_mode = ssl.CERT_REQUIRED
        self.serve(say(200, b'{}'), tls=self.context)

    def certificate(self, name):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).join(name))
        path.write_bytes(self_signed())
        return str(path)

    def test_the_sessions_authority_and_certificate_are_used(self):
        shortcut = self.shortcut(verify=self.pem, cert=self.pem)
        self.ask(shortcut, '/')
        self.assertEqual(Answer(200, b'{}'), self.ask(shortcut, '/a'))

    def test_what_another_authority_signed_is_not_trusted(self):
        shortcut = self.shortcut(verify=self.pem, cert=self.pem)
        self.ask(shortcut, '/')
        self.context.load_cert_chain(self.certificate('other.pem'))
        self.assertRaises(exceptions.SSLError, self.ask, shortcut, '/a')
