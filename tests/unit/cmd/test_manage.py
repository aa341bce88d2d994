"""``kronos-manage db`` and ``kronos-status`` as an operator calls them."""

import json
import os
import re
import subprocess
import sys
from importlib import metadata

import ddt

from kronos_nova.cmd import manage
from kronos_nova.cmd import status
from kronos_nova.db import migrate
from tests.unit.cmd import base


@ddt.ddt
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

    def test_without_a_state_path_the_remedy_is_reported(self):
        self.configure('')
        self.assertEqual(1, self.run_manage('db', 'sync'))
        self.assertIn('Set it in nova.conf', self.written(self.err))

    def test_the_upgrade_check_fails_until_the_database_is_synced(self):
        self.configure(f'[DEFAULT]\nstate_path = {self.state}\n'
                       '[api_database]\nconnection = sqlite://\n')
        check = ['--config-file', self.config, 'upgrade', 'check']
        self.assertEqual(2, status.main(check))
        self.assertEqual(['nova.conf'], os.listdir(self.state))
        self.run_manage('db', 'sync')
        self.assertEqual(0, status.main(check))

    def test_the_upgrade_check_of_a_compute_host_needs_no_control_database(self):
        check = ['--config-file', self.config, 'upgrade', 'check']
        self.assertEqual(0, status.main(check))
        self.assertIn('A compute host does not need it.', self.written(self.out))

    def test_the_upgrade_check_reads_a_control_database_that_is_configured(self):
        self.configure(f'[kronos_database]\nconnection = sqlite:///{self.state}/empty.sqlite\n')
        self.assertEqual(2, status.main(['--config-file', self.config, 'upgrade', 'check']))

    @ddt.data(('connection = nonsense', '[kronos_database]: Could not parse'),
              ('connection = nosuch+driver://kronos:secret@db/kronos', 'nosuch'),
              ('connection = sqlite:////proc/kronos/kronos.sqlite', 'none'),
              ('connection = sqlite://\nmax_retries = often', 'often'))
    @ddt.unpack
    def test_the_upgrade_check_says_in_a_line_what_is_wrong(self, options, said):
        self.configure(f'[kronos_database]\n{options}\n')
        self.assertEqual(2, status.main(['--config-file', self.config, 'upgrade', 'check']))
        out = self.written(self.out)
        self.assertIn(said, out)
        for word in ('Traceback', 'secret', 'Background on this error'):
            self.assertNotIn(word, out)


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


class HelpTest(base.ManageTestCase):
    def test_the_list_has_the_first_sentence_of_every_command(self):
        self.assertRaises(SystemExit, self.run_manage, '--help')
        shown = self.written(self.out)
        points = metadata.distribution(manage.DISTRIBUTION).entry_points.select(
            group=manage.NAMESPACE)
        self.assertLess(40, len(points))
        for point in points:
            sentence = ' '.join(point.load().__doc__.split()).split('. ')[0].rstrip('.')
            self.assertRegex(
                shown, rf'\n  {point.name.replace("_", " ")} +{re.escape(sentence)}\n')

    def test_help_without_a_command_shows_the_same_list(self):
        self.assertEqual(0, self.run_manage('help'))
        shown = self.written(self.out)
        self.assertIn('\n  db sync ', shown)
        self.assertIn('\n  help ', shown)

    def test_help_of_a_command_explains_that_one(self):
        self.assertEqual(0, self.run_manage('db', 'sync', '--help'))
        self.assertIn('Create a database, or upgrade its', self.written(self.out))

    def test_the_list_loads_no_command(self):
        done = subprocess.run(
            [sys.executable, '-W', 'ignore', '-c', 'import atexit, sys\n'
             'from kronos_nova.cmd import manage\n'
             'atexit.register(lambda: print(*sys.modules))\n'
             'manage.main(["--help"])'], capture_output=True, text=True, check=True, timeout=60)
        loaded = done.stdout.splitlines()[-1].split()
        self.assertIn('cliff', loaded)
        self.assertNotIn('sqlalchemy.orm', loaded)
