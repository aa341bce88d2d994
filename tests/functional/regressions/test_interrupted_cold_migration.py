"""nova-compute on the source is killed and restarted while a server is migrated cold from it."""

import threading

from nova import context as nova_context
from nova import objects
from nova.compute import rpcapi

from kronos_nova.plugin import outages
from tests.functional.regressions import base
from tests.functional.regressions import guests


class InterruptedColdMigrationTest(guests.GuestsTestCase):
    def assert_tried_again(self, server):
        self.assert_ended(server, 'host1', 'ACTIVE', 'error')
        with nova_context.target_cell(nova_context.get_admin_context(),
                                      self.cell_mappings['cell1']) as context:
            self.assertEqual(outages.CODE, objects.InstanceFault.get_latest_for_instance(
                context, server['id']).code)

    def test_the_request_waits_until_nova_compute_is_back(self):
        server, asked, real = self.boot_server(), threading.Event(), []

        def keep(this, *args, **kwargs):
            real.append(lambda: ask(this, *args, **kwargs))
            asked.set()
        ask = rpcapi.ComputeAPI.resize_instance
        self.stub_out('nova.compute.rpcapi.ComputeAPI.resize_instance', keep)
        self.api.post_server_action(server['id'], {'migrate': None})
        self.assertTrue(asked.wait(60))
        self.restart_source()
        self._wait_for_server_parameter(server, {'OS-EXT-STS:task_state': None})
        real[0]()
        self._wait_for_migration_status(server, ['error'])
        self.assert_tried_again(server)

    def test_the_guest_was_powered_off(self):
        server = self.boot_server()
        died = self.die_in('nova.virt.fake.FakeDriver.migrate_disk_and_power_off')
        self.api.post_server_action(server['id'], {'migrate': None})
        self.assertTrue(died.wait(60))
        self.restart_source()
        self.assert_tried_again(server)


StockInterruptedColdMigrationTest = base.on_stock_nova(InterruptedColdMigrationTest)
