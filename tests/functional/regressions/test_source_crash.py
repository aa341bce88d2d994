"""The source's nova-compute dies in the middle of a live migration, and starts again.

Nova sets the instance free, and leaves the migration and both allocations as they are.
"""

from tests.functional.regressions import base


class SourceCrashTest(base.RegressionTestCase):
    def crash_in(self, method, status):
        server = self.boot_server()
        died = self.die_in(method)
        self.migrate(server)
        self.assertTrue(died.wait(30))
        self._wait_for_migration_status(server, [status])
        self.assert_holds(server['id'], self.kind.held('host2', 1))

        self.restart_source()

        self.server_on(server, 'host1')
        self._wait_for_migration_status(server, ['error', 'failed'])
        self.reconcile()
        self.assert_holds_alone(server, 'host1')

    def test_while_the_guest_moves(self):
        self.crash_in('tests.functional.mixed.fakes_drivers.Steered.live_migration', 'running')

    def test_while_the_migration_waits_for_others(self):
        self.crash_in('nova.compute.manager.ComputeManager._do_live_migration', 'queued')

    def test_while_the_destination_is_asked(self):
        self.crash_in('nova.compute.rpcapi.ComputeAPI.pre_live_migration', 'preparing')


StockSourceCrashTest = base.on_stock_nova(SourceCrashTest)
