"""Guests of Nova's fake hypervisor that do as a test says."""

from nova.compute import power_state
from nova.virt import fake

from tests.functional.regressions import base


class GuestsTestCase(base.RegressionTestCase):
    def setUp(self):
        # With each nova-compute that dies, one of the threads for them does.
        self.flags(max_concurrent_live_migrations=3)
        super().setUp()
        self.stub_out('kronos_nova.plugin.fixes.broken_migrations.INTERVAL_SECONDS', 0.01)
        self.stub_out('kronos_nova.plugin.fixes.broken_migrations.SETTLING_SECONDS', 0.5)
        self.stub_out('kronos_nova.plugin.fixes.post_migration_retry.PATIENCE_SECONDS', 3)

    def driver(self, host):
        return self.computes[host].manager.driver

    def guest_at(self, host, server, state):
        """Let its guest do that there from now on; NOSTATE: there is none."""
        guests = self.driver(host).instances
        if state == power_state.NOSTATE:
            guests.pop(server['id'], None)
        else:
            guests[server['id']] = fake.FakeInstance(server['name'], state, server['id'])

    def is_running(self, host, server):
        guest = self.driver(host).instances.get(server['id'])
        return guest is not None and guest.state == power_state.RUNNING

    def assert_ended(self, server, host, state, status):
        self._wait_for_server_parameter(server, {
            'OS-EXT-SRV-ATTR:host': host, 'OS-EXT-STS:task_state': None, 'status': state})
        self._wait_for_migration_status(server, [status])
        self.reconcile()
        self.assert_holds_alone(server, host)
