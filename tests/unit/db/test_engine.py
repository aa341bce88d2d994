"""Connections to the control database."""

import os
import pathlib
import sqlite3
import types

import fixtures
import sqlalchemy as sa
import testtools
from oslo_config import cfg
from oslo_db import exception as db_exc

from kronos_nova import conf as kronos_conf
from kronos_nova.db import engine as db_engine
from kronos_nova.db import models
from tests.unit.db import fixtures as db_fixtures


class ImpatientTest(testtools.TestCase):
    """A database for requests of Nova's, which do not wait."""

    def test_the_default_a_file_below_the_state_path_is_connected_to(self):
        conf = cfg.ConfigOpts()
        kronos_conf.register_opts(conf)
        conf([], default_config_files=[])
        conf.set_override('state_path', self.useFixture(fixtures.TempDir()).path)
        engine = db_engine.impatient_control_engine(conf)
        self.addCleanup(engine.dispose)
        with engine.connect() as connection:
            self.assertEqual(1, connection.execute(sa.text('SELECT 1')).scalar())
            self.assertEqual(
                1000, connection.execute(sa.text('PRAGMA busy_timeout')).scalar())


    def test_a_database_whose_address_says_mariadb_is_not_waited_for_either(self):
        conf = cfg.ConfigOpts()
        kronos_conf.register_opts(conf)
        conf([], default_config_files=[])
        found = {}
        for name in ('mysql', 'mariadb'):
            conf.set_override('connection', f'{name}+pymysql://kronos@db/kronos', 'kronos_database')
            engine = db_engine.impatient_control_engine(conf)
            self.addCleanup(engine.dispose)
            found[name] = dict(engine.url.query)
        self.assertEqual('1', found['mysql']['read_timeout'])
        self.assertEqual(found['mysql'], found['mariadb'])


class FullDiskTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.database = self.useFixture(db_fixtures.ControlDatabase()).database
        self.path = self.database.engine.url.database

    def write(self):
        with self.database.writer() as session:
            for number in range(500):
                session.add(models.QuarantineRow(
                    instance_uuid=f'{number}', reason='x' * 200, created_at=self.database.utcnow()))

    def test_what_a_full_disk_says_names_the_file_and_the_remedy(self):
        # SQLite answers a database at its size limit as it does a full disk.
        sa.event.listen(self.database.engine, 'connect',
                        lambda connection, _record: connection.execute('PRAGMA max_page_count = 1'))
        error = self.assertRaises(db_exc.DBError, self.write)
        self.assertEqual(f'The file system of {self.path} is full: free some of it '
                         '(SQLite says: database or disk is full)', db_engine.first_line(error))

    def fail_to_read(self, free):
        """Return the message of a disk error with so many bytes left."""
        self.patch(os, 'statvfs', lambda _path: types.SimpleNamespace(f_bavail=free, f_frsize=1))
        error = sqlite3.OperationalError('disk I/O error')
        error.sqlite_errorname = 'SQLITE_IOERR_SHMSIZE'

        def fail():
            with db_engine.one_kind_of_error(self.database.engine):
                raise sa.exc.OperationalError('SELECT 1', {}, error)

        return db_engine.first_line(self.assertRaises(db_exc.DBError, fail))

    def test_an_error_of_the_disk_is_a_full_disk_where_nothing_is_left(self):
        self.assertIn('is full: free some of it (SQLite says: disk I/O error)',
                      self.fail_to_read(4096))

    def test_any_other_error_of_the_disk_names_the_file_too(self):
        self.assertEqual(f'The disk of {self.path} cannot be read or written: see the log of the '
                         'kernel (SQLite says: disk I/O error, SQLITE_IOERR_SHMSIZE)',
                         self.fail_to_read(1 << 30))

    def test_a_file_system_that_is_gone(self):
        self.database.engine.dispose()
        pathlib.Path(self.path).unlink()
        pathlib.Path(self.path).parent.rmdir()
        self.assertIn('unable to open', str(self.assertRaises(db_exc.DBError, self.write)))
