"""The store ``central``, with the messages between but no broker."""

import json

import fixtures
import testtools

from kronos_nova import exception
from kronos_nova.claims import base
from kronos_nova.claims import central
from kronos_nova.db import engine as db_engine
from kronos_nova.db import migrate
from tests.unit.claims import contract


class CentralContractTest(contract.StoreContract, testtools.TestCase):
    def stores(self):
        directory = self.useFixture(fixtures.TempDir()).path
        database = db_engine.Database(db_engine.create_engine(f'sqlite:///{directory}/a.sqlite'))
        migrate.sync(database.engine, migrate.CONTROL)
        conductor = central.CentralTable(database)

        def call(method, **kwargs):
            """What goes through a message broker comes out as JSON has it."""
            asked = json.loads(json.dumps(kwargs))
            return json.loads(json.dumps(getattr(conductor, method)(**asked)))

        return [base.load_store('central', None, host, call) for host in ('compute1', 'compute2')]


class CentralTest(testtools.TestCase):
    def test_a_control_database_that_was_not_synced_is_refused(self):
        directory = self.useFixture(fixtures.TempDir()).path
        database = db_engine.Database(db_engine.create_engine(f'sqlite:///{directory}/a.sqlite'))
        self.assertRaises(exception.DatabaseVersionError, central.CentralTable, database)

    def test_outside_nova_compute_there_is_no_conductor_to_ask(self):
        error = self.assertRaises(exception.ConfigurationError, central.CentralStore, None,
                                  'compute1', None)
        self.assertIn('[kronos_claims] store', str(error))
