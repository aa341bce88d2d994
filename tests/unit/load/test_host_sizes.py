"""By which sizes of hosts a profile is converted."""

import ddt
import numpy as np
import testtools

from kronos_nova import policies
from kronos_nova.load import host_sizes
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import ResourceInventory
from kronos_nova.objects.snapshot import Service

CPU_QUERY = 'rate(libvirt_domain_info_cpu_time_seconds_total[5m]) / count by (host) (node_cpu)'


def policy(name='cpu', query='profile', **keys):
    rows = {'name': name, 'mode': 'spread', 'weight': 1.0, 'threshold': 0.1,
            'imbalance_query': 'load', 'vm_profile_query': query, **keys}
    return policies.PolicySet(policies=(policies.Policy(**rows),)).active[0]


def host(name, vcpus, memory_mb):
    return Host(name=name, uuid=name, service=Service(state='up', status='enabled'), inventory={
        'VCPU': ResourceInventory(total=vcpus), 'MEMORY_MB': ResourceInventory(total=memory_mb)})


ALIKE = host('a', 64, 1000), host('b', 66, 1030)
MIXED = host('big', 128, 1000), host('small', 32, 1000)
ONES = np.ones(2)


@ddt.ddt
class SizesTest(testtools.TestCase):
    def test_hosts_of_about_one_size_need_none(self):
        found = host_sizes.sizes(policy(name='load'), ALIKE, ONES)
        self.assertEqual(([1, 1], ''), (found.values.tolist(), found.problem))

    @ddt.data({'name': 'cpu'}, {'name': 'host-cpus'}, {'name': 'load', 'query': CPU_QUERY},
              {'name': 'load', 'vm_profile_resource': 'VCPU'})
    def test_a_share_of_the_own_host_is_half_as_much_on_one_of_twice_the_size(self, keys):
        found = host_sizes.sizes(policy(**keys), MIXED, ONES)
        self.assertEqual([1.0, 0.25], found.values.tolist())
        self.assertEqual([1.0, 0.25], found.units.tolist())

    def test_memory_is_sized_by_memory(self):
        hosts = host('a', 8, 100), host('b', 8, 400)
        found = host_sizes.sizes(policy(name='memory'), hosts, ONES)
        self.assertEqual([0.25, 1.0], found.values.tolist())

    @ddt.data({'name': 'load'}, {'name': 'cpu-and-memory'}, {'name': 'cpu-steal'},
              {'name': 'load', 'query': '0 * libvirt_domain_info_virtual_cpus + 0.02'})
    def test_where_nothing_tells_the_resource_the_remedy_is_named(self, keys):
        found = host_sizes.sizes(policy(**keys), MIXED, ONES)
        self.assertIn('VCPU of small: 32, of big: 128', found.problem)
        self.assertIn('vm_profile_resource', found.problem)

    def test_a_score_is_the_same_everywhere(self):
        found = host_sizes.sizes(policy(name='count', vm_profile_unit='score'), MIXED, ONES)
        self.assertEqual(([1, 1], ''), (found.values.tolist(), found.problem))

    def test_an_amount_is_divided_by_what_the_host_has(self):
        keys = {'vm_profile_unit': 'absolute', 'vm_profile_resource': 'VCPU'}
        found = host_sizes.sizes(policy(**keys), MIXED, ONES)
        self.assertEqual(([128, 32], [1, 1]), (found.values.tolist(), found.units.tolist()))

    def test_the_query_for_sizes_goes_first(self):
        asked = policy(host_capacity_query='cores')
        found = host_sizes.sizes(asked, MIXED, np.array([100.0, 50.0]))
        self.assertEqual(([100, 50], [1, 1]), (found.values.tolist(), found.units.tolist()))


@ddt.ddt
class KeysTest(testtools.TestCase):
    @ddt.data(({'host_capacity_query': 'q', 'vm_profile_unit': 'host_fraction'},
               'in absolute units'),
              ({'host_capacity_query': 'q', 'vm_profile_resource': 'VCPU'},
               'both give the capacity'),
              ({'vm_profile_unit': 'absolute'}, 'needs host_capacity_query or'),
              ({'vm_profile_unit': 'score', 'vm_profile_resource': 'VCPU'}, 'has no effect'))
    @ddt.unpack
    def test_keys_that_contradict_each_other_are_refused(self, keys, said):
        self.assertIn(said, str(self.assertRaises(ValueError, policy, **keys)))

    @ddt.data(({}, 'host_fraction'), ({'host_capacity_query': 'q'}, 'absolute'),
              ({'vm_profile_unit': 'score'}, 'score'))
    @ddt.unpack
    def test_a_file_that_says_nothing_means_fractions(self, keys, unit):
        self.assertEqual(unit, policy(**keys).profile_unit)
