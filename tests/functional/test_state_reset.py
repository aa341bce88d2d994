"""An operator resets the state of a server in the middle of a move, which ends nothing of it."""

import contextlib
import threading

import fixtures

from tests.functional.mixed import fakes_drivers
from tests.functional.regressions import base

LONGEST_HOLD_SECONDS = 60


class StateResetTest(base.RegressionTestCase):
    """Its allocations on both hosts are needed until the move ends."""

    @contextlib.contextmanager
    def held_in(self, method):
        """Let ``method`` of the hypervisors not return before the end of the context."""
        begun, goes_on = threading.Event(), threading.Event()
        name = f'tests.functional.mixed.fakes_drivers.Steered.{method}'
        real = getattr(fakes_drivers.Steered, method)

        def hold(*args, **kwargs):
            begun.set()
            goes_on.wait(LONGEST_HOLD_SECONDS)
            return real(*args, **kwargs)

        with fixtures.MonkeyPatch(name, hold):
            try:
                yield begun
            finally:
                goes_on.set()

    def reset_state(self, server):
        """And let the reconciler look."""
        before = self.held_by_anybody()
        self.api.post_server_action(server['id'], {'os-resetState': {'state': 'active'}})
        self.server_on(server, 'host1')

        self.reconcile()

        self.assertEqual(before, self.held_by_anybody())

    def test_of_a_cold_migration(self):
        server = self.boot_server()
        with self.held_in('migrate_disk_and_power_off') as begun:
            self.api.post_server_action(server['id'], {'migrate': None})
            self.assertTrue(begun.wait(30))
            self.reset_state(server)
        self._wait_for_migration_status(server, ['finished', 'error'])

    def test_of_an_evacuation(self):
        server = self.boot_server()
        self.lose_source()
        with self.held_in('spawn') as begun:
            self.api.post_server_action(server['id'], {'evacuate': {}})
            self.assertTrue(begun.wait(30))
            self.reset_state(server)
        self._wait_for_migration_status(server, ['done', 'failed'])
