"""The contract of claim stores."""

import dataclasses
import datetime

from kronos_nova.objects.claim import PREPARED
from kronos_nova.objects.claim import Amount
from kronos_nova.objects.claim import Claim

NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
INSTANCE = 'c3e9a7a0-5c1f-4f0e-9d64-0d5d3c1b0a01'
AMOUNT = Amount(vcpus=2, memory_mb=2048, disk_gb=20, pci=('0000:81:00.1',),
                numa_topology='{"cells": []}')


def claim(instance_uuid=INSTANCE, **values):
    values = {'host': 'compute1', 'node': 'node1', 'amount': AMOUNT, 'created_at': NOON, **values}
    return Claim(instance_uuid=instance_uuid, **values)


class StoreContract:
    """``stores()`` gives the stores of the hosts compute1 and compute2."""

    def setUp(self):
        super().setUp()
        self.one, self.other = self.stores()
        self.one.open()
        self.other.open()

    def test_what_is_written_is_read(self):
        target = claim(resize_target=True, state=PREPARED, migration_uuid='m1', node='node2')
        ids = self.one.write([claim(), target], [])

        self.assertEqual([dataclasses.replace(each, id=ids[each.key])
                          for each in (claim(), target)], self.one.load())

    def test_the_same_key_is_overwritten_and_keeps_its_id(self):
        first = self.one.write([claim()], [])
        larger = claim(amount=dataclasses.replace(AMOUNT, vcpus=8))

        self.assertEqual(first, self.one.write([larger], []))
        self.assertEqual([8], [each.amount.vcpus for each in self.one.load()])

    def test_home_and_target_of_one_instance_are_two_claims(self):
        home, target = claim(), claim(resize_target=True)
        self.one.write([home, target], [])
        self.one.write([], [home.key])
        self.assertEqual([target.key], [each.key for each in self.one.load()])

    def test_put_and_drop_happen_together(self):
        self.one.write([claim()], [])
        moved = claim(resize_target=True)
        self.one.write([moved], [claim().key])
        self.assertEqual([moved.key], [each.key for each in self.one.load()])

    def test_dropping_what_is_not_there_is_no_error(self):
        self.one.write([], [claim().key])
        self.assertEqual([], self.one.load())

    def test_an_id_is_never_given_twice(self):
        first = self.one.write([claim()], [])[claim().key]
        self.one.write([], [claim().key])
        self.assertNotEqual(first, self.one.write([claim()], [])[claim().key])

    def test_hosts_do_not_see_each_other(self):
        self.one.write([claim()], [])
        self.other.write([], [claim().key])
        self.assertEqual([claim().key], [each.key for each in self.one.load()])

    def test_closing_and_opening_again_loses_nothing(self):
        self.one.write([claim()], [])
        self.one.close()
        self.assertTrue(self.one.open())
        self.assertEqual([claim().key], [each.key for each in self.one.load()])
