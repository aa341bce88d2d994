"""A generation conflict or an outage of placement while allocations change hands.

Nova gives up at the first conflict of the swap, and at every failure of the swap back, which it
ignores: the migration keeps the source's allocation for ever, and the instance the destination's.
"""

from tests.functional.mixed import fakes_drivers
from tests.functional.regressions import base


class SwapTest(base.RegressionTestCase):
    def test_a_conflict_does_not_end_a_live_migration(self):
        server = self.boot_server()
        happened = self.once(base.conflict)

        self.migrate(server)

        self._wait_for_migration_status(server, ['completed'])
        self.assertEqual(1, len(happened))
        self.assert_holds_alone(server, 'host2')


class RevertTest(base.RegressionTestCase):
    """The source rolls a live migration back."""

    def roll_back(self, fault):
        server = self.boot_server()
        self.hold(server)
        happened = self.once(fault)

        fakes_drivers.COURSE.let_go('failed')

        self._wait_for_assert(lambda: self.assertEqual(1, len(happened)))
        return server

    def test_after_a_conflict_the_source_has_its_allocation_back(self):
        server = self.roll_back(base.conflict)

        self.server_on(server, 'host1')
        self.assert_holds_alone(server, 'host1')

    def test_after_an_answer_that_did_not_come_too(self):
        server = self.roll_back(base.outage)

        self.server_on(server, 'host1')
        self.assert_holds_alone(server, 'host1')


class ColdRevertTest(base.RegressionTestCase):
    """The conductor rolls a cold migration back, as no host is left."""

    def roll_back(self, fault):
        server = self.boot_server()
        service = self.computes['host2'].service_ref
        self.api.put_service(service.uuid, {'status': 'disabled'})
        swapped = []

        def before(method, path, body):
            if (method, path) != ('POST', '/allocations'):
                return None
            swapped.append(body)
            return fault() if len(swapped) == 2 else None

        self.placement_fixture.before = before
        self.api.post_server_action(server['id'], {'migrate': None})
        self._assert_resize_migrate_action_fail(server, 'migrate', 'NoValidHost')
        return server

    def test_after_a_conflict_the_source_has_its_allocation_back(self):
        self.assert_holds_alone(self.roll_back(base.conflict), 'host1')

    def test_after_an_answer_that_did_not_come_too(self):
        self.assert_holds_alone(self.roll_back(base.outage), 'host1')


StockSwapTest = base.on_stock_nova(SwapTest)
StockRevertTest = base.on_stock_nova(RevertTest)
StockColdRevertTest = base.on_stock_nova(ColdRevertTest)
