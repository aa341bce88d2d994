"""The two histories, on SQLite."""

import datetime
import threading

import fixtures
import sqlalchemy as sa
import testtools
from oslo_db.sqlalchemy import test_migrations

from kronos_nova import exception
from kronos_nova.db import claim_models
from kronos_nova.db import claim_versions
from kronos_nova.db import column_types
from kronos_nova.db import engine as db_engine
from kronos_nova.db import migrate
from kronos_nova.db import models


def new_engine(test, name='a.sqlite'):
    directory = test.useFixture(fixtures.TempDir()).path
    engine = db_engine.create_engine(f'sqlite:///{directory}/{name}')
    test.addCleanup(engine.dispose)
    return engine


class SyncTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.engine = new_engine(self)

    def test_an_empty_database_goes_from_none_to_the_head_and_stays_there(self):
        for history in migrate.HISTORIES.values():
            engine = new_engine(self, history.name)
            head = migrate.head(history)
            self.assertIsNone(migrate.current(engine, history))
            self.assertEqual((None, head), migrate.sync(engine, history))
            self.assertEqual((head, head), migrate.sync(engine, history))
            migrate.check(engine, history)

    def test_a_record_of_the_revision_that_was_lost_is_written_again(self):
        migrate.sync(self.engine, migrate.CONTROL)
        with self.engine.begin() as connection:
            connection.execute(sa.text('DROP TABLE alembic_version'))
        self.assertEqual((None, migrate.head(migrate.CONTROL)),
                         migrate.sync(self.engine, migrate.CONTROL))
        migrate.check(self.engine, migrate.CONTROL)

    def test_an_unsynced_database_is_named_with_the_remedy(self):
        error = self.assertRaises(
            exception.DatabaseVersionError, migrate.check, self.engine, migrate.CONTROL)
        self.assertIn('control', str(error))
        self.assertIn('kronos-manage db sync', str(error))

    def test_a_newer_control_database_is_refused_and_left_alone(self):
        migrate.sync(self.engine, migrate.CONTROL)
        with self.engine.begin() as connection:
            connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
        for refuse in (migrate.check, migrate.sync):
            error = self.assertRaises(
                exception.DatabaseVersionError, refuse, self.engine, migrate.CONTROL)
            self.assertIn('newer', str(error))
        self.assertEqual('9999', migrate.current(self.engine, migrate.CONTROL))

    def test_a_control_database_from_before_the_first_revision_is_refused_and_left_alone(self):
        migrate.sync(self.engine, migrate.CONTROL)
        earlier = f'{int(migrate.CONTROL.revisions()[0]) - 1:04}'
        with self.engine.begin() as connection:
            connection.execute(sa.text('UPDATE alembic_version SET version_num = :earlier'),
                               {'earlier': earlier})
        for refuse in (migrate.check, migrate.sync):
            error = self.assertRaises(
                exception.DatabaseVersionError, refuse, self.engine, migrate.CONTROL)
            self.assertIn('before the first release', str(error))
            self.assertIn('[kronos_database] connection', str(error))
            self.assertIn('kronos-manage db sync control', str(error))
        self.assertEqual(earlier, migrate.current(self.engine, migrate.CONTROL))

    def test_there_is_one_control_revision_until_a_release_is_tagged(self):
        self.assertEqual(1, len(migrate.CONTROL.revisions()))

    def test_the_version_of_the_claims_is_one_row_of_a_table_of_its_own(self):
        _old, new = migrate.sync(self.engine, migrate.CLAIMS)
        with self.engine.connect() as connection:
            rows = connection.execute(sa.text('SELECT table_name, version FROM claim_versions'))
            self.assertEqual([('claims', int(new))], [tuple(row) for row in rows])


VALUES = {column_types.Timestamp: datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC),
          column_types.CompressedText: '{"a": 1}', sa.Date: datetime.date(2026, 3, 1),
          sa.Boolean: True, sa.Integer: 1, sa.Double: 0.5, sa.LargeBinary: b'x'}
"""A value of each type of column; of any other it is a text."""


class WithData:
    """A synchronisation keeps a row in each table of the control database of ``new_engine()``."""

    def fill(self, engine):
        with engine.begin() as connection:
            for table in models.metadata().sorted_tables:
                connection.execute(table.insert().values({
                    column.name: next((value for kind, value in VALUES.items()
                                       if isinstance(column.type, kind)), 'x')
                    for column in table.columns}))

    def rows(self, engine):
        with engine.connect() as connection:
            return {table.name: [tuple(row) for row in connection.execute(sa.select(table))]
                    for table in models.metadata().sorted_tables}

    def test_every_row_is_kept(self):
        engine = self.new_engine()
        migrate.sync(engine, migrate.CONTROL)
        self.fill(engine)
        before = self.rows(engine)
        self.assertEqual([], [name for name, rows in before.items() if not rows])
        migrate.sync(engine, migrate.CONTROL)
        self.assertEqual(before, self.rows(engine))
        with engine.begin() as connection:
            connection.execute(sa.text('DROP TABLE alembic_version'))
        migrate.sync(engine, migrate.CONTROL)
        self.assertEqual(before, self.rows(engine))

    def test_a_database_that_is_refused_is_left_as_it_is(self):
        engine = self.new_engine()
        migrate.sync(engine, migrate.CONTROL)
        self.fill(engine)
        before = self.rows(engine)
        for revision in ('0001', '9999'):
            with engine.begin() as connection:
                connection.execute(sa.text('UPDATE alembic_version SET version_num = :it'),
                                   {'it': revision})
            self.assertRaises(exception.DatabaseVersionError, migrate.sync, engine,
                              migrate.CONTROL)
            self.assertEqual(before, self.rows(engine))


class WithDataTest(WithData, testtools.TestCase):
    def new_engine(self):
        return new_engine(self)


class SqliteFileTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.database = db_engine.Database(new_engine(self))
        with self.database.writer() as session:
            session.execute(sa.text('CREATE TABLE steps (name TEXT)'))

    def add(self, session, name):
        session.execute(sa.text('INSERT INTO steps VALUES (:name)'), {'name': name})

    def names(self):
        with self.database.reader() as session:
            return list(session.scalars(sa.text('SELECT name FROM steps')))

    def test_it_is_in_wal_mode(self):
        with self.database.reader() as session:
            self.assertEqual('wal', session.scalar(sa.text('PRAGMA journal_mode')))

    def test_a_writer_that_raises_leaves_nothing(self):
        with testtools.ExpectedException(ValueError), self.database.writer() as session:
            self.add(session, 'lost')
            raise ValueError
        self.assertEqual([], self.names())

    def test_a_writer_waits_for_the_one_before_while_readers_go_on(self):
        def second():
            with self.database.writer() as session:
                self.add(session, 'second')

        with self.database.writer() as session:
            self.add(session, 'first')
            thread = threading.Thread(target=second)
            thread.start()
            self.assertEqual([], self.names())
        thread.join(db_engine.SQLITE_BUSY_TIMEOUT_MS / 1000)
        self.assertEqual(['first', 'second'], self.names())


class SyncedModels(test_migrations.ModelsMigrationsSync):
    """The revisions of ``history`` build the schema of the models, on ``new_engine()``."""

    def setUp(self):
        super().setUp()
        self.engine = self.new_engine()

    def get_engine(self):
        return self.engine

    def db_sync(self, engine):
        migrate.sync(engine, self.history)

    def include_object(self, object_, name, type_, reflected, compare_to):
        return name not in ('alembic_version', claim_versions.table.name)


class ControlModels(SyncedModels):
    history = migrate.CONTROL

    def get_metadata(self):
        return models.metadata()


class ControlModelsTest(ControlModels, testtools.TestCase):
    def new_engine(self):
        return new_engine(self)


class ClaimsModelsTest(SyncedModels, testtools.TestCase):
    history = migrate.CLAIMS

    def new_engine(self):
        return new_engine(self)

    def get_metadata(self):
        return claim_models.LocalBase.metadata
