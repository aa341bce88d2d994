"""A control database on a real MariaDB: upgrades that were interrupted, users with few rights, and
one that does not answer while Nova waits."""

import socket
import time

import sqlalchemy
import testtools
from oslo_config import cfg
from oslo_db import exception as db_exc

from kronos_nova import clock
from kronos_nova import conf as kronos_conf
from kronos_nova.db import engine as db_engine
from kronos_nova.db import journal
from kronos_nova.db import migrate
from kronos_nova.db import tasks
from tests.functional import mariadb

GRANTS = 'SELECT, INSERT, UPDATE, DELETE'
"""The privileges of the services by doc/source/security.rst."""


class Interrupted(Exception):
    """Power is lost."""


class MariaDBTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.server = self.useFixture(mariadb.MariaDB())

    def sync(self, url, statements=None):
        """Upgrade; the connection is lost after so many changes of tables.

        :returns: how many there were
        """
        engine = db_engine.create_engine(url)
        self.addCleanup(engine.dispose)
        done = []

        def count(_connection, _cursor, statement, *_rest):
            if statement.lstrip().upper().startswith(('CREATE', 'ALTER', 'DROP')):
                if len(done) == statements:
                    raise Interrupted
                done.append(statement)

        sqlalchemy.event.listen(engine, 'before_cursor_execute', count)
        migrate.sync(engine, migrate.CONTROL)
        self.assertEqual(migrate.head(migrate.CONTROL), migrate.current(engine, migrate.CONTROL))
        return len(done)

    def test_an_upgrade_is_resumed_wherever_it_was_interrupted(self):
        url = self.server.empty()
        total = self.sync(url)
        self.assertGreater(total, 20)
        for statements in range(1, total, max(1, total // 6)):
            url = self.server.empty()
            self.assertRaises(Interrupted, self.sync, url, statements)
            self.sync(url)

    def test_a_table_that_is_not_there_is_an_error_of_the_database(self):
        url = self.server.empty()
        self.sync(url)
        database = db_engine.Database(db_engine.create_engine(url))
        self.addCleanup(database.engine.dispose)
        with database.writer() as session:
            session.execute(sqlalchemy.text('RENAME TABLE moves TO elsewhere'))
        error = self.assertRaises(db_exc.DBError, journal.Journal(database, 'a:1:x').tries,
                                  clock.utcnow())
        self.assertNotIn('\n', db_engine.first_line(error))

    def test_services_need_no_rights_but_those_that_are_documented(self):
        url = self.server.empty()
        self.sync(url)
        admin = sqlalchemy.create_engine(url)
        with admin.begin() as connection:
            connection.exec_driver_sql("CREATE USER service@localhost IDENTIFIED BY 'pw'")
            connection.exec_driver_sql("CREATE USER service@'127.0.0.1' IDENTIFIED BY 'pw'")
            for host in ('localhost', '127.0.0.1'):
                connection.exec_driver_sql(f"GRANT {GRANTS} ON kronos.* TO service@'{host}'")
        admin.dispose()
        limited = sqlalchemy.make_url(url).set(username='service', password='pw')
        engine = db_engine.create_engine(limited.render_as_string(hide_password=False))
        self.addCleanup(engine.dispose)
        migrate.check(engine, migrate.CONTROL)
        database = db_engine.Database(engine)
        register = tasks.Tasks(database, 'one', clock.utcnow)
        register.announce('key', 'vm1')
        self.assertTrue(register.begin('key', 'migration'))
        register.end('migration')
        self.assertFalse(journal.Journal(database, 'one').knows('nothing'))
        with engine.connect() as connection:
            self.assertRaises(sqlalchemy.exc.OperationalError, connection.exec_driver_sql,
                              'DROP TABLE moves')


class SilentDatabaseTest(testtools.TestCase):
    """A server that takes connections and says nothing, and one that is not there."""

    def database(self, port):
        conf = cfg.ConfigOpts()
        kronos_conf.register_opts(conf)
        conf([], default_config_files=[])
        conf.set_override('connection', f'mysql+pymysql://k:s@127.0.0.1:{port}/kronos',
                          'kronos_database')
        return db_engine.ImpatientDatabase(db_engine.impatient_control_engine(conf))

    def seconds_for(self, port):
        register = tasks.Tasks(None, 'one', clock.utcnow, announcements=self.database(port))
        started = time.monotonic()
        self.assertRaises(db_exc.DBError, register.announce, 'key', 'vm1')
        first = time.monotonic() - started
        started = time.monotonic()
        self.assertRaises(db_exc.DBError, register.announce, 'key', 'vm1')
        return first, time.monotonic() - started

    def test_a_request_of_nova_waits_for_a_second_at_most(self):
        with socket.create_server(('127.0.0.1', 0)) as silent:
            first, second = self.seconds_for(silent.getsockname()[1])
        self.assertLess(first, 1.9)  # of which the machine may take some
        self.assertLess(second, 0.5)

    def test_nor_for_one_that_is_not_there(self):
        with socket.socket() as unused:
            unused.bind(('127.0.0.1', 0))
            first, _second = self.seconds_for(unused.getsockname()[1])
        self.assertLess(first, 1.9)
