"""Instances that are left alone because Nova lets them go nowhere."""

import testtools

from kronos_nova.db import refusals
from kronos_nova.objects.plan import Refusal
from tests.unit.db import fixtures


class RefusalsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.clock = fixtures.Clock()
        database = self.useFixture(fixtures.ControlDatabase()).database
        self.refusals = refusals.Refusals(database)

    def rest(self, uuid, seconds=100, reason='no NUMA node fits'):
        self.refusals.rest([Refusal(instance_uuid=uuid, hosts=('a', 'b'), reason=reason)],
                           seconds, self.clock())

    def test_until_its_time_is_over(self):
        self.rest('vm1')
        self.clock.go(60)
        self.assertEqual({'vm1': 40.0}, self.refusals.resting(self.clock()))
        self.clock.go(40)
        self.assertEqual({}, self.refusals.resting(self.clock()))

    def test_the_latest_first_and_what_nova_said(self):
        self.rest('vm1')
        self.clock.go(1)
        self.rest('vm2', reason='no device')
        found = [(refusal.instance_uuid, refusal.hosts, refusal.reason)
                 for refusal, _until, _at in self.refusals.list(self.clock())]
        self.assertEqual([('vm2', ('a', 'b'), 'no device'),
                          ('vm1', ('a', 'b'), 'no NUMA node fits')], found)

    def test_once_an_instance(self):
        self.rest('vm1')
        self.rest('vm1', seconds=500, reason='later')
        [(refusal, _until, _at)] = self.refusals.list(self.clock())
        self.assertEqual('later', refusal.reason)

    def test_what_is_over_is_forgotten_when_others_come(self):
        self.rest('vm1')
        self.clock.go(101)
        self.rest('vm2')
        self.clock.go(-50)
        self.assertEqual({'vm2'}, set(self.refusals.resting(self.clock())))
