"""The claim store ``sqlite``: an SQLite file on the compute host, in WAL mode, with one writer."""

import contextlib
import errno
import os
import sqlite3
import time
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import sqlalchemy
from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_log import log as logging
from sqlalchemy import exc as sa_exc

from kronos_nova import boundary
from kronos_nova import clock
from kronos_nova import exception
from kronos_nova.claims import digests
from kronos_nova.claims import message
from kronos_nova.claims import table
from kronos_nova.claims.node_claims import Key
from kronos_nova.db import claim_models
from kronos_nova.db import engine as db_engine
from kronos_nova.db import migrate
from kronos_nova.objects.claim import Claim

LOG = logging.getLogger(__name__)

UNUSABLE = {
    sqlite3.SQLITE_PERM, sqlite3.SQLITE_ABORT, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_NOLFS, sqlite3.SQLITE_AUTH}
"""Primary result codes of SQLite (no unit) for errors that the machine causes. Errors with other
codes are attributed to the content of the file. Fixed by SQLite."""

ERRORS = (db_exc.DBError, sa_exc.DBAPIError, sqlite3.Error)
"""Errors that a database call may raise. oslo.db passes most errors of SQLite on unchanged."""

BUSY_TIMEOUT_MS = 250
"""Milliseconds to wait while another process locks the SQLite file of claims. A claim is the set of
resources that a host reserves for an instance. Raised, all other claims of the host wait longer;
lowered, more claims are not stored. Chosen short, because a claim that is not stored does less harm
than a nova-compute that does not respond; not measured."""

MOST_SECONDS = 1.0
"""Maximum seconds of processor time that SQLite may take to open the file of claims. A file that
takes more counts as damaged, and is replaced. Time for which SQLite waits for the disk does not
count. Raised, nova-compute starts later with a damaged file; lowered, an intact file with many
claims counts as damaged. Chosen as 20 times the 0.05 s that a file with 10,000 claims takes."""

MOST_ROWS = 50_000
"""Maximum number of claims in the SQLite file of one host. Raised, a damaged file can take more
memory; lowered, the file of a host with many claims is refused. Chosen as several times the number
of claims on the largest host."""

MOST_BYTES = 1 << 20
"""Maximum number of bytes of one value in the SQLite file of claims. Raised, a damaged file can
take more memory; lowered, the claims of instances with many NUMA cells are refused. Chosen far
above the 16,384 characters that the NUMA topology of an instance may have."""

_STEPS = 10_000
"""Number of instructions of SQLite's virtual machine between two checks of the time limit of a
query. Raised, a query may exceed its time limit by more; lowered, all queries take longer. Chosen
because this many instructions take less than 1 ms."""

# Suffixes of the two files that SQLite needs to open the file that was set aside.
COMPANIONS = ('-wal', '-shm')


class SqliteStore:
    """A claim store in the file ``$state_path/$claim_db``.

    A damaged file is renamed, with the time in its new name, and a new file is made. If the file
    cannot be reached or is locked, or if the disk is full, an error is raised and the file is not
    changed. Whatever the file contains, only ClaimError and DatabaseVersionError are raised.
    """

    def __init__(self, conf: cfg.ConfigOpts, host: str, call: object = None):
        self.path = db_engine.state_file(conf, conf.kronos_claims.claim_db)
        self.host = host
        self._table = table.ClaimTable(claim_models.LocalClaim)
        self._connection: sqlalchemy.Connection | None = None

    def open(self) -> bool:
        if self._connection is not None:
            return True
        existed = os.path.exists(self.path)
        try:
            with self._translated_errors():
                old, new = self._connect(MOST_SECONDS)
                return existed and old == new
        except _Corrupt as error:
            aside = self._set_aside()
            LOG.error('The claims in %s cannot be read (%s). The file is kept as %s and a new one '
                      'is built from the instances and migrations of this host.',
                      self.path, boundary.shown(error), aside)
        with self._translated_errors():
            self._connect()
        return False

    def _connect(self, seconds: float = float('inf')) -> tuple[Any, Any]:
        self._check_kind()
        engine = db_engine.create_engine(f'sqlite:///{self.path}',
                                         busy_timeout_ms=BUSY_TIMEOUT_MS)
        deadline = time.thread_time() + seconds
        sqlalchemy.event.listen(
            engine, 'connect', lambda connection, _record: _bound(connection, deadline))
        revisions = migrate.sync(engine, migrate.CLAIMS)
        connection = self._connection = engine.execution_options(for_writing=True).connect()
        # With WAL and NORMAL, commits survive the end of this process. After a power loss the last
        # ones may be missing, and the audit finds them again. FULL waits for the disk each time.
        plain: Any = connection.connection
        plain.execute('PRAGMA synchronous = NORMAL')
        with connection.begin():
            self._check(connection)
        plain.set_progress_handler(None, 0)
        return revisions

    def _check_kind(self) -> None:
        """Check that the file is not a directory, a pipe or a device. To open a pipe or a device
        may take for ever.

        :raises _Corrupt: the file is not a regular file
        """
        for suffix in ('', *COMPANIONS):
            path = self.path + suffix
            if os.path.lexists(path) and not os.path.isfile(path):
                raise _Corrupt(problem=f'{path} is not a regular file')

    def _check(self, connection: sqlalchemy.Connection) -> None:
        """Read all claims of the file, and compare each claim with its checksum. Raise an error if
        the content of the file is wrong."""
        # quick_check does not suffice: it does not check indexes, which writes use.
        verdict = connection.exec_driver_sql('PRAGMA integrity_check(1)').scalar()
        if verdict != 'ok':
            raise _Corrupt(problem=verdict)
        digests.create(connection)
        # Only a write shows that the header of the file forbids writing.
        digests.prune(connection)
        rows = self._table.load_all_messages(connection, MOST_ROWS + 1)
        boundary.sized(rows, 'the table of claims', MOST_ROWS)
        expected = digests.load(connection)
        for row in rows:
            message.validated(row)
            if expected.get(row['id'], digest := digests.digest(row)) != digest:
                raise _Corrupt(problem=f'claim {row["id"]} does not match its checksum')

    def load(self) -> list[Claim]:
        with self._transaction() as connection:
            return [message.validated(row)
                    for row in self._table.load_messages(connection, self.host)]

    def write(self, put: Sequence[Claim], drop: Sequence[Key]) -> dict[Key, int]:
        with self._transaction() as connection:
            ids = self._table.write(connection, self.host, put, drop)
            digests.write(connection, [{'id': ids[claim.key], **table.to_row(claim)}
                                       for claim in put])
            if drop:
                digests.prune(connection)
            return ids

    def close(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            with contextlib.suppress(*ERRORS):
                connection.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlalchemy.Connection]:
        self.open()
        connection = self._connection
        assert connection is not None
        with self._translated_errors(), connection.begin():
            yield connection

    @contextlib.contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Convert errors in the ``with`` block to errors of Kronos. The file is closed after any
        error, because the connection itself may be broken.

        :raises _Corrupt: the content of the file is wrong; a subclass of ClaimError
        :raises ClaimError: the file cannot be used for another reason
        :raises DatabaseVersionError: the file was written by a newer Kronos
        """
        try:
            yield
        except Exception as error:
            self.close()
            if isinstance(error, _Corrupt | exception.DatabaseVersionError):
                raise
            kind = exception.ClaimError if self._is_unusable(error) else _Corrupt
            raise kind(problem=f'{self.path}: {error}') from error

    def _is_unusable(self, error: Exception) -> bool:
        """Return True if the machine caused an error, for example by a full disk; False if the
        content of the file caused the error. SQLAlchemy, alembic and sqlite3 raise errors of many
        types for invalid content. So any error that the machine cannot have caused is attributed to
        the content."""
        code = _sqlite_code(error)
        if code == sqlite3.SQLITE_READONLY:
            # A damaged header of the file can cause this code too.
            return not self._is_writable()
        return code in UNUSABLE or code is None and isinstance(error, OSError | MemoryError)

    def _is_writable(self) -> bool:
        return os.access(self.path, os.W_OK) and os.access(os.path.dirname(self.path), os.W_OK)

    def _set_aside(self) -> str:
        """Rename the damaged file, and the files that belong to it.

        :returns: the new name
        :raises ClaimError: a file cannot be renamed
        """
        aside = f'{self.path}.corrupt-{clock.utcnow():%Y%m%dT%H%M%S.%fZ}'
        for suffix in ('', *COMPANIONS):
            try:
                os.rename(self.path + suffix, aside + suffix)
            except OSError as error:
                if error.errno != errno.ENOENT:
                    raise exception.ClaimError(
                        problem=f'{self.path} is damaged and cannot be renamed: {error}'
                    ) from error
        return aside


class _Corrupt(exception.ClaimError):
    """The error that the file can be read but its content is wrong."""


def _bound(connection: sqlite3.Connection, deadline: float) -> None:
    """Limit the processor time and the memory that SQLite uses for a connection. A damaged file
    could otherwise take any amount of time and memory.

    :param deadline: processor time of this thread at which SQLite stops working
    """
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_BYTES)
    connection.set_progress_handler(lambda: time.thread_time() > deadline, _STEPS)


def _sqlite_code(error: BaseException | None) -> int | None:
    """Return SQLite's primary result code of an error; None if the error is not SQLite's."""
    while error is not None and not isinstance(error, sqlite3.Error):
        error = getattr(error, 'orig', None) or error.__cause__
    code = getattr(error, 'sqlite_errorcode', None)
    return None if code is None else code & 0xff
