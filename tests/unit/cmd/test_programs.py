"""Behaviour that all programs have."""

import contextlib
import io
import os
import pathlib
import signal
import subprocess

import ddt
import fixtures
import testtools

from kronos_nova.cmd import manage
from kronos_nova.cmd import record
from kronos_nova.cmd import replay
from kronos_nova.cmd import start
from kronos_nova.cmd import status
from kronos_nova.cmd import test_config
from tests.e2e.box.settings import command
from tests.unit.cmd import base
from tests.unit.record.clouds import Cloud

CLIFFS_OWN = ('max_width',)
"""Arguments of the library, which bounds them itself."""


@ddt.ddt
class ProgramsTest(testtools.TestCase):
    def assert_version(self, name, said):
        self.assertEqual(f'{name} {manage.version_string()}', said.strip())

    @ddt.data(record, replay, status, test_config)
    def test_each_tells_its_version(self, program):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
            program.main(['--version'])
        name = program.__name__.rpartition('.')[2].replace('_', '-')
        self.assert_version(f'kronos-{name}', out.getvalue())

    @ddt.data('kronos-manage', 'kronos-engine', 'kronos-executor', 'kronos-exporter')
    def test_so_does_each_that_has_to_be_alone_in_its_process(self, name):
        done = subprocess.run([*command('kronos-nova', name), '--version'], text=True,
                              capture_output=True)
        self.assertEqual((0, ''), (done.returncode, done.stderr))
        self.assert_version(name, done.stdout)


def _heed_interrupts():
    """Undo that a shell starts background processes with SIGINT ignored, tests among them."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@ddt.ddt
class InterruptTest(testtools.TestCase):
    @ddt.data(('kronos-manage', 'status'), ('kronos-record', 'snapshot'), ('kronos-test-config',),
              ('kronos-status', 'upgrade', 'check'))
    def test_ctrl_c_ends_each_without_a_traceback(self, words):
        config = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'nova.conf')
        os.mkfifo(config)
        name, *arguments = words
        program = subprocess.Popen(
            [*command('kronos-nova', name), '--config-file', str(config), *arguments], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=_heed_interrupts)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        # The writer's end opens once the program reads its configuration.
        with config.open('w'):
            program.send_signal(signal.SIGINT)
            said = program.communicate(timeout=60)
        self.assertEqual(start.INTERRUPTED, program.returncode, said)
        self.assertNotIn('Traceback', said[1])


@ddt.ddt
class OutputTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        Cloud(2).write(self.folder)

    def replay(self, stdout, *arguments):
        done = subprocess.run([*command('kronos-nova', 'kronos-replay'), self.folder, *arguments],
                              text=True, stdout=stdout, stderr=subprocess.PIPE)
        self.assertNotIn('Traceback', done.stderr)
        self.assertNotIn('Exception ignored', done.stderr)
        return done

    @ddt.data(('-f', 'json'), ('-f', 'value', '-c', 'format'), ())
    def test_a_reader_that_has_read_enough_ends_a_program(self, arguments):
        reader, writer = os.pipe()
        os.close(reader)
        with open(writer, 'w') as out:
            done = self.replay(out, *arguments)
        self.assertEqual((start.UNREAD, ''), (done.returncode, done.stderr))

    @ddt.data(('-f', 'json'), ('-f', 'value', '-c', 'format'), ())
    def test_a_disk_that_is_full_is_named(self, arguments):
        with open('/dev/full', 'w') as out:
            done = self.replay(out, *arguments)
        self.assertEqual(1, done.returncode)
        self.assertIn('No space left on device', done.stderr)


@ddt.ddt
class UnknownCommandTest(base.ManageTestCase):
    @ddt.data('foo', 'x', 'xyzzy')
    def test_nothing_is_suggested_for_what_is_like_no_command(self, word):
        self.assertEqual(2, self.run_manage(word))
        said = self.written(self.out) + self.written(self.err)
        self.assertIn(word, said)
        for name in manage.Commands(manage.NAMESPACE).commands:
            self.assertNotIn(f'  {name}\n', said)

    @ddt.data(('stauts', 'status'), ('paln', 'plan list'), ('resmue', 'resume'))
    @ddt.unpack
    def test_what_is_spelt_nearly_so_is_suggested(self, word, name):
        self.assertEqual(2, self.run_manage(word))
        self.assertIn(f'  {name}\n', self.written(self.out))


class CommandsTest(testtools.TestCase):
    def test_every_command_is_there_and_can_be_loaded(self):
        commands = manage.Commands(manage.NAMESPACE)
        self.assertIn('host drain', commands.commands)
        for name in commands.commands:
            found, _name, _arguments = commands.find_command(name.split())
            self.assertTrue(found.__doc__, name)

    def test_no_number_is_taken_without_bounds(self):
        commands = manage.Commands(manage.NAMESPACE)
        self.assertGreater(len(commands.commands), 40)
        for name in commands.commands:
            found, _name, _arguments = commands.find_command(name.split())
            for action in found(None, None).get_parser(name)._actions:
                if action.dest not in CLIFFS_OWN:
                    self.assertNotIn(action.type, (int, float), f'{name} {action.dest}')
