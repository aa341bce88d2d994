"""A live migration is aborted while it waits for another one of the same source."""

from tests.functional.mixed import fakes_drivers
from tests.functional.regressions import base


class QueuedLiveMigrationTest(base.RegressionTestCase):
    def setUp(self):
        self.flags(max_concurrent_live_migrations=1)
        super().setUp()

    def test_the_source_alone_is_held(self):
        first, queued = self.boot_server(), self._create_server(
            networks='none', flavor_id=self.flavors[1], host='host1')
        self.hold(first)
        self.migrate(queued)
        migration = self._wait_for_migration_status(queued, ['queued'])

        self.api.delete_migration(queued['id'], migration['id'])
        self._wait_for_migration_status(queued, ['cancelled'])

        self.server_on(queued, 'host1')
        self.assert_holds(queued['id'], self.kind.held('host1', 1))
        self.assert_holds(migration['uuid'], {})
        fakes_drivers.COURSE.let_go()
        self.server_on(first, 'host2')
        self.assert_holds(first['id'], self.kind.held('host2', 1))
        self.assert_holds(queued['id'], self.kind.held('host1', 1))
