"""Servers whose RequestSpec has the flavor of a resize that failed."""

from nova import context
from nova import exception
from nova import objects

from kronos_nova.objects import plan as plans
from kronos_nova.objects.dry_run import AGREED
from kronos_nova.placement import audit
from kronos_nova.plugin import dry_run
from tests.functional import test_live_migration

SMALL = test_live_migration.SMALL


class FailedResizeTest(test_live_migration.AtomicTestCase):
    def setUp(self):
        super().setUp()
        self.server = self.boot('host1')
        self._fail_a_resize()

    def _fail_a_resize(self):
        def refuse(*_args, **_kwargs):
            raise exception.ComputeResourcesUnavailable(reason='made up')

        larger = self._create_flavor(vcpu=4, memory_mb=4096, disk=20)
        self.stub_out('nova.compute.manager.ComputeManager._prep_resize', refuse)
        self.api.post_server_action(self.server['id'], {'resize': {'flavorRef': larger}})
        self._wait_for_migration_status(self.server, ['error'])
        self._wait_for_server_parameter(
            self.server, {'status': 'ERROR', 'OS-EXT-STS:task_state': None})
        self.admin_api.post_server_action(
            self.server['id'], {'os-resetState': {'state': 'active'}})
        self.assertEqual(4, self.spec().flavor.vcpus)

    def spec(self):
        return objects.RequestSpec.get_by_instance_uuid(
            context.get_admin_context(), self.server['id'])

    def test_a_live_migration_claims_what_the_server_has(self):
        self.migrate(self.server, 'host2')
        self._wait_for_migration_status(self.server, ['completed'])
        self.server_on(self.server, 'host2')
        self.assert_holds(self.server['id'], {'host2': SMALL})

    def test_a_host_with_room_for_the_server_alone_is_found(self):
        self._reserve_placement_resource('host2', 'MEMORY_MB', 7600)
        self.migrate(self.server)
        self.server_on(self.server, 'host2')
        self.assert_holds(self.server['id'], {'host2': SMALL})

    def test_the_dry_run_asks_for_what_the_server_has(self):
        self._reserve_placement_resource('host2', 'MEMORY_MB', 7600)
        move = plans.PlannedMove(
            order=1, phase=plans.SPREAD, instance_uuid=self.server['id'], source='host1',
            destination='host2', memory_mb=512, combined_after=0.0, reason='')
        self.assertEqual(AGREED, dry_run.SchedulerDryRun()(move, None, None))


class ReconciledAmountTest(test_live_migration.ReconcilerTestCase):
    """A live migration by a conductor without Kronos took what the RequestSpec says, and left the
    server with it."""

    LARGER = {'VCPU': 4, 'MEMORY_MB': 4096, 'DISK_GB': 20}

    def hold(self, server, amounts):
        held = self.placement_client.consumer(server['id'])
        body = held.holding({self.uuid_of('host2'): amounts}, consumer_type='INSTANCE',
                            project_id=held.project_id, user_id=held.user_id).to_body()
        self.assertEqual(204, self.placement.put(f'/allocations/{server["id"]}', body,
                                                 version='1.38').status)

    def moved(self):
        server = self.boot('host1')
        self.migrate(server, 'host2')
        self._wait_for_migration_status(server, ['completed'])
        self.server_on(server, 'host2')
        return server

    def test_too_much_and_too_little_of_a_flavor_is_corrected_unasked(self):
        server = self.moved()
        for wrong in (self.LARGER, {**SMALL, 'MEMORY_MB': 256}):
            self.hold(server, wrong)
            self.reconciler.in_order.clear()
            [outcome] = self.reconcile()
            self.assertEqual((audit.MISMATCHED, 'healed'), (outcome.finding.kind, outcome.state))
            self.assert_holds(server['id'], {'host2': SMALL})
        self.assertEqual([], self.reconcile())

    def test_what_cannot_be_corrected_by_amounts_alone_is_left_to_an_audit(self):
        server = self.moved()
        self.hold(server, {'VCPU': 1, 'MEMORY_MB': 512})
        self.assertEqual([], self.reconcile())
        self.assert_holds(server['id'], {'host2': {'VCPU': 1, 'MEMORY_MB': 512}})
