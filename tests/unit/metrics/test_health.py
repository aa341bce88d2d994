"""The quality of an answer: freshness, coverage, range."""

import ddt
import testtools

from kronos_nova import exception
from kronos_nova.metrics import health
from kronos_nova.objects.metrics import IMBALANCE
from kronos_nova.objects.metrics import MetricQuery
from kronos_nova.objects.metrics import Sample
from kronos_nova.objects.metrics import Vector

CPU = MetricQuery('cpu', IMBALANCE, 'cpu')
HOSTS = ('cmp1', 'cmp2')


class Source:
    """A metrics source that says the same to everything."""

    def __init__(self, *samples, error=None, warnings=()):
        self.vector = Vector(tuple(Sample({'host': h}, v, t) for h, v, t in samples), warnings)
        self.error = error

    def query(self, query):
        if self.error:
            raise self.error
        return self.vector


@ddt.ddt
class HealthTest(testtools.TestCase):
    def examine(self, source, oldest=0.0, newest=float('inf')):
        return health.examine(source, CPU, health.Expected(
            label='host', names=frozenset(HOSTS), oldest=oldest,
            newest=newest))

    def test_healthy(self):
        found = self.examine(Source(('cmp1', 0.0, 1.0), ('cmp2', 1.0, 1.0)))
        self.assertEqual((health.AnswerHealth.HEALTHY, '', ()),
                         (found.state, found.detail, found.out_of_range))

    def test_partial(self):
        found = self.examine(Source(('cmp1', 0.1, 1.0)))
        self.assertEqual(health.AnswerHealth.PARTIAL, found.state)
        self.assertIn('1 of 2 hosts has no series, such as cmp2; min_coverage', found.detail)

    def test_no_host_at_all_is_not_a_matter_of_coverage(self):
        self.assertNotIn('min_coverage', self.examine(Source(('x', 0.1, 1.0))).detail)

    def test_an_answer_that_is_not_whole_names_the_option(self):
        found = self.examine(Source(('cmp1', 0.1, 1.0), ('cmp2', 0.1, 1.0),
                                    warnings=('store 10.0.0.1 did not answer',)))
        self.assertEqual((health.AnswerHealth.PARTIAL, False), (found.state, found.is_whole))
        for word in ('store 10.0.0.1 did not answer', 'accept_partial_metrics'):
            self.assertIn(word, found.detail)

    def test_repeated_series_are_partial_too(self):
        found = self.examine(Source(('cmp1', 0.1, 1.0), ('cmp1', 0.2, 1.0), ('cmp2', 0.2, 1.0)))
        self.assertEqual(health.AnswerHealth.PARTIAL, found.state)
        self.assertIn('by (host)', found.detail)

    def instances(self, doubled, moving=(), count=30):
        names = [f'i{number}' for number in range(count)]
        source = Source(*((name, 0.1, 1.0) for name in (*names, *names[:doubled])))
        return health.examine(source, CPU, health.Expected(
            label='host', names=frozenset(names), noun='instances', moving=frozenset(moving)))

    @ddt.data((1, (), True), (3, (), True), (4, (), False), (4, ('i0',), True))
    @ddt.unpack
    def test_two_series_of_an_instance_are_a_live_migration(self, doubled, moving, is_healthy):
        found = self.instances(doubled, moving)
        self.assertEqual(is_healthy, found.state is health.AnswerHealth.HEALTHY, found.detail)
        self.assertEqual(is_healthy, 'as during a live migration' in found.detail)
        self.assertEqual(doubled, len(found.diagnosis.repeated))

    def test_one_of_two_instances_may_be_moving_and_both_may_not(self):
        self.assertIs(health.AnswerHealth.HEALTHY, self.instances(1, count=2).state)
        self.assertIs(health.AnswerHealth.PARTIAL, self.instances(2, count=2).state)

    @ddt.data(1.5, -0.1, float('nan'), float('inf'))
    def test_values_out_of_range_are_named(self, value):
        found = self.examine(Source(('cmp1', 0.1, 1.0), ('cmp2', value, 1.0), ('x', 7.0, 1.0)))
        self.assertEqual(('cmp2',), found.out_of_range)

    def test_an_error_is_a_state(self):
        error = exception.MetricsDenied(source='Prometheus', problem='no')
        found = self.examine(Source(error=error))
        self.assertEqual((health.AnswerHealth.UNREACHABLE, 'Prometheus: no', error),
                         (found.state, found.detail, found.error))

    def test_an_old_sample_is_none(self):
        found = self.examine(Source(('cmp1', 0.1, 99.0), ('cmp2', 5.0, 9.0)), oldest=50.0)
        self.assertEqual((health.AnswerHealth.STALE, ('cmp2',), ()),
                         (found.state, found.diagnosis.missing, found.out_of_range))
        self.assertIn('clocks', found.detail)

    def test_a_sample_from_the_future_is_said(self):
        found = self.examine(Source(('cmp1', 0.1, 99.0), ('cmp2', 0.2, 99.0)), newest=50.0)
        self.assertEqual((health.AnswerHealth.STALE, ()),
                         (found.state, found.diagnosis.missing))
        self.assertIn('2 samples are from the future: compare the clocks', found.detail)

    def test_a_mapping_is_proposed(self):
        found = self.examine(Source(('cmp1:9100', 0.1, 1.0), ('cmp2:9100', 0.1, 1.0)))
        self.assertIn('label_replace(', found.detail)
