"""The label doctor."""

import ddt
import testtools

from kronos_nova.metrics import labels
from kronos_nova.objects.metrics import Sample
from kronos_nova.objects.metrics import Vector

SHORT = ('cmp1', 'cmp2')
FULL = ('cmp1.example.com', 'cmp2.example.com')


def vector(*label_sets):
    return Vector(tuple(Sample(labels, 0.5, 1.0) for labels in label_sets))


@ddt.ddt
class LabelDoctorTest(testtools.TestCase):
    def test_matching_names_need_nothing(self):
        diagnosis = labels.diagnose(vector({'host': 'cmp1'}, {'host': 'cmp2'}), 'host', SHORT)
        self.assertEqual((SHORT, (), (), (), None), (
            diagnosis.matched, diagnosis.missing, diagnosis.unknown, diagnosis.repeated,
            diagnosis.proposal))

    @ddt.data(
        ('full names where Nova has short ones', FULL, SHORT,
         r'label_replace(QUERY, "host", "$1", "host", "([^.:]+).*")'),
        ('short names where Nova has full ones', SHORT, FULL,
         r'label_replace(QUERY, "host", "$1.example.com", "host", "([^.:]+).*")'),
        ('a port', ('cmp1:9100', 'cmp2:9100'), SHORT,
         r'label_replace(QUERY, "host", "$1", "host", "(.*):\\d+")'),
        ('a full name with a port', ('cmp1.example.com:9100', 'cmp2.example.com:9100'), FULL,
         r'label_replace(QUERY, "host", "$1", "host", "(.*):\\d+")'),
        ('both', ('cmp1.example.com:9100', 'cmp2.example.com:9100'), SHORT,
         r'label_replace(QUERY, "host", "$1", "host", "([^.:]+).*")'),
    )
    @ddt.unpack
    def test_names_that_differ(self, _why, values, hosts, remedy):
        diagnosis = labels.diagnose(vector(*({'host': v} for v in values)), 'host', hosts)
        self.assertEqual(((), hosts, values), (
            diagnosis.matched, diagnosis.missing, diagnosis.unknown))
        self.assertEqual(remedy, diagnosis.proposal.remedy('host'))
        self.assertEqual(2, diagnosis.proposal.matches)

    def test_another_label_has_the_names(self):
        diagnosis = labels.diagnose(
            vector({'instance': '10.0.0.1:9100', 'nodename': 'cmp1'},
                   {'instance': '10.0.0.2:9100', 'nodename': 'cmp2'}), 'host', SHORT)
        self.assertEqual('host_label: nodename', diagnosis.proposal.remedy('host'))
        self.assertEqual(('',), diagnosis.unknown)

    def test_another_label_has_them_with_a_port(self):
        diagnosis = labels.diagnose(
            vector({'instance': 'cmp1:9100'}, {'instance': 'cmp2:9100'}), 'host', SHORT)
        self.assertEqual(r'label_replace(QUERY, "host", "$1", "instance", "(.*):\\d+")',
                         diagnosis.proposal.remedy('host'))

    def test_a_rewrite_that_makes_two_series_one_is_not_proposed(self):
        diagnosis = labels.diagnose(
            vector({'host': 'cmp1.dc1'}, {'host': 'cmp1.dc2'}), 'host', SHORT)
        self.assertIsNone(diagnosis.proposal)

    def test_strangers_are_reported_and_nothing_is_proposed(self):
        diagnosis = labels.diagnose(vector({'host': 'db1'}), 'host', SHORT)
        self.assertEqual((('db1',), None), (diagnosis.unknown, diagnosis.proposal))

    def test_series_that_are_repeated(self):
        diagnosis = labels.diagnose(
            vector({'host': 'cmp1', 'cpu': '0'}, {'host': 'cmp1', 'cpu': '1'}), 'host', SHORT)
        self.assertEqual(('cmp1',), diagnosis.repeated)
