"""The store ``sqlite``: its file through upgrades, damage and mishaps."""

import itertools
import os
import pathlib
import re
import shutil
import sqlite3
import time

import fixtures
import testtools
from oslo_config import cfg

from kronos_nova import conf as kronos_conf
from kronos_nova import exception
from kronos_nova.claims import base
from kronos_nova.db import migrate
from kronos_nova.objects.claim import CLAIMED
from kronos_nova.objects.claim import PREPARED
from tests.unit.claims import contract

FILES = pathlib.Path(__file__).parent / 'files'
ONE, TWO, THREE = (f'5f1e3f6a-0000-4000-8000-00000000000{number}' for number in (1, 2, 3))


class StoreTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.state = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.path = self.state / 'claim.sqlite'
        self.conf = cfg.ConfigOpts()
        kronos_conf.register_opts(self.conf)
        self.conf([], default_config_files=[])
        self.conf.set_override('state_path', str(self.state))
        self.log = self.useFixture(fixtures.FakeLogger())

    def store(self, host='compute1'):
        store = base.load_store('sqlite', self.conf, host)
        self.addCleanup(store.close)
        return store

    def old_file(self, name):
        shutil.copy(FILES / name, self.path)

    def sql(self, statement):
        with sqlite3.connect(self.path) as connection:
            return connection.execute(statement).fetchall()


class SqliteContractTest(contract.StoreContract, StoreTestCase):
    def stores(self):
        return self.store('compute1'), self.store('compute2')


class LadderTest(StoreTestCase):
    def test_version_1_gets_states_devices_as_lists_and_times_with_their_offset(self):
        self.old_file('v1.sqlite')
        store = self.store()

        self.assertFalse(store.open())
        claims = store.load()

        self.assertEqual([(1, ONE, False), (2, TWO, False), (3, TWO, True)],
                         [(c.id, c.instance_uuid, c.resize_target) for c in claims])
        self.assertEqual(('0000:81:00.1', '0000:81:00.2'), claims[0].amount.pci)
        self.assertEqual(((), ()), tuple(claim.amount.pci for claim in claims[1:]))
        self.assertEqual({CLAIMED}, {claim.state for claim in claims})
        self.assertEqual('2025-03-01T08:00:05.250000+00:00', claims[1].created_at.isoformat())
        self.assertEqual((8, 16384, 40), (claims[2].amount.vcpus, claims[2].amount.memory_mb,
                                          claims[2].amount.disk_gb))

    def test_version_2_loses_the_earlier_of_two_rows_for_one_claim(self):
        self.old_file('v2.sqlite')
        store = self.store()

        self.assertFalse(store.open())
        claims = {claim.id: claim for claim in store.load()}

        self.assertEqual({1, 3, 4}, set(claims))
        self.assertEqual(80, claims[4].amount.disk_gb)
        self.assertEqual((PREPARED, '9d0c0f3e-0000-4000-8000-000000000009'),
                         (claims[3].state, claims[3].migration_uuid))

    def test_the_version_is_one_row_and_the_second_start_changes_nothing(self):
        self.old_file('v1.sqlite')
        self.assertEqual([('claims', 1)], self.sql('SELECT * FROM claim_versions'))
        first = self.store()
        first.open()
        first.close()

        self.assertTrue(self.store().open())
        self.assertEqual([('claims', int(migrate.head(migrate.CLAIMS)))],
                         self.sql('SELECT * FROM claim_versions'))

    def test_a_file_whose_version_is_known_by_our_table_alone_is_upgraded(self):
        self.old_file('v1.sqlite')
        self.sql('DROP TABLE alembic_version')
        store = self.store()
        store.open()
        self.assertEqual(3, len(store.load()))

    def test_a_newer_file_is_refused_and_left_as_it_is(self):
        self.old_file('v2.sqlite')
        self.sql('UPDATE claim_versions SET version = 99')
        before = self.sql('SELECT * FROM claims')

        error = self.assertRaises(exception.DatabaseVersionError, self.store().open)

        self.assertIn('99', str(error))
        self.assertIn('newer', str(error))
        self.assertEqual(before, self.sql('SELECT * FROM claims'))
        self.assertEqual([self.path.name], sorted(os.listdir(self.state))[:1])

    def test_columns_and_types_are_those_of_the_format(self):
        self.store().open()
        columns = {row[1]: row[2] for row in self.sql('PRAGMA table_info(claims)')}
        self.assertEqual(
            {'id': 'INTEGER', 'host': 'TEXT', 'node': 'TEXT', 'instance_uuid': 'TEXT',
             'vcpus': 'INTEGER', 'memory_mb': 'INTEGER', 'disk_gb': 'INTEGER', 'pci': 'TEXT',
             'resize_target': 'INTEGER', 'created_at': 'TEXT', 'state': 'TEXT',
             'migration_uuid': 'TEXT', 'numa_topology': 'TEXT'}, columns)


class MishapTest(StoreTestCase):
    def aside(self):
        return sorted(name for name in os.listdir(self.state) if 'corrupt' in name)

    def assertStartsAnew(self):  # noqa: N802 - testtools' way
        store = self.store()
        self.assertFalse(store.open())
        self.assertEqual([], store.load())
        names = self.aside()
        self.assertRegex(names[0], r'^claim\.sqlite\.corrupt-\d{8}T\d{6}\.\d+Z$')
        self.assertEqual(1, len(re.findall('cannot be read', self.log.output)))

    def test_a_missing_file_is_made(self):
        self.assertFalse(self.store().open())
        self.assertTrue(self.path.exists())

    def test_a_file_that_is_no_database_is_set_aside(self):
        self.path.write_bytes(b'not a database' * 1000)
        self.assertStartsAnew()

    def test_a_file_with_a_damaged_page_is_set_aside(self):
        self.old_file('v2.sqlite')
        with open(self.path, 'r+b') as file:
            file.seek(4096)
            file.write(b'\xff' * 8192)
        self.assertStartsAnew()

    def test_a_file_with_a_claim_that_makes_no_sense_is_set_aside(self):
        self.old_file('v2.sqlite')
        self.sql("UPDATE claims SET pci = 'not json' WHERE id = 1")
        self.assertStartsAnew()

    def test_a_file_with_other_tables_is_set_aside(self):
        self.sql('CREATE TABLE claims (something TEXT)')
        self.assertStartsAnew()

    def test_a_locked_file_is_an_error_soon_and_is_not_set_aside(self):
        store = self.store()
        store.open()
        other = sqlite3.connect(self.path)
        self.addCleanup(other.close)
        other.execute('BEGIN IMMEDIATE')

        self.assertRaises(exception.ClaimError, store.write, [contract.claim()], [])
        other.rollback()
        store.write([contract.claim()], [])

        self.assertEqual([], self.aside())
        self.assertEqual(1, len(store.load()))

    def test_a_file_on_a_slow_disk_is_not_set_aside(self):
        store = self.store()
        store.write([contract.claim(f'{number:036}') for number in range(1000)], [])
        store.close()
        now = itertools.count(0, 60)    # each look at the clock is a minute after the one before
        self.patch(time, 'monotonic', lambda: float(next(now)))
        self.assertTrue(store.open())
        self.assertEqual(1000, len(store.load()))

    def test_a_full_disk_is_an_error_and_what_was_kept_stays(self):
        store = self.store()
        store.write([contract.claim(ONE)], [])
        # SQLite answers a database at its size limit as it does a full disk: SQLITE_FULL.
        store._connection.connection.execute('PRAGMA max_page_count = 1')
        many = [contract.claim(f'{number:036}') for number in range(500)]

        self.assertRaises(exception.ClaimError, store.write, many, [])

        self.assertEqual([ONE], [claim.instance_uuid for claim in store.load()])
        self.assertEqual([], self.aside())

    def test_a_directory_that_is_not_there_is_an_error(self):
        self.conf.set_override('state_path', str(self.state / 'missing'))
        self.assertRaises(exception.ClaimError, self.store().open)

    def test_what_another_process_wrote_last_survives_its_death(self):
        first = self.store()
        first.write([contract.claim(ONE)], [])
        # As after kill -9: the write-ahead log was never merged.
        for suffix in ('', '-wal'):
            shutil.copy(f'{self.path}{suffix}', f'{self.path}.copy{suffix}')
        first.close()
        self.path.unlink()
        for suffix in ('', '-wal'):
            os.rename(f'{self.path}.copy{suffix}', f'{self.path}{suffix}')

        second = self.store()

        self.assertTrue(second.open())
        self.assertEqual([ONE], [claim.instance_uuid for claim in second.load()])
