"""Neutron, a conductor or a database does not answer after a guest has arrived at its destination.

The instance runs well there. Nova gives the last steps up, and puts the instance into ERROR.
"""

import ddt
import oslo_messaging as messaging
from neutronclient.common import exceptions as neutron_exc
from oslo_utils import importutils

from tests.functional.regressions import base
from tests.functional.regressions import guests

MANAGER = 'nova.compute.manager.ComputeManager'


@ddt.ddt
class OutageAfterArrivalTest(guests.GuestsTestCase):
    def away(self, method, error, times):
        """Let the first calls of ``method`` fail; returns what has the number of failures."""
        owner, _, name = method.rpartition('.')
        real, failed = getattr(importutils.import_class(owner), name), []

        def fail(*args, **kwargs):
            if len(failed) < times:
                failed.append(method)
                raise error
            return real(*args, **kwargs)

        self.stub_out(method, fail)
        return failed

    @ddt.data(('nova.network.neutron.API.migrate_instance_start', 2),
              ('nova.network.neutron.API.migrate_instance_start', 1000),
              ('nova.network.neutron.API.migrate_instance_finish', 2),
              ('nova.network.neutron.API.migrate_instance_finish', 1000))
    @ddt.unpack
    def test_neutron(self, method, times):
        server = self.boot_server()
        failed = self.away(method, neutron_exc.ConnectionFailed(reason='injected'), times)
        self.migrate(server)
        self.assert_ended(server, 'host2', 'ACTIVE', 'completed')
        self.assertNotEqual([], failed)

    @ddt.data('_get_instance_block_device_info', '_update_scheduler_instance_info',
              '_clean_instance_console_tokens')
    def test_a_conductor(self, method):
        server = self.boot_server()

        def live_migration(driver, context, instance, dest, post_method, recover_method,
                           block_migration=False, migrate_data=None):
            self.away(f'{MANAGER}.{method}', messaging.MessagingTimeout('injected'), 1)
            post_method(context, instance, dest, block_migration, migrate_data)

        self.stub_out('tests.functional.mixed.fakes_drivers.Steered.live_migration', live_migration)
        self.migrate(server)
        self.assert_ended(server, 'host2', 'ACTIVE', 'completed')

    def test_a_conductor_while_nova_records_where_the_guest_is(self):
        server = self.boot_server()

        def live_migration(driver, context, instance, dest, post_method, recover_method,
                           block_migration=False, migrate_data=None):
            error = messaging.MessagingTimeout('injected')
            self.away(f'{MANAGER}._get_instance_block_device_info', error, 1)
            self.away(f'{MANAGER}._get_compute_info', error, 2)
            post_method(context, instance, dest, block_migration, migrate_data)

        self.stub_out('tests.functional.mixed.fakes_drivers.Steered.live_migration', live_migration)
        self.migrate(server)
        self.assert_ended(server, 'host2', 'ACTIVE', 'completed')


StockOutageAfterArrivalTest = base.on_stock_nova(OutageAfterArrivalTest)
