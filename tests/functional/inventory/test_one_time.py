"""Reading a cell on a real server, while the cell changes."""

import json

import fixtures
import sqlalchemy as sa
import testtools
from nova import context as nova_context
from nova.db.main import api as main_db
from nova.db.main import models
from oslo_utils import uuidutils

from kronos_nova.plugin import nova_tables
from tests.functional import mariadb

FLAVOR = json.dumps({'cur': {'nova_object.data': {
    'vcpus': 1, 'memory_mb': 512, 'root_gb': 1, 'ephemeral_gb': 0, 'extra_specs': {}, 'name': 'f',
    'flavorid': '1'}}})


class OneTimeTest(testtools.TestCase):
    """A cell with an instance on each of more hosts than one statement reads."""

    hosts = [f'host{number:02}' for number in range(2 * nova_tables.HOSTS)]

    def setUp(self):
        self.useFixture(fixtures.FakeLogger())
        super().setUp()
        server = self.useFixture(mariadb.MariaDB())
        self.prepare(server)
        self.cell = nova_context.get_admin_context()
        self.cell.db_connection = main_db.create_context_manager(
            connection=f'mysql+pymysql://{server.login}/nova_cell1?charset=utf8mb3')
        with main_db.get_context_manager(self.cell).writer.using(self.cell) as session:
            models.BASE.metadata.create_all(session.connection(), [each.__table__ for each in (
                models.Instance, models.InstanceExtra, models.InstanceMetadata, models.Tag,
                models.InstanceSystemMetadata, models.InstanceInfoCache, models.ShareMapping)])
        self.uuids = {host: self.boot(host) for host in self.hosts}

    def prepare(self, server):
        """Nothing: MariaDB as it is."""

    def boot(self, host):
        uuid = uuidutils.generate_uuid()
        with self.elsewhere() as session:
            session.add(models.Instance(uuid=uuid, host=host, display_name='web', hidden=False))
            session.flush()
            session.add(models.InstanceExtra(instance_uuid=uuid, flavor=FLAVOR))
        return uuid

    def elsewhere(self):
        """A transaction of another connection."""
        other = nova_context.get_admin_context()
        other.db_connection = self.cell.db_connection
        return main_db.get_context_manager(other).writer.using(other)

    def move(self, uuid, host):
        with self.elsewhere() as session:
            session.query(models.Instance).filter_by(uuid=uuid).update({'host': host})

    def test_an_instance_that_moves_during_the_reading_is_there_once_and_where_it_was(self):
        reading = nova_tables.InstanceReader().read(self.cell, self.hosts)
        begun = next(reading)
        first, last = begun.host, self.hosts[-1]
        self.move(self.uuids[first], last)  # would be there twice
        self.move(self.uuids[last], first)  # would be nowhere
        self.boot(last)
        found = [(each.host, each.uuid) for each in (begun, *reading)]
        self.assertEqual(sorted(self.uuids.items()), sorted(found))
        found = {each.uuid: each.host
                 for each in nova_tables.InstanceReader().read(self.cell, self.hosts)}
        self.assertEqual((len(self.hosts) + 1, last, first), (
            len(found), found[self.uuids[first]], found[self.uuids[last]]))


class ReadCommittedTest(OneTimeTest):
    """The same on a server where operators want each statement to see what is new."""

    def prepare(self, server):
        server.set_default('tx_isolation', 'READ-COMMITTED')

    def test_others_of_this_process_see_what_is_new(self):
        list(nova_tables.InstanceReader().read(self.cell, self.hosts))
        with self.elsewhere() as session:
            self.assertEqual('READ-COMMITTED', session.scalar(sa.text('SELECT @@tx_isolation')))
