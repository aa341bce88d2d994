"""Claims in the control database, through the conductor."""

import sqlite3

import nova.conf

from kronos_nova.plugin import conductor
from tests.functional.claims import base

SMALL = (1, 512, 1)


class CentralTest(base.ClaimsTestCase):
    managers = {'nova-compute': 'kronos_nova.plugin.compute.KronosComputeManager',
                'nova-conductor': 'kronos_nova.plugin.conductor.KronosConductorManager'}

    def make_state_path(self):
        self.flags(store='central', group='kronos_claims')
        for cached in (conductor._database, conductor._central_claims):
            cached.cache_clear()
            self.addCleanup(cached.cache_clear)
        return super().make_state_path()

    @property
    def database(self):
        return nova.conf.CONF.kronos_database.connection.removeprefix('sqlite:///')

    def rows(self, host=None):
        with sqlite3.connect(self.database) as connection:
            return connection.execute(
                'SELECT instance_uuid, resize_target, vcpus, memory_mb, disk_gb, state '
                'FROM claims WHERE ? IS NULL OR host = ? ORDER BY id', (host, host)).fetchall()

    def test_claims_of_all_hosts_are_in_one_place_and_survive_restarts(self):
        server = self.boot('host1')
        self.assertEqual([(server['id'], 0, *SMALL, 'claimed')], self.rows('host1'))
        self.assertSurvivesRestart()

        self._migrate_server(server)
        self.assertEqual([0, 1], sorted(row[1] for row in self.rows()))
        self.assertClaimsAreUsage()
        self.assertSurvivesRestart()

        self._confirm_resize(server)
        self._delete_server(server)
        self.assertEqual([], self.rows())

    def test_a_conductor_without_the_database_leaves_claims_in_memory(self):
        with sqlite3.connect(self.database) as connection:
            connection.execute("UPDATE alembic_version SET version_num = '9999'")
        conductor._central_claims.cache_clear()
        self.boot('host1')
        self.assertEqual((1, 512, 1), self.usage('host1'))
        self.assertEqual(1, self.stdlog.logger.output.count('claims of this host cannot be saved'))
