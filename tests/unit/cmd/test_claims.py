"""``kronos-manage claims`` as an operator of a compute host calls it."""

import argparse
import dataclasses
import datetime
import json

from kronos_nova.claims import sqlite
from kronos_nova.claims import table
from kronos_nova.cmd import manage
from kronos_nova.db import claim_models
from kronos_nova.objects.claim import PREPARED
from tests.unit.claims import contract
from tests.unit.cmd import base


class ClaimsCommandsTest(base.ManageTestCase):
    def setUp(self):
        super().setUp()
        conf = manage.load_config(argparse.Namespace(
            config_file=[self.config], config_dir=None))
        self.store = sqlite.SqliteStore(conf, 'compute1')
        self.addCleanup(self.store.close)
        long_ago = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=301)
        self.home = contract.claim('home', created_at=long_ago)
        self.fresh = dataclasses.replace(
            self.home, instance_uuid='fresh', state=PREPARED, resize_target=True,
            migration_uuid='m1', created_at=long_ago + datetime.timedelta(seconds=60))
        self.expired = dataclasses.replace(self.fresh, instance_uuid='expired', created_at=long_ago)
        self.ids = self.store.write([self.home, self.fresh, self.expired], [])

    def instances(self):
        return [claim.instance_uuid for claim in self.store.load()]

    def json_of(self, *args):
        self.assertEqual(0, self.run_manage('claims', *args, '-f', 'json'))
        return json.loads(self.written(self.out))

    def test_list_tells_what_is_kept(self):
        self.assertEqual(
            [(1, 'home', False, 'claimed'), (2, 'fresh', True, 'prepared'),
             (3, 'expired', True, 'prepared')],
            [(row['ID'], row['Instance'], row['Target'], row['State'])
             for row in self.json_of('list')])

    def test_list_of_one_instance(self):
        self.assertEqual([1], [row['ID'] for row in self.json_of('list', '--instance', 'home')])

    def test_show_tells_devices_and_migration(self):
        shown = self.json_of('show', '2')
        self.assertEqual((['0000:81:00.1'], 'm1', {'cells': []}), (
            shown['PCI devices'], shown['Migration'], shown['NUMA topology']))

    def test_show_of_an_unknown_id(self):
        self.assertEqual(1, self.run_manage('claims', 'show', '99'))
        self.assertIn('there is no claim with the id 99', self.written(self.err))

    def test_clean_only_lists_what_it_would_remove(self):
        self.assertEqual(['expired'], [row['Instance'] for row in self.json_of('clean')])
        self.assertEqual(['home', 'fresh', 'expired'], self.instances())

    def test_clean_removes_what_expired(self):
        self.json_of('clean', '--apply')
        self.assertEqual(['home', 'fresh'], self.instances())

    def test_clean_removes_what_is_named(self):
        self.json_of('clean', '--apply', '1')
        self.assertEqual(['fresh', 'expired'], self.instances())

    def test_a_file_of_another_version_is_left_alone(self):
        with self.store._transaction() as connection:
            connection.exec_driver_sql('UPDATE claim_versions SET version = 99')
        self.assertEqual(1, self.run_manage('claims', 'clean', '--apply'))
        self.assertIn('newer', self.written(self.err))
        with self.store._transaction() as connection:
            self.assertEqual(3, len(table.ClaimTable(claim_models.LocalClaim).load_all(
                connection)))
