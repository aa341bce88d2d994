"""The Prometheus client, against a web server that misbehaves in every way we know."""

import gzip
import json
import math
import os
import socket
import ssl
import time
import urllib.parse

import ddt
import fixtures
import testtools
from oslo_config import cfg
from oslo_config import fixture as config_fixture

from kronos_nova import conf as kronos_conf
from kronos_nova import exception
from kronos_nova.metrics import prometheus
from kronos_nova.metrics.endpoint import Endpoint
from kronos_nova.objects.metrics import HOST_CAPACITY
from kronos_nova.objects.metrics import IMBALANCE
from kronos_nova.objects.metrics import MetricQuery
from tests.unit.fakes_web_server import WebServer
from tests.unit.fakes_web_server import say
from tests.unit.fakes_web_server import say_in_turn
from tests.unit.fakes_web_server import self_signed

CPU = MetricQuery('cpu', IMBALANCE, 'sum by (host) (rate(cpu[5m]))')


def body_of(result, result_type='vector', **extra):
    return json.dumps({'status': 'success', **extra,
                       'data': {'resultType': result_type, 'result': result}}).encode()


TWO_HOSTS = body_of([{'metric': {'host': 'cmp1'}, 'value': [1700000000.5, '0.25']},
                     {'metric': {'host': 'cmp2'}, 'value': [1700000000.5, 'NaN']}])


class ClientTestCase(testtools.TestCase):
    def serve(self, respond, tls=None):
        return self.useFixture(WebServer(respond, tls))

    def client(self, url, max_retries=0, smoothing=None, **endpoint):
        self.pauses = []
        return prometheus.PrometheusClient(
            Endpoint(url=url, **endpoint), max_retries=max_retries, smoothing=smoothing,
            sleep=self.pauses.append)

    def file(self, content):
        path = os.path.join(self.useFixture(fixtures.TempDir()).path, 'file')
        with open(path, 'wb') as file:
            file.write(content)
        return path


class QueryTest(ClientTestCase):
    def test_an_instant_vector_arrives_with_its_times_and_nan(self):
        server = self.serve(say(200, TWO_HOSTS))
        vector = self.client(server.url).query(CPU)
        self.assertEqual(['cmp1', 'cmp2'], [s.labels['host'] for s in vector.samples])
        self.assertEqual(0.25, vector.samples[0].value)
        self.assertEqual(1700000000.5, vector.samples[0].timestamp)
        self.assertTrue(math.isnan(vector.samples[1].value))

    def test_samples_by_a_label(self):
        vector = self.client(self.serve(say(200, body_of([
            {'metric': {'host': name}, 'value': [1700000000, value]}
            for name, value in (('a', '1'), ('b', '2'), ('a', '3'))]
            + [{'metric': {}, 'value': [1700000000, '4']}]))).url).query(CPU)
        self.assertEqual({'a': [1.0, 3.0], 'b': [2.0]}, {
            name: [sample.value for sample in samples]
            for name, samples in vector.by('host').items()})
        self.assertEqual({}, vector.by('no such label'))

    def test_the_path_prefix_stays_and_the_query_arrives_whole(self):
        server = self.serve(say(200, TWO_HOSTS))
        self.client(server.url + '/prometheus/').query(CPU)
        method, path, _, _ = server.requests[0]
        parts = urllib.parse.urlsplit(path)
        self.assertEqual(('GET', '/prometheus/api/v1/query'), (method, parts.path))
        self.assertEqual({'query': [CPU.promql]}, urllib.parse.parse_qs(parts.query))

    def test_a_query_too_long_for_a_url_is_posted(self):
        server = self.serve(say(200, TWO_HOSTS))
        promql = 'up{host=~"' + '|'.join(f'cmp{n}' for n in range(1000)) + '"}'
        self.client(server.url).instant(promql)
        method, path, _, body = server.requests[0]
        self.assertEqual(('POST', '/api/v1/query'), (method, path))
        self.assertEqual([promql], urllib.parse.parse_qs(body.decode())['query'])

    def test_warnings_of_the_source_are_kept(self):
        server = self.serve(say(200, body_of([], warnings=['store 10.0.0.1 did not answer'])))
        self.assertEqual(('store 10.0.0.1 did not answer',),
                         self.client(server.url).query(CPU).warnings)

    def test_a_compressed_answer_is_read(self):
        server = self.serve(say(200, gzip.compress(TWO_HOSTS), Content_Encoding='gzip'))
        self.assertEqual(2, len(self.client(server.url).query(CPU).samples))

    def test_the_body_for_a_snapshot_is_untouched(self):
        server = self.serve(say(200, b' ' + TWO_HOSTS))
        self.assertEqual(b' ' + TWO_HOSTS, self.client(server.url).body(CPU))

    def test_a_range_query_gives_series(self):
        server = self.serve(say(200, body_of(
            [{'metric': {'host': 'cmp1'}, 'values': [[1, '0.1'], [2, '0.2']]}], 'matrix')))
        series, = self.client(server.url).range('up', 1, 2, 1)
        self.assertEqual(((1.0, 0.1), (2.0, 0.2)), series.points)

    def test_the_server_reports_itself(self):
        server = self.serve(say(200, b'{"status": "success", "data": {"storageRetention": "15d"}}'))
        self.assertEqual({'storageRetention': '15d'}, self.client(server.url).runtime_info())

    def test_loads_are_smoothed_and_capacities_are_not(self):
        server = self.serve(say(200, TWO_HOSTS))
        client = self.client(server.url, smoothing=(900, 60))
        client.query(CPU)
        client.query(MetricQuery('cpu', HOST_CAPACITY, 'cores'))
        sent = [urllib.parse.parse_qs(urllib.parse.urlsplit(path).query)['query'][0]
                for _, path, _, _ in server.requests]
        self.assertEqual([f'avg_over_time((\n{CPU.promql}\n)[900s:60s]) and (\n{CPU.promql}\n)',
                          'cores'], sent)


@ddt.ddt
class BadAnswerTest(ClientTestCase):
    def refused(self, error_class, respond, tls=None, **endpoint):
        server = self.serve(respond, tls)
        error = self.assertRaises(error_class, self.client(server.url, **endpoint).query, CPU)
        self.assertIs(error_class, type(error))
        self.assertIn(server.url, str(error))
        return str(error)

    @ddt.data(
        (b'<html><body>Sign in</body></html>', 'an HTML page'),
        (b'', 'an empty answer'),
        (b'\xff\xfe\x00garbage', 'not the JSON'),
        (TWO_HOSTS[:60], 'not the JSON'),
        (b'[1, 2]', 'has no "status"'),
        (b'{"status": "success"}', 'no "data"'),
        (b'{"status": "success", "data": {"resultType": "vector"}}', '"result"'),
        (b'{"status": "success", "data": null}', '"resultType"'),
        (b'[' * 100_000, 'not the JSON'),
        (body_of([{'metric': {'host': 'cmp1'}, 'value': [1, 0.5]}]), "{'host': 'cmp1'}"),
        (body_of([{'metric': {'host': 'cmp1'}, 'value': ['x', '1']}]), "{'host': 'cmp1'}"),
        (body_of([{'metric': {'host': 'cmp1'}, 'value': [1, 'much']}]), "{'host': 'cmp1'}"),
        (body_of([{'metric': {'host': 1}, 'value': [1, '1']}]), 'labels as text'),
        (body_of(['up']), 'labels as text'),
    )
    @ddt.unpack
    def test_status_200_without_a_prometheus_answer(self, body, said):
        self.assertIn(said, self.refused(exception.MetricsNotUnderstood, say(200, body)))

    @ddt.data(
        (body_of([1, '0.5'], 'scalar'), 'aggregate by the host label'),
        (body_of([{'metric': {}, 'values': []}], 'matrix'), 'avg_over_time()'),
        (body_of([{'metric': {'host': 'a'}, 'histogram': [1, {}]}]), 'native histogram'),
    )
    @ddt.unpack
    def test_an_answer_that_is_no_vector(self, body, said):
        self.assertIn(said, self.refused(exception.MetricsNotAVector, say(200, body)))

    @ddt.data((302, '/login?next=/'), (307, 'https://sso.example.com/'), (308, ''))
    @ddt.unpack
    def test_a_redirect_is_not_followed(self, status, target):
        said = self.refused(exception.MetricsRedirected, say(status, Location=target))
        self.assertIn(target, said)

    @ddt.data(401, 403)
    def test_credentials_that_are_refused(self, status):
        self.refused(exception.MetricsDenied, say(status, b'<html>no</html>'))

    @ddt.data(500, 502, 503, 429)
    def test_a_server_that_cannot_now(self, status):
        self.refused(exception.MetricsUnavailable, say(status, b'overloaded'))

    def test_wrong_promql_shows_what_prometheus_says(self):
        body = b'{"status": "error", "errorType": "bad_data", "error": "unexpected end of input"}'
        self.assertIn('bad_data: unexpected end of input',
                      self.refused(exception.MetricsQueryRefused, say(400, body)))

    def test_a_url_without_its_path_prefix(self):
        self.assertIn('path prefix', self.refused(exception.MetricsNotFound, say(404, b'no')))

    def test_an_answer_over_the_limit_is_given_up_early(self):
        sent = []

        def respond(handler):
            handler.send_response(200)
            handler.send_header('Content-Length', str(200 << 20))
            handler.end_headers()
            for _ in range(200):
                handler.wfile.write(b' ' * (1 << 20))
                sent.append(1)

        said = self.refused(exception.MetricsTooLarge, respond, max_bytes=2 << 20)
        self.assertIn('max_answer_mib', said)
        self.assertLess(len(sent), 50)

    def test_a_compressed_answer_counts_by_what_it_unpacks_to(self):
        bomb = gzip.compress(b' ' * (20 << 20))
        self.refused(exception.MetricsTooLarge, say(200, bomb, Content_Encoding='gzip'),
                     max_bytes=1 << 20)

    def test_damaged_compression(self):
        self.refused(exception.MetricsNotUnderstood,
                     say(200, b'not gzip at all', Content_Encoding='gzip'))

    def test_a_server_that_never_answers(self):
        self.refused(exception.MetricsTimeout, lambda handler: time.sleep(0.5), timeout=0.1)

    def test_a_server_that_sends_a_byte_now_and_then(self):
        def respond(handler):
            handler.send_response(200)
            handler.send_header('Content-Length', '1000')
            handler.end_headers()
            for _ in range(100):
                handler.wfile.write(b' ')
                time.sleep(0.05)

        started = time.monotonic()
        self.refused(exception.MetricsTimeout, respond, timeout=0.3)
        self.assertLess(time.monotonic() - started, 2)

    def test_a_connection_that_breaks_in_the_middle(self):
        def respond(handler):
            handler.send_response(200)
            handler.send_header('Content-Length', '1000')
            handler.end_headers()
            handler.wfile.write(b'{"status"')

        self.refused(exception.MetricsUnreachable, respond)

    def test_a_port_without_a_server(self):
        with socket.socket() as unused:
            unused.bind(('127.0.0.1', 0))
            url = f'http://127.0.0.1:{unused.getsockname()[1]}'
            error = self.assertRaises(exception.MetricsUnreachable, self.client(url).query, CPU)
        self.assertIn('refused; check host and port in [kronos_prometheus] url', str(error))

    def test_a_name_that_does_not_resolve(self):
        self.assertRaises(exception.MetricsUnreachable,
                          self.client('http://prometheus.invalid').query, CPU)


class RetryTest(ClientTestCase):
    def test_what_passes_by_itself_is_tried_again_with_pauses(self):
        server = self.serve(say_in_turn(say(503), say(429), say(200, TWO_HOSTS)))
        self.assertEqual(2, len(self.client(server.url, max_retries=3).query(CPU).samples))
        self.assertEqual(2, len(self.pauses))

    def test_exhausted_retries_raise_the_last_error(self):
        server = self.serve(say(503))
        client = self.client(server.url, max_retries=2)
        self.assertRaises(exception.MetricsUnavailable, client.query, CPU)
        self.assertEqual(3, len(server.requests))

    def test_what_is_wrong_stays_wrong_and_is_asked_once(self):
        for status in (302, 400, 401, 404):
            server = self.serve(say(status, b'{"status": "error"}'))
            self.assertRaises(exception.MetricsError,
                              self.client(server.url, max_retries=3).query, CPU)
            self.assertEqual(1, len(server.requests), status)


class CredentialsTest(ClientTestCase):
    def sent(self, **endpoint):
        server = self.serve(say(200, TWO_HOSTS))
        self.client(server.url, **endpoint).query(CPU)
        return server.requests[-1][2]

    def test_a_token(self):
        self.assertEqual('Bearer s3cret', self.sent(bearer_token='s3cret')['Authorization'])

    def test_a_token_file_is_followed_when_it_changes(self):
        path = self.file(b'first\n')
        server = self.serve(say(200, TWO_HOSTS))
        client = self.client(server.url, bearer_token_file=path)
        client.query(CPU)
        with open(path, 'w') as file:
            file.write('second\n')
        client.query(CPU)
        self.assertEqual(['Bearer first', 'Bearer second'],
                         [headers['Authorization'] for _, _, headers, _ in server.requests])

    def test_a_token_file_that_is_missing_or_holds_no_token(self):
        for path in ('/nonexistent/token', self.file(b''), self.file(b'two words'),
                     self.file(b'\xff\xfe')):
            error = self.assertRaises(exception.MetricsMisconfigured, self.sent,
                                      bearer_token_file=path)
            self.assertIn(path, str(error))

    def test_basic_authentication(self):
        self.assertEqual('Basic a3Jvbm9zOnDDpHNz',
                         self.sent(username='kronos', password='päss')['Authorization'])

    def test_a_tenant(self):
        self.assertEqual('cloud1', self.sent(tenant='cloud1')['X-Scope-OrgID'])
        headers = self.sent(tenant='cloud1', tenant_header='THANOS-TENANT')
        self.assertEqual('cloud1', headers['THANOS-TENANT'])

    def test_nothing_is_sent_unasked_even_with_a_netrc(self):
        netrc = self.file(b'machine 127.0.0.1 login root password toor\n')
        os.chmod(netrc, 0o600)
        self.useFixture(fixtures.EnvironmentVariable('NETRC', netrc))
        headers = self.sent()
        self.assertNotIn('Authorization', headers)
        self.assertNotIn('X-Scope-OrgID', headers)


class TlsTest(ClientTestCase):
    def setUp(self):
        super().setUp()
        self.pem = self.file(self_signed())
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.pem)

    def test_our_own_authority_is_trusted(self):
        server = self.serve(say(200, TWO_HOSTS), self.context)
        self.assertEqual(2, len(self.client(server.url, ca_file=self.pem).query(CPU).samples))

    def test_an_unknown_authority_is_not(self):
        server = self.serve(say(200, TWO_HOSTS), self.context)
        error = self.assertRaises(exception.MetricsUntrusted,
                                  self.client(server.url, max_retries=3).query, CPU)
        self.assertIn('ca_file', str(error))
        self.assertEqual([], self.pauses)

    def test_a_client_certificate_is_shown_to_a_server_that_wants_one(self):
        self.context.load_verify_locations(self.pem)
        self.context.verify_mode = ssl.CERT_REQUIRED
        server = self.serve(say(200, TWO_HOSTS), self.context)
        client = self.client(server.url, ca_file=self.pem, cert_file=self.pem)
        self.assertEqual(2, len(client.query(CPU).samples))
        client = self.client(server.url, ca_file=self.pem)
        self.assertRaises(exception.MetricsError, client.query, CPU)

    def test_files_that_are_not_there(self):
        for option in ('ca_file', 'cert_file'):
            server = self.serve(say(200, TWO_HOSTS), self.context)
            client = self.client(server.url, **{option: '/nonexistent'})
            error = self.assertRaises(exception.MetricsMisconfigured, client.query, CPU)
            self.assertIn('/nonexistent', str(error))


@ddt.ddt
class OptionsTest(ClientTestCase):
    def from_conf(self, **options):
        conf = self.useFixture(config_fixture.Config(cfg.ConfigOpts())).conf
        kronos_conf.register_opts(conf)
        for name, value in options.items():
            conf.set_override(name, value, group='kronos_prometheus')
        return prometheus.from_conf(conf)

    def test_the_options_reach_the_wire(self):
        server = self.serve(say(200, TWO_HOSTS))
        self.from_conf(url=server.url + '/prom', bearer_token='s3cret', tenant='cloud1',
                          smoothing_window=600).query(CPU)
        _, path, headers, _ = server.requests[0]
        self.assertTrue(path.startswith('/prom/api/v1/query?'), path)
        self.assertIn('600s', path)
        self.assertEqual(('Bearer s3cret', 'cloud1'),
                         (headers['Authorization'], headers['X-Scope-OrgID']))

    @ddt.data(
        {'url': 'http://user:secret@127.0.0.1:9090'},
        {'url': 'http://127.0.0.1:9090/prometheus/api/v1'},
        {'bearer_token': 'x', 'username': 'y'},
        {'bearer_token': 'x', 'bearer_token_file': '/y'},
        {'key_file': '/key.pem'},
        {'smoothing_window': 30},
    )
    def test_options_that_contradict_each_other(self, options):
        error = self.assertRaises(exception.ConfigurationError, self.from_conf, **options)
        self.assertIn('[kronos_prometheus]', str(error))
        self.assertNotIn('secret', str(error))

    @ddt.data('/api', '/api/datasources/proxy/uid/one', '/api/v1x')
    def test_a_prefix_that_resembles_the_path_of_the_api(self, prefix):
        server = self.serve(say(200, TWO_HOSTS))
        self.from_conf(url=server.url + prefix).query(CPU)
        self.assertTrue(server.requests[0][1].startswith(f'{prefix}/api/v1/query?'))

    def test_a_url_without_a_scheme_says_what_to_write(self):
        path = self.file(b'[kronos_prometheus]\nurl = prometheus:9090\n')
        conf = cfg.ConfigOpts()
        kronos_conf.register_opts(conf)
        conf([], default_config_files=[path])
        error = self.assertRaises(exception.ConfigurationError, prometheus.from_conf, conf)
        for word in ('[kronos_prometheus] url', 'write http://prometheus:9090'):
            self.assertIn(word, str(error))
        self.assertNotIn('LocationInfo', str(error))
