"""Placement, neutron or a conductor does not answer while a cold migration begins or is confirmed.

Nova puts an instance that has arrived into ERROR, and says of one that cannot leave that no host is
valid.
"""

import threading

import fixtures
import oslo_messaging as messaging
from neutronclient.common import exceptions as neutron_exc
from nova import context as nova_context
from nova import objects
from nova.compute import manager
from nova.network import neutron

from kronos_nova.plugin import outages
from tests.functional.regressions import base
from tests.functional.regressions import guests


class ConfirmationTest(guests.GuestsTestCase):
    def setUp(self):
        super().setUp()
        self.stub_out('kronos_nova.plugin.fixes.confirmation_retry.PATIENCE_SECONDS', 5)
        self.carried_out = threading.Semaphore(0)
        owner = type(self.computes['host1'].manager)
        real = owner.confirm_resize

        def confirm(*args, **kwargs):
            try:
                return real(*args, **kwargs)
            finally:
                self.carried_out.release()
        self.useFixture(fixtures.MockPatchObject(owner, 'confirm_resize', confirm))

    def moved(self):
        server = self.boot_server()
        self.api.post_server_action(server['id'], {'migrate': None})
        self._wait_for_server_parameter(server, {
            'OS-EXT-STS:task_state': None, 'status': 'VERIFY_RESIZE'})
        return server

    def confirm(self, server):
        """Ask Nova to confirm, and wait until nova-compute has carried out the request. Before
        that, an instance may be ACTIVE that ends in ERROR."""
        self.api.post_server_action(server['id'], {'confirmResize': None})
        self.assertTrue(self.carried_out.acquire(timeout=60))

    def assert_confirmed(self, server):
        self.assert_ended(server, 'host2', 'ACTIVE', 'confirmed')

    def test_placement_does_not_answer_for_a_moment(self):
        server = self.moved()
        asked = []

        def before(*request):
            asked.append(request)
            return base.outage() if len(asked) < 4 else None
        self.placement_fixture.before = before
        self.confirm(server)
        self.assert_confirmed(server)

    def test_placement_does_not_answer_for_long(self):
        self.stub_out('kronos_nova.plugin.fixes.confirmation_retry.PATIENCE_SECONDS', 1)
        server = self.moved()
        self.placement_fixture.before = lambda *asked: base.outage()
        self.confirm(server)
        self._wait_for_migration_status(server, ['finished'])
        self.assertEqual('VERIFY_RESIZE', self.api.get_server(server['id'])['status'])
        self.placement_fixture.before = lambda *asked: None
        self.confirm(server)
        self.assert_confirmed(server)

    def test_placement_does_not_delete_the_allocation(self):
        server = self.moved()
        real = manager.ComputeManager._delete_allocation_after_move

        def lead(*args, **kwargs):
            self.placement_fixture.before = lambda *asked: base.outage()
            try:
                return real(*args, **kwargs)
            finally:
                self.placement_fixture.before = lambda *asked: None
        self.useFixture(fixtures.MockPatchObject(
            manager.ComputeManager, '_delete_allocation_after_move', lead))
        self.confirm(server)
        self.assert_confirmed(server)

    def fail_twice(self, owner, name, error, after=False):
        """Let the first two calls of a method fail, before or after it has done its work."""
        real, failed = getattr(owner, name), []

        def fail(*args, **kwargs):
            result = real(*args, **kwargs) if after or len(failed) == 2 else None
            if len(failed) < 2:
                failed.append(name)
                raise error
            return result
        self.useFixture(fixtures.MockPatchObject(owner, name, fail))

    def test_neutron_does_not_answer(self):
        server = self.moved()
        self.fail_twice(neutron.API, 'setup_networks_on_host',
                        neutron_exc.ConnectionFailed(reason='injected'))
        self.confirm(server)
        self.assert_confirmed(server)

    def test_a_conductor_does_not_answer_when_most_is_done(self):
        server = self.moved()
        self.fail_twice(objects.Instance, 'drop_migration_context',
                        messaging.MessagingTimeout('injected'), after=True)
        self.confirm(server)
        self.assert_confirmed(server)

    def test_a_conductor_does_not_answer_at_the_end(self):
        server = self.moved()
        self.fail_twice(manager.ComputeManager, '_delete_stashed_flavor_info',
                        messaging.MessagingTimeout('injected'))
        self.confirm(server)
        self.assert_confirmed(server)

    def test_a_request_that_arrives_twice(self):
        server = self.moved()
        with nova_context.target_cell(nova_context.get_admin_context(),
                                      self.cell_mappings['cell1']) as context:
            instance = objects.Instance.get_by_uuid(context, server['id'])
            migration = objects.Migration.get_by_instance_and_status(
                context, server['id'], 'finished')
            for _ in range(2):
                copy = objects.Migration.get_by_id(context, migration.id)
                copy.status = 'confirming'
                self.computes['host1'].manager.confirm_resize(context, instance, copy)
        self.assert_confirmed(server)


StockConfirmationTest = base.on_stock_nova(ConfirmationTest)


class BeginningTest(guests.GuestsTestCase):
    def fault(self, server):
        with nova_context.target_cell(nova_context.get_admin_context(),
                                      self.cell_mappings['cell1']) as context:
            return objects.InstanceFault.get_latest_for_instance(context, server['id'])

    def assert_known_as_an_outage(self, server):
        self._wait_for_migration_status(server, ['error'])
        self._wait_for_server_parameter(server, {
            'OS-EXT-SRV-ATTR:host': 'host1', 'OS-EXT-STS:task_state': None, 'status': 'ACTIVE'})
        self._wait_for_assert(lambda: self.assertEqual(
            outages.CODE, getattr(self.fault(server), 'code', None)))
        self.placement_fixture.before = lambda *asked: None
        self.reconcile()
        self.assert_holds_alone(server, 'host1')

    def test_placement_does_not_answer_the_conductor(self):
        server = self.boot_server()
        self.lose_placement_at('/allocations/')
        self.api.post_server_action(server['id'], {'migrate': None})
        self.assert_known_as_an_outage(server)

    def lose_placement_at(self, beginning):
        """Let placement answer nothing any more from the first request of such a path."""
        lost = []

        def before(method, path, body):
            lost.extend([path] * path.startswith(beginning))
            return base.outage() if lost else None
        self.placement_fixture.before = before

    def test_placement_does_not_answer_the_scheduler(self):
        server = self.boot_server()
        self.lose_placement_at('/allocation_candidates')
        self.api.post_server_action(server['id'], {'migrate': None})
        self.assert_known_as_an_outage(server)

    def test_no_host_is_valid(self):
        server = self.boot_server()
        service = self.computes['host2'].service_ref
        self.api.put_service(service.uuid, {'status': 'disabled'})
        self.api.post_server_action(server['id'], {'migrate': None})
        self._wait_for_migration_status(server, ['error'])
        self._wait_for_assert(lambda: self.assertEqual(
            500, getattr(self.fault(server), 'code', None)))
