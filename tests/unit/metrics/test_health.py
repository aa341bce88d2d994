"""How good an answer is: freshness, coverage, range; and asking once for all aggregates."""

import ddt
import testtools

from kronos_nova import exception
from kronos_nova.metrics import cycle
from kronos_nova.metrics import freshness
from kronos_nova.metrics import health
from kronos_nova.objects.metrics import IMBALANCE
from kronos_nova.objects.metrics import MetricQuery
from kronos_nova.objects.metrics import Sample
from kronos_nova.objects.metrics import Vector

CPU = MetricQuery('cpu', IMBALANCE, 'cpu')
HOSTS = ('cmp1', 'cmp2')


class Source:
    """A metrics source that says the same to everything."""

    def __init__(self, *samples, error=None):
        self.vector = Vector(tuple(Sample({'host': h}, v, t) for h, v, t in samples))
        self.error = error
        self.asked = 0

    def query(self, query):
        self.asked += 1
        if self.error:
            raise self.error
        return self.vector


class FreshnessTest(testtools.TestCase):
    def test_fresh_samples_pass_untouched(self):
        source = Source(('cmp1', 0.1, 1000.0), ('cmp2', 0.2, 940.0))
        self.assertIs(source.vector, freshness.fresh(source.vector, 1000.0, 60))

    def test_old_and_future_samples_are_left_out_and_told(self):
        source = Source(('cmp1', 0.1, 900.0), ('cmp2', 0.2, 1000.0), ('cmp3', 0.3, 1100.0))
        vector = freshness.FreshSource(source, 60, clock=lambda: 1000.0).query(CPU)
        self.assertEqual(['cmp2'], [sample.labels['host'] for sample in vector.samples])
        self.assertIn('2 of 3 samples', vector.warnings[0])

    def test_nothing_fresh_is_an_error_of_its_own(self):
        source = freshness.FreshSource(Source(('cmp1', 0.1, 0.0)), 60, clock=lambda: 1000.0)
        error = self.assertRaises(exception.MetricsStale, source.query, CPU)
        self.assertIn('clocks', str(error))

    def test_no_series_at_all_is_not_stale(self):
        source = freshness.FreshSource(Source(), 60, clock=lambda: 1000.0)
        self.assertEqual((), source.query(CPU).samples)


@ddt.ddt
class HealthTest(testtools.TestCase):
    def examine(self, source):
        return health.examine(source, CPU, 'host', HOSTS)

    def test_healthy(self):
        found = self.examine(Source(('cmp1', 0.0, 1.0), ('cmp2', 1.0, 1.0)))
        self.assertEqual((health.State.HEALTHY, '', ()),
                         (found.state, found.detail, found.out_of_range))

    def test_partial(self):
        found = self.examine(Source(('cmp1', 0.1, 1.0)))
        self.assertEqual(health.State.PARTIAL, found.state)
        self.assertIn('1 of 2 hosts have no series', found.detail)

    def test_repeated_series_are_partial_too(self):
        found = self.examine(Source(('cmp1', 0.1, 1.0), ('cmp1', 0.2, 1.0), ('cmp2', 0.2, 1.0)))
        self.assertEqual(health.State.PARTIAL, found.state)
        self.assertIn('by (host)', found.detail)

    @ddt.data(1.5, -0.1, float('nan'), float('inf'))
    def test_values_out_of_range_are_named(self, value):
        found = self.examine(Source(('cmp1', 0.1, 1.0), ('cmp2', value, 1.0), ('x', 7.0, 1.0)))
        self.assertEqual(('cmp2',), found.out_of_range)

    def test_errors_are_states(self):
        for error, state in ((exception.MetricsStale, health.State.STALE),
                             (exception.MetricsDenied, health.State.UNREACHABLE)):
            found = self.examine(Source(error=error(source='Prometheus', problem='no')))
            self.assertEqual((state, 'Prometheus: no'), (found.state, found.detail))

    def test_a_mapping_is_proposed(self):
        found = self.examine(Source(('cmp1:9100', 0.1, 1.0), ('cmp2:9100', 0.1, 1.0)))
        self.assertIn('label_replace(', found.detail)


class OncePerCycleTest(testtools.TestCase):
    def test_a_question_is_asked_once(self):
        source = Source(('cmp1', 0.1, 1.0))
        once = cycle.OncePerCycle(source)
        self.assertIs(once.query(CPU), once.query(CPU))
        once.query(MetricQuery('memory', IMBALANCE, 'memory'))
        self.assertEqual(2, source.asked)

    def test_an_error_is_asked_once_too(self):
        source = Source(error=exception.MetricsTimeout(source='Prometheus', problem='slow'))
        once = cycle.OncePerCycle(source)
        for _ in range(3):
            self.assertRaises(exception.MetricsTimeout, once.query, CPU)
        self.assertEqual(1, source.asked)
