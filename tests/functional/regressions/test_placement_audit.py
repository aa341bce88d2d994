"""``nova-manage placement audit --delete`` during a live migration.

It takes what the instance holds at the destination for an orphan, as Nova's record has the instance
at the source still: the instance ends there with nothing.
"""

from nova.cmd import manage

from tests.functional.mixed import fakes_drivers
from tests.functional.regressions import base


class PlacementAuditTest(base.RegressionTestCase):
    def test_the_instance_holds_what_it_should_afterwards(self):
        server = self.boot_server()
        self.hold(server)
        self.assertEqual(4, manage.PlacementCommands().audit(delete=True))
        self.assert_holds(server['id'], {})

        fakes_drivers.COURSE.let_go()

        self._wait_for_migration_status(server, ['completed'])
        self.server_on(server, 'host2')
        self.reconcile()
        self.assert_holds_alone(server, 'host2')


StockPlacementAuditTest = base.on_stock_nova(PlacementAuditTest)
