"""Writes of a compute host that was taken over into the control database: its own claims, and
not many of them."""

import datetime

import ddt
import testtools

from kronos_nova import exception
from kronos_nova.claims import central
from kronos_nova.claims import message
from kronos_nova.objects.claim import Amount
from kronos_nova.objects.claim import Claim
from tests.unit.db import fixtures

NOW = datetime.datetime.now(datetime.UTC).isoformat()
ROW = {'host': 'cmp1', 'node': 'cmp1', 'instance_uuid': 'vm1', 'vcpus': 1, 'memory_mb': 512,
       'disk_gb': 1, 'pci': '[]', 'numa_topology': None, 'resize_target': 0, 'created_at': NOW,
       'state': 'claimed', 'migration_uuid': None}


@ddt.ddt
class CentralTableTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        database = self.useFixture(fixtures.ControlDatabase()).database
        self.table = central.CentralTable(database)

    def write(self, *rows, host='cmp1', drop=()):
        return self.table.write(host, list(rows), list(drop))

    def test_its_own_claims(self):
        self.assertEqual(1, len(self.write(ROW)))
        self.assertEqual('vm1', self.table.load('cmp1')[0]['instance_uuid'])

    @ddt.data(
        {'host': 'cmp2'}, {'host': None}, {'node': 5}, {'node': 'x' * 1000}, {'vcpus': -1},
        {'vcpus': 2 ** 63}, {'memory_mb': '512'}, {'disk_gb': 1.5}, {'pci': 'x'},
        {'pci': '[1]'}, {'pci': '[' * 5000}, {'pci': '["' + 'a' * 100_000 + '"]'},
        {'numa_topology': 'x' * 100_000}, {'created_at': '9999-12-31T23:59:59+00:00'},
        {'created_at': '0001-01-01T00:00:00+00:00'}, {'created_at': 'yesterday'},
        {'created_at': 5}, {'state': 'owned'}, {'state': {}}, {'migration_uuid': 'x' * 100},
        {'resize_target': 7}, {'resize_target': 'yes'}, {'resize_target': [1]},
        {'resize_target': float('inf')}, {'node': '\ud800'}, {'instance_uuid': 'a\x00'},
        {'instance_uuid': ['vm1']})
    def test_what_is_no_claim_of_it_is_refused_and_nothing_is_written(self, change):
        self.assertRaises(exception.ClaimError, self.write, ROW, {**ROW, **change})
        self.assertEqual([], self.table.load('cmp1'))
        self.assertEqual([], self.table.load('cmp2'))

    @ddt.data(None, 5, 'text', ['row'], [None], [[]])
    def test_what_is_no_list_of_claims(self, rows):
        self.assertRaises(exception.ClaimError, self.table.write, 'cmp1', rows, [])
        self.assertRaises(exception.ClaimError, self.table.write, 'cmp1', [], rows or 5)
        self.assertRaises(exception.ClaimError, self.table.load, 5)

    def test_a_host_has_only_so_many(self):
        self.patch(message, 'MOST_ROWS', 3)
        self.write(*({**ROW, 'instance_uuid': f'vm{n}'} for n in range(3)))
        self.assertRaises(exception.ClaimError, self.write, {**ROW, 'instance_uuid': 'vm9'})
        self.assertRaises(exception.ClaimError, self.write,
                          *({**ROW, 'instance_uuid': f'x{n}'} for n in range(4)))
        self.assertEqual(3, len(self.table.load('cmp1')))


class CentralStoreTest(testtools.TestCase):
    def test_rows_that_are_no_claims_do_not_reach_the_audit(self):
        rows = [{**ROW, 'id': 1}, {**ROW, 'id': 2, 'created_at': '9999-12-31T23:59:59+00:00'},
                {**ROW, 'id': 3, 'host': 'cmp2'}, 'nonsense']
        store = central.CentralStore(None, 'cmp1', lambda method, **kwargs: rows)
        claim, = store.load()
        self.assertEqual(Claim(
            id=1, host='cmp1', node='cmp1', instance_uuid='vm1',
            amount=Amount(vcpus=1, memory_mb=512, disk_gb=1),
            created_at=datetime.datetime.fromisoformat(NOW)), claim)
