"""MariaDB on a data directory of its own."""

import os
import pathlib
import shutil
import subprocess

import pymysql

from tests.e2e.box.processes import Process
from tests.e2e.box.settings import LOOPBACK
from tests.e2e.box.settings import BoxError

USER, PASSWORD = 'box', 'box'
DATABASES = ('nova_api', 'nova_cell0', 'nova_cell1', 'placement', 'glance', 'keystone', 'neutron',
             'kronos')
# Nothing here has to survive a power failure.
OPTIONS = ('--innodb-flush-log-at-trx-commit=0', '--innodb-flush-method=nosync',
           '--innodb-doublewrite=0', '--innodb-log-file-size=32M',
           '--innodb-buffer-pool-size=256M', '--performance-schema=off', '--skip-log-bin',
           '--skip-name-resolve', '--max-connections=1000', '--character-set-server=utf8mb3')


class MariaDB:
    def __init__(self, root, ports):
        self._root = root
        self.data = root / 'mariadb'
        self.port = ports.take()
        # Every server that starts deletes all temporary tables that it finds there.
        self._tmp = root / 'mariadb-tmp'
        self.process = Process(
            'mariadb',
            ['mariadbd', '--no-defaults', '--user=root', f'--datadir={self.data}',
             f'--tmpdir={self._tmp}', f'--bind-address={LOOPBACK}', f'--port={self.port}',
             # In its data, by a name that is short enough wherever these are.
             '--socket=mariadb.sock', f'--pid-file={root / "run" / "mariadb.own"}', *OPTIONS],
            root, ready=self._answers)

    def url(self, database):
        return (f'mysql+pymysql://{USER}:{PASSWORD}@{LOOPBACK}:{self.port}/{database}'
                '?charset=utf8mb3')

    def connect(self, database=None):
        return pymysql.connect(host=LOOPBACK, port=self.port, user=USER, password=PASSWORD,
                               database=database, autocommit=True,
                               cursorclass=pymysql.cursors.DictCursor)

    def query(self, database, sql, *args):
        """Rows of one statement, as dicts."""
        with self.connect(database) as connection, connection.cursor() as cursor:
            cursor.execute(sql, args)
            return list(cursor.fetchall())

    def statements(self):
        """Statements the server was sent since it started, its own counting left out."""
        return int(self.query(None, "SHOW GLOBAL STATUS LIKE 'Questions'")[0]['Value'])

    def start(self, timeout):
        self.data.parent.mkdir(parents=True, exist_ok=True)
        self._tmp.mkdir(exist_ok=True)
        self.process.start()
        self.process.wait_ready(timeout)

    def restore(self, saved):
        shutil.copytree(saved, self.data)

    def install(self):
        """An empty server with the box' user and databases."""
        self.data.mkdir(parents=True)
        self._tmp.mkdir(exist_ok=True)
        setup = self._root / 'setup.sql'
        setup.write_text('\n'.join([
            'FLUSH PRIVILEGES;',
            f"CREATE USER '{USER}'@'{LOOPBACK}' IDENTIFIED BY '{PASSWORD}';",
            f"GRANT ALL ON *.* TO '{USER}'@'{LOOPBACK}' WITH GRANT OPTION;",
            *[f'CREATE DATABASE {name} CHARACTER SET utf8mb3;' for name in DATABASES], '']))
        done = subprocess.run(
            ['mariadb-install-db', '--no-defaults', '--user=root', f'--datadir={self.data}',
             '--skip-test-db', '--auth-root-authentication-method=normal',
             f'--extra-file={setup}'],
            env={**os.environ, 'TMPDIR': str(self._tmp)}, capture_output=True, text=True)
        if done.returncode:
            raise BoxError(f'mariadb-install-db: {done.stdout}{done.stderr}')

    def _answers(self):
        try:
            self.connect().close()
        except pymysql.Error:
            return False
        return True

    def save(self, where):
        """Stop cleanly and keep the files for ``restore``."""
        self.process.stop(timeout=60)
        partial = pathlib.Path(f'{where}.partial')
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(self.data, partial)
        partial.rename(where)
