"""Broken allocations, broken for real in a stock Nova, found and healed."""

import datetime
import threading
import types

import fixtures
from nova import objects
from nova.db.main import api as main_db
from oslo_db import exception as db_exc
from oslo_utils import uuidutils

from kronos_nova import clock
from kronos_nova import exception
from kronos_nova.db import repairs as repairs_db
from kronos_nova.objects import repair as repairs
from kronos_nova.placement import audit
from kronos_nova.placement import heal
from kronos_nova.placement import holdings
from kronos_nova.plugin import cells
from kronos_nova.plugin import nova_records
from tests.functional import base

SMALL = {'VCPU': 1, 'MEMORY_MB': 512, 'DISK_GB': 1}
SMALL_ON_HOST1 = {'host1': SMALL}
LONG_AGO = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
AT_ONCE = audit.AuditLimits(grace=0, stalled=3600)


class AuditTestCase(base.NovaTestCase):
    limits = AT_ONCE

    def setUp(self):
        super().setUp()
        self.records = nova_records.CellRecords(self.placement_client)
        self.repairs = repairs_db.Repairs(self.control_database, clock.utcnow)
        self.driver = self.computes['host1'].driver

    def audit(self, limits=None):
        return audit.audit(holdings.read(self.placement_client), self.records,
                           limits or self.limits)

    def findings(self, limits=None):
        return [(each.kind, each.instance) for each in self.audit(limits).findings]

    def heal(self, findings=None):
        held = holdings.read(self.placement_client)
        healer = heal.Healer(self.placement_client, self.records, held, self.limits, self.repairs)
        if findings is None:
            findings = audit.audit(held, self.records, self.limits).findings
        return [healer.heal(each) for each in findings]

    def assertHealed(self, server, host):
        """All that is wrong can be healed, and then the server holds what it should."""
        outcomes = self.heal()
        self.assertEqual([repairs.HEALED] * len(outcomes), [each.state for each in outcomes],
                         outcomes)
        self.assertEqual([], self.findings())
        self.assertEqual([], self.heal())
        self.assert_holds(server['id'], {host: SMALL} if host else {})
        self.assertEqual([], self.held_by_migrations(server))

    def held_by_migrations(self, server):
        held = (self.held_by(each.uuid) for each in self.migrations(server))
        return [each for each in held if each]

    def migrations(self, server):
        context = cells.admin_context()
        context.read_deleted = 'yes'
        cells.target_instance(context, server['id'])
        return list(objects.MigrationList.get_by_filters(context, {'instance_uuid': server['id']}))

    def drive(self, live_migration):
        """Act as the source's hypervisor in a live migration."""
        self.stub_out('nova.virt.fake.FakeDriver.live_migration', live_migration)

    def restart(self, host):
        self.computes[host] = self.restart_compute_service(self.computes[host])


def rolls_back(this, context, instance, dest, post_method, recover_method, block_migration=False,
               migrate_data=None):
    recover_method(context, instance, dest, migrate_data, migration_status='failed')


def is_killed(this, context, instance, dest, post_method, recover_method, block_migration=False,
              migrate_data=None):
    """The process is gone: neither of its two ends is reached."""


class BrokenByNovaTest(AuditTestCase):
    """The five ways in which Nova is known to leave allocations behind."""

    def swap_back(self, fault):
        """Let placement do ``fault`` to the request that gives the source's allocation back."""
        done = []

        def before(method, path, body):
            is_swap = (method, path) == ('POST', '/allocations') and any(
                not held['allocations'] for held in body.values())
            # The first such request moves the source's allocation to the migration.
            if is_swap:
                done.append(body)
                if len(done) > 1:
                    self.placement_fixture.before = lambda *asked: None
                    return fault(body)
            return None

        self.placement_fixture.before = before

    def test_a_rollback_whose_swap_back_failed(self):
        server = self.boot('host1')
        self.drive(rolls_back)
        self.swap_back(lambda body: base.answer(409))

        self.migrate(server, 'host2')
        migration = self._wait_for_migration_status(server, ['failed'])
        self.server_on(server, 'host1')

        self.assert_holds(server['id'], {'host2': SMALL})
        self.assert_holds(migration['uuid'], {'host1': SMALL})
        self.assertEqual([(audit.MISPLACED, server['id'])], self.findings())
        self.assertHealed(server, 'host1')

    def test_a_generation_conflict_while_swapping_back(self):
        server = self.boot('host1')
        self.drive(rolls_back)

        def interfere(body):
            held = self.placement_client.consumer(server['id'])
            self.placement.put(f'/allocations/{server["id"]}', held.to_body() | {
                'consumer_type': 'INSTANCE'}, version='1.38')

        self.swap_back(interfere)
        self.migrate(server, 'host2')
        migration = self._wait_for_migration_status(server, ['error', 'failed'])

        self.assert_holds(migration['uuid'], {'host1': SMALL})
        [finding] = self.audit().findings
        self.assertEqual(server['id'], finding.instance)
        self.assertHealed(server, 'host1')

    def test_a_source_that_crashed_while_the_migration_ran(self):
        server = self.boot('host1')
        self.drive(is_killed)
        self.migrate(server, 'host2')
        migration = self._wait_for_migration_status(server, ['running'])

        self.restart('host1')
        self._wait_for_migration_status(server, ['error'])
        self.server_on(server, 'host1')

        self.assert_holds(migration['uuid'], {'host1': SMALL})
        self.assertEqual([(audit.MISPLACED, server['id'])], self.findings())
        self.assertHealed(server, 'host1')

    def test_a_source_that_crashed_while_the_migration_was_queued(self):
        server = self.boot('host1')
        self.stub_out('nova.compute.manager.ComputeManager._do_live_migration',
                      lambda *args, **kwargs: None)
        self.migrate(server, 'host2')
        self._wait_for_migration_status(server, ['queued'])

        self.restart('host1')
        self.server_on(server, 'host1')

        # Nova leaves it so, and it might still wait for others.
        self._wait_for_migration_status(server, ['queued'])
        self.assertEqual([], self.findings())
        self.limits = audit.AuditLimits(grace=0, stalled=0)
        self.assertEqual([(audit.MISPLACED, server['id'])], self.findings())
        self.assertHealed(server, 'host1')

    def test_a_server_deleted_while_it_migrated(self):
        """Bug 1848343: the rollback gives the allocation to a server that is gone."""
        server = self.boot('host1')

        def deleted_meanwhile(this, context, instance, dest, post_method, recover_method,
                              block_migration=False, migrate_data=None):
            self.api.delete_server(server['id'])
            self._wait_until_deleted(server)
            self.assert_holds(server['id'], {})
            rolled_back.append(dest)
            recover_method(context, instance, dest, migrate_data, migration_status='failed')

        rolled_back = []
        self.drive(deleted_meanwhile)
        self.migrate(server, 'host2')

        self._wait_for_assert(lambda: self.assertEqual(['host2'], rolled_back))
        self.assert_holds(server['id'], {'host1': SMALL})
        self.assertEqual([(audit.LEAKED, server['id'])], self.findings())
        self.assertHealed(server, None)


class InFlightTest(AuditTestCase):
    compute_driver = 'fake.FakeLiveMigrateDriver'

    def test_a_migration_in_progress_is_left_alone(self):
        server = self.boot('host1')
        self.migrate(server, 'host2')
        migration = self._wait_for_migration_status(server, ['running'])

        result = self.audit()
        self.assertEqual((), result.findings)
        self.assertEqual({server['id']}, result.in_flight)
        self.assert_holds(migration['uuid'], {'host1': SMALL})

        self.api.force_complete_migration(server['id'], migration['id'])
        self.server_on(server, 'host2')
        self.assert_holds(migration['uuid'], {})
        self.assertEqual([], self.findings())

    def test_one_of_which_the_servers_state_was_reset_goes_on(self):
        server = self.boot('host1')
        self.migrate(server, 'host2')
        migration = self._wait_for_migration_status(server, ['running'])
        self.api.post_server_action(server['id'], {'os-resetState': {'state': 'active'}})
        self.server_on(server, 'host1')

        result = self.audit()

        self.assertEqual(((), {server['id']}), (result.findings, result.in_flight))
        self.assert_holds(server['id'], {'host2': SMALL})
        self.assert_holds(migration['uuid'], SMALL_ON_HOST1)

    def test_one_whose_source_is_down_is_reported_and_left_alone(self):
        server = self.boot('host1')
        self.migrate(server, 'host2')
        self._wait_for_migration_status(server, ['running'])
        self.computes['host1'].service_ref.forced_down = True
        self.computes['host1'].service_ref.save()

        self.assertEqual([(audit.STALLED, server['id'])], self.findings())
        [outcome] = self.heal()
        self.assertEqual(repairs.SKIPPED, outcome.state)

    def test_what_changed_within_the_grace_time_is_left_alone(self):
        server = self.boot('host1')
        self.placement.delete(f'/allocations/{server["id"]}')

        self.assertEqual([], self.findings(audit.AuditLimits(grace=60)))
        self.assertEqual([(audit.MISSING, server['id'])], self.findings())


class BrokenByHandTest(AuditTestCase):
    """Faults that nova-manage, other tools, or older releases leave."""

    def put(self, consumer, allocations):
        """{host: resources}, whatever was held before."""
        held = self.placement_client.consumer(consumer)
        body = held.holding({self.uuid_of(host): amounts for host, amounts in allocations.items()},
                            consumer_type='INSTANCE', project_id=held.project_id or 'a-project',
                            user_id=held.user_id or 'a-user').to_body()
        self.assertEqual(204, self.placement.put(f'/allocations/{consumer}', body,
                                                 version='1.38').status)

    def test_nothing_is_wrong(self):
        self.boot('host1')

        result = self.audit()

        self.assertEqual(((), 1, 1), (result.findings, result.instances, result.consumers))

    def test_missing_is_allocated_where_the_server_runs(self):
        server = self.boot('host1')
        self.placement.delete(f'/allocations/{server["id"]}')

        self.assertEqual([(audit.MISSING, server['id'])], self.findings())
        self.assertHealed(server, 'host1')

    def test_missing_on_a_full_host_is_said(self):
        server = self.boot('host1')
        self.placement.delete(f'/allocations/{server["id"]}')
        self._reserve_placement_resource('host1', 'VCPU', 10)

        [outcome] = self.heal()

        self.assertEqual(repairs.FAILED, outcome.state)
        self.assertIn('host1 has no room', outcome.detail)

    def test_what_it_costs_does_not_grow_with_what_ended_long_ago(self):
        requests = []
        for old in (0, 50):
            server = self.boot('host1')
            cell = cells.admin_context()
            cells.target_instance(cell, server['id'])
            for _ in range(old):
                main_db.migration_create(cell, {
                    'uuid': uuidutils.generate_uuid(), 'instance_uuid': server['id'],
                    'migration_type': 'live-migration', 'status': 'completed',
                    'source_compute': 'host2', 'dest_compute': 'host1', 'cross_cell_move': False,
                    'created_at': LONG_AGO, 'updated_at': LONG_AGO})
            self.put(server['id'], {'host2': SMALL})
            findings = self.audit().findings
            self.placement_fixture.requests.clear()
            self.assertEqual([repairs.HEALED], [each.state for each in self.heal(findings)])
            requests.append(len(self.placement_fixture.requests))
        self.assertEqual(*requests)

    def test_doubled_keeps_where_the_server_runs(self):
        server = self.boot('host1')
        self.put(server['id'], {'host1': SMALL, 'host2': SMALL})

        self.assertEqual([(audit.DOUBLED, server['id'])], self.findings())
        self.assertHealed(server, 'host1')

    def test_an_evacuated_server_is_doubled_while_its_host_is_down(self):
        server = self.boot('host1')
        self.computes['host1'].stop()
        self.computes['host1'].service_ref.forced_down = True
        self.computes['host1'].service_ref.save()
        self._evacuate_server(server, expected_host='host2')

        self.assert_holds(server['id'], {'host1': SMALL, 'host2': SMALL})
        self.assertEqual([(audit.DOUBLED, server['id'])], self.findings())
        self.assertHealed(server, 'host2')

    def test_misplaced_without_a_migration(self):
        server = self.boot('host1')
        self.put(server['id'], {'host2': SMALL})

        self.assertEqual([(audit.MISPLACED, server['id'])], self.findings())
        self.assertHealed(server, 'host1')

    def test_too_little_and_too_much_is_as_the_flavor_says_again(self):
        server = self.boot('host1')
        for wrong in ({'VCPU': 1, 'MEMORY_MB': 512}, {**SMALL, 'VCPU': 2},
                      {**SMALL, 'MEMORY_MB': 256}, {**SMALL, 'PCPU': 1}):
            if 'PCPU' in wrong:
                self._give_inventory('host1', 'PCPU', 4)
            self.put(server['id'], {'host1': wrong})

            [finding] = self.audit().findings

            self.assertEqual((audit.MISMATCHED, server['id']), (finding.kind, finding.instance))
            self.assertIn('DISK_GB=1 MEMORY_MB=512 VCPU=1', finding.evidence)
            self.assertHealed(server, 'host1')

    def _give_inventory(self, host, name, total):
        uuid = self.uuid_of(host)
        inventories = self.placement.get(f'/resource_providers/{uuid}/inventories').body
        inventories['inventories'][name] = {'total': total}
        self._update_inventory(uuid, inventories)

    def test_what_other_services_let_it_hold_is_theirs(self):
        server = self.boot('host1')
        self._give_inventory('host1', 'FPGA', 1)
        self.put(server['id'], {'host1': {**SMALL, 'FPGA': 1}})

        self.assertEqual([], self.findings())

    def test_a_server_that_was_deleted_softly_keeps_what_it_holds(self):
        self.flags(reclaim_instance_interval=3600)
        server = self.boot('host1')
        self.api.delete_server(server['id'])
        self._wait_for_state_change(server, 'SOFT_DELETED')

        self.assertEqual([], self.findings())
        healer = heal.Healer(self.placement_client, self.records,
                             holdings.read(self.placement_client), AT_ONCE, self.repairs)
        self.assertEqual((None, True), healer.examine(server['id']))
        self.api.post_server_action(server['id'], {'restore': {}})
        self.server_on(server, 'host1')
        self.assert_holds(server['id'], SMALL_ON_HOST1)

    def test_a_provider_that_is_younger_than_the_reading_belongs_to_its_host(self):
        server = self.boot('host1')
        held = holdings.read(self.placement_client)
        child = self.placement.post('/resource_providers', version='1.20', body={
            'name': 'gpu', 'parent_provider_uuid': self.uuid_of('host1')}).body['uuid']
        self._update_inventory(child, {'resource_provider_generation': 0, 'inventories': {
            'VGPU': {'total': 1}}})
        self.put(server['id'], {'host1': SMALL, 'gpu': {'VGPU': 1}})
        healer = heal.Healer(self.placement_client, self.records, held, AT_ONCE, self.repairs)

        finding, _is_settled = healer.examine(server['id'])
        self.assertIsNone(finding)

    def test_a_stranger_is_reported_and_only_removed_when_chosen(self):
        server = self.boot('host1')
        stranger = '5a1e0b1c-9b1e-4c67-8a3e-3f1f6dd1c111'
        self.put(stranger, {'host2': SMALL})

        self.assertEqual([(audit.UNKNOWN, stranger)], self.findings())
        self.assertHealed(server, 'host1')
        self.assert_holds(stranger, {})

    def test_a_repair_can_be_undone_once(self):
        server = self.boot('host1')
        self.put(server['id'], {'host1': SMALL, 'host2': SMALL})
        [outcome] = self.heal()

        heal.undo(self.placement_client, self.repairs, outcome.repair)

        self.assert_holds(server['id'], {'host1': SMALL, 'host2': SMALL})
        self.assertRaises(heal.errors.NothingToMove, heal.undo, self.placement_client,
                          self.repairs, outcome.repair)

    def lose_the_database_after_the_change(self):
        real = self.placement_client.post

        def fails():
            raise db_exc.DBError('gone away')

        def post(wanted):
            real(wanted)
            self.repairs.database = types.SimpleNamespace(writer=fails)
        self.useFixture(fixtures.MockPatchObject(self.placement_client, 'post', post))

    def test_a_repair_that_was_made_and_not_recorded_is_reported_as_made(self):
        server = self.boot('host1')
        self.put(server['id'], {'host1': SMALL, 'host2': SMALL})
        self.lose_the_database_after_the_change()
        [outcome] = self.heal()
        self.assert_holds(server['id'], {'host1': SMALL})
        self.assertEqual(repairs.HEALED, outcome.state)
        self.assertIn(f'Repair {outcome.repair} is healed, but the control database could not '
                      'record this', outcome.detail)

    def test_a_repair_that_was_undone_and_not_recorded_is_reported_as_undone(self):
        server = self.boot('host1')
        self.put(server['id'], {'host1': SMALL, 'host2': SMALL})
        [outcome] = self.heal()
        self.lose_the_database_after_the_change()
        error = self.assertRaises(exception.RepairUnrecorded, heal.undo, self.placement_client,
                                  self.repairs, outcome.repair)
        self.assert_holds(server['id'], {'host1': SMALL, 'host2': SMALL})
        self.assertIn('is undone, but the control database could not record this', str(error))

    def test_a_repair_is_not_undone_over_what_came_after(self):
        server = self.boot('host1')
        self.put(server['id'], {'host1': SMALL, 'host2': SMALL})
        [outcome] = self.heal()
        self.migrate(server, 'host2')
        self.server_on(server, 'host2')

        self.assertRaises(heal.errors.NothingToMove, heal.undo, self.placement_client,
                          self.repairs, outcome.repair)

        self.assert_holds(server['id'], {'host2': SMALL})

    def test_what_changed_since_the_audit_is_looked_at_again(self):
        server = self.boot('host1')
        self.put(server['id'], {'host1': SMALL, 'host2': SMALL})
        findings = self.audit().findings
        self.put(server['id'], {'host1': SMALL})

        [outcome] = self.heal(findings)

        self.assertEqual(repairs.SKIPPED, outcome.state)

    def test_a_confirmed_and_an_unconfirmed_resize_are_as_they_should_be(self):
        server = self.boot('host1')
        larger = self._create_flavor(memory_mb=1024, vcpu=2, disk=2, ephemeral=0)
        self._resize_server(server, larger)

        self.assertEqual([], self.findings())
        self._confirm_resize(server)
        self.assertEqual([], self.findings())

    def _flavor_of_host1(self):
        """One for which there is room on that host alone."""
        self.flags(allow_resize_to_same_host=True)
        self._give_inventory('host1', 'FPGA', 1)
        return self._create_flavor(memory_mb=512, vcpu=1, disk=1, ephemeral=0,
                                   extra_spec={'resources:FPGA': '1'})

    def test_a_resize_on_its_own_host_that_nova_compute_never_heard_of(self):
        server = self.boot('host1')
        flavor = self._flavor_of_host1()
        is_lost = threading.Event()
        self.stub_out('nova.compute.rpcapi.ComputeAPI.prep_resize',
                      lambda *args, **kwargs: is_lost.set())
        self.api.post_server_action(server['id'], {'resize': {'flavorRef': flavor}})
        self.assertTrue(is_lost.wait(60))
        self.assert_holds(server['id'], {'host1': {**SMALL, 'FPGA': 1}})
        self.admin_api.post_server_action(server['id'], {'os-resetState': {'state': 'active'}})
        self.limits = audit.AuditLimits(grace=0, stalled=0)

        [finding] = self.audit().findings

        self.assertEqual((audit.LEAKED, server['id']), (finding.kind, finding.instance))
        self.assertIn('which is what it asks for', finding.remedy)
        self.assertHealed(server, 'host1')

    def test_a_resize_on_its_own_host_whose_migration_was_left_behind(self):
        server = self.boot('host1')
        self._resize_server(server, self._flavor_of_host1())
        [migration] = self.migrations(server)
        before = self.held_by(migration.uuid)
        self._confirm_resize(server)
        self.put(migration.uuid, before)

        [finding] = self.audit().findings

        self.assertEqual((audit.LEAKED, server['id']), (finding.kind, finding.instance))
        self.heal()
        self.assert_holds(server['id'], {'host1': {**SMALL, 'FPGA': 1}})
        self.assertEqual([], self.held_by_migrations(server))
