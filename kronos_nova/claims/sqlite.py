"""The store ``sqlite``: a file of the compute host, in WAL mode, with one writer."""

import contextlib
import os
import sqlite3

from oslo_db import exception as db_exc
from oslo_log import log as logging
from sqlalchemy import exc as sa_exc

from kronos_nova import clock
from kronos_nova import exception
from kronos_nova.claims import table
from kronos_nova.db import claim_models
from kronos_nova.db import engine as db_engine
from kronos_nova.db import migrate

LOG = logging.getLogger(__name__)

# What SQLite says of a file that is damaged, not its own, or has other tables than it should.
CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}

# oslo.db has no word of its own for most of what SQLite says, and lets it pass.
ERRORS = (db_exc.DBError, sa_exc.DBAPIError, sqlite3.Error)

# A claim is made while all other claims of the host wait: better none is written than all stand.
BUSY_TIMEOUT_MS = 250

# Rows that could not be made claims of.
UNREADABLE = ("SELECT count(*) FROM claims WHERE NOT json_valid(coalesce(pci, '[]')) "
              "OR julianday(created_at) IS NULL")

# With these two files beside it SQLite can still open what was set aside.
COMPANIONS = ('-wal', '-shm')


class SqliteStore:
    """Claims in ``$state_path/$claim_db``.

    A damaged file is set aside under a name that tells when, and a new one begun. A file that
    cannot be reached, is locked or full is an error and is left alone.
    """

    def __init__(self, conf, host, call=None):
        self.path = db_engine.state_file(conf, conf.kronos_claims.claim_db)
        self.host = host
        self._table = table.ClaimTable(claim_models.LocalClaim)
        self._connection = None

    def open(self):
        if self._connection is not None:
            return True
        existed = os.path.exists(self.path)
        try:
            with self._translated_errors():
                old, new = self._connect()
                return existed and old == new
        except _Corrupt as error:
            aside = self._set_aside()
            LOG.error('The claims in %s cannot be read (%s). The file is kept as %s and a new one '
                      'is built from the instances and migrations of this host.',
                      self.path, error, aside)
        with self._translated_errors():
            self._connect()
        return False

    def _connect(self):
        engine = db_engine.create_engine(f'sqlite:///{self.path}',
                                         busy_timeout_ms=BUSY_TIMEOUT_MS)
        revisions = migrate.sync(engine, migrate.CLAIMS)
        self._connection = engine.execution_options(for_writing=True).connect()
        # WAL with NORMAL keeps every commit through the end of this process; a loss of power may
        # cost the last ones, which the audit finds again. FULL would wait for the disk each time.
        self._connection.connection.execute('PRAGMA synchronous = NORMAL')
        with self._connection.begin():
            self._check()
        return revisions

    def _check(self):
        verdict = self._connection.exec_driver_sql('PRAGMA quick_check(1)').scalar()
        if verdict != 'ok':
            raise _Corrupt(problem=verdict)
        broken = self._connection.exec_driver_sql(UNREADABLE).scalar()
        if broken:
            raise _Corrupt(problem=f'{broken} claims make no sense')

    def load(self):
        with self._transaction() as connection:
            return self._table.load(connection, self.host)

    def write(self, put, drop):
        with self._transaction() as connection:
            return self._table.write(connection, self.host, put, drop)

    def close(self):
        if self._connection is not None:
            connection, self._connection = self._connection, None
            with contextlib.suppress(*ERRORS):
                connection.close()

    @contextlib.contextmanager
    def _transaction(self):
        self.open()
        with self._translated_errors(), self._connection.begin():
            yield self._connection

    @contextlib.contextmanager
    def _translated_errors(self):
        """Close after any error: what was wrong may be the connection, and nothing is under way."""
        try:
            yield
        except _Corrupt:
            self.close()
            raise
        except ERRORS as error:
            self.close()
            kind = _Corrupt if _sqlite_code(error) in CORRUPT else exception.ClaimError
            raise kind(problem=f'{self.path}: {error}') from error

    def _set_aside(self):
        when = clock.utcnow()
        aside = f'{self.path}.corrupt-{when:%Y%m%dT%H%M%S.%fZ}'
        for suffix in ('', *COMPANIONS):
            with contextlib.suppress(FileNotFoundError):
                os.rename(self.path + suffix, aside + suffix)
        return aside


class _Corrupt(exception.ClaimError):
    """The file is there and can be reached, but is not what it should be."""


def _sqlite_code(error):
    """SQLite's primary result code, None when the error is not SQLite's."""
    while error is not None and not isinstance(error, sqlite3.Error):
        error = getattr(error, 'orig', None) or error.__cause__
    code = getattr(error, 'sqlite_errorcode', None)
    return None if code is None else code & 0xff
