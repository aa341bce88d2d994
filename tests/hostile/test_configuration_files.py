"""Configuration files that are no text: one line, and an exit code that tells."""

import contextlib
import io

import ddt
import fixtures
import testtools
from oslo_config import cfg

from kronos_nova import conf as kronos_conf
from kronos_nova.cmd import record
from kronos_nova.cmd import replay
from kronos_nova.cmd import status
from kronos_nova.cmd import test_config

CONTENTS = {'Latin-1': '[kronos]\naggregates = hôte\n'.encode('latin-1'),
            'UTF-16': '[kronos]\naggregates = rack\n'.encode('utf-16')}
PROGRAMS = {'kronos-test-config': (test_config.main, [], 2),
            'kronos-record': (record.main, ['x'], 1),
            'kronos-replay': (replay.main, ['x'], 2),
            'kronos-status': (status.main, None, 255)}


@ddt.ddt
class ConfigurationFilesTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir())

    def path(self, content):
        path = self.folder.join('nova.conf')
        with open(path, 'wb') as file:
            file.write(content)
        return path

    @ddt.data(*CONTENTS)
    def test_one_that_is_not_utf_8(self, name):
        conf = cfg.ConfigOpts()
        error = self.assertRaises(cfg.Error, kronos_conf.read, conf,
                                  ['--config-file', self.path(CONTENTS[name])])
        self.assertIn('not UTF-8', str(error))
        self.assertTrue(str(error).isprintable())

    def test_what_stands_before_is_shown(self):
        error = self.assertRaises(cfg.Error, kronos_conf.read, cfg.ConfigOpts(),
                                  ['--config-file', self.path(CONTENTS['Latin-1'])])
        self.assertIn('"aggregates = h"', str(error))

    @ddt.data(*PROGRAMS)
    def test_each_program_says_so_in_one_line(self, name):
        main, arguments, expected = PROGRAMS[name]
        for path in (self.path(CONTENTS['Latin-1']), self.folder.path):
            said = io.StringIO()
            given = ([f'--config-file={path}', 'upgrade', 'check'] if arguments is None
                     else [f'--config-file={path}', *arguments])
            with contextlib.redirect_stderr(said):
                self.assertEqual(expected, main(given))
            [line] = said.getvalue().splitlines()
            self.assertLess(len(line), 300)
