"""Kronos comes and goes, service by service, in the order of the documentation; what servers hold
is right at every point, also of those that are in the middle of a move."""

import os
import pathlib
import shutil
import sqlite3

import nova.conf

from tests.functional.mixed import base
from tests.functional.mixed import kinds
from tests.functional.mixed import rolling
from tests.unit.claims import test_sqlite


def _clouds():
    """One way for one kind of cloud is enough for every run of the tests; the others are of the
    matrix."""
    for name, kind in kinds.KINDS.items():
        if kind.may_be_used_again:
            for order in (InstallTest, LeaveTest):
                prefix = '' if (kind, order) == (kinds.SharedPool, InstallTest) else 'Matrix_'
                title = f'{prefix}{order.__name__}_{name.replace(" ", "_")}'
                yield title, type(title, (order, rolling.RollingCloud), {
                    'kind': kind(), '__module__': __name__})


class InstallTest:
    kronos = base.STOCK

    def test_each_service_gets_kronos_in_the_middle_of_moves(self):
        self.roll(rolling.INSTALLING, has_kronos=True)


class LeaveTest:
    def test_each_service_loses_kronos_in_the_middle_of_moves(self):
        self.roll(rolling.LEAVING, has_kronos=False)


globals().update(_clouds())


class ClaimsTest(rolling.RollingCloud):
    """Claims that a nova-compute kept before the upgrade."""

    def test_they_are_not_believed_after_a_time_without_kronos(self):
        gone, stays = self.boot_server(), None
        stays = self.boot_beside(gone)
        self.restart(base.SOURCE, has_kronos=False)
        self._delete_server(gone)
        new = self.boot_beside(stays)

        self.restart(base.SOURCE, has_kronos=True)

        self.assert_claimed(stays, new)

    def test_they_are_believed_in_a_file_of_the_version_before(self):
        server = self.boot_server()
        self.go_back_to_version_2()

        self.restart(base.SOURCE, has_kronos=True)

        self.assert_claimed(server)
        with sqlite3.connect(self.file) as connection:
            self.assertEqual([(3,)], connection.execute(
                'SELECT version FROM claim_versions').fetchall())

    @property
    def file(self):
        return nova.conf.CONF.kronos_claims.claim_db

    def assert_claimed(self, *servers):
        with sqlite3.connect(self.file) as connection:
            rows = connection.execute("SELECT instance_uuid FROM claims WHERE host = 'host1'")
            self.assertEqual({server['id'] for server in servers}, {uuid for uuid, in rows})
        node = self.computes['host1'].manager.rt.compute_nodes['host1']
        self.assertEqual(len(servers), node.vcpus_used)

    def go_back_to_version_2(self):
        columns = 'host, node, instance_uuid, vcpus, memory_mb, disk_gb, resize_target, state'
        with sqlite3.connect(self.file) as connection:
            rows = connection.execute(
                f'SELECT {columns}, substr(created_at, 1, 19) FROM claims').fetchall()
        for compute in self.computes.values():
            compute.manager.rt.ledger.store.close()
        for suffix in ('', '-wal', '-shm'):
            pathlib.Path(self.file + suffix).unlink(missing_ok=True)
        shutil.copy(test_sqlite.FILES / 'v2.sqlite', self.file)
        os.chmod(self.file, 0o600)
        with sqlite3.connect(self.file) as connection:
            connection.execute('DELETE FROM claims')
            connection.executemany(
                f'INSERT INTO claims ({columns}, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
                rows)
