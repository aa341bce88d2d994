"""Engines and sessions of the control database and of claims files, made with oslo.db."""

import contextlib
import functools
import os
import sqlite3
import time
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import cast

import sqlalchemy
from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_db.sqlalchemy import engines
from sqlalchemy import orm

from kronos_nova import exception
from kronos_nova.db import shared_clock

SQLITE_BUSY_TIMEOUT_MS = 10000
"""Maximum milliseconds to wait while another process locks an SQLite database. Raised, a command
waits longer for a process that hangs with the lock; lowered, commands fail more often while another
process writes. Not measured."""

SMALLEST_ROOM = 1 << 20
"""Number of free bytes below which a file system counts as full. After a disk error of SQLite, the
free bytes are compared with this number, to find the cause of the error. Raised, a disk error with
another cause may be reported as a full file system; lowered, a nearly full file system may not be
found as the cause. Chosen well above the space that SQLite needs at a time: 32 KiB for its shared
memory file, and a few pages for its log."""

# The time limit in seconds, as each driver names it. libpq treats 1 as 2.
_IMPATIENT = {
    **dict.fromkeys(('mysql+pymysql', 'mysql+mysqldb', 'mariadb+pymysql', 'mariadb+mysqldb'),
                    'connect_timeout={0}&read_timeout={0}&write_timeout={0}'),
    'postgresql+psycopg2': 'connect_timeout={0}', 'postgresql': 'connect_timeout={0}'}

NO_ANSWER = (sqlalchemy.exc.OperationalError, sqlalchemy.exc.InterfaceError,
             sqlalchemy.exc.TimeoutError)
"""Exceptions of SQLAlchemy that mean that a database does not answer. Kronos sees them only where
oslo.db does not convert them to its own exceptions."""

Engine = sqlalchemy.Engine
"""An engine, which makes the connections to a database."""

Session = orm.Session
"""A session of a database."""

_ANNOUNCES = 'announces'
"""Key in the ``info`` of a session. Its value is true if notifications about the session's changes
are recorded."""

_ENGINE_OPTIONS = (
    'connection_debug', 'connection_parameters', 'connection_recycle_time', 'connection_trace',
    'max_overflow', 'max_pool_size', 'max_retries', 'mysql_sql_mode', 'mysql_wsrep_sync_wait',
    'pool_timeout', 'retry_interval', 'sqlite_synchronous')


def state_file(conf: cfg.ConfigOpts, name: str) -> str:
    """Return the absolute path of ``name`` below ``state_path``.

    :raises ConfigurationError: ``[DEFAULT] state_path`` is not set
    """
    if not conf.state_path:
        raise exception.ConfigurationError(
            what='[DEFAULT] state_path', problem='is not set',
            remedy='Set it in nova.conf to the directory of Nova\'s state, such as /var/lib/nova.')
    return os.path.join(conf.state_path, name)


def control_url(conf: cfg.ConfigOpts) -> str:
    """Return the address of the control database: the configured address or, if none is configured,
    the address of an SQLite file below ``state_path``."""
    return conf.kronos_database.connection or f'sqlite:///{state_file(conf, "kronos.sqlite")}'


def claims_url(conf: cfg.ConfigOpts) -> str:
    return f'sqlite:///{state_file(conf, conf.kronos_claims.claim_db)}'


def control_engine(conf: cfg.ConfigOpts) -> sqlalchemy.Engine:
    """Return an engine of the control database, configured by ``[kronos_database]``. The engine
    connects at its first use.

    Only one attempt is made to open the first connection; the option ``max_retries`` is ignored.
    With this option, oslo.db may try for a minute and a half. A command must not wait so long, and
    neither must a service that is asked to stop. A service tries again some seconds later anyway.
    """
    return patient_control_engine(conf, max_retries=0)


def patient_control_engine(conf: cfg.ConfigOpts, **options: Any) -> sqlalchemy.Engine:
    """Return an engine of the control database. The first connection is tried up to ``max_retries``
    times. The engine is for commands that run once, at a time when the database may still be
    starting.

    :raises DBConnectionError: the database does not answer
    """
    return create_engine(control_url(conf), **_options(conf) | options)


def impatient_control_engine(conf: cfg.ConfigOpts, seconds: int = 1) -> sqlalchemy.Engine:
    """Return an engine of the control database with short timeouts. The engine is for callers that
    cannot wait long and can continue without the database. This function opens no connection.

    :param seconds: maximum seconds to wait for a connection, and for an answer. With PostgreSQL,
        the maximum applies only to the connection. The default is short, because a request of Nova
        waits for many of these queries
    """
    url = control_url(conf)
    options = _options(conf) | {'max_retries': 0, 'pool_timeout': seconds}
    wanted = _IMPATIENT.get(sqlalchemy.make_url(url).drivername, '').format(seconds)
    given = options.get('connection_parameters') or ''
    # The operator's own settings come last and take precedence.
    options['connection_parameters'] = '&'.join(filter(None, (wanted, given)))
    return create_engine(url, busy_timeout_ms=1000 * seconds, **options)


def _options(conf: cfg.ConfigOpts) -> dict[str, Any]:
    group = conf.kronos_database
    return {name: group[name] for name in _ENGINE_OPTIONS if name in group}


def create_engine(url: str, busy_timeout_ms: int = SQLITE_BUSY_TIMEOUT_MS,
                  **options: Any) -> sqlalchemy.Engine:
    """Return an oslo.db engine. An SQLite file is opened in WAL mode with a busy timeout.

    With the execution option ``for_writing``, each transaction on SQLite takes the write lock when
    it begins, and waits for the lock up to the busy timeout. Without this option, a transaction
    takes the lock at its first write. If another connection has written since the transaction
    began, SQLite then refuses the lock at once.
    """
    if not url.startswith('sqlite'):
        return engines.create_engine(url, **options)
    # oslo.db has no connection pool for a file, and refuses options of a pool.
    options = {name: value for name, value in options.items() if name != 'pool_timeout'}
    engine = engines.create_engine(url, **{**options, 'max_retries': 0})
    sqlalchemy.event.listen(engine, 'do_connect', _make_private)
    sqlalchemy.event.listen(engine, 'connect',
                            functools.partial(_configure_sqlite, busy_timeout_ms))
    sqlalchemy.event.listen(engine, 'begin', _begin_for_writing)
    return engine


def _make_private(_dialect: object, _record: object, arguments: Sequence[Any],
                  _keywords: object) -> None:
    """Create the SQLite file if it is missing, with a mode by which only its owner may read and
    write it. SQLite gives its log file and its shared memory file the same mode."""
    path = arguments[0]
    if path != ':memory:':
        with contextlib.suppress(OSError):  # the file exists, or SQLite reports the problem better
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _configure_sqlite(busy_timeout_ms: int, connection: sqlite3.Connection,
                      _record: object) -> None:
    connection.execute(f'PRAGMA busy_timeout = {busy_timeout_ms}')
    connection.execute('PRAGMA journal_mode = WAL')


def _begin_for_writing(connection: sqlalchemy.Connection) -> None:
    # oslo.db's own listener has just begun a transaction without the lock, and nothing is in it.
    if connection.get_execution_options().get('for_writing'):
        connection.exec_driver_sql('ROLLBACK')
        connection.exec_driver_sql('BEGIN IMMEDIATE')


@contextlib.contextmanager
def one_kind_of_error(engine: sqlalchemy.Engine) -> Iterator[None]:
    """Convert every database error that the block raises to an error of oslo.db.

    oslo.db does not convert errors of SQLAlchemy that it does not recognise. Examples are SQLite's
    errors for a full disk or a file that cannot be opened, and MySQL's error for a missing table.

    :raises DBError: the database refused a statement, or does not answer
    """
    try:
        yield
    except (sqlalchemy.exc.OperationalError, sqlalchemy.exc.ProgrammingError) as error:
        raise db_exc.DBError(_disk_error(error, engine) or error) from error


def _disk_error(error: sqlalchemy.exc.DBAPIError, engine: sqlalchemy.Engine) -> Exception | None:
    """Return an error that names the file and the remedy, if SQLite failed because a disk is full
    or broken; None for all other errors. SQLite's own message has neither the file nor the
    remedy."""
    name, path = getattr(error.orig, 'sqlite_errorname', ''), engine.url.database
    if name == 'SQLITE_FULL' or name.startswith('SQLITE_IOERR') and _is_full(path):
        return sqlite3.OperationalError(f'The file system of {path} is full: free some of it '
                                        f'(SQLite says: {error.orig})')
    if name.startswith('SQLITE_IOERR'):
        return sqlite3.OperationalError(f'The disk of {path} cannot be read or written: see the '
                                        f'log of the kernel (SQLite says: {error.orig}, {name})')
    return None


def _is_full(path: str | None) -> bool:
    try:
        found = os.statvfs(os.path.dirname(path or '') or '.')
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < SMALLEST_ROOM


def first_line(error: Exception) -> str:
    """Return the first line of an error's text. SQLAlchemy adds the statement and a link in further
    lines."""
    return str(error).partition('\n')[0]


class Database:
    """The sessions of one database engine. Objects stay readable after their session has ended.

    ``utcnow()`` returns the time of the database, which is the same for all hosts.

    :param announces: whether notifications about changes are recorded, to be sent later
    """

    def __init__(self, engine: sqlalchemy.Engine, announces: bool = False):
        self.engine = engine
        self.utcnow = shared_clock.SharedClock(engine)
        self._read = orm.sessionmaker(engine, expire_on_commit=False)
        self._write = orm.sessionmaker(
            engine.execution_options(for_writing=True), expire_on_commit=False,
            info={_ANNOUNCES: announces})

    @contextlib.contextmanager
    def reader(self) -> Iterator[orm.Session]:
        """Open a session whose changes are discarded."""
        with one_kind_of_error(self.engine), self._read() as session:
            yield session

    @contextlib.contextmanager
    def writer(self) -> Iterator[orm.Session]:
        """Open a session. The changes of the session are committed when the block ends, and rolled
        back when the block raises an error."""
        with one_kind_of_error(self.engine), self._write.begin() as session:
            yield session


def count_changed(session: orm.Session, statement: sqlalchemy.Update | sqlalchemy.Delete) -> int:
    """Execute a statement, and return the number of rows that it has changed or deleted."""
    return cast(sqlalchemy.CursorResult[Any], session.execute(statement)).rowcount


def is_announced(session: orm.Session) -> bool:
    """Return True if notifications about the changes that a session makes are recorded; False if
    notifications are off."""
    return session.info.get(_ANNOUNCES, False)


def control_database(conf: cfg.ConfigOpts) -> Database:
    """Return the control database that nova.conf configures. The connection is made at the first
    use."""
    return Database(control_engine(conf), announces=bool(conf.kronos.notification_topics))


class ImpatientDatabase(Database):
    """A database that is not queried for some seconds after it did not answer. During these seconds
    each query raises an error at once.

    :param clock: returns monotonic seconds
    :param pause: seconds for which the database is not queried after it did not answer
    """

    def __init__(self, engine: sqlalchemy.Engine, clock: Callable[[], float] = time.monotonic,
                 announces: bool = False, pause: float = 10):
        super().__init__(engine, announces)
        self._clock = clock
        self._pause = pause
        self._silent_until = float('-inf')

    @contextlib.contextmanager
    def reader(self) -> Iterator[orm.Session]:
        with self._noticed(), super().reader() as session:
            yield session

    @contextlib.contextmanager
    def writer(self) -> Iterator[orm.Session]:
        with self._noticed(), super().writer() as session:
            yield session

    @contextlib.contextmanager
    def _noticed(self) -> Iterator[None]:
        if self._clock() < self._silent_until:
            raise db_exc.DBConnectionError('the control database did not answer the last request, '
                                           'and is not asked again yet')
        try:
            yield
        except db_exc.DBConnectionError:
            self._silent_until = self._clock() + self._pause
            raise
