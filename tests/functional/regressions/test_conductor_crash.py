"""A conductor dies as soon as it has got a request for a live migration.

Nova marks the server before it sends the request, and no process clears the mark: the server keeps
it until an operator resets its state.
"""

from tests.functional.regressions import base


class ConductorCrashTest(base.RegressionTestCase):
    def test_the_server_can_be_moved_again(self):
        server = self.boot_server()
        died = self.die_in('nova.conductor.manager.ComputeTaskManager.live_migrate_instance')
        self.migrate(server)
        self.assertTrue(died.wait(30))
        self.reconcile()
        self._wait_for_server_parameter(server, {'OS-EXT-STS:task_state': 'migrating'})

        self.reconcile(stalled=0)

        self.server_on(server, 'host1')
        self.migrate(server)
        self._wait_for_migration_status(server, ['completed'])
        self.server_on(server, 'host2')
        self.assert_holds_alone(server, 'host2')


StockConductorCrashTest = base.on_stock_nova(ConductorCrashTest)
