"""Live migrations that break off as they do with Nova's libvirt driver, which raises libvirt's
error after it has rolled back, takes a guest that is gone for moved, and raises where libvirt is
away.

Nova puts the instance into ERROR, or has it where nothing runs.
"""

import errno
import time

import oslo_messaging as messaging
from nova import context as nova_context
from nova import exception
from nova import objects
from nova.compute import manager
from nova.compute import power_state
from nova.virt import fake
from oslo_utils import importutils

from kronos_nova.plugin import outages
from tests.functional.regressions import base
from tests.functional.regressions import guests


class libvirtError(Exception):  # noqa: N801 - libvirt's way
    pass


def fill(*args, **kwargs):
    raise OSError(errno.ENOSPC, 'No space left on device')


class BrokenLiveMigrationTest(guests.GuestsTestCase):
    def break_off(self, server, happens, asks=None, status=None, error=None):
        """Migrate it; ``happens`` to guests, then the driver ``asks`` Nova to end it, and raises.

        :param asks: 'post' or 'recover'
        """
        def live_migration(driver, context, instance, dest, post_method, recover_method,
                           block_migration=False, migrate_data=None):
            happens()
            if asks == 'post':
                post_method(context, instance, dest, block_migration, migrate_data)
            elif asks == 'recover':
                recover_method(context, instance, dest, migrate_data,
                               **({'migration_status': status} if status else {}))
            raise error or libvirtError('operation failed: injected')

        self.stub_out('tests.functional.mixed.fakes_drivers.Steered.live_migration', live_migration)
        self.migrate(server)

    def fault(self, server):
        """Return why it failed, as Nova keeps it; its API shows only that of an instance in
        ERROR."""
        with nova_context.target_cell(nova_context.get_admin_context(),
                                      self.cell_mappings['cell1']) as context:
            return objects.InstanceFault.get_latest_for_instance(context, server['id'])

    def test_a_guest_that_runs_on_after_the_rollback(self):
        for asked, status in ((None, 'failed'), ('cancelled', 'cancelled')):
            server = self.boot_server()
            self.break_off(server, lambda: None, 'recover', asked)
            self.assert_ended(server, 'host1', 'ACTIVE', status)
            self._delete_server(server)

    def test_a_guest_that_runs_on_after_a_fault_in_the_driver(self):
        server = self.boot_server()
        self.break_off(server, lambda: None, 'recover', error=AttributeError('injected'))
        self.assert_ended(server, 'host1', 'ACTIVE', 'failed')
        self.assertIn('injected; its guest runs on at host1', self.fault(server).message)

    def test_a_guest_that_was_paused_to_complete_by_force(self):
        server = self.boot_server()
        # Nova's fake driver takes no notice.
        self.stub_out('nova.virt.fake.FakeDriver.unpause', lambda driver, instance:
                      self.guest_at('host1', server, power_state.RUNNING))
        self.break_off(server, lambda: self.guest_at('host1', server, power_state.PAUSED),
                       'recover')
        self.assert_ended(server, 'host1', 'ACTIVE', 'failed')
        self.assertTrue(self.is_running('host1', server))

    def test_a_guest_that_ended_at_the_source(self):
        server = self.boot_server()
        self.break_off(server, lambda: self.guest_at('host1', server, power_state.SHUTDOWN), 'post')
        self.assert_ended(server, 'host1', 'SHUTOFF', 'failed')
        self.assertIn(server['id'], self.driver('host1').instances)
        self.assertIn('injected; its guest has ended at host1', self.fault(server).message)

        self.api.post_server_action(server['id'], {'os-start': None})
        self.server_on(server, 'host1')

    def test_a_guest_that_ended_at_the_source_while_the_other_waited(self):
        server = self.boot_server()

        def happens():
            self.guest_at('host1', server, power_state.SHUTDOWN)
            self.guest_at('host2', server, power_state.PAUSED)

        self.break_off(server, happens, 'post')
        self.assert_ended(server, 'host1', 'SHUTOFF', 'failed')

    def test_a_hypervisor_that_was_restarted(self):
        server = self.boot_server()
        real, refused = fake.FakeDriver.get_info, []

        def get_info(driver, instance, use_cache=True):
            if len(refused) < 5:
                refused.append(driver)
                raise exception.HypervisorUnavailable()
            return real(driver, instance, use_cache)

        self.break_off(
            server, lambda: self.stub_out('nova.virt.fake.FakeDriver.get_info', get_info))
        self.assert_ended(server, 'host1', 'ACTIVE', 'failed')
        self.assertEqual(5, len(refused))

    def test_a_hypervisor_that_was_restarted_when_the_guest_had_left(self):
        for state in (power_state.PAUSED, power_state.SHUTDOWN):
            server = self.boot_server()

            def happens(server=server, state=state):
                self.guest_at('host1', server, state)
                self.guest_at('host2', server, power_state.RUNNING)

            self.break_off(server, happens)
            self.assert_ended(server, 'host2', 'ACTIVE', 'completed')
            self.assertFalse(self.is_running('host1', server))
            self._delete_server(server)

    def test_a_destination_that_ends_as_the_guest_arrives(self):
        self.flags(long_rpc_timeout=2)
        for method in ('nova.network.neutron.API.migrate_instance_finish',
                       # Nova saves the instance whatever ends this.
                       'tests.functional.mixed.fakes_drivers.Steered.post_live_migration_at_destination'):
            server = self.boot_server()
            died = self.die_in(method)
            self.migrate(server)
            self.assertTrue(died.wait(30))
            self.assert_ended(server, 'host2', 'ACTIVE', 'completed')
            self._delete_server(server)

    def test_a_destination_that_does_not_come_back(self):
        server = self.boot_server()

        def time_out(*args, **kwargs):
            raise messaging.MessagingTimeout('injected')

        self.stub_out('nova.compute.rpcapi.ComputeAPI.post_live_migration_at_destination', time_out)
        self.migrate(server)
        self.assert_ended(server, 'host2', 'ACTIVE', 'completed')

    def test_a_service_that_does_not_answer_before_it_begins(self):
        """Nova leaves the instance as it is, for ever."""
        server = self.boot_server()
        real = manager.ComputeManager._do_live_migration

        def migrate(this, *args, **kwargs):
            self.time_out('nova.objects.BlockDeviceMappingList.get_by_instance_uuid')
            real(this, *args, **kwargs)

        self.stub_out('nova.compute.manager.ComputeManager._do_live_migration', migrate)
        self.migrate(server)
        self.assert_ended(server, 'host1', 'ACTIVE', 'failed')
        self.assertEqual(outages.CODE, self.fault(server).code)

    def test_a_bus_that_is_away_while_the_guest_is_copied(self):
        """The driver saves the progress by RPC."""
        for there in (None, power_state.PAUSED):
            server, aborted = self.boot_server(), []

            def live_migration(driver, context, instance, dest, post_method, recover_method,
                               block_migration=False, migrate_data=None, server=server,
                               there=there):
                if there is not None:
                    self.guest_at('host2', server, there)
                raise messaging.MessagingTimeout('injected')

            def abort(driver, instance, aborted=aborted):
                aborted.append(instance.uuid)

            self.stub_out('tests.functional.mixed.fakes_drivers.Steered.live_migration',
                          live_migration)
            self.stub_out('tests.functional.mixed.fakes_drivers.Steered.live_migration_abort',
                          abort)
            self.stub_out('kronos_nova.plugin.fixes.broken_migrations.SETTLING_SECONDS', 1)
            self.migrate(server)
            self.assert_ended(server, 'host1', 'ACTIVE', 'failed')
            self.assertTrue(self.is_running('host1', server))
            self.assertEqual([server['id']], aborted)
            self.assertEqual(outages.CODE, self.fault(server).code)
            self._delete_server(server)

    def test_a_service_that_does_not_answer_while_it_is_rolled_back(self):
        server = self.boot_server()
        self.time_out('nova.compute.manager.ComputeManager._rollback_volume_bdms')
        self.stub_out('nova.virt.fake.FakeDriver.pre_live_migration', fill)
        self.migrate(server)
        self.assert_ended(server, 'host1', 'ACTIVE', 'failed')

    def test_a_request_of_the_rollback_that_is_lost(self):
        """The conductor that had it was restarted: nova-compute waits for the answer for longer
        than it repeats a step."""
        self.stub_out('kronos_nova.plugin.fixes.broken_migrations.PATIENCE_SECONDS', 0.5)
        server = self.boot_server()
        self.time_out('nova.compute.manager.ComputeManager._rollback_volume_bdms', lasts=1)
        self.stub_out('nova.virt.fake.FakeDriver.pre_live_migration', fill)
        self.migrate(server)
        self.assert_ended(server, 'host1', 'ACTIVE', 'failed')

    def time_out(self, method, times=2, lasts=0):
        owner, _, name = method.rpartition('.')
        real, asked = getattr(importutils.import_class(owner), name), []

        def ask(*args, **kwargs):
            if len(asked) == times:
                # With the class in front of those of a class method.
                return real(*args[isinstance(getattr(real, '__self__', None), type):], **kwargs)
            asked.append(args)
            time.sleep(lasts)
            raise messaging.MessagingTimeout('injected')

        self.stub_out(method, ask)

    def test_a_destination_that_cannot_be_made_ready(self):
        server = self.boot_server()
        self.stub_out('nova.virt.fake.FakeDriver.pre_live_migration', fill)
        self.migrate(server)
        self.assert_ended(server, 'host1', 'ACTIVE', 'failed')
        self.assertIn('No space left on device; its guest runs on at host1',
                      self.fault(server).message)


StockBrokenLiveMigrationTest = base.on_stock_nova(BrokenLiveMigrationTest)
