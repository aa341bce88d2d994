"""``kronos-manage db`` and ``kronos-status`` as an operator calls them."""

import json
import os

import fixtures
import testtools

from kronos_nova.cmd import manage
from kronos_nova.cmd import status
from kronos_nova.db import migrate


class DatabaseCommandsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.state = self.useFixture(fixtures.TempDir()).path
        self.config = os.path.join(self.state, 'nova.conf')
        self.configure(f'[DEFAULT]\nstate_path = {self.state}\n')
        self.out = self.useFixture(fixtures.StringStream('stdout')).stream
        self.err = self.useFixture(fixtures.StringStream('stderr')).stream
        self.useFixture(fixtures.MonkeyPatch('sys.stdout', self.out))
        self.useFixture(fixtures.MonkeyPatch('sys.stderr', self.err))

    def configure(self, text):
        with open(self.config, 'w') as config:
            config.write(text)

    def written(self, stream):
        stream.flush()
        stream.seek(0)
        return stream.read()

    def run_manage(self, *args):
        return manage.main(['--config-file', self.config, *args])

    def test_sync_prints_both_databases_from_and_to(self):
        self.assertEqual(0, self.run_manage('db', 'sync', '-f', 'json'))
        self.assertEqual(
            [{'Database': name, 'From': None, 'To': migrate.head(history)}
             for name, history in migrate.HISTORIES.items()],
            json.loads(self.written(self.out)))
        self.assertTrue(os.path.exists(f'{self.state}/kronos.sqlite'))
        self.assertTrue(os.path.exists(f'{self.state}/claim.sqlite'))

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
