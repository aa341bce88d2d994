"""The control database on a real server: its history of revisions, and the claims in it."""

import fixtures
import testtools

from kronos_nova.db import engine as db_engine
from tests.functional import mariadb
from tests.unit.claims import test_central
from tests.unit.db import test_migrate


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
    """What the revisions build is what the models say."""


class CentralClaimsTest(test_central.CentralContract, MariaDBTestCase):
    """The store of claims does what every store must."""
