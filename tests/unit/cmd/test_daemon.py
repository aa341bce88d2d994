"""A daemon that is asked by a signal to read its configuration again, or to end."""

import datetime
import logging
import pathlib
import unittest.mock

import ddt
import fixtures
import testtools
from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_log import log

from kronos_nova import conf as kronos_conf
from kronos_nova.cmd import daemon
from kronos_nova.cmd import engine
from kronos_nova.cmd import executor
from kronos_nova.cmd import manage
from kronos_nova.cycle import levels
from kronos_nova.db import journal
from kronos_nova.engine import guard
from tests.unit.db import fixtures as db_fixtures


@ddt.ddt
class StartTest(testtools.TestCase):
    @ddt.data(('debug = maybe', 'debug: '), ('use_syslog = perhaps', 'use_syslog: '),
              ('default_log_levels = a=loud', 'loud'), ('log_config_append = /nowhere', '/nowhere'))
    @ddt.unpack
    def test_an_invalid_option_of_logging_is_an_error_of_the_configuration(self, line, said):
        root = logging.getLogger()
        self.addCleanup(setattr, root, 'handlers', [*root.handlers])
        file = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / 'nova.conf'
        file.write_text(f'[DEFAULT]\n{line}\n')
        error = self.assertRaises(cfg.Error, manage.load_service_config, cfg.ConfigOpts(),
                                  'kronos-engine', [f'--config-file={file}'])
        self.assertIn(said, str(error))

    def test_a_wrong_argument_ends_the_process(self):
        with fixtures.StringStream('err') as err, fixtures.MonkeyPatch('sys.stderr', err.stream):
            ended = self.assertRaises(SystemExit, manage.load_service_config, cfg.ConfigOpts(),
                                      'kronos-engine', ['--no-such'])
            err.stream.seek(0)
            self.assertIn('--no-such', err.stream.read())
        self.assertEqual(2, ended.code)


@ddt.ddt
class ReloadTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.file = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / 'nova.conf'
        self.write('max_concurrent_migrations = 3')
        self.conf = cfg.ConfigOpts()
        log.register_options(self.conf)
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

    def test_the_levels_of_all_and_of_single_aggregates_are_read_again(self):
        self.write('[kronos]', 'automation = approve', 'aggregate_automation = gpu:auto')
        self.daemon.reload()
        self.assertEqual(('approve', {'gpu': 'auto'}), (
            levels.defaults(self.conf).level, dict(levels.defaults(self.conf).levels)))

    @ddt.data('max_retries', 'poll_interval = soon', 'max_retries = -1', '# \xe9',
              '[DEFAULT]\ndebug = maybe', '[kronos]\naggregate_automation = gpu:atuo')
    def test_a_file_with_an_error_changes_nothing_and_ends_nothing(self, line):
        self.write('max_concurrent_migrations = 5', line)
        self.assertEqual(3, self.most())
        self.assertEqual(2.0, self.conf.kronos_executor.poll_interval)
        self.assertIn('continues with the options that it has, because its configuration cannot be '
                      'read again: ', self.logger.output)
        self.write('max_concurrent_migrations = 6')
        self.assertEqual(6, self.most())

    def test_a_logging_file_that_is_gone_ends_nothing(self):
        self.conf.register_mutate_hook(log._mutate_hook)    # as log.setup does
        self.write('[DEFAULT]', 'log_config_append = /nowhere')
        self.daemon.reload()
        self.assertIn('/nowhere', self.logger.output)

    def test_a_file_that_is_gone_changes_nothing_and_ends_nothing(self):
        self.file.unlink()
        self.assertEqual(3, self.most())

    def test_an_error_of_an_option_that_takes_effect_at_the_next_start_prevents_nothing(self):
        self.write('max_concurrent_migrations = 5', '[kronos_api]', 'port = none')
        self.assertEqual(5, self.most())


class Service:
    """The services of an executor. Each call takes the next of the results; an exception is
    raised."""

    def __init__(self, results=(), retired=None):
        self.results = list(results)
        self.retired = retired
        self.calls = []

    def tick(self, adopts=True):
        self.calls.append('tick')
        result = self.results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    def stop_taking(self):
        self.calls.append('stop_taking')

    def retire(self):
        self.calls.append('retire')
        if self.retired:
            raise self.retired

    def stop(self):
        self.calls.append('stop')


class ExecutorEndTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.conf = cfg.ConfigOpts()
        kronos_conf.register_opts(self.conf)
        self.conf.register_cli_opts(executor.CLI_OPTS)
        self.conf([], default_config_files=[], default_config_dirs=[])
        self.conf.set_override('poll_interval', 0.1, 'kronos_executor')
        self.logger = self.useFixture(fixtures.FakeLogger())

    def drain(self, execution):
        """Drain an executor with this ExecutionService, and return its DispatchService."""
        dispatch = Service()
        for module, name, made in (
                (executor.daemon, 'make_context', unittest.mock.Mock()),
                (executor.connection, 'connect', None),
                (executor.service, 'ExecutionService', execution),
                (executor.service, 'DispatchService', dispatch)):
            self.useFixture(fixtures.MockPatchObject(
                module, name, lambda *_args, made=made, **_more: made))
        executor.ExecutorParts(self.conf).drain()
        return dispatch

    def test_a_database_that_does_not_answer_for_a_moment_does_not_end_the_moves_in_progress(self):
        execution = Service([1, db_exc.DBConnectionError('gone'), 1, 0])
        dispatch = self.drain(execution)
        self.assertEqual(['stop_taking', *['tick'] * 4, 'retire'], execution.calls)
        self.assertEqual(['stop'], dispatch.calls)
        self.assertIn('a database does not answer: gone', self.logger.output)

    def test_a_database_that_does_not_answer_is_waited_for_until_the_timeout(self):
        self.conf.set_override('drain_timeout', 0.3, 'kronos_executor')
        gone = db_exc.DBConnectionError('gone')
        execution = Service([gone] * 99, retired=gone)
        dispatch = self.drain(execution)
        self.assertEqual(('retire', ['stop']), (execution.calls[-1], dispatch.calls))


class EngineEndTest(testtools.TestCase):
    def test_the_record_of_an_engine_that_ends_is_deleted(self):
        database = self.useFixture(db_fixtures.ControlDatabase()).database
        engine_parts = engine.Engine.__new__(engine.Engine)
        engine_parts._journal = journal.Journal(database, 'host:1:a')
        engine_parts._guard = guard.Guard()
        engine_parts._planning, engine_parts._dispatch = Service(), Service()
        engine_parts._journal.heartbeat(database.utcnow(), 'engine')
        engine_parts.drain()
        self.assertEqual([], engine_parts._journal.workers(
            database.utcnow() - datetime.timedelta(hours=1)))
        self.assertEqual((['stop'], ['stop']), (
            engine_parts._planning.calls, engine_parts._dispatch.calls))
