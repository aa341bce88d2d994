"""One instance or one cell that cannot be read keeps no other instance from being repaired."""

from neutronclient.common import exceptions as neutron_exc
from nova import objects
from oslo_db import exception as db_exc

from kronos_nova import clock
from kronos_nova.db import repairs as repairs_db
from kronos_nova.db import tasks
from kronos_nova.objects import repair as repairs
from kronos_nova.placement import audit
from kronos_nova.placement import heal
from kronos_nova.placement import holdings
from kronos_nova.placement import reconcile
from kronos_nova.placement.allocations import INSTANCE
from kronos_nova.placement.allocations import AllocationSet
from kronos_nova.plugin import cells
from kronos_nova.plugin import nova_records
from kronos_nova.plugin import nova_tables
from tests.functional import base

SMALL = {'VCPU': 1, 'MEMORY_MB': 512, 'DISK_GB': 1}
AT_ONCE = audit.AuditLimits(grace=0, stalled=3600)


class RepairTestCase(base.NovaTestCase):
    def setUp(self):
        super().setUp()
        self.records = nova_records.CellRecords(self.placement_client)
        self.journal = repairs_db.Repairs(self.control_database, clock.utcnow)
        self.tasks = tasks.Tasks(self.control_database, 'one', clock.utcnow)

    def reconcile(self):
        """The outcomes of a look at all that migrated lately."""
        return [each for each in reconcile.Reconciler(
            client=self.placement_client, nova=self.records, journal=self.journal,
            tasks=self.tasks, limits=AT_ONCE, task_timeout=60, clock=clock.utcnow,
        ).run(3600) if each is not None]

    def lose_allocation(self, server):
        """As a move leaves it that was interrupted, a migration with it."""
        self.placement.delete(f'/allocations/{server["id"]}')
        migration = self.migration(server, 'running')
        migration.status = 'error'
        migration.save()

    def migration(self, server, status):
        context = cells.admin_context()
        cells.target_instance(context, server['id'])
        instance = objects.Instance.get_by_uuid(context, server['id'])
        migration = objects.Migration(
            context=context, instance_uuid=server['id'], status=status,
            migration_type='live-migration', source_compute=instance.host,
            source_node=instance.node, dest_compute='host2')
        migration.create()
        return migration

    def forget_request_spec(self, server):
        context = cells.admin_context()
        objects.RequestSpec.get_by_instance_uuid(context, server['id']).destroy()


class OneInstanceTest(RepairTestCase):
    def setUp(self):
        super().setUp()
        self.servers = sorted((self.boot('host1') for _ in range(3)), key=lambda s: s['id'])
        for server in self.servers:
            self.lose_allocation(server)
        self.forget_request_spec(self.servers[0])

    def assert_all_but_the_first_hold(self):
        self.assert_holds(self.servers[0]['id'], {})
        for server in self.servers[1:]:
            self.assert_holds(server['id'], {'host1': SMALL})

    def test_the_reconciler_goes_on_after_an_instance_without_request_spec(self):
        states = [outcome.state for outcome in self.reconcile()]
        self.assertEqual([repairs.FAILED, repairs.HEALED, repairs.HEALED], states)
        self.assert_all_but_the_first_hold()

    def test_healing_goes_on_too_and_says_why_that_one_was_not_healed(self):
        held = holdings.read(self.placement_client)
        healer = heal.Healer(self.placement_client, self.records, held, AT_ONCE, self.journal)
        outcomes = [healer.heal(each)
                    for each in audit.audit(held, self.records, AT_ONCE).findings]
        self.assertEqual(repairs.FAILED, outcomes[0].state)
        self.assertIn('RequestSpec', outcomes[0].detail)
        self.assert_all_but_the_first_hold()

    def test_the_reconciler_goes_on_after_one_that_cannot_be_looked_at(self):
        real = objects.InstanceMappingList.get_by_instance_uuids

        def broken(_class, context, uuids):
            if self.servers[1]['id'] in uuids:
                raise db_exc.DBError('a row that cannot be read')
            return real(context, uuids)

        self.stub_out('nova.objects.InstanceMappingList.get_by_instance_uuids', broken)
        states = [outcome.state for outcome in self.reconcile()]
        self.assertEqual([repairs.FAILED, repairs.HEALED], states)


class AmountsTest(RepairTestCase):
    """Each server holds more than it asks for; what it asks for beyond its records is asked."""

    def setUp(self):
        super().setUp()
        self.servers = sorted((self.boot('host1') for _ in range(3)), key=lambda s: s['id'])
        for server in self.servers:
            consumer = self.placement_client.consumer(server['id'])
            self.placement_client.post(AllocationSet((consumer.holding(
                {root: {**amounts, 'VCPU': 2} for root, amounts in consumer.allocations.items()},
                consumer_type=INSTANCE),)))

    def audit(self):
        found = audit.audit(holdings.read(self.placement_client), self.records, AT_ONCE).findings
        return sorted(found, key=lambda finding: finding.instance)

    def test_one_without_request_spec_keeps_no_other_from_being_audited(self):
        self.forget_request_spec(self.servers[0])
        first, *others = self.audit()
        self.assertEqual((audit.STALLED, self.servers[0]['id']), (first.kind, first.instance))
        self.assertIn('RequestSpec', first.evidence)
        self.assertEqual([audit.MISMATCHED] * 2, [each.kind for each in others])

    def test_neutron_is_down(self):
        def down(*_args, **_kwargs):
            raise neutron_exc.ConnectionFailed(reason='connection refused')

        self.stub_out('nova.network.neutron.API.get_requested_resource_for_instance', down)
        found = self.audit()
        self.assertEqual([audit.STALLED] * 3, [each.kind for each in found])
        self.assertIn('connection refused', found[0].evidence)


class OneCellTest(RepairTestCase):
    NUMBER_OF_CELLS = 2

    def setUp(self):
        super().setUp()
        self._start_compute('host3', cell_name='cell2')
        self.here, self.there = self.boot('host1'), self.boot('host3')
        for server in (self.here, self.there):
            self.lose_allocation(server)
        self.dead = {'cell2'}
        objects_of, rows_of = objects.MigrationList.get_by_filters, nova_tables.migrations_of
        uuids = {mapping.uuid: mapping.name
                 for mapping in objects.CellMappingList.get_all(cells.admin_context())}

        def of_a_living_cell(real, context, *args, **kwargs):
            if uuids.get(context.cell_uuid) in self.dead:
                raise db_exc.DBConnectionError('cell2 is down')
            return real(context, *args, **kwargs)

        self.stub_out('nova.objects.MigrationList.get_by_filters',
                      lambda _class, *args, **kwargs: of_a_living_cell(objects_of, *args, **kwargs))
        self.stub_out('kronos_nova.plugin.nova_tables.migrations_of',
                      lambda *args, **kwargs: of_a_living_cell(rows_of, *args, **kwargs))

    def test_the_other_cells_are_repaired(self):
        states = [outcome.state for outcome in self.reconcile()]
        self.assertEqual([repairs.HEALED], states)
        self.assert_holds(self.here['id'], {'host1': SMALL})
        self.dead = set()
        self.assertEqual([repairs.HEALED], [outcome.state for outcome in self.reconcile()])
        self.assert_holds(self.there['id'], {'host3': SMALL})

    def test_given_up_tasks_of_other_cells_are_ended(self):
        migration = self.migration(self.here, 'accepted')
        self.assertIs(True, self.records.give_up(migration.uuid))
        again = objects.Migration.get_by_id(migration._context, migration.id)
        self.assertEqual('error', again.status)

    def test_one_that_may_be_in_the_dead_cell_is_asked_for_again(self):
        migration = self.migration(self.there, 'accepted')
        self.assertIs(False, self.records.give_up(migration.uuid))
        self.dead = set()
        self.assertIs(True, self.records.give_up(migration.uuid))
