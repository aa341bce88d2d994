"""A server moves where an earlier move left allocations behind that are not repaired yet."""

from tests.functional.mixed import fakes_drivers
from tests.functional.regressions import base


class LeftBehindTest(base.RegressionTestCase):
    def leave_behind(self):
        """A server whose migration holds what it had on host1, and it itself what it never got on
        host2."""
        server = self.boot_server()
        fakes_drivers.COURSE.reset(fakes_drivers.HOLD)
        self.migrate(server)
        self.assertTrue(fakes_drivers.COURSE.begun.wait(30))
        self.placement_fixture.before = lambda method, path, body: (
            base.outage() if (method, path) == ('POST', '/allocations') else None)
        fakes_drivers.COURSE.let_go('failed')
        self._wait_for_migration_status(server, ['failed'])
        self.server_on(server, 'host1')
        self.placement_fixture.before = lambda *asked: None
        self.assert_holds(server['id'], self.kind.held('host2', 1))
        return server

    def test_the_next_one_ends_well(self):
        server = self.leave_behind()
        fakes_drivers.COURSE.reset(fakes_drivers.RUN)
        self.migrate(server)
        self._wait_for_migration_status(server, ['completed'])
        self.server_on(server, 'host2')
        self.reconcile()
        self.assert_holds_alone(server, 'host2')

    def test_the_next_one_fails(self):
        server = self.leave_behind()
        fakes_drivers.COURSE.reset(fakes_drivers.HOLD)
        self.migrate(server)
        self.assertTrue(fakes_drivers.COURSE.begun.wait(30))
        self.reconcile()
        fakes_drivers.COURSE.let_go('failed')
        self.server_on(server, 'host1')
        self.reconcile()
        self.assert_holds_alone(server, 'host1')

    def test_it_is_migrated_cold_and_comes_back(self):
        server = self.leave_behind()
        self._migrate_server(server)
        self.reconcile()
        self._revert_resize(server)
        self.reconcile()
        self.assert_holds_alone(server, 'host1')

    def test_it_is_evacuated(self):
        server = self.leave_behind()
        self.lose_source()
        self._evacuate_server(server, expected_host='host2')
        self.reconcile()
        self.assert_holds_alone(server, 'host2')
