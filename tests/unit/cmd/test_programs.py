"""What the programs have in common."""

import contextlib
import io
import subprocess

import ddt
import testtools

from kronos_nova.cmd import manage
from kronos_nova.cmd import record
from kronos_nova.cmd import replay
from kronos_nova.cmd import status
from kronos_nova.cmd import test_config
from tests.e2e.box.settings import command

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


class CommandsTest(testtools.TestCase):
    def test_every_command_is_there_and_can_be_loaded(self):
        commands = manage.Commands(manage.NAMESPACE)
        self.assertIn('host drain', commands.commands)
        for name in commands.commands:
            found, _name, _arguments = commands.find_command(name.split())
            self.assertTrue(found.__doc__, name)

    def test_no_number_is_taken_without_bounds(self):
        commands = manage.Commands(manage.NAMESPACE)
        for name in commands.commands:
            found, _name, _arguments = commands.find_command(name.split())
            for action in found(None, None).get_parser(name)._actions:
                if action.dest not in CLIFFS_OWN:
                    self.assertNotIn(action.type, (int, float), f'{name} {action.dest}')
