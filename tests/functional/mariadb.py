"""Debian's MariaDB on a loopback port."""

import contextlib
import os
import pathlib
import signal
import time

import fixtures

from tests.e2e.box import mariadb
from tests.e2e.box import settings


class MariaDB(fixtures.Fixture):
    """A server of its own with an empty database ``kronos``. ``login`` is user, password, host and
    port, as they stand in a URL."""

    def _setUp(self):
        root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self._server = mariadb.MariaDB(root, settings.Ports())
        self._server.install()
        self._server.start(60)
        self.addCleanup(self._server.process.kill)
        self.login = f'{mariadb.USER}:{mariadb.PASSWORD}@127.0.0.1:{self._server.port}'

    def set_default(self, variable, value):
        """Have connections begin with another value of a variable of the server's from now on."""
        self._server.query(None, f"SET GLOBAL {variable} = '{value}'")

    def fall_silent(self):
        """Answer nothing any more, and refuse nothing."""
        os.kill(self._server.process.pid, signal.SIGSTOP)
        self.addCleanup(self.speak)
        # Until one of its threads has seen the signal, all go on.
        while set(self._states()) != {'T'}:
            time.sleep(0.01)

    def _states(self):
        """The states of its threads, as proc(5) has them."""
        for task in pathlib.Path(f'/proc/{self._server.process.pid}/task').iterdir():
            with contextlib.suppress(FileNotFoundError):    # it has ended meanwhile
                yield (task / 'stat').read_text().rpartition(')')[2].split()[0]

    def speak(self):
        """Answer again; harmless when repeated."""
        os.kill(self._server.process.pid, signal.SIGCONT)

    def empty(self):
        """The address of the database ``kronos`` for SQLAlchemy, after everything in it is gone."""
        self._server.query(None, 'DROP DATABASE kronos')
        self._server.query(None, 'CREATE DATABASE kronos')
        return f'mysql+pymysql://{self.login}/kronos?charset=utf8mb4'
