"""Schema upgrades of the control database and of claims files, by alembic. The files of the
revisions are in this package, and there is no alembic.ini.

Every command reads the revision of the control database first. Alembic is imported only to change a
database, because the import takes as long as the rest of a command.
"""

import contextlib
import dataclasses
import functools
import os
import pathlib
from collections.abc import Callable
from collections.abc import Iterator
from typing import TYPE_CHECKING
from typing import Any

import sqlalchemy
from oslo_db import exception as db_exc
from oslo_log import log as logging

from kronos_nova import exception
from kronos_nova.db import claim_versions
from kronos_nova.db.engine import first_line
from kronos_nova.db.engine import one_kind_of_error

if TYPE_CHECKING:
    import alembic.config

LOG = logging.getLogger(__name__)

SYNC_SECONDS = 300
"""Seconds to wait for another process that upgrades the same database schema. Raised, a process
that hangs is reported later; lowered, a slow process counts as one that hangs. Chosen far above the
duration of an upgrade of an empty database."""

POSTGRESQL_KEY = 0x6B726F6E6F73
"""Number that identifies the advisory lock that Kronos holds in PostgreSQL during a schema upgrade
(no unit). Fixed: "kronos" in ASCII."""

MIGRATIONS = pathlib.Path(__file__).with_name('migrations')


def _alembic_revision(connection: sqlalchemy.Connection) -> str | None:
    if not sqlalchemy.inspect(connection).has_table('alembic_version'):
        return None
    return connection.scalar(sqlalchemy.text('SELECT version_num FROM alembic_version'))


@dataclasses.dataclass(frozen=True)
class RevisionHistory:
    """All revisions of the tables in one kind of database, such as the control database.

    :param renewal: sentence that explains to an operator how to replace the database with an empty
        one
    :param read: function that returns the revision of a database; None if the database is empty
    :param record: function that alembic calls after every upgrade step, in the transaction of the
        step; None for no function
    """

    name: str
    renewal: str
    read: Callable = _alembic_revision
    record: Callable | None = None

    def revisions(self) -> list[str]:
        """Return the names of all revisions, the newest last. The names are read from the file
        names of the revisions."""
        names = (path.name.partition('_')[0]
                 for path in (MIGRATIONS / self.name / 'versions').glob('[0-9]*_*.py'))
        return sorted(names, key=int)

    def config(self) -> 'alembic.config.Config':
        # Imported late, as above.
        import alembic.config
        config = alembic.config.Config()
        config.set_main_option('script_location', f'kronos_nova:db/migrations/{self.name}')
        config.set_main_option('path_separator', 'newline')
        config.attributes['on_version_apply'] = self.record
        return config


CONTROL = RevisionHistory(
    'control', 'set [kronos_database] connection to an empty database, or move the SQLite file '
    'away; plans, drains, levels and quarantines of the old database are not taken over.')
CLAIMS = RevisionHistory(
    'claims', 'move the file away while nova-compute is stopped.',
    read=claim_versions.read, record=claim_versions.record)
HISTORIES = {history.name: history for history in (CONTROL, CLAIMS)}


def head(history: RevisionHistory) -> str:
    """Return the newest revision of a history. This code needs that revision."""
    return history.revisions()[-1]


def current(engine: sqlalchemy.Engine, history: RevisionHistory) -> str | None:
    """Return the revision of a database; None if the database is empty or its SQLite file is
    missing.

    A missing file is not created. Otherwise the file would belong to the user who runs the command,
    and a service could perhaps not write to it.
    """
    if _is_missing(engine):
        return None
    with one_kind_of_error(engine), engine.connect() as connection:
        return history.read(connection)


def _is_missing(engine: sqlalchemy.Engine) -> bool:
    return engine.dialect.name == 'sqlite' and not os.path.exists(engine.url.database or '')


def check(engine: sqlalchemy.Engine, history: RevisionHistory) -> None:
    """Check that a database has the revision that this code needs.

    :raises DatabaseVersionError: the database is empty, or has an older or newer revision than the
        needed one. A revision from before the first release counts as older
    """
    found = current(engine, history)
    if found != head(history):
        raise _version_error(history, found)


def sync(engine: sqlalchemy.Engine, history: RevisionHistory) -> tuple[str | None, str]:
    """Upgrade a database to the revision that this code needs. Nothing is changed if the database
    already has this revision.

    An upgrade has a step for each revision. On SQLite and PostgreSQL, all steps are one
    transaction: an upgrade that fails changes nothing.

    :returns: (revision before, None for an empty database; revision after)
    :raises DatabaseVersionError: the database is newer than this code, or has a revision that was
        removed before the first release
    """
    target = head(history)
    with (_alone(engine),
          engine.execution_options(for_writing=True).begin() as connection):
        if engine.dialect.name == 'postgresql':
            connection.execute(sqlalchemy.text('SELECT pg_advisory_xact_lock(:key)'),
                               {'key': POSTGRESQL_KEY})
        found = history.read(connection)
        if found == target:
            return found, target
        _refuse_unknown(history, found)
        # Imported late, as above.
        import alembic.command
        config = history.config()
        config.attributes['connection'] = connection
        if found is None and _is_whole(connection, history):
            LOG.warning('Database %s: the tables of revision %s exist, but the record of the '
                        'revision is missing. The record is restored.', history.name, target)
            alembic.command.stamp(config, 'head', purge=True)
            return found, target
        if found != _alembic_revision(connection):
            alembic.command.stamp(config, found, purge=True)
        alembic.command.upgrade(config, 'head')
    LOG.info('Database %(name)s: upgraded from revision %(old)s to %(new)s.',
             {'name': history.name, 'old': found, 'new': target})
    return found, target


@contextlib.contextmanager
def _alone(engine: sqlalchemy.Engine) -> Iterator[None]:
    """Hold a lock during the ``with`` block, so that no other process upgrades the same database at
    the same time. Only MySQL and MariaDB need this lock. On other databases, the whole upgrade is
    one transaction, which excludes other upgrades.

    The lock belongs to a connection of its own. It is therefore held until the upgrade is
    committed.

    :raises ConfigurationError: another process holds the lock, and has not released it within
        SYNC_SECONDS
    """
    if engine.dialect.name not in ('mysql', 'mariadb'):
        yield
        return
    # Names of locks are shared by all databases of a server, and have 64 characters at most.
    name = {'name': f'kronos_sync:{engine.url.database}'[:64]}
    with engine.connect() as connection:
        if connection.scalar(sqlalchemy.text('SELECT GET_LOCK(:name, :seconds)'),
                             {**name, 'seconds': SYNC_SECONDS}) != 1:
            raise exception.ConfigurationError(
                what='the control database', problem='is being upgraded by another process, which '
                f'has not finished in {SYNC_SECONDS} s',
                remedy='Wait for that process to end, or find out what it waits for.')
        try:
            yield
        finally:
            connection.execute(sqlalchemy.text('SELECT RELEASE_LOCK(:name)'), name)


def is_whole(engine: sqlalchemy.Engine) -> bool:
    """Return whether a control database has all tables and columns of this code's revision. The
    recorded revision is not read."""
    if _is_missing(engine):
        return False
    with one_kind_of_error(engine), engine.connect() as connection:
        return _is_whole(connection, CONTROL)


def _is_whole(connection: sqlalchemy.Connection, history: RevisionHistory) -> bool:
    if history is not CONTROL:
        return False
    # Imported late: it takes as long to load as the rest of a command.
    from kronos_nova.db import claim_models
    inspector = sqlalchemy.inspect(connection)
    there = set(inspector.get_table_names())
    return all(
        name in there and {column.name for column in table.columns} <= {
            column['name'] for column in inspector.get_columns(name)}
        for name, table in claim_models.models.metadata().tables.items())


def _refuse_unknown(history: RevisionHistory, found: str | None) -> None:
    if not _is_known(history, found):
        raise _version_error(history, found)


def _is_known(history: RevisionHistory, revision: str | None) -> bool:
    return revision is None or revision in history.revisions()


def _is_dropped(history: RevisionHistory, revision: str) -> bool:
    """Return whether a revision was removed from a history before the first release. Such a
    revision is older than the first revision of the history."""
    return revision.isdigit() and int(revision) < int(history.revisions()[0])


def _version_error(history: RevisionHistory, found: str | None) -> exception.DatabaseVersionError:
    if _is_known(history, found):
        remedy = 'Run "kronos-manage db sync".'
    elif found is not None and _is_dropped(history, found):
        remedy = (f'Revisions from before the first release are not upgraded: {history.renewal} '
                  f'Then run "kronos-manage db sync {history.name}".')
    else:
        remedy = 'It was written by a newer Kronos: install that one here.'
    return exception.DatabaseVersionError(
        database=history.name, found=found or 'none', expected=head(history), remedy=remedy)


_DONE_BEFORE = {1050, 1060, 1061, 1062, 1091}
"""Error numbers with which MySQL and MariaDB refuse a schema change that was already made. The
change adds a table, column, index or row that exists, or drops a column or index that does not
exist. Fixed by MySQL."""


def run(context: Any) -> None:
    """Run the revisions of a history on a connection. The ``env.py`` of the history calls this
    function.

    On MySQL and MariaDB, each statement that changes a table is committed on its own. An upgrade
    that was interrupted may therefore have executed only some of its statements. The next upgrade
    skips these statements.

    :param context: ``alembic.context``
    """
    attributes = context.config.attributes
    context.configure(connection=attributes['connection'],
                      on_version_apply=attributes.get('on_version_apply') or ())
    if attributes['connection'].dialect.name in ('mysql', 'mariadb'):
        implementation = context.get_context().impl
        implementation._exec = functools.partial(_unless_done, implementation._exec)
    with context.begin_transaction():
        context.run_migrations()


def _unless_done(execute: Callable[..., Any], construct: object, *args: Any, **kwargs: Any) -> Any:
    try:
        return execute(construct, *args, **kwargs)
    except (sqlalchemy.exc.DBAPIError, db_exc.DBError) as error:
        if _number_of(error) not in _DONE_BEFORE:
            raise
        LOG.info('A change of the schema is not repeated, because an interrupted upgrade had made '
                 'it already: %s', first_line(error))
        return None


def _number_of(error: Any) -> object:
    """Return the database's own number of an error; None if there is none. Exceptions of oslo.db
    and SQLAlchemy may wrap the error."""
    while error is not None and not isinstance(getattr(error, 'orig', None), Exception):
        error = getattr(error, 'inner_exception', None)
    return next(iter(error.orig.args), None) if error is not None else None
