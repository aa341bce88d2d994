"""A metrics source that is broken, taken over, or simply slow: it costs a cycle its load, for a
bounded time, and nothing else."""

import gzip
import json
import os
import socket
import time

import ddt
import fixtures
import numpy as np
import testtools
from hypothesis import given
from hypothesis import strategies as st

from kronos_nova import exception
from kronos_nova.cycle import metrics
from kronos_nova.metrics import answer
from kronos_nova.metrics import labels
from kronos_nova.metrics import prometheus
from kronos_nova.metrics.endpoint import Endpoint
from kronos_nova.objects.metrics import IMBALANCE
from kronos_nova.objects.metrics import MetricQuery
from kronos_nova.objects.metrics import Sample
from kronos_nova.objects.metrics import Vector
from kronos_nova.policies import Policy
from tests.hostile import fakes_tcp_server
from tests.unit.fakes_web_server import WebServer
from tests.unit.fakes_web_server import say

CPU = MetricQuery('cpu', IMBALANCE, 'cpu')
HOST = {'metric': {'host': 'cmp1'}, 'value': [1700000000.5, '0.25']}


def body_of(*series, **extra):
    return json.dumps({'status': 'success', **extra,
                       'data': {'resultType': 'vector', 'result': series}}).encode()


def strange_answers():
    """Bodies that are instant vectors, and what is nearly one."""
    texts = st.sampled_from(['', 'a', '1', 'NaN', '-1e999', ' 1_0 ', 'é', '\x00'])
    times = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
    odd = st.one_of(st.none(), texts, st.sampled_from(
        [float('nan'), 10 ** 400, True, '\ud800', [], {}]))
    plain = st.fixed_dictionaries({
        'metric': st.dictionaries(texts, st.sampled_from(['', 'é', '\x00']), max_size=3),
        'value': st.tuples(times, st.sampled_from(['1', 'NaN', '+Inf', '-1e999', ' 1_0 ']))})
    strange = st.fixed_dictionaries({}, optional={
        'metric': st.one_of(odd, st.dictionaries(texts, odd, max_size=2),
                            st.just({f'l{n}': '' for n in range(101)})),
        'value': st.one_of(odd, st.lists(st.one_of(times, odd), max_size=3)), 'histogram': odd})
    vector = st.fixed_dictionaries({
        'resultType': st.just('vector'),
        'result': st.lists(st.one_of(plain, plain, plain, strange, odd), max_size=2)})
    answers = st.fixed_dictionaries(
        {'status': st.just('success'), 'data': st.one_of(vector, vector, vector, odd)},
        optional={'warnings': st.one_of(odd, st.lists(odd, max_size=3)), 'isPartial': odd,
                  'infos': odd})
    around = st.sampled_from([b'%s', b'%s', b'%s', b' %s\n', b'\xef\xbb\xbf%s', b'\xff%s', b'%s{}'])
    return st.builds(lambda answer, around: around.replace(b'%s', json.dumps(answer).encode()),
                     answers, around)


def _read(body):
    """Read a body, with NaN that equals itself."""
    try:
        return repr(answer.read_vector(body, 'it'))
    except exception.MetricsError as error:
        return type(error), str(error)


class ProxyTest(testtools.TestCase):
    def test_one_that_kronos_cannot_speak_to_is_an_error_of_the_metrics(self):
        for scheme in ('socks5', 'socks5h', 'SOCKS4', 'ftp'):
            self.useFixture(fixtures.EnvironmentVariable('http_proxy', f'{scheme}://127.0.0.1:1'))
            self.useFixture(fixtures.EnvironmentVariable('no_proxy'))
            client = prometheus.PrometheusClient(Endpoint(url='http://prometheus.test:9090'),
                                                 max_retries=0)
            self.assertRaises(exception.MetricsError, client.query, CPU)


@ddt.ddt
class TotalDeadlineTest(testtools.TestCase):
    """An answer that arrives a little at a time has one deadline as a whole."""

    def client(self, url, timeout=0.3, **rest):
        return prometheus.PrometheusClient(Endpoint(url=url, timeout=timeout), max_retries=0,
                                           sleep=lambda seconds: None, **rest)

    @ddt.data(*sorted(fakes_tcp_server.DRIPS))
    def test_a_drip_ends_with_the_timeout_and_so_does_its_connection(self, what):
        server = self.useFixture(fakes_tcp_server.RawServer(fakes_tcp_server.DRIPS[what]))
        started = time.monotonic()
        self.assertRaises(exception.MetricsTimeout, self.client(server.url).query, CPU)
        self.assertLess(time.monotonic() - started, 2)
        while not server.ended:
            self.assertLess(time.monotonic() - started, 10, 'the connection is still open')
            time.sleep(0.01)

    def test_a_handshake_that_never_ends(self):
        server = self.useFixture(fakes_tcp_server.RawServer(
            fakes_tcp_server.drip(b'\x16\x03\x03\x40\x00', b'\x02')))
        client = self.client(server.url.replace('http:', 'https:'))
        started = time.monotonic()
        self.assertRaises(exception.MetricsTimeout, client.query, CPU)
        self.assertLess(time.monotonic() - started, 2)

    def test_a_name_server_that_does_not_answer(self):
        def never(*args, **kwargs):
            time.sleep(3)
            raise socket.gaierror('too late')

        self.patch(socket, 'getaddrinfo', never)
        started = time.monotonic()
        self.assertRaises(exception.MetricsTimeout, self.client('http://slow.test').query, CPU)
        self.assertLess(time.monotonic() - started, 2)

    def test_after_a_drip_the_next_question_is_asked_again(self):
        answers = [fakes_tcp_server.DRIPS['body'], lambda connection: connection.sendall(
            fakes_tcp_server.HEAD + b'Connection: close\r\n\r\n' + body_of(HOST))]
        server = self.useFixture(fakes_tcp_server.RawServer(
            lambda connection: answers.pop(0)(connection)))
        client = self.client(server.url)
        self.assertRaises(exception.MetricsTimeout, client.query, CPU)
        self.assertEqual(0.25, client.query(CPU).samples[0].value)

    def test_the_answers_of_a_cycle_have_a_deadline_together(self):
        server = self.useFixture(fakes_tcp_server.RawServer(fakes_tcp_server.DRIPS['body']))
        client = self.client(server.url, patience=0.5)
        started = time.monotonic()
        said = [str(self.assertRaises(exception.MetricsTimeout, client.query, CPU))
                for _ in range(10)]
        self.assertLess(time.monotonic() - started, 2)
        self.assertEqual(2, server.connections)
        # The first waits for its own time limit, the second for what is left of that of all.
        self.assertIn('no complete answer within 0.3 s', said[0])
        for text in said[1:]:
            self.assertIn('the 0.5 s of total_timeout', text)

    def test_closed_connections_leave_nothing_open(self):
        server = self.useFixture(fakes_tcp_server.RawServer(lambda connection: connection.sendall(
            fakes_tcp_server.HEAD + b'\r\n' + body_of(HOST))))
        client = self.client(server.url, timeout=5)
        client.query(CPU)
        before = len(os.listdir('/proc/self/fd'))
        for _ in range(20):
            client.query(CPU)
        self.assertLess(len(os.listdir('/proc/self/fd')), before + 10)


@ddt.ddt
class HostileAnswerTest(testtools.TestCase):
    """Answers that arrive in time, and are meant to do harm."""

    def refused(self, body):
        return str(self.assertRaises(exception.MetricsError, answer.read_vector, body, 'it'))

    @ddt.data(
        body_of(HOST, warnings=5),
        body_of(HOST, warnings={'a': 1}),
        body_of(HOST, warnings='text'),
        body_of({'metric': {'host': 'a'}, 'value': [10 ** 400, '1']}),
        b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{},'
        b'"value":[NaN,"1"]}]}}',
        b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{},'
        b'"value":[1e999,"1"]}]}}',
        body_of({'metric': {'host': 'a'}, 'value': [True, '1']}),
        body_of({'metric': {'host': 'a'}, 'value': {'0': 1, '1': '2'}}),
        body_of({'metric': {f'l{n}': '' for n in range(1000)}, 'value': [1, '1']}),
        b'{"a":' * 100_000,
        b'[' + b'1,' * 11_000_000 + b'1]',
        b'9' * 5000,
    )
    def test_nonsense_is_an_error_of_the_metrics(self, body):
        self.refused(body)

    @ddt.data(
        {'value': [1, '1']}, {'metric': None, 'value': [1, '1']}, 5, 'text', [1], None,
        {'metric': {'host': 1}, 'value': [1, '1']}, {'metric': {'host': 'b'}},
        {'metric': {'host': 'b'}, 'histogram': [1, {}]}, {'metric': {'host': 'b'}, 'value': 'ab'},
        {'metric': {'host': 'b'}, 'value': [1]}, {'metric': {'host': 'b'}, 'value': [1, '1', 2]},
        {'metric': {'host': 'b'}, 'value': [1, 1]}, {'metric': {'host': 'b'}, 'value': ['1', '1']},
        {'metric': {'host': 'b'}, 'value': [1, 'x']}, {'metric': {'host': 'b'}, 'value': [1, None]},
        {'metric': {'host': 'b'}, 'value': [10 ** 400, '1']},
        {'metric': {f'l{n}': '' for n in range(101)}, 'value': [1, '1']})
    def test_one_bad_series_among_good_ones_is_found_and_named_as_if_it_were_alone(self, series):
        alone = self.refused(body_of(series))
        self.assertEqual(alone, self.refused(body_of(*[HOST] * 50, series, *[HOST] * 50)))

    @given(strange_answers())
    def test_what_is_read_at_once_is_what_is_read_one_by_one(self, body):
        at_once = _read(body)
        with fixtures.MonkeyPatch('kronos_nova.boundary.typed_json', lambda body, decoder: None):
            one_by_one = _read(body)
        self.assertEqual(one_by_one, at_once)

    def test_values_that_no_float_holds_stay_values(self):
        vector = answer.read_vector(
            body_of({'metric': {'host': 'a'}, 'value': [1, '9' * 400]}), 'it')
        self.assertEqual(float('inf'), vector.samples[0].value)

    def test_warnings_are_bounded_and_keep_to_their_line(self):
        vector = answer.read_vector(body_of(HOST, warnings=[
            'x' * (30 << 20), 'gone\n2026-01-01 CRITICAL forged \x1b[2J', *['again'] * 1000]), 'it')
        self.assertLess(sum(map(len, vector.warnings)), 20_000)
        self.assertTrue(all(warning.isprintable() for warning in vector.warnings))

    def test_an_error_of_the_server_is_bounded_and_keeps_to_its_line(self):
        said = self.refused(json.dumps({
            'status': 'error', 'errorType': 'bad\x1b[31m', 'error': 'a\r\nb' * 10_000}).encode())
        self.assertLess(len(said), 1000)
        self.assertTrue(said.isprintable(), said)

    @ddt.data(b'HTTP/1.1 503 \x1b[2Jowned\x07\r\n\r\n',
              b'HTTP/1.1 302 Found\r\nLocation: http://x/\x1b[2J' + b'a' * 10_000 + b'\r\n\r\n',
              b'HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nabc',
              b'HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\nabc',
              b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nabc\r\n',
              b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n' + b'f' * 100_000,
              b'HTTP/1.1 200 OK\r\n' + b'X: a\r\n' * 1000 + b'\r\n{}',
              b'HTTP/1.1 200 OK\r\nX: ' + b'a' * 100_000 + b'\r\n\r\n{}',
              b'HTTP/1.1 999999999999 No\r\n\r\n', b'\x00\xff' * 1000, b'')
    def test_broken_http_is_an_error_of_the_metrics(self, sent):
        server = self.useFixture(fakes_tcp_server.RawServer(
            lambda connection: connection.sendall(sent)))
        client = prometheus.PrometheusClient(Endpoint(url=server.url, timeout=2), max_retries=0)
        said = str(self.assertRaises(exception.MetricsError, client.query, CPU))
        self.assertLess(len(said), 2000)
        self.assertTrue(said.isprintable(), said)

    @ddt.data('gzip, gzip, gzip', 'br', 'zstd', 'x-gzip,gzip')
    def test_what_unfolds_without_bounds_is_refused_before_it_is_read(self, encoding):
        body = gzip.compress(gzip.compress(gzip.compress(b' ' * (1 << 20))))
        server = self.useFixture(WebServer(say(200, body, Content_Encoding=encoding)))
        client = prometheus.PrometheusClient(Endpoint(url=server.url), max_retries=0)
        error = self.assertRaises(exception.MetricsNotUnderstood, client.query, CPU)
        self.assertIn('compressed', str(error))

    def test_a_policy_with_such_an_answer_has_no_data_and_the_next_one_has(self):
        class Source:
            def query(self, query):
                body = body_of(HOST, warnings=5) if query.policy == 'bad' else body_of(HOST)
                return answer.read_vector(body, 'it')

        policies = tuple(
            Policy(name=name, mode='spread', weight=0.5, threshold=0.1, imbalance_query='x',
                   vm_profile_fallback='host_average') for name in ('bad', 'good'))
        load = metrics.measure(metrics.MetricsReader(Source()), policies, ('cmp1',),
                               np.array([True]), metrics.host_readings.ScoringRules())
        self.assertEqual(['good'], [policy.name for policy in load.policies])
        self.assertIn('bad', load.no_data)


class LabelDoctorTest(testtools.TestCase):
    """Advice costs no more than what it is about is long."""

    def diagnose(self, *label_sets):
        vector = Vector(tuple(Sample(each, 0.5, 1.0) for each in label_sets))
        started = time.process_time()
        found = labels.diagnose(vector, 'host', ('cmp1', 'cmp2'))
        self.assertLess(time.process_time() - started, 2)
        return found

    def test_a_value_that_makes_expressions_go_back(self):
        self.diagnose(*({'host': character * 94_000} for character in (':', '1:', ':1', '.', 'a')))

    def test_many_values_as_long_as_a_name_may_be(self):
        self.diagnose(*({'host': ':1' * 120, 'instance': f'{n}:' * 40} for n in range(20_000)))

    def test_a_label_of_its_own_for_every_series(self):
        self.diagnose(*({f'label{n}': 'cmp1'} for n in range(50_000)))
