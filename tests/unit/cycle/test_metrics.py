"""Warnings of a policy without data."""

import numpy as np
import testtools

from kronos_nova import exception
from kronos_nova import policies
from kronos_nova.cycle import metrics
from kronos_nova.load import host_readings
from kronos_nova.objects.metrics import Sample
from kronos_nova.objects.metrics import Vector
from kronos_nova.objects.snapshot import Instance

POLICIES = policies.parse("""policies:
  - {name: cpu, mode: spread, weight: 1.0, threshold: 0.1, imbalance_query: load,
     vm_profile_fallback: host_average}
""")


class Source:
    """Answers with a fraction for each of some hosts, called by a label of the test's choice."""

    def __init__(self, label, *names):
        self.vector = Vector(tuple(Sample({label: name}, 0.5, 0.0) for name in names))

    def query(self, query):
        return self.vector


class MeasureTest(testtools.TestCase):
    def no_data(self, *source):
        load = metrics.measure(
            metrics.MetricsReader(Source(*source)), POLICIES.active, ('cmp1', 'cmp2'),
            np.array([True, True]), host_readings.ScoringRules())
        return load.no_data

    def test_hosts_by_their_own_names_need_no_remedy(self):
        self.assertEqual({}, self.no_data('host', 'cmp1', 'cmp2'))

    def test_another_spelling_is_reported_with_what_to_write(self):
        said = self.no_data('host', 'cmp1.example.com:9100', 'cmp2.example.com:9100')['cpu']
        self.assertIn('2 would match with label_replace(QUERY, "host", "$1", "host", '
                      '"([^.:]+).*")', said)

    def test_another_label_is_reported(self):
        self.assertIn('host_label: node', self.no_data('node', 'cmp1', 'cmp2')['cpu'])

    def test_a_host_that_is_really_missing_has_no_remedy(self):
        said = self.no_data('host', 'cmp1')['cpu']
        self.assertIn('cmp2', said)
        self.assertNotIn('would match', said)

    def test_wrong_promql_is_reported_with_its_key_in_the_policies_file(self):
        source = Source('host', 'cmp1', 'cmp2')

        def refuse(query):
            raise exception.MetricsQueryRefused(source='http://p:9090', problem='parse error')
        source.query = refuse
        load = metrics.measure(metrics.MetricsReader(source), POLICIES.active, ('cmp1', 'cmp2'),
                               np.array([True, True]), host_readings.ScoringRules())
        self.assertEqual({'cpu': 'http://p:9090: imbalance_query: parse error'}, load.no_data)

    def partial(self, accepts):
        source = Source('host', 'cmp1', 'cmp2')
        source.vector = Vector(source.vector.samples, ('store 10.0.0.1 did not answer',))
        feed = metrics.MetricsReader(source, accepts_partial=accepts)
        return metrics.measure(feed, POLICIES.active, ('cmp1', 'cmp2'), np.array([True, True]),
                               host_readings.ScoringRules())

    def test_an_answer_that_is_not_whole_is_no_data(self):
        said = self.partial(False).no_data['cpu']
        self.assertIn('the source warns of its answer: store 10.0.0.1', said)
        self.assertIn('accept_partial_metrics', said)
        self.assertIn('store 10.0.0.1', said)

    def test_unless_an_operator_accepts_it(self):
        load = self.partial(True)
        self.assertEqual({}, load.no_data)
        self.assertIn('cpu: store 10.0.0.1 did not answer', load.warnings)


class ProfileTest(testtools.TestCase):
    """A profile by display names, which projects choose as they like."""

    policy = policies.parse("""policies:
  - {name: cpu, mode: spread, weight: 1.0, threshold: 0.1, imbalance_query: load,
     vm_profile_query: profile, vm_profile_label: vm, vm_profile_label_type: display_name}
""").active[0]

    def feed(self, **changes):
        instances = [Instance(uuid=f'u{n}', name=f'i{n}', display_name=name, host=f'h{n}', vcpus=1,
                              project_id='p', status='ACTIVE', memory_mb=1, disk_gb=1)
                     for n, name in enumerate(('web', 'web', 'db'))]
        return metrics.MetricsReader(Source('vm', 'web', 'db'), instances, **changes)

    def test_a_name_that_instances_of_two_aggregates_share_is_not_used(self):
        samples, warnings = self.feed().profile(self.policy)
        self.assertEqual({'db': [(0.5, '')]}, samples)
        self.assertIn('names of several instances, such as "web"', warnings[0])

    def test_a_name_that_an_instance_elsewhere_has_too_is_not_used(self):
        def elsewhere(attribute, names):
            asked.append((attribute, set(names)))
            return {'db'}

        asked = []
        samples, warnings = self.feed(names_elsewhere=elsewhere).profile(self.policy)
        self.assertEqual({}, samples)
        self.assertIn('such as "db"', warnings[0])
        # No one is asked about a query that is not used anyway.
        self.assertEqual([('display_name', {'db'})], asked)

    def test_uuids_are_not_looked_up_outside_the_snapshot(self):
        policy = self.policy.model_copy(update={'vm_profile_label_type': 'uuid'})
        self.feed(names_elsewhere=self.fail).profile(policy)

    def test_a_profile_that_is_not_whole_is_as_if_missing(self):
        feed = self.feed()
        feed._source.vector = Vector(feed._source.vector.samples, ('partial',))
        samples, warnings = feed.profile(self.policy)
        self.assertEqual({}, samples)
        self.assertIn('every instance takes the fallback', warnings[0])
