"""Live migrations that break off or are interrupted while the fix for them is switched off."""

import pathlib

from nova.compute import power_state

from tests.functional.regressions import guests
from tests.functional.regressions import test_broken_live_migration as broken
from tests.functional.regressions import test_interrupted_live_migration as interrupted


class FixesSwitchedOffTest(guests.GuestsTestCase):
    break_off = broken.BrokenLiveMigrationTest.break_off
    interrupt = interrupted.InterruptedLiveMigrationTest.interrupt

    def test_broken_migrations(self):
        self.flags(broken_migrations=False, group='kronos_fixes')
        server = self.boot_server()
        self.break_off(server, lambda: None, 'recover')
        self._wait_for_server_parameter(server, {
            'OS-EXT-SRV-ATTR:host': 'host1', 'OS-EXT-STS:vm_state': 'error'})

    def test_interrupted_migrations(self):
        self.flags(interrupted_migrations=False, group='kronos_fixes')
        server = self.interrupt()
        self.assertEqual([], [*pathlib.Path(self.state).glob('live-migrations/*')])
        self.guest_at('host1', server, power_state.NOSTATE)
        self.guest_at('host2', server, power_state.RUNNING)
        self.restart_source()
        self._wait_for_server_parameter(server, {
            'OS-EXT-SRV-ATTR:host': 'host1', 'OS-EXT-STS:task_state': None})
