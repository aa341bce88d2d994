"""HTTP answers that are none of the API: the error that each becomes, and its remedy."""

import json
import socket
import ssl
import threading

import ddt
import fixtures

from kronos_nova import exception
from tests.unit.fakes_web_server import say
from tests.unit.fakes_web_server import self_signed
from tests.unit.metrics.test_prometheus import CPU
from tests.unit.metrics.test_prometheus import ClientTestCase

NGINX = ('<html>\r\n<head><title>{0}</title></head>\r\n<body>\r\n<center><h1>{0}</h1></center>\r\n'
         '<hr><center>nginx/1.24.0</center>\r\n</body>\r\n</html>\r\n')
GRAFANA = {'message': 'Unauthorized', 'messageId': 'auth.unauthorized', 'statusCode': 401,
           'traceID': ''}
DUPLICATES = ('found duplicate series for the match group {instance="cmp1:9100"} on the right '
              'hand-side of the operation: [' + ', '.join(
                  f'{{__name__="node_memory_MemTotal_bytes", job="node{n}", cluster="{"x" * 90}"}}'
                  for n in (1, 2)) + '];many-to-many matching not allowed: matching labels must '
              'be unique on one side')


def api_error(kind, text):
    return json.dumps({'status': 'error', 'errorType': kind, 'error': text})


BASIC = {'WWW_Authenticate': 'Basic realm="prometheus"'}

# What is said, with which status and headers; the error; words of the message.
ANSWERS = {
    'http to a port of Go that speaks TLS': (
        400, 'Client sent an HTTP request to an HTTPS server.\n', {}, exception.MetricsUntrusted,
        ('write https://', '[kronos_prometheus] url', 'Client sent an HTTP request')),
    'http to a port of nginx that speaks TLS': (
        400, NGINX.format('400 The plain HTTP request was sent to HTTPS port'), {},
        exception.MetricsUntrusted, ('write https://', 'was sent to HTTPS port')),
    'http to a port of Apache that speaks TLS': (
        400, '<p>Reason: You\'re speaking plain HTTP to an SSL-enabled server port.<br />', {},
        exception.MetricsUntrusted, ('write https://',)),
    'no path prefix': (
        404, '404 page not found\n', {}, exception.MetricsNotFound,
        ('path prefix', 'url', '404 page not found')),
    'Grafana without a login': (
        401, json.dumps(GRAFANA), {}, exception.MetricsNotFound,
        ('Grafana', 'url', 'data source', 'Unauthorized')),
    'Grafana without the page': (
        404, '{"message":"Not found","traceID":""}', {}, exception.MetricsNotFound,
        ('Grafana', 'data source')),
    "Grafana's page": (
        404, '<!DOCTYPE html><html lang="en"><head><title>Grafana</title></head></html>', {},
        exception.MetricsNotFound, ('Grafana', 'data source')),
    'vmauth without a route': (
        400, 'missing route for "/api/v1/query"\n', {}, exception.MetricsNotFound,
        ('vmauth', 'url_map', 'missing route for')),
    'vmselect without a tenant in the path': (
        400, 'unsupported path requested: "/api/v1/query"', {}, exception.MetricsNotFound,
        ('/select/', '/prometheus', 'unsupported path')),
    'a proxy that forbids': (
        403, NGINX.format('403 Forbidden'), {}, exception.MetricsDenied,
        ('proxy', '/api/v1/query', '403 Forbidden')),
    'a proxy that wants a password of its own': (
        407, '', {}, exception.MetricsDenied, ('proxy', 'no_proxy')),
    'basic authentication': (
        401, 'Unauthorized\n', BASIC, exception.MetricsDenied,
        ('username', 'password', 'are not set', 'Unauthorized')),
    'a bearer': (
        401, '', {'WWW_Authenticate': 'Bearer realm="x"'}, exception.MetricsDenied,
        ('bearer_token_file', 'is not set')),
    'no words at all': (
        401, '', {}, exception.MetricsDenied, ('username', 'bearer_token_file')),
    "Mimir's tenant": (
        401, 'no org id\n', {}, exception.MetricsTenantMissing, ('set tenant', 'no org id')),
    "an old Cortex' tenant": (
        500, 'no org id\n', {}, exception.MetricsTenantMissing, ('set tenant', 'no org id')),
    'Grafana where the user may not': (
        403, '{"accessErrorId":"ACE1","message":"You need additional permissions"}', {},
        exception.MetricsNotFound, ('Grafana', 'data source')),
    "Thanos' tenant": (
        400, 'tenant header is missing', {}, exception.MetricsTenantMissing, ('set tenant',)),
    'a method': (
        405, NGINX.format('405 Not Allowed'), {}, exception.MetricsRequestRefused,
        ('GET', 'POST', 'permit', '405 Not Allowed')),
    'a long body': (
        413, NGINX.format('413 Request Entity Too Large'), {}, exception.MetricsRequestRefused,
        ('client_max_body_size', 'query')),
    'a long URL': (
        414, NGINX.format('414 Request-URI Too Large'), {}, exception.MetricsRequestRefused,
        ('large_client_header_buffers', 'query')),
    'a long header': (
        431, '', {}, exception.MetricsRequestRefused, ('large_client_header_buffers',)),
    'nothing': (
        204, '', {}, exception.MetricsNotFound, ('nothing', 'url')),
    'too many requests': (
        429, api_error('too_many_requests', 'the request has been rejected because the tenant '
                       'exceeded the request rate limit'), {}, exception.MetricsUnavailable,
        ('limit', 'request rate limit')),
    'a proxy that reaches no server': (
        502, NGINX.format('502 Bad Gateway'), {}, exception.MetricsUnavailable,
        ('proxy', '502 Bad Gateway')),
    'a slow query': (
        503, api_error('timeout', 'query timed out in expression evaluation'), {},
        exception.MetricsUnavailable, ('--query.timeout', 'timed out')),
    "Prometheus' limit": (
        422, api_error('execution', 'query processing would load too many samples into memory in '
                       'query execution'), {}, exception.MetricsLimitExceeded,
        ('limit', 'recording rule', 'too many samples')),
    "VictoriaMetrics' limit": (
        422, api_error('422', 'cannot select more than -search.maxSamplesPerQuery=1000000000 '
                       'samples'), {}, exception.MetricsLimitExceeded, ('limit', 'maxSamples')),
    "Mimir's limit": (
        422, api_error('execution', 'the query exceeded the maximum number of chunks (limit: 2000 '
                       'chunks) (err-mimir-max-chunks-per-query)'), {},
        exception.MetricsLimitExceeded, ('limit', 'err-mimir-max-chunks')),
    'targets that are scraped twice': (
        422, api_error('execution', DUPLICATES), {}, exception.MetricsQueryRefused,
        ('scraped by two jobs', 'one job', 'found duplicate series')),
    'words of another': (
        418, 'I am\x1b[31m a teapot\nand more', {}, exception.MetricsNotFound,
        ('418', 'I am\N{REPLACEMENT CHARACTER}[31m a teapot')),
}


@ddt.ddt
class HttpErrorsTest(ClientTestCase):
    def refused(self, status, body, headers=None, **endpoint):
        self.server = self.serve(say(status, body.encode(), **(headers or {})))
        client = self.client(self.server.url, **endpoint)
        return self.assertRaises(exception.MetricsError, client.query, CPU)

    @ddt.data(*ANSWERS)
    def test_the_cause_and_the_remedy_of(self, name):
        status, body, headers, error_class, words = ANSWERS[name]
        error = self.refused(status, body, headers)
        self.assertIs(error_class, type(error), error)
        for word in (f'status {status}', self.server.url, *words):
            self.assertIn(word, str(error))

    def test_the_remedy_comes_before_what_may_be_cut(self):
        error = str(self.refused(422, api_error('execution', DUPLICATES)))
        self.assertLess(error.index('scraped by two jobs'), error.index('found duplicate'))

    def test_credentials_that_are_set_are_said_to_be_wrong(self):
        for headers, given, word in (
                (BASIC, {'username': 'kronos', 'password': 'pw'}, 'username or password is wrong'),
                ({}, {'bearer_token': 'tok'}, 'bearer_token is refused'),
                ({}, {'bearer_token_file': self.file(b'tok')}, 'bearer_token_file is refused'),
                (BASIC, {'bearer_token': 'tok'}, 'asks for username and password'),
        ):
            error = str(self.refused(401, 'no', headers, **given))
            self.assertIn(word, error)

    def test_a_tenant_that_is_set_uses_another_header(self):
        error = str(self.refused(401, 'no org id\n', tenant='one', tenant_header='THANOS-TENANT'))
        self.assertIn('tenant_header', error)
        self.assertNotIn('set tenant', error)

    def test_what_is_said_is_one_bounded_line_without_our_secrets(self):
        error = str(self.refused(404, '\n\n  at kronos:s3cret@here ' + 'y' * 5000 + '\nsecond',
                                 username='kronos', password='s3cret'))
        self.assertIn('at kronos:***@here', error)
        self.assertNotIn('second', error)
        self.assertNotIn('s3cret', error)
        self.assertLess(len(error), 900)

    def test_a_posted_query_names_the_method(self):
        server = self.serve(say(405, b''))
        error = self.assertRaises(exception.MetricsRequestRefused,
                                  self.client(server.url).instant, 'x' * 3000)
        self.assertIn('POST', str(error))

    def test_a_proxy_of_the_environment_is_named(self):
        proxy = self.serve(say(403, b'<html><title>ERROR: squid</title></html>',
                               X_Squid_Error='ERR_ACCESS_DENIED 0'))
        for name, value in (('http_proxy', proxy.url), ('no_proxy', None), ('NO_PROXY', None)):
            self.useFixture(fixtures.EnvironmentVariable(name, value))
        error = self.assertRaises(exception.MetricsDenied,
                                  self.client('http://prometheus.test:9090').query, CPU)
        for word in (proxy.url.removeprefix('http://'), 'no_proxy', 'prometheus.test', 'squid'):
            self.assertIn(word, str(error))

    @ddt.data(
        ('/login', 'login'), ('/login?redirectTo=%2F', 'Grafana'),
        ('https://prom.example.com/api/v1/query?query=x',
         '[kronos_prometheus] url = https://prom.example.com'),
        ('/prometheus/api/v1/query?query=x', '/prometheus'))
    @ddt.unpack
    def test_a_redirect_says_what_to_write(self, location, word):
        error = self.refused(302, '', {'Location': location})
        self.assertIs(exception.MetricsRedirected, type(error))
        self.assertIn(word, str(error))


class ContentTest(ClientTestCase):
    def test_a_page_with_status_200_shows_its_title(self):
        server = self.serve(say(200, b'<!DOCTYPE html>\n<html><head>\n<title>Sign in to Keycloak'
                                     b'</title>'))
        error = self.assertRaises(exception.MetricsNotUnderstood, self.client(server.url).query,
                                  CPU)
        for word in ('Sign in to Keycloak', 'page for people', 'url'):
            self.assertIn(word, str(error))

    def test_other_text_shows_its_first_line(self):
        server = self.serve(say(200, b'\nhello there\nmore'))
        error = self.assertRaises(exception.MetricsNotUnderstood, self.client(server.url).query,
                                  CPU)
        self.assertIn('hello there', str(error))
        self.assertNotIn('more', str(error).partition('hello')[2].partition('"')[0])


class WrongSchemeTest(ClientTestCase):
    def setUp(self):
        super().setUp()
        self.pem = self.file(self_signed())

    def listener(self, serve):
        """A port at which each connection is handed to ``serve``."""
        listening = socket.create_server(('127.0.0.1', 0))
        self.addCleanup(listening.close)

        def accept():
            while True:
                try:
                    connected, _ = listening.accept()
                except OSError:
                    return
                with connected:
                    serve(connected)

        threading.Thread(target=accept, daemon=True).start()
        return f'127.0.0.1:{listening.getsockname()[1]}'

    def test_https_to_a_port_that_speaks_none(self):
        server = self.serve(say(200, b''))
        error = self.assertRaises(
            exception.MetricsUntrusted,
            self.client(server.url.replace('http:', 'https:')).query, CPU)
        self.assertIn('write http://', str(error))

    def test_http_to_a_port_that_answers_by_an_alert(self):
        def alert(connected):
            connected.recv(4096)
            connected.sendall(b'\x15\x03\x01\x00\x02\x02\x16')

        error = self.assertRaises(exception.MetricsError,
                                  self.client(f'http://{self.listener(alert)}').query, CPU)
        self.assertIs(exception.MetricsUntrusted, type(error), error)
        self.assertIn('write https://', str(error))

    def test_http_to_a_port_that_hangs_up(self):
        def hang_up(connected):
            connected.recv(4096)

        error = self.assertRaises(exception.MetricsUnreachable,
                                  self.client(f'http://{self.listener(hang_up)}').query, CPU)
        self.assertIn('write https://', str(error))

    def test_certificates(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.pem)
        server = self.serve(say(200, b''), context)
        unknown = self.assertRaises(exception.MetricsUntrusted, self.client(server.url).query, CPU)
        self.assertIn('set ca_file', str(unknown))
        client = self.client(server.url.replace('127.0.0.1', 'localhost'), ca_file=self.pem)
        other = self.assertRaises(exception.MetricsUntrusted, client.query, CPU)
        self.assertIn('host name in url', str(other))
        self.assertNotIn('ca_file', str(other))
