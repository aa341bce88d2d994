"""The database of one cell is down: all that is done for the others goes on, and it is named."""

import datetime
import itertools
import threading
import time

import fixtures
from nova import objects
from nova.db.main import api as main_db
from oslo_db import exception as db_exc

from kronos_nova import clock
from kronos_nova import exception
from kronos_nova.db import repairs as repairs_db
from kronos_nova.db import tasks
from kronos_nova.objects import repair as repairs
from kronos_nova.placement import audit
from kronos_nova.placement import heal
from kronos_nova.placement import holdings
from kronos_nova.plugin import cells
from kronos_nova.plugin import history
from kronos_nova.plugin import inventory
from kronos_nova.plugin import nova_records
from tests.functional import base
from tests.functional.inventory.public import public_inventory
from tests.functional.test_balancing import QemuDriver

SMALL = {'VCPU': 1, 'MEMORY_MB': 512, 'DISK_GB': 1}
AT_ONCE = audit.AuditLimits(grace=0, stalled=3600)


class CellDownTest(base.NovaTestCase):
    NUMBER_OF_CELLS = 2

    def setUp(self):
        self.useFixture(fixtures.MonkeyPatch('nova.virt.fake.MediumFakeDriver', QemuDriver))
        super().setUp()
        self._start_compute('host3', cell_name='cell2')
        self.here, self.there = self.boot('host1'), self.boot('host3')
        self.log = self.useFixture(fixtures.FakeLogger())
        self.records = nova_records.CellRecords(self.placement_client)
        self.ended = threading.Event()
        self.addCleanup(self.ended.set)

    def take_down(self, how, after=0):
        """Let the database of cell2 fail.

        :param how: called in place of a transaction there
        :param after: number of transactions there that succeed before
        """
        before = itertools.count()
        names = {mapping.uuid: mapping.name
                 for mapping in objects.CellMappingList.get_all(cells.admin_context())}
        real = main_db.get_context_manager

        def get_context_manager(context):
            if (names.get(getattr(context, 'cell_uuid', None)) == 'cell2'
                    and next(before) >= after):
                how()
            return real(context)

        self.stub_out('nova.db.main.api.get_context_manager', get_context_manager)

    @staticmethod
    def refuse():
        raise db_exc.DBConnectionError('connection refused')

    def hang(self):
        self.ended.wait(60)
        raise db_exc.DBConnectionError('it took too long')

    def lose_allocation(self, server):
        self.placement.delete(f'/allocations/{server["id"]}')

    def assert_named(self):
        self.assertIn('cell cell2 does not answer', self.log.output)

    def test_the_cloud_is_read_without_it_and_the_reading_says_so(self):
        self.take_down(self.refuse)
        found = inventory.InProcessInventory().read()
        self.assertIn('host1', {host.name for host in found.hosts})
        self.assertNotIn('host3', {host.name for host in found.hosts})
        self.assertEqual([self.here['id']], [each.uuid for each in found.instances])
        [line] = found.unread.values()
        self.assertIn('1 of its hosts could not be read', line)
        self.assertIn('cell cell2 does not answer', line)

    def test_another_spelling_of_a_host_is_another_host(self):
        """As databases are set up by default, the mapping of compute1 is that of COMPUTE1 too."""
        context = cells.admin_context()
        mapping = objects.HostMapping.get_by_host(context, 'host1')
        self.stub_out('nova.objects.HostMapping.get_by_host', lambda *_args: mapping)
        self.assertTrue(cells.target_host(context, 'host1'))
        self.assertFalse(cells.target_host(context, 'HOST1'))

    def test_novas_api_lists_no_hypervisors_then_and_that_is_said_with_the_hosts(self):
        self.take_down(self.refuse)
        error = self.assertRaises(exception.InventoryError, public_inventory(self).read)
        self.assertIn('the cell of the hosts host3 is down', str(error))

    def test_a_database_that_hangs_is_not_waited_for_long_and_less_the_next_time(self):
        source = inventory.InProcessInventory()
        whole = source.read()
        self.assertIn('host3', {host.name for host in whole.hosts})
        self.take_down(self.hang)
        for seconds in (cells.PATIENCE + 5, inventory.SHORT_PATIENCE + 5):
            begun = time.monotonic()
            found = source.read()
            self.assertLess(time.monotonic() - begun, seconds)
            self.assertEqual({host.name for host in whole.hosts} - {'host3'},
                             {host.name for host in found.hosts})

    def test_who_has_only_the_processor_that_others_leave_waits_longer(self):
        for patience, expected in ((1, {'host1'}), (10, {'host1', 'host3'})):
            source, late = inventory.InProcessInventory(patience=patience), [2]
            self.take_down(lambda late=late: late and time.sleep(late.pop()))
            found = {host.name for host in source.read().hosts}
            self.assertEqual(expected, found & {'host1', 'host3'})

    def test_past_moves_are_those_of_the_others(self):
        self.take_down(self.refuse)
        self.assertEqual([], list(history.past_moves(clock.utcnow())))

    def test_past_moves_are_those_of_the_others_if_it_fails_while_it_is_read(self):
        for uuid, source in ((self.here['id'], 'host1'), (self.there['id'], 'host3')):
            context = cells.admin_context()
            cells.target_instance(context, uuid)
            migration = objects.Migration(
                context, instance_uuid=uuid, source_compute=source, dest_compute='host2',
                migration_type='live-migration', status='running')
            migration.create()
            migration.status = 'completed'
            migration.save()
        self.assertEqual({'host1', 'host3'}, self.sources_of_past_moves())
        self.take_down(self.refuse, after=1)
        self.assertEqual({'host1'}, self.sources_of_past_moves())
        self.assertIn('The database of cell cell2 does not answer', self.log.output)

    def sources_of_past_moves(self):
        return {move.source for move in history.past_moves(
            clock.utcnow() - datetime.timedelta(hours=1))}

    def test_names_are_looked_for_in_the_others_if_it_fails_while_it_is_read(self):
        source = inventory.InProcessInventory()
        aggregate = self.api.post_aggregate(
            {'aggregate': {'name': 'a', 'availability_zone': None}})
        self.api.add_host_to_aggregate(aggregate['id'], 'host2')
        source.read(scopes=('a',))
        self.take_down(self.refuse, after=1)
        names = {self.here['name'], self.there['name']}
        self.assertEqual({self.here['name']}, source.names_elsewhere('display_name', names))

    def test_the_others_are_audited_and_healed(self):
        self.lose_allocation(self.here)
        self.lose_allocation(self.there)
        self.take_down(self.refuse)
        held = holdings.read(self.placement_client)
        result = audit.audit(held, self.records, AT_ONCE)
        self.assertEqual([(audit.MISSING, self.here['id'])],
                         [(each.kind, each.instance) for each in result.findings])
        self.assertEqual(('cell2',), result.silent)
        journal = repairs_db.Repairs(self.control_database, clock.utcnow)
        healer = heal.Healer(self.placement_client, self.records, held, AT_ONCE, journal)
        self.assertEqual([repairs.HEALED],
                         [healer.heal(each).state for each in result.findings])
        self.assert_holds(self.here['id'], {'host1': SMALL})

    def test_nothing_of_it_is_taken_for_leaked(self):
        self.take_down(self.refuse)
        result = audit.audit(holdings.read(self.placement_client), self.records, AT_ONCE)
        self.assertEqual((), result.findings)
        self.assert_holds(self.there['id'], {'host3': SMALL})

    def test_tasks_of_others_are_given_up(self):
        context = cells.admin_context()
        cells.target_instance(context, self.here['id'])
        instance = objects.Instance.get_by_uuid(context, self.here['id'])
        migration = objects.Migration(
            context=context, instance_uuid=instance.uuid, status='accepted',
            migration_type='live-migration', source_compute=instance.host,
            source_node=instance.node, dest_compute='host2')
        migration.create()
        self.take_down(self.refuse)
        self.assertIs(True, self.records.give_up(migration.uuid))
        tasks.Tasks(self.control_database, 'one', clock.utcnow).end(migration.uuid)
        again = objects.Migration.get_by_id(migration._context, migration.id)
        self.assertEqual('error', again.status)
        self.assertIn('cell2', self.log.output)
