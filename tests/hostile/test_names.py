"""Names that tenants choose: they are text, whatever is in them."""

import contextlib
import io
import json

import ddt
import fixtures
import testtools

from kronos_nova.cmd import replay
from kronos_nova.cycle import persist
from kronos_nova.objects import plan as plans
from tests.unit.record.clouds import Cloud

NAMES = ('[/x]', '[link=http://evil.example]click[/link]', '[bold red]', '\x1b[2J\x1b]0;owned\x07',
         'a\nCRITICAL forged', '\u202e\u2066gnp', '\x9b31m', '\ud800', 'x' * 5000, '\u2028')


@ddt.ddt
class ReplayTest(testtools.TestCase):
    """Groups, servers and metadata with these names in a snapshot of another's."""

    def folder(self, name):
        cloud = Cloud(3)
        for group in cloud.inventory['server_groups']:
            group['name'] = name
        for row in cloud.inventory['instances']:
            row['display_name'] = name
            row['metadata'] = {**row['metadata'], 'note': name}
        for row in cloud.inventory['hosts']:
            row['service']['disabled_reason'] = name
        return cloud.write(self.useFixture(fixtures.TempDir()).path)

    def run_command(self, *arguments):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            return replay.main([str(each) for each in arguments]), out.getvalue()

    @ddt.data(*NAMES)
    def test_people_are_shown_text_and_nothing_else(self, name):
        conf = self.useFixture(fixtures.TempDir()).join('kronos.conf')
        with open(conf, 'w') as file:
            file.write('[kronos]\nenforce_hard_affinity = true\nevacuate_disabled_hosts = true\n')
        code, said = self.run_command(self.folder(name), '--config-file', conf)
        if name == '\ud800':  # JSON that no file of text can have
            self.assertEqual(1, code)
        else:
            self.assertEqual(0, code, said)
        for line in said.split('\n'):
            self.assertTrue(line.isprintable(), repr(line))
        self.assertNotIn('\x1b', said)

    def test_what_looks_like_markup_is_shown_as_it_is(self):
        folder = self.folder('vm')
        path = f'{folder}/inventory.json'
        with open(path) as file:
            tree = json.load(file)
        tree['aggregates'][0]['name'] = '[bold]gpu[/bold]'
        with open(path, 'w') as file:
            json.dump(tree, file)
        code, said = self.run_command(folder)
        self.assertEqual(0, code, said)
        self.assertIn('[bold]gpu[/bold]', said)

    def test_errors_of_a_snapshot_are_text_too(self):
        folder = self.folder('vm')
        path = f'{folder}/inventory.json'
        with open(path) as file:
            tree = json.load(file)
        tree['instances'][0]['host'] = '\x1b[2Jno such host'
        with open(path, 'w') as file:
            json.dump(tree, file)
        code, said = self.run_command(folder)
        self.assertEqual(1, code)
        self.assertNotIn('\x1b', said)


class LogTest(testtools.TestCase):
    def test_a_report_keeps_to_its_lines(self):
        log = self.useFixture(fixtures.FakeLogger())
        report = plans.AggregateReport(
            name='gpu', outcome=plans.BALANCED, mode='spread', planner='spread',
            warnings=('server group a\n2026-01-01 CRITICAL forged \x1b[2J stays broken',))
        persist.log(report)
        self.assertEqual(1, len(log.output.splitlines()))
        self.assertNotIn('\x1b', log.output)
