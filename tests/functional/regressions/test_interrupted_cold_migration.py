"""nova-compute is killed and restarted while a server is migrated cold from its host or to it."""

import functools
import pathlib
import queue
import threading

import ddt
from nova import context as nova_context
from nova import objects
from nova.compute import power_state
from nova.compute import rpcapi
from oslo_serialization import jsonutils
from oslo_utils import importutils

from kronos_nova.plugin import outages
from tests.functional.regressions import base
from tests.functional.regressions import guests


class KilledComputeTestCase(guests.GuestsTestCase):
    def migrate_until(self, method, is_stopped=False):
        """Migrate a server until nova-compute dies in ``method``."""
        server = self.boot_server()
        if is_stopped:
            self.api.post_server_action(server['id'], {'os-stop': None})
            self._wait_for_server_parameter(server, {'status': 'SHUTOFF',
                                                     'OS-EXT-STS:task_state': None})
        died = self.die_in(method)
        self.api.post_server_action(server['id'], {'migrate': None})
        self.assertTrue(died.wait(60))
        return server

    def keep_requests(self, name='resize_instance'):
        """Keep the requests to the source to begin. Return a queue of functions that send them."""
        ask, kept = getattr(rpcapi.ComputeAPI, name), queue.Queue()
        self.stub_out(f'nova.compute.rpcapi.ComputeAPI.{name}', lambda *args, **kwargs: (
            kept.put(functools.partial(ask, *args, **kwargs))))
        return kept


class InterruptedColdMigrationTest(KilledComputeTestCase):
    def assert_tried_again(self, server):
        self.assert_ended(server, 'host1', 'ACTIVE', 'error')
        with nova_context.target_cell(nova_context.get_admin_context(),
                                      self.cell_mappings['cell1']) as context:
            self.assertEqual(outages.CODE, objects.InstanceFault.get_latest_for_instance(
                context, server['id']).code)
            self.assertIsNone(objects.Instance.get_by_uuid(
                context, server['id']).migration_context)

    def restart_source_before_its_request(self, server, kept):
        """Return a function that sends the request."""
        self.api.post_server_action(server['id'], {'migrate': None})
        send = kept.get(timeout=60)
        self.restart_source()
        self._wait_for_server_parameter(server, {'OS-EXT-STS:task_state': None})
        return send

    def test_the_request_waits_until_nova_compute_is_back(self):
        server = self.boot_server()
        send = self.restart_source_before_its_request(server, self.keep_requests())
        send()
        self._wait_for_migration_status(server, ['error'])
        self.assert_tried_again(server)

    def test_the_request_was_received(self):
        server = self.migrate_until('nova.compute.manager.ComputeManager._resize_instance')
        self.restart_source()
        self.assert_tried_again(server)

    def test_the_destination_did_not_send_its_request(self):
        self.stub_out('kronos_nova.plugin.fixes.interrupted_cold_migrations.REQUEST_SECONDS', 0.5)
        server = self.migrate_until('nova.compute.rpcapi.ComputeAPI.resize_instance')
        self.restart('host2')
        self.assert_tried_again(server)

    def test_a_request_of_an_earlier_migration_does_not_disturb_the_next(self):
        server, kept = self.boot_server(), self.keep_requests()
        outdated = self.restart_source_before_its_request(server, kept)
        self.assert_tried_again(server)
        self.api.post_server_action(server['id'], {'migrate': None})
        send = kept.get(timeout=60)
        outdated()
        send()
        self._wait_for_server_parameter(server, {
            'OS-EXT-SRV-ATTR:host': 'host2', 'status': 'VERIFY_RESIZE'})

    def test_the_guest_was_powered_off(self):
        server = self.migrate_until('nova.virt.fake.FakeDriver.migrate_disk_and_power_off')
        self.restart_source()
        self.assert_tried_again(server)


class InterruptedEvacuationTest(KilledComputeTestCase):
    def test_its_migration_stays_as_the_source_expects_it(self):
        """A source that comes back destroys its guest because of this record."""
        self.stub_out('kronos_nova.plugin.fixes.interrupted_cold_migrations.REQUEST_SECONDS', 0.1)
        server = self.boot_server()
        self.lose_source()
        died = self.die_in('nova.virt.fake.FakeDriver.spawn')
        self.api.post_server_action(server['id'], {'evacuate': {'host': 'host2'}})
        self.assertTrue(died.wait(60))
        self.admin_api.post_server_action(server['id'], {'os-resetState': {'state': 'active'}})
        self.restart('host2')
        for thread in threading.enumerate():
            if isinstance(thread, threading.Timer):
                thread.join(60)
        [migration] = self.api.api_get(
            f'/os-migrations?instance_uuid={server["id"]}').body['migrations']
        self.assertEqual(('evacuation', 'pre-migrating'),
                         (migration['migration_type'], migration['status']))


@ddt.ddt
class LateRequestTest(KilledComputeTestCase):
    """The source is lost, and comes back. It then receives the request to begin a cold migration of
    a server that is evacuated, or was."""

    hosts = ('host1', 'host2', 'host3')

    def lose_source_before_its_request(self, name='resize_instance'):
        """Return a server, and a function that starts the source and sends the request."""
        server, kept = self.boot_server(), self.keep_requests(name)
        self.api.post_server_action(server['id'], {'migrate': {'host': 'host2'}})
        send = kept.get(timeout=60)
        self.lose_source()

        def come_back():
            self.restart_source()
            send()
        return server, come_back

    def assert_evacuated(self, server):
        self._wait_for_migration_status(server, ['error'])
        self._wait_for_server_parameter(server, {
            'OS-EXT-SRV-ATTR:host': 'host3', 'OS-EXT-STS:task_state': None, 'status': 'SHUTOFF'})
        self.reconcile()
        self.assert_holds_alone(server, 'host3')
        self._run_periodics()
        for host in ('host1', 'host2'):
            tracker = self.computes[host].manager.rt
            self.assertEqual(([], 0), (tracker.ledger.rows(host),
                                       tracker.compute_nodes[host].vcpus_used))

    def evacuate(self, server):
        self.api.post_server_action(server['id'], {'evacuate': {'host': 'host3'}})

    @ddt.data('prep_resize', 'resize_instance')
    def test_a_server_that_was_evacuated_stays_where_it_is(self, request):
        server, come_back = self.lose_source_before_its_request(request)
        self.evacuate(server)
        self._wait_for_server_parameter(server, {
            'OS-EXT-SRV-ATTR:host': 'host3', 'OS-EXT-STS:task_state': None, 'status': 'SHUTOFF'})
        come_back()
        self.assert_evacuated(server)

    @ddt.data('nova.virt.fake.FakeDriver.spawn',
              'nova.compute.manager.ComputeManager._do_rebuild_instance_with_claim')
    def test_an_evacuation_in_progress_is_not_disturbed(self, step):
        server, come_back = self.lose_source_before_its_request()
        owner, _, name = step.rpartition('.')
        real, has_come_back = getattr(importutils.import_class(owner), name), []

        def come_back_first(*args, **kwargs):
            if not has_come_back:
                has_come_back.append(True)
                come_back()
                self._wait_for_migration_status(server, ['error'])
            return real(*args, **kwargs)

        self.stub_out(step, come_back_first)
        self.evacuate(server)
        self.assert_evacuated(server)


StockInterruptedColdMigrationTest = base.on_stock_nova(InterruptedColdMigrationTest)


class ArrivalTestCase(KilledComputeTestCase):
    """nova-compute on the destination is killed before it has started the guest."""

    def assert_arrived(self, server, status='ACTIVE'):
        self._wait_for_server_parameter(server, {
            'OS-EXT-SRV-ATTR:host': 'host2', 'OS-EXT-STS:task_state': None,
            'status': 'VERIFY_RESIZE'})
        self.assertEqual(status == 'ACTIVE', self.is_running('host2', server))
        self.api.post_server_action(server['id'], {'confirmResize': None})
        self.assert_ended(server, 'host2', status, 'confirmed')
        self.assertEqual([], self.checkpoints())

    def checkpoints(self):
        return [*pathlib.Path(self.state).glob('cold-migrations/*')]


@ddt.ddt
class InterruptedArrivalTest(ArrivalTestCase):
    @ddt.data('nova.network.neutron.API.migrate_instance_finish',
              'nova.virt.fake.FakeDriver.finish_migration',
              'nova.compute.manager.ComputeManager._complete_volume_attachments')
    def test_the_guest_is_started(self, method):
        server = self.migrate_until(method)
        self.restart('host2')
        self.assert_arrived(server)


StockInterruptedArrivalTest = base.on_stock_nova(InterruptedArrivalTest)


class UnusualArrivalTest(ArrivalTestCase):
    def test_a_stopped_server_stays_powered_off(self):
        server = self.migrate_until('nova.virt.fake.FakeDriver.finish_migration', is_stopped=True)
        self.restart('host2')
        self.assert_arrived(server, 'SHUTOFF')

    def test_a_guest_that_was_half_started_is_started_again(self):
        server = self.migrate_until('nova.virt.fake.FakeDriver.finish_migration')
        self.guest_at('host2', server, power_state.PAUSED)
        self.restart('host2')
        self.assert_arrived(server)

    def assert_failed(self, server):
        self.assert_ended(server, 'host2', 'ERROR', 'error')
        self.assertEqual([], self.checkpoints())

    def test_a_raw_disk_is_not_converted_a_second_time(self):
        disk = jsonutils.dumps([{'path': '/disk', 'type': 'raw'}])
        self.stub_out('nova.virt.fake.FakeDriver.migrate_disk_and_power_off', lambda *_, **__: disk)
        server = self.migrate_until('nova.virt.fake.FakeDriver.finish_migration')
        self.restart('host2')
        self.assert_failed(server)

    def test_without_a_checkpoint_the_server_is_in_error(self):
        server = self.migrate_until('nova.virt.fake.FakeDriver.finish_migration')
        for path in self.checkpoints():
            path.unlink()
        self.restart('host2')
        self.assert_failed(server)
