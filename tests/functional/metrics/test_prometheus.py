"""The client against a real Prometheus."""

import re
import time

import testtools

from kronos_nova import exception
from kronos_nova.metrics import prometheus
from kronos_nova.metrics import ranges
from kronos_nova.metrics.endpoint import Endpoint
from kronos_nova.objects.metrics import IMBALANCE
from kronos_nova.objects.metrics import MetricQuery
from tests.functional.prometheus import Prometheus
from tests.unit.fakes_web_server import WebServer


class Saw:
    """A gauge that is 0 and 1 by turns."""

    def __init__(self):
        self.value = 0

    def __call__(self, handler):
        self.value = 1 - self.value
        body = f'saw {self.value}\n'.encode()
        handler.send_response(200)
        handler.send_header('Content-Type', 'text/plain')
        handler.send_header('Content-Length', str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)


class PrometheusTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        address = self.useFixture(WebServer(Saw())).url.removeprefix('http://')
        self.url = self.useFixture(Prometheus([{
            'job_name': 'saw', 'static_configs': [{'targets': [address]}]}])).url
        self.client = prometheus.PrometheusClient(Endpoint(url=self.url))
        self.wait_for(8)

    def wait_for(self, samples):
        deadline = time.monotonic() + 60
        while not self.client.instant(f'count_over_time(saw[1m]) >= {samples}').samples:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.2)

    def test_what_it_says_is_understood(self):
        sample, = self.client.query(MetricQuery('p', IMBALANCE, 'saw')).samples
        self.assertEqual('saw', sample.labels['job'])
        self.assertIn(sample.value, (0.0, 1.0))
        self.assertAlmostEqual(time.time(), sample.timestamp, delta=5)
        self.assertIn('storageRetention', self.client.runtime_info())
        now = time.time()
        series, = self.client.range('saw', now - 3, now, 0.5)
        self.assertGreaterEqual(len(series.points), 5)
        for promql, error in (('rate(', exception.MetricsQueryRefused),
                              ('1', exception.MetricsNotAVector),
                              ('saw[5s]', exception.MetricsNotAVector),
                              ('saw + on () {__name__=~"saw|up"}', exception.MetricsQueryRefused)):
            self.assertRaises(error, self.client.instant, promql)

    def test_a_window_as_long_as_the_scrape_interval_is_found(self):
        interval = 4
        url = self.useFixture(Prometheus([{'job_name': 'slow', 'static_configs': [{
            'targets': [self.url.removeprefix('http://')]}]}], interval=f'{interval}s')).url
        slow = prometheus.PrometheusClient(Endpoint(url=url))
        name, promql = 'process_cpu_seconds_total', 'rate({}[{}s])'
        deadline = time.monotonic() + 60
        while not slow.instant(f'count_over_time({name}[1m]) >= 4').samples:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.2)
        short = promql.format(name, 2)
        self.assertEqual((), slow.instant(short).samples)
        said, = ranges.too_short(slow.instant, short)
        self.assertIn(f'{short} needs 2 samples', said)
        widened = int(re.search(r'to \[([0-9]+)s\]', said)[1])
        self.assertNotEqual((), slow.instant(promql.format(name, widened)).samples)
        self.assertEqual([], list(ranges.too_short(slow.instant, promql.format(name, widened))))

    def test_smoothing_takes_the_peaks_away(self):
        smooth = prometheus.PrometheusClient(Endpoint(url=self.url), smoothing=(4, 1))
        promql = 'saw # a comment must not swallow what is put around'
        sample, = smooth.query(MetricQuery('p', IMBALANCE, promql)).samples
        self.assertTrue(0.0 <= sample.value <= 1.0, sample)
        half = prometheus.PrometheusClient(Endpoint(url=self.url), smoothing=(3600, 1))
        sample, = half.query(MetricQuery('p', IMBALANCE, 'avg_over_time(saw[2s])')).samples
        self.assertAlmostEqual(0.5, sample.value, delta=0.2)

    def test_smoothing_does_not_hide_that_samples_have_ended(self):
        ended = f'saw unless on () (vector(time()) > {time.time():.3f})'
        smooth = prometheus.PrometheusClient(Endpoint(url=self.url), smoothing=(60, 1))
        self.assertNotEqual((), self.client.instant(f'max_over_time(({ended})[1m:1s])').samples)
        self.assertEqual((), smooth.query(MetricQuery('p', IMBALANCE, ended)).samples)
