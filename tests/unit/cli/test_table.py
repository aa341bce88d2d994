"""The table of operations, and what is made of it."""

import ast
import configparser
import pathlib
import re

import msgspec
import testtools

from kronos_client.contract import moves as contract_moves
from kronos_client.contract import plans as contract_plans
from kronos_client.contract import reasons
from kronos_client.contract import table
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from kronos_nova.objects import transitions
from kronos_nova.services import dispatch

ROOT = pathlib.Path(__file__).parents[3]
SERVICE, CLIENT = ROOT / 'setup.cfg', ROOT / 'kronos_nova/client/setup.cfg'
API = ROOT / 'kronos_nova' / 'api'
QUOTED = r'"(?:kronos-manage )?([a-z]+ [a-z][a-z -]*)'
"""The words of a command in a text, such as those of "plan approve"."""


class TableTest(testtools.TestCase):
    def entry_points(self, setup, group, prefix=''):
        """{command: its class} of a program."""
        parser = configparser.ConfigParser()
        parser.read(setup)
        found = {}
        for line in parser['entry_points'][group].strip().splitlines():
            name, _equals, where = line.partition(' = ')
            found[name.removeprefix(prefix).replace('_', ' ')] = where
        return found

    def test_both_programs_have_one_class_for_each_command(self):
        ours = self.entry_points(SERVICE, 'kronos_nova.manage')
        theirs = self.entry_points(CLIENT, 'openstack.rebalancing.v1', 'kronos_')
        commands = [each.command for each in table.OPERATIONS if each.command]
        self.assertTrue(commands)
        for command in commands:
            self.assertEqual(ours[command], theirs[command])
            self.assertTrue(ours[command].startswith('kronos_client.cli.'), ours[command])

    def test_commands_that_texts_quote_exist(self):
        commands = self.entry_points(SERVICE, 'kronos_nova.manage')
        nouns = {name.split()[0] for name in commands}
        for path in sorted((ROOT / 'kronos_nova').rglob('*.py')):
            texts = (' '.join(each.value.split()) for each in ast.walk(ast.parse(path.read_text()))
                     if isinstance(each, ast.Constant) and isinstance(each.value, str))
            for quoted in re.findall(QUOTED, ' '.join(texts)):
                words = quoted.split()
                if words[0] in nouns:
                    self.assertTrue({' '.join(words[:count]) for count in (1, 2, 3)}
                                    & commands.keys(), f'{path}: {quoted}')

    def test_each_operation_has_one_function(self):
        functions = {dispatch.function_of(each) for each in table.OPERATIONS}
        self.assertEqual(len(table.OPERATIONS), len(functions))

    def test_states_and_reasons_are_those_of_the_engine(self):
        self.assertEqual({*transitions.MOVE_TRANSITIONS} - moves.TERMINAL, {*contract_moves.LIVE})
        self.assertEqual({*transitions.PLAN_TRANSITIONS}.union(
            *transitions.PLAN_TRANSITIONS.values()), {*contract_plans.STATES})
        self.assertEqual({*plans.SKIP_REASONS}, {*reasons.WHY_SERVERS_STAY})

    def test_the_most_frequent_reason_does_not_claim_to_be_the_only_one(self):
        """Reports name one of the rules that forbid the hosts that would help."""
        for word in ('group', 'capacity', 'zone', 'isolation', 'reserve', 'returning'):
            self.assertIn('are ruled out, mainly ', reasons.WHY_SERVERS_STAY[word])

    def test_requests_and_responses_are_types_of_the_contract(self):
        self.assertGreater(len(table.OPERATIONS), 40)
        for each in table.OPERATIONS:
            for kind in filter(None, (each.request, each.response)):
                self.assertTrue(kind.__module__.startswith('kronos_client.contract.'), kind)

    def test_everything_that_a_request_has_is_bounded(self):
        """Texts are bounded where an operation begins; lists and numbers by their types."""
        for operation in table.OPERATIONS:
            for field in msgspec.inspect.type_info(operation.request).fields:
                for each in getattr(field.type, 'types', (field.type,)):
                    if isinstance(each, msgspec.inspect.ListType):
                        self.assertIsNotNone(each.max_length, (operation.name, field.name))
                        each = each.item_type
                    if isinstance(each, msgspec.inspect.IntType | msgspec.inspect.FloatType):
                        self.assertNotIn(None, (each.ge, each.le), (operation.name, field.name))

    def test_only_what_is_of_http_alone_has_types_in_the_api(self):
        """The caller, the events, the login, the versions, and what is uploaded and downloaded."""
        homes = {path.name for path in API.glob('*.py') if '(Response)' in path.read_text()}
        self.assertEqual({'access.py', 'events.py', 'login.py', 'resources.py', 'snapshots.py'},
                         homes)
