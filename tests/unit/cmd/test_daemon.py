"""A daemon that is asked by a signal to read its configuration again."""

import pathlib

import ddt
import fixtures
import testtools
from oslo_config import cfg

from kronos_nova import conf as kronos_conf
from kronos_nova.cmd import daemon


@ddt.ddt
class ReloadTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.file = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / 'nova.conf'
        self.write('max_concurrent_migrations = 3')
        self.conf = cfg.ConfigOpts()
        kronos_conf.register_opts(self.conf)
        kronos_conf.read(self.conf, [f'--config-file={self.file}'], project='nova')
        self.logger = self.useFixture(fixtures.FakeLogger())
        self.daemon = daemon.Daemon(0, self.conf, 'kronos-executor', None)

    def write(self, *lines):
        self.file.write_bytes('\n'.join(('[kronos_executor]', *lines)).encode('latin-1'))

    def most(self):
        self.daemon.reload()
        return self.conf.kronos_executor.max_concurrent_migrations

    def test_a_changed_value_is_used(self):
        self.write('max_concurrent_migrations = 5')
        self.assertEqual(5, self.most())

    @ddt.data('max_retries', 'poll_interval = soon', 'max_retries = -1', '# \xe9')
    def test_a_file_with_an_error_changes_nothing_and_ends_nothing(self, line):
        self.write('max_concurrent_migrations = 5', line)
        self.assertEqual(3, self.most())
        self.assertEqual(2.0, self.conf.kronos_executor.poll_interval)
        self.assertIn('continues with the options that it has, because its configuration cannot be '
                      'read again: ', self.logger.output)
        self.write('max_concurrent_migrations = 6')
        self.assertEqual(6, self.most())

    def test_a_file_that_is_gone_changes_nothing_and_ends_nothing(self):
        self.file.unlink()
        self.assertEqual(3, self.most())

    def test_an_error_of_an_option_that_takes_effect_at_the_next_start_prevents_nothing(self):
        self.write('max_concurrent_migrations = 5', '[kronos_api]', 'port = none')
        self.assertEqual(5, self.most())
