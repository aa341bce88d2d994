"""Placement answers with errors from the moment at which a guest arrives at its destination.

The instance runs well there, and Nova has written that down. The allocation of the migration cannot
be given back, upon which Nova puts the instance into ERROR.
"""

import threading

import ddt
import fixtures

from tests.functional import base as functional
from tests.functional.regressions import base
from tests.functional.regressions import guests


@ddt.ddt
class PlacementAfterArrivalTest(guests.GuestsTestCase):
    def note_end(self):
        """Return an event that is set when the source has done all that it does in a migration."""
        manager, ended = self.computes['host1'].manager, threading.Event()
        real = manager._do_live_migration

        def lead(*args, **kwargs):
            try:
                real(*args, **kwargs)
            finally:
                ended.set()
        self.useFixture(fixtures.MockPatchObject(manager, '_do_live_migration', lead))
        return ended

    @ddt.data(401, 500, 503)
    def test_the_instance_is_no_error(self, status):
        server = self.boot_server()

        def live_migration(driver, context, instance, dest, post_method, recover_method,
                           block_migration=False, migrate_data=None):
            self.placement_fixture.before = lambda *asked: functional.answer(status)
            post_method(context, instance, dest, block_migration, migrate_data)

        self.stub_out('tests.functional.mixed.fakes_drivers.Steered.live_migration', live_migration)
        ended = self.note_end()
        self.migrate(server)
        self.assertTrue(ended.wait(60))
        self._wait_for_server_parameter(server, {
            'OS-EXT-SRV-ATTR:host': 'host2', 'OS-EXT-STS:task_state': None, 'status': 'ACTIVE'})
        self._wait_for_migration_status(server, ['completed'])
        self.placement_fixture.before = lambda *asked: None
        self.reconcile()
        self.assert_holds_alone(server, 'host2')


StockPlacementAfterArrivalTest = base.on_stock_nova(PlacementAfterArrivalTest)
