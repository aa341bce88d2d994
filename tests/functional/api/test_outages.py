"""A kronos-api whose control database, a MariaDB, stops answering in the middle."""

from kronos_nova.api.event_feed import STALE
from kronos_nova.api.event_feed import SYNCED
from kronos_nova.cmd import database
from kronos_nova.db import engine as db_engine
from kronos_nova.db import migrate
from tests.functional import mariadb
from tests.unit.api import base
from tests.unit.api import listeners


class SilentDatabaseTest(base.ApiTestCase):
    """The network is cut, or its disk hangs: nothing is refused, and nothing is said."""

    def setUp(self):
        self.server = self.useFixture(mariadb.MariaDB())
        super().setUp()

    def services(self):
        url = self.server.empty()
        self.conf.set_override('connection', url, 'kronos_database')
        with_schema = db_engine.create_engine(url)
        self.addCleanup(with_schema.dispose)
        migrate.sync(with_schema, migrate.CONTROL)
        self.database = database.impatient_database(self.conf, seconds=1, pause=5)
        self.addCleanup(self.database.engine.dispose)
        return super().services()

    def test_it_is_reported_and_so_is_its_return(self):
        self.ask('/v1/status')
        listener = listeners.Listener(self.url)
        self.addCleanup(listener.close)
        listener.until(SYNCED)
        self.server.fall_silent()
        self.refuse('/v1/status', 503)
        self.refuse('/v1/stop', 503, method='POST', token=base.OPERATOR, json={'reason': 'now'})
        listener.until(STALE)
        self.server.speak()
        listener.until(SYNCED)
        # What was refused is not done later.
        self.assertEqual([], self.ask('/v1/automation/history')['events'])
