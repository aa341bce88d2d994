"""Hosts that Nova would refuse are not planned for, and those of which nothing is known are."""

import dataclasses

import ddt
import numpy as np
import testtools

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.constraints.requirements import HostRequirements
from kronos_nova.objects import host_checks
from kronos_nova.objects.snapshot import Cpu
from kronos_nova.objects.snapshot import Requirements
from tests.unit.constraints.test_constraints import aggregate
from tests.unit.planners import clouds
from tests.unit.planners.clouds import snapshot_of

SKYLAKE = Cpu(arch='x86_64', model='Skylake-Server', features=('aes', 'avx512f', 'x2apic'))
CASCADELAKE = Cpu(arch='x86_64', model='Cascadelake-Server',
                  features=('aes', 'avx512f', 'avx512vnni'))
HASWELL = Cpu(arch='x86_64', model='Haswell', features=('aes',))
UNDESCRIBED = Cpu(arch='x86_64', model='Haswell')
ARM = Cpu(arch='aarch64', model='host')
NEW_ARM = Cpu(arch='aarch64', model='host', features=('sve',))


@ddt.ddt
class HostRequirementsTest(testtools.TestCase):
    """Server 0 is on h0 and requires something, server 1 is on h1 and requires nothing."""

    def rules(self, hosts, requires=None, aggregates=(), checks=host_checks.ALL_CHECKS):
        """
        :param hosts: for each of h0, h1, h2 what is known of it
        """
        problem = clouds.idle([0, 1], hosts=3)
        snapshot = snapshot_of(problem, aggregates)
        instances = list(snapshot.instances)
        instances[0] = dataclasses.replace(instances[0], requires=Requirements(**requires or {}))
        snapshot = dataclasses.replace(
            snapshot, instances=tuple(instances), hosts=tuple(
                dataclasses.replace(host, **known)
                for host, known in zip(snapshot.hosts, hosts, strict=True)))
        return HostRequirements.compile(problem, snapshot, ConstraintRules(
            host_checks=frozenset(checks)))

    def check(self, expected, *args, **kwargs):
        """
        :param expected: of h1 and h2, what is said against server 0 there
        """
        rules = self.rules(*args, **kwargs)
        found = ['; '.join(rule.why(None, 0, host) for rule in rules
                           if not rule.allows(None, np.array(0), np.array(host)))
                 for host in (1, 2)]
        self.assertEqual(list(expected), found)
        self.assertLessEqual({rule.reason for rule in rules}, {'refused'})

    @ddt.data(
        (('A', 'B'), ('A',), ('A', 'B'), {'traits': ('B',)}, 'h1 lacks the trait B', ''),
        (('A',), ('A',), (), {'traits': ('B', 'C')},
         'h1 lacks the traits B, C', 'h2 lacks the traits B, C'),
        ((), ('A',), None, {'forbidden': ('A',)}, 'h1 has the trait A, which the flavor forbids',
         ''),
        (None, None, None, {'traits': ('A',)}, '', ''),
        # Where it runs has the trait itself: what forbids it looks at another provider.
        (('A',), ('A',), (), {'forbidden': ('A',)}, '', ''))
    @ddt.unpack
    def test_traits(self, first, second, third, requires, *expected):
        self.check(expected, [{'traits': each} for each in (first, second, third)], requires)

    def test_a_server_keeps_to_the_aggregates_that_it_asks_for(self):
        members = [aggregate('a', ['h0', 'h1']), aggregate('b', ['h0', 'h2'])]
        hosts = [{}] * 3
        self.check(('', 'h2 is in no aggregate that the server asks for: a'), hosts,
                   {'member_of': (('a',),)}, members)
        self.check(('h1 is in no aggregate that the server asks for: b',
                    'h2 is in no aggregate that the server asks for: a'), hosts,
                   {'member_of': (('a',), ('b',))}, members)
        self.check(('', ''), hosts, {'member_of': (('a', 'b'),)}, members)
        self.check(('', ''), hosts, {'member_of': (('unread',),)}, members)
        self.check(('', 'h2 is in no aggregate that the server asks for: a'), hosts,
                   {'member_of': (('a', 'without a host here'),)}, members)
        elsewhere = [aggregate('a', ['h1'])]
        self.check(('', ''), hosts, {'member_of': (('a',),)}, elsewhere)

    def test_an_isolated_aggregate_takes_those_that_require_its_trait(self):
        isolated = [aggregate('gpu', ['h2'], **{'trait:CUSTOM_GPU': 'required'}),
                    aggregate('other', ['h1'], **{'trait:CUSTOM_GPU': 'maybe'})]
        hosts = [{'traits': ('CUSTOM_GPU',)}] * 3
        self.check(('', 'h2 is in the aggregate gpu, which is for servers that require CUSTOM_GPU'),
                   hosts, {}, isolated)
        self.check(('', ''), hosts, {'traits': ('CUSTOM_GPU',)}, isolated)

    @ddt.data(
        ({'hw_architecture': 'aarch64'}, 'h1 does not run aarch64, the architecture of the image',
         ''),
        ({'hw_architecture': 'i686'}, '', 'h2 does not run i686, the architecture of the image'),
        ({'hw_architecture': 'amd64'}, '',
         'h2 does not run x86_64, the architecture of the image'),
        ({'hw_architecture': 's390x'}, '', 'h2 does not run s390x, the architecture of the image'),
        ({'img_hv_type': 'xen'}, 'h1 is no xen hypervisor, which the image asks for',
         'h2 is no xen hypervisor, which the image asks for'),
        ({'img_hv_type': 'kvm', 'hw_vm_mode': 'hvm'}, '', ''),
        ({'hw_vm_mode': 'xen'}, 'h1 has no xen mode, which the image asks for',
         'h2 has no xen mode, which the image asks for'),
        ({'img_hv_type': 'qemu', 'img_hv_requested_version': '>=9.0,<10'},
         'h1 has a hypervisor of version 8.2.1, and the image asks for >=9.0,<10', ''),
        ({'img_hv_requested_version': '>=9.0'}, '', ''),
        ({'img_hv_type': 'qemu', 'img_hv_requested_version': 'newest'}, '', ''))
    @ddt.unpack
    def test_properties_of_images(self, image, *expected):
        self.check(expected, [
            {}, {'cpu': SKYLAKE, 'hypervisor_version': 8002001, 'traits': ('COMPUTE_ARCH_S390X',)},
            {'cpu': ARM, 'hypervisor_version': 9001000}], {'image': image})

    def test_a_hypervisor_is_of_the_same_kind_and_not_older(self):
        for first, second, third, *expected in (
                (9001000, 9001000, 8002001, '',
                 'h2 has QEMU 8.2.1, older than 9.1.0 of its host'),
                (8002001, 9001000, None, '', ''), (None, 9001000, 8002001, '', '')):
            self.check(expected, [{'hypervisor_version': version}
                                  for version in (first, second, third)])
        self.check(('', 'h2 has the hypervisor KVM, and the server runs on QEMU'),
                   [{}, {}, {'hypervisor_type': 'KVM'}])

    @ddt.data((SKYLAKE, HASWELL, CASCADELAKE,
               'h1 has a Haswell without avx512f of the Skylake-Server of its host', ''),
              (HASWELL, SKYLAKE, CASCADELAKE, '', ''), (None, SKYLAKE, HASWELL, '', ''),
              (CASCADELAKE, UNDESCRIBED, None, '', ''), (NEW_ARM, ARM, NEW_ARM, '', ''),
              (SKYLAKE, ARM, SKYLAKE,
               'h1 has aarch64 processors, and the server runs on x86_64', ''))
    @ddt.unpack
    def test_the_features_of_the_source_are_those_of_the_destination_too(
            self, first, second, third, *expected):
        self.check(expected, [{'cpu': each} for each in (first, second, third)])

    def test_a_guest_whose_model_is_known_is_not_compared_by_its_host(self):
        hosts = [{'cpu': SKYLAKE}, {'cpu': HASWELL}, {'cpu': CASCADELAKE}]
        self.check(('', ''), hosts, {'cpu_model': 'Haswell'})

    # Room in NUMA cells is a constraint of its own.
    @ddt.data(*sorted(set(host_checks.ALL_CHECKS) - {host_checks.NUMA}))
    def test_a_check_that_is_left_out_forbids_nothing(self, check):
        hosts = [{'cpu': SKYLAKE, 'hypervisor_version': 9001000, 'traits': ('A',)},
                 {'cpu': HASWELL, 'hypervisor_version': 8002001, 'traits': ()}, {}]
        requires = {'traits': ('A',), 'member_of': (('a',),), 'image': {'img_hv_type': 'xen'}}
        members = [aggregate('a', ['h0'])]
        self.assertEqual(5, len(self.rules(hosts, requires, members)))
        self.assertEqual(4, len(self.rules(hosts, requires, members,
                                           set(host_checks.ALL_CHECKS) - {check})))
        self.assertEqual(1, len(self.rules(hosts, requires, members, {check})))

    def test_where_nothing_is_known_there_is_no_rule(self):
        self.assertEqual((), self.rules([{}] * 3, {'traits': ('A',), 'cpu_model': 'Haswell'}))
