"""The control database on a real server: its history of revisions, and the claims in it."""

from concurrent import futures

import fixtures
import testtools

from kronos_nova.db import engine as db_engine
from kronos_nova.db import migrate
from tests.functional import mariadb
from tests.unit.claims import test_central
from tests.unit.db import test_migrate
from tests.unit.db import test_sums


class MariaDBTestCase(testtools.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = mariadb.MariaDB()
        cls.server.setUp()
        cls.addClassCleanup(cls.server.cleanUp)

    def setUp(self):
        self.useFixture(fixtures.FakeLogger())
        super().setUp()

    def new_engine(self):
        engine = db_engine.create_engine(self.server.empty())
        self.addCleanup(engine.dispose)
        return engine


class ModelsTest(test_migrate.ControlModels, MariaDBTestCase):
    """The revisions build the schema of the models."""


class WithDataTest(test_migrate.WithData, MariaDBTestCase):
    pass


class SyncTest(MariaDBTestCase):
    def test_several_at_once_on_an_empty_database(self):
        self.new_engine()
        url = f'mysql+pymysql://{self.server.login}/kronos?charset=utf8mb4'
        engines = [db_engine.create_engine(url) for _ in range(3)]
        for engine in engines:
            self.addCleanup(engine.dispose)
        with futures.ThreadPoolExecutor(3) as pool:
            done = list(pool.map(lambda engine: migrate.sync(engine, migrate.CONTROL), engines))
        head = migrate.head(migrate.CONTROL)
        self.assertEqual([(None, head), (head, head), (head, head)],
                         sorted(done, key=lambda pair: pair[0] or ''))

    def test_a_record_of_the_revision_that_was_lost(self):
        engine = self.new_engine()
        migrate.sync(engine, migrate.CONTROL)
        with engine.begin() as connection:
            connection.exec_driver_sql('DROP TABLE alembic_version')
        migrate.sync(engine, migrate.CONTROL)
        migrate.check(engine, migrate.CONTROL)


class SumsByTest(test_sums.SumsBy, MariaDBTestCase):
    def setUp(self):
        super().setUp()
        self.database = db_engine.Database(self.new_engine())
        migrate.sync(self.database.engine, migrate.CONTROL)


class CentralClaimsTest(test_central.CentralContract, MariaDBTestCase):
    """The store of claims does what every store must."""
