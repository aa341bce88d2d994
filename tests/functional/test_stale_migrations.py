"""Records of migrations that no service acts on any more."""

import datetime

import nova.context
from nova import objects

from kronos_nova import clock
from kronos_nova.executor.openstack_hosts import OpenStackHostApi
from kronos_nova.inventory.openstack import OpenStackInventory
from kronos_nova.plugin import host_api
from kronos_nova.plugin import inventory
from kronos_nova.plugin import nova_records
from tests.functional.inventory import test_two_ways
from tests.functional.inventory.public import public_connection

LIVE = ('accepted', 'queued', 'preparing', 'running', 'running (post-copy)', 'post-migrating')
ARRIVED = ('finished', 'confirming', 'reverting')


class StaleMigrationsTest(test_two_ways.QemuTestCase):
    def setUp(self):
        super().setUp()
        self.context = nova.context.get_admin_context()
        self.server = self.boot('host1')

    def record(self, status, kind='live-migration', source='host1', destination='host2'):
        migration = objects.Migration(
            self.context, instance_uuid=self.server['id'], status=status, migration_type=kind,
            source_compute=source, source_node=source, dest_compute=destination,
            old_instance_type_id=1, new_instance_type_id=1,
            user_id='user', project_id=self.server['tenant_id'])
        migration.create()
        return migration

    def instance(self, **values):
        instance = objects.Instance.get_by_uuid(self.context, self.server['id'])
        for name, value in values.items():
            setattr(instance, name, value)
        instance.save()

    def readers(self):
        connection = public_connection(self)
        return [inventory.InProcessInventory().read,
                OpenStackInventory(connection).read]

    def moves(self):
        """The moves that each reader counts."""
        return [len(read().moves_under_way) for read in self.readers()]

    def left_on(self, host):
        """The servers that each HostApi reports as unsettled there."""
        return [[each.uuid for each in api.servers_on(host) if each.is_unsettled]
                for api in (host_api.InProcessHostApi(), OpenStackHostApi(public_connection(self)))]

    def test_a_live_row_counts_while_its_instance_is_busy(self):
        for status in LIVE:
            migration = self.record(status)
            self.assertEqual([0, 0], self.moves(), status)
            self.instance(task_state='migrating')
            self.assertEqual([1, 1], self.moves(), status)
            self.instance(task_state=None)
            migration.status = 'error'
            migration.save()

    def test_a_live_row_of_an_instance_that_was_evacuated_does_not(self):
        self.record('running', source='host2', destination='host3')
        self.instance(task_state='rebuilding')
        self.assertEqual([0, 0], self.moves())

    def test_a_resize_that_no_one_can_confirm_leaves_nothing_at_its_source(self):
        for status in ARRIVED:
            migration = self.record(status, 'resize', source='host2', destination='host1')
            self.assertEqual([[], []], self.left_on('host2'), status)
            self.instance(vm_state='resized')
            self.assertEqual([[self.server['id']]] * 2, self.left_on('host2'), status)
            self.instance(vm_state='active')
            migration.status = 'error'
            migration.save()

    def test_the_reconciler_ends_rows_of_instances_that_are_at_neither_end(self):
        evacuated = self.record('running', source='host2', destination='host3')
        here = self.record('running')
        cold = self.record('pre-migrating', 'migration', source='host2', destination='host3')
        records = nova_records.CellRecords(self.placement_client)
        self.assertEqual([], records.end_stale(clock.utcnow() - datetime.timedelta(hours=1)))
        self.assertEqual(
            {evacuated.uuid, cold.uuid},
            {*records.end_stale(clock.utcnow() + datetime.timedelta(seconds=5))})
        for migration, status in (evacuated, 'error'), (cold, 'error'), (here, 'running'):
            found = objects.Migration.get_by_uuid(self.context, migration.uuid)
            self.assertEqual(status, found.status)
