"""What a policy without data says to the operator."""

import numpy as np
import testtools

from kronos_nova import policies
from kronos_nova import scoring
from kronos_nova.engine import measure
from kronos_nova.objects.metrics import Sample
from kronos_nova.objects.metrics import Vector

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
        load = measure.measure(measure.Feed(Source(*source)), POLICIES.active, ('cmp1', 'cmp2'),
                               np.array([True, True]), scoring.ScoringRules())
        return load.no_data

    def test_hosts_by_their_own_names_need_no_remedy(self):
        self.assertEqual({}, self.no_data('host', 'cmp1', 'cmp2'))

    def test_another_spelling_is_told_with_what_to_write(self):
        said = self.no_data('host', 'cmp1.example.com:9100', 'cmp2.example.com:9100')['cpu']
        self.assertIn('2 would match with label_replace(QUERY, "host", "$1", "host", '
                      '"([^.:]+).*")', said)

    def test_another_label_is_told(self):
        self.assertIn('host_label: node', self.no_data('node', 'cmp1', 'cmp2')['cpu'])

    def test_a_host_that_is_really_missing_has_no_remedy(self):
        said = self.no_data('host', 'cmp1')['cpu']
        self.assertIn('cmp2', said)
        self.assertNotIn('would match', said)
