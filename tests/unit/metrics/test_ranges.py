"""Windows that hold too few samples."""

import re

import ddt
import testtools

from kronos_nova import exception
from kronos_nova.metrics import ranges
from kronos_nova.objects.metrics import Sample
from kronos_nova.objects.metrics import Vector


class Scraped:
    """A Prometheus whose targets are scraped every ``interval`` seconds since ``age`` seconds."""

    def __init__(self, interval, age=86400):
        self.interval, self.age, self.asked = interval, age, []

    def instant(self, promql):
        self.asked.append(promql)
        window = int(re.search(r'\[([0-9]+)ms\]', promql)[1]) / 1000
        count = int(min(window, self.age) // self.interval)
        return Vector((Sample({}, float(count), 1.0),) if count else ())


@ddt.ddt
class RangesTest(testtools.TestCase):
    @ddt.data(
        ('rate(cpu[5m])', [('cpu', '5m', 'rate', 2)]),
        ('1 - avg by (instance) (rate(cpu{mode="idle"}[5m]))',
         [('cpu{mode="idle"}', '5m', 'rate', 2)]),
        ('rate(x{a="[1m]", b=~"}{"}[1h30m]) # rate(y[5m])',
         [('x{a="[1m]", b=~"}{"}', '1h30m', 'rate', 2)]),
        ('quantile_over_time(0.9, load[10m])', [('load', '10m', 'quantile_over_time', 1)]),
        ('rate({__name__="x",\n job="y"}[5m]) or rate(z [1d])',
         [('{__name__="x", job="y"}', '5m', 'rate', 2), ('z', '1d', 'rate', 2)]),
        ('rate(a[5m]) + rate(a[5m])', [('a', '5m', 'rate', 2)]),
        ('avg_over_time((a + b)[1h:1m])', []), ('max_over_time(a[1h:])', []), ('up', []))
    @ddt.unpack
    def test_the_ranges_of_a_query(self, promql, expected):
        self.assertEqual(expected, [(each.selector, each.window, each.function, each.needed)
                                    for each in ranges.ranges(promql)])

    def said(self, interval, promql='rate(cpu{mode="idle"}[5m])', **scraped):
        return list(ranges.too_short(Scraped(interval, **scraped).instant, promql))

    def test_a_window_of_one_scrape_interval_is_to_be_widened(self):
        said, = self.said(300)
        for word in ('rate(cpu{mode="idle"}[5m])', 'every 300 s', '[5m] to [20m]'):
            self.assertIn(word, said)

    def test_seconds(self):
        self.assertIn('to [8s]', *self.said(2, 'rate(x[2s])'))

    def test_a_window_that_is_long_enough_is_not(self):
        self.assertEqual([], self.said(60))

    def test_a_mean_needs_one_sample(self):
        self.assertEqual([], self.said(300, 'avg_over_time(x[5m])'))

    def test_a_metric_without_samples_is_another_fault(self):
        self.assertEqual([], self.said(300, age=0))

    def test_a_probe_that_fails_says_nothing(self):
        def refuse(_promql):
            raise exception.MetricsQueryRefused(source='it', problem='no')
        self.assertEqual([], list(ranges.too_short(refuse, 'rate(x[5m])')))
