"""The store ``central``, with the messages between but no broker."""

import json

import testtools

from kronos_nova import exception
from kronos_nova.claims import base
from kronos_nova.claims import central
from kronos_nova.db import engine as db_engine
from kronos_nova.db import migrate
from tests.unit.claims import contract
from tests.unit.db import test_migrate


class CentralContract(contract.StoreContract):
    def stores(self):
        database = db_engine.Database(self.new_engine())
        migrate.sync(database.engine, migrate.CONTROL)
        conductor = central.CentralTable(database)

        def call(method, **kwargs):
            """Call it with arguments as JSON has them, which a message broker delivers."""
            asked = json.loads(json.dumps(kwargs))
            return json.loads(json.dumps(getattr(conductor, method)(**asked)))

        return [base.load_store('central', None, host, call) for host in ('compute1', 'compute2')]


class CentralContractTest(CentralContract, testtools.TestCase):
    def new_engine(self):
        return test_migrate.new_engine(self)


class CentralTest(testtools.TestCase):
    def test_a_control_database_that_was_not_synced_is_refused(self):
        database = db_engine.Database(test_migrate.new_engine(self))
        self.assertRaises(exception.DatabaseVersionError, central.CentralTable, database)

    def test_outside_nova_compute_there_is_no_conductor_to_ask(self):
        error = self.assertRaises(exception.ConfigurationError, central.CentralStore, None,
                                  'compute1', None)
        self.assertIn('[kronos_claims] store', str(error))
