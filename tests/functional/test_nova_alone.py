"""Stock Nova by Nova's fixtures: what the other tests here stand on."""

from tests.functional import base


class NovaAloneTest(base.NovaTestCase):
    def test_a_live_migration_moves_the_allocation(self):
        server = self.boot('host1')

        self.migrate(server, 'host2')
        migration = self._wait_for_migration_status(server, ['completed'])

        self.assert_holds(server['id'], {'host2': {'VCPU': 1, 'MEMORY_MB': 512, 'DISK_GB': 1}})
        self.assert_holds(migration['uuid'], {})
