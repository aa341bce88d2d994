"""``kronos-manage db`` and ``kronos-status`` as an operator calls them."""

import json
import os
import subprocess
import sys

from kronos_nova.cmd import status
from kronos_nova.db import migrate
from tests.unit.cmd import base


class DatabaseCommandsTest(base.ManageTestCase):
    def test_sync_prints_both_databases_from_and_to(self):
        self.assertEqual(0, self.run_manage('db', 'sync', '-f', 'json'))
        self.assertEqual(
            [{'Database': name, 'From': None, 'To': migrate.head(history)}
             for name, history in migrate.HISTORIES.items()],
            json.loads(self.written(self.out)))
        self.assertTrue(os.path.exists(f'{self.state}/kronos.sqlite'))
        self.assertTrue(os.path.exists(f'{self.state}/claim.sqlite'))

    def test_sync_says_what_it_did_and_not_how_unless_asked(self):
        self.run_manage('db', 'sync', 'control')
        self.assertNotIn('Context impl', self.written(self.err))
        self.run_manage('--verbose', 'db', 'sync', 'claims')
        self.assertIn('Context impl', self.written(self.err))

    def test_one_database_alone(self):
        self.assertEqual(0, self.run_manage('db', 'sync', 'control'))
        self.assertFalse(os.path.exists(f'{self.state}/claim.sqlite'))

    def test_without_a_state_path_the_remedy_is_told(self):
        self.configure('')
        self.assertEqual(1, self.run_manage('db', 'sync'))
        self.assertIn('Set it in nova.conf', self.written(self.err))

    def test_the_upgrade_check_fails_until_the_database_is_synced(self):
        check = ['--config-file', self.config, 'upgrade', 'check']
        self.assertEqual(2, status.main(check))
        self.assertEqual(['nova.conf'], os.listdir(self.state))
        self.run_manage('db', 'sync')
        self.assertEqual(0, status.main(check))


class CostTest(base.ManageTestCase):
    """Commands that read the control database load nothing else: each of these is a fifth of the
    time of a command."""

    HEAVY = frozenset(('alembic', 'croniter', 'keystoneauth1', 'numpy', 'oslo_messaging',
                       'pydantic', 'requests'))

    def test_commands_load_what_they_need(self):
        self.run_manage('db', 'sync', 'control')
        for words in (['status'], ['plan', 'list'], ['move', 'list'], ['report'],
                      ['automation', 'show'], ['quarantine', 'list']):
            done = subprocess.run(
                [sys.executable, '-W', 'ignore', '-c', 'import sys\n'
                 'from kronos_nova.cmd import manage\n'
                 'manage.main(sys.argv[1:])\n'
                 'print(*{name.partition(".")[0] for name in sys.modules})',
                 f'--config-file={self.config}', *words], capture_output=True, text=True,
                check=True, timeout=60)
            loaded = {*done.stdout.splitlines()[-1].split()}
            self.assertIn('sqlalchemy', loaded)
            self.assertEqual(set(), self.HEAVY & loaded, words)
