"""A live migration whose conductor has died, given up by one that may die too."""

import time

import fixtures
from nova import context
from nova import objects

from kronos_nova.plugin import nova_records
from tests.functional import base

SET_FREE = 'kronos_nova.plugin.nova_records._set_free'


class GivingUpTest(base.NovaTestCase):
    def setUp(self):
        super().setUp()
        self.context = context.get_admin_context()
        self.server = self.boot('host1')
        self.mark('migrating')
        self.migration = objects.Migration(
            self.context, instance_uuid=self.server['id'], source_compute='host1',
            dest_compute='host2', status='accepted', migration_type='live-migration')
        self.migration.create()
        self.records = nova_records.CellRecords(self.placement_client)
        time.sleep(1.1)  # Nova's times have whole seconds

    def instance(self):
        return objects.Instance.get_by_uuid(self.context, self.server['id'])

    def mark(self, task_state):
        instance = self.instance()
        instance.task_state = task_state
        instance.save()

    def die_half_way(self):
        def die(*_args):
            raise KeyboardInterrupt
        with fixtures.MonkeyPatch(SET_FREE, die):
            self.assertRaises(KeyboardInterrupt, self.records.give_up, self.migration.uuid)
        ended = objects.Migration.get_by_uuid(self.context, self.migration.uuid)
        self.assertEqual('error', ended.status)

    def test_the_next_one_sets_the_instance_free(self):
        self.die_half_way()
        self.assertEqual('migrating', self.instance().task_state)
        self.assertTrue(self.records.give_up(self.migration.uuid))
        self.assertIsNone(self.instance().task_state)

    def test_but_not_from_what_was_asked_of_it_since(self):
        self.die_half_way()
        self.mark(None)
        time.sleep(1.1)
        self.mark('migrating')
        self.assertTrue(self.records.give_up(self.migration.uuid))
        self.assertEqual('migrating', self.instance().task_state)
