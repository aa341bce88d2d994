"""Joins by node_uname_info."""

import ddt
import testtools

from kronos_nova import exception
from kronos_nova.metrics import joins
from kronos_nova.objects.metrics import Sample
from kronos_nova.objects.metrics import Vector

HOSTS = ('cmp1.example.com', 'cmp2.example.com')


def vector(*label_sets):
    return Vector(tuple(Sample(labels, 0.5, 1.0) for labels in label_sets))


def machines(name='cmp{}.example.com', instance='192.0.2.1{}:9100', **rest):
    return vector(*({'instance': instance.format(n), 'nodename': name.format(n),
                     **{label: value.format(n) for label, value in rest.items()}}
                    for n in (1, 2)))


def addresses(**names):
    return vector(*({label: value.format(n) for label, value in names.items()} for n in (1, 2)))


@ddt.ddt
class JoinTest(testtools.TestCase):
    def propose(self, found, uname, joined=None, host_label='host', matches=0):
        self.asked = []

        def instant(promql):
            self.asked.append(promql)
            if promql == joins.METRIC:
                return uname
            return vector(*({host_label: host} for host in HOSTS)) if joined is None else joined

        return joins.propose(instant, 'load', found, host_label, HOSTS, matches)

    @ddt.data(
        (addresses(host='192.0.2.1{}', instance='192.0.2.1{}:9100'), '"host", "(.+?)'),
        (addresses(host='192.0.2.1{}'), '"host", "(.+?)'),
        (addresses(instance='192.0.2.1{}:9177'), '"instance", "(.+?)'))
    @ddt.unpack
    def test_the_key_is_a_label_with_addresses(self, found, word):
        said = self.propose(found, machines())
        self.assertIn(f'label_replace(QUERY, "kronos_address", "$1", {word}', said)
        self.assertIn('group_left (host) max by (kronos_address, host)', said)
        self.assertIn('"host", "$1", "nodename", "(.*)"', said)
        self.assertIn('(\nload\n)', self.asked[1])

    def test_names_are_rewritten(self):
        said = self.propose(addresses(host='192.0.2.1{}'), machines(name='cmp{}'))
        self.assertIn('"host", "$1.example.com", "nodename", "([^.:]+).*"', said)

    def test_another_label_of_the_machines_has_the_names(self):
        said = self.propose(addresses(host='192.0.2.1{}'),
                            machines(name='box{}', fqdn='cmp{}.example.com'), host_label='fqdn')
        self.assertIn('"fqdn", "$1", "fqdn", "(.*)"', said)
        self.assertIn('group_left (fqdn)', said)

    def test_addresses_of_ipv6(self):
        said = self.propose(addresses(instance='[fd00::{}]:9100'),
                            machines(instance='[fd00::{}]:9100'))
        self.assertIn('"instance"', said)

    @ddt.data(
        (addresses(host='198.51.100.{}'), machines(), None),     # other machines
        (addresses(host='192.0.2.1{}'), machines(name='db{}'), None),
        (addresses(host='192.0.2.1{}'), vector(), None),
        (addresses(host='192.0.2.1{}'), machines(), vector()))   # what was tried matches nothing
    @ddt.unpack
    def test_nothing_is_proposed_that_does_not_help(self, found, uname, joined):
        self.assertIsNone(self.propose(found, uname, joined))

    def test_a_join_that_makes_two_series_of_a_host_is_not_proposed(self):
        twice = vector(*({'host': HOSTS[0]} for _ in range(2)))
        self.assertIsNone(self.propose(addresses(host='192.0.2.1{}'), machines(), twice))

    def test_a_join_that_cannot_be_asked_is_not_proposed(self):
        def refuse(_promql):
            raise exception.MetricsQueryRefused(source='it', problem='no')
        self.assertIsNone(joins.propose(refuse, 'load', vector(), 'host', HOSTS, 0))
