"""A cloud as it would be."""

import testtools

from kronos_nova import exception
from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.objects import snapshot as objects
from kronos_nova.objects.shape import Shape
from kronos_nova.room import slots
from kronos_nova.room import whatif
from tests.unit.room import clouds

FLAVOR = Shape(id='1', name='m1.large', vcpus=4, memory_mb=4096)


class WhatIfTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.snapshot = clouds.cloud(
            [clouds.host('a', domains={'rack': 'r1'}), clouds.host('b', domains={'rack': 'r2'}),
             clouds.host('c', domains={'rack': 'r2'})],
            [clouds.server('one', 'a', 6), clouds.server('two', 'b', 4),
             clouds.server('three', 'c', 5)],
            aggregates=(objects.Aggregate(name='kept', uuid='k', hosts=('a',),
                                          metadata={'filter_tenant_id': 'p'}),))

    def change(self, **changes):
        return whatif.changed(self.snapshot, ConstraintRules(), whatif.Changes(**changes),
                              lambda: [FLAVOR])

    def count(self, snapshot, shape=FLAVOR):
        counter = slots.SlotCounter(snapshot, ConstraintRules(), [shape], project_id='p')
        return counter.slots(0).total

    def places(self, snapshot):
        return {each.uuid: each.host for each in snapshot.instances}

    def test_without_changes_it_is_the_same(self):
        self.assertEqual(self.snapshot, self.change().snapshot)

    def test_servers_of_a_lost_host_restart_on_the_others(self):
        found = self.change(add=['1:like=b'], lose=['b'])
        self.assertEqual({'a', 'c', 'b+1'}, {host.name for host in found.snapshot.hosts})
        self.assertEqual(({'one': 'a', 'three': 'c', 'two': 'b+1'}, {}),
                         (self.places(found.snapshot), found.left))

    def test_a_failure_domain_is_all_of_its_hosts(self):
        found = self.change(lose=['rack=r2'])
        self.assertEqual(({'a'}, {'two', 'three'}),
                         ({host.name for host in found.snapshot.hosts}, found.left.keys()))

    def test_what_does_not_fit_is_left_and_the_rest_restarts(self):
        self.snapshot = clouds.cloud(
            [clouds.host('a'), clouds.host('b', 4)],
            [clouds.server('small', 'a', 2), clouds.server('large', 'a', 6)])
        found = self.change(lose=['a'])
        self.assertEqual(({'small': 'b'}, {'large'}),
                         (self.places(found.snapshot), found.left.keys()))

    def test_hosts_like_one_are_empty_and_in_its_aggregates(self):
        found = self.change(add=['2:like=a'])
        added = [host for host in found.snapshot.hosts if '+' in host.name]
        self.assertEqual(['a+1', 'a+2'], [host.name for host in added])
        self.assertEqual(self.count(self.snapshot) + 4, self.count(found.snapshot))
        [kept] = found.snapshot.aggregates
        self.assertEqual(('a', 'a+1', 'a+2'), kept.hosts)

    def test_another_ratio_makes_other_room(self):
        found = self.change(ratio=['VCPU=4'])
        self.assertEqual(32 * 3, sum(host.inventory['VCPU'].capacity
                                     for host in found.snapshot.hosts))

    def test_new_servers_take_their_room(self):
        self.assertEqual(1, self.count(self.snapshot))
        found = self.change(boot=['3:m1.large'])
        self.assertEqual((0, {'m1.large': 2}),
                         (self.count(found.snapshot), found.not_booted))
        self.assertEqual({}, self.change(add=['1:like=b'], boot=['3:m1.large']).not_booted)

    def test_used_of_hosts_grows_by_what_arrives(self):
        self.snapshot = clouds.cloud(
            [clouds.host('a', used={'VCPU': 2, 'MEMORY_MB': 1024}),
             clouds.host('b', used={'VCPU': 1, 'MEMORY_MB': 512})],
            [clouds.server('one', 'a', 2)])
        [left] = self.change(lose=['a']).snapshot.hosts
        self.assertEqual({'VCPU': 3, 'MEMORY_MB': 1536}, left.used)

    def test_what_cannot_be_read_is_refused(self):
        for changes in ({'ratio': ['VCPU']}, {'ratio': ['VCPU=0']}, {'ratio': ['NOPE=2']},
                        {'add': ['a']}, {'boot': ['m1.large']}, {'boot': ['1:nope']},
                        {'lose': ['rack=x']}):
            self.assertRaises(exception.RequestRefused, self.change, **changes)
        for changes in ({'lose': ['x']}, {'add': ['1:like=x']}):
            self.assertRaises(exception.HostNotFound, self.change, **changes)
