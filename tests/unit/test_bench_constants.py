"""The bench of constants plans with other values of them, wherever a value is used."""

import importlib
import json
import pathlib
import subprocess
import sys

import fixtures
import testtools

from bench import constants

SOURCE = '''
WHOLE = 3
"""A number of things."""
PART: float = 0.5
"""A share of things."""
PAIRS = ((0.1, 4), (0.2, 8))
"""A share and a number of things."""
NAMES = 'a', 'b'
BUILT = WHOLE * 2
IS_ON = True


def chosen(count=WHOLE):
    return count, PART
'''


class ConstantsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        folder = self.useFixture(fixtures.TempDir()).path
        pathlib.Path(folder, 'planner_with_constants.py').write_text(SOURCE)
        self.useFixture(fixtures.MonkeyPatch('sys.path', [folder, *sys.path]))
        importlib.invalidate_caches()
        self.addCleanup(sys.modules.pop, 'planner_with_constants', None)

    def test_numbers_are_found_and_nothing_else(self):
        self.assertEqual(
            {'WHOLE': 3, 'PART': 0.5, 'PAIRS': ((0.1, 4), (0.2, 8))},
            {each.name: each.value for each in constants.constants('planner_with_constants')})

    def test_whole_numbers_stay_whole_and_above_zero(self):
        found = {each.name: each.scaled(0.25)
                 for each in constants.constants('planner_with_constants')}
        self.assertEqual({'WHOLE': 1, 'PART': 0.125, 'PAIRS': ((0.025, 1), (0.05, 2))}, found)

    def test_another_value_counts_in_default_arguments_too(self):
        finder = constants.Changing('planner_with_constants', 'WHOLE', '12')
        self.useFixture(fixtures.MonkeyPatch('sys.meta_path', [finder, *sys.meta_path]))
        self.assertEqual((12, 0.5), importlib.import_module('planner_with_constants').chosen())

    def test_a_plan_changes_with_the_constant_that_it_depends_on(self):
        def planned(**changed):
            task = {'module': None, 'name': None, 'value': None, 'classes': ['R'], 'seeds': [0]}
            done = subprocess.run([sys.executable, '-m', 'bench.constants',
                                   json.dumps(task | changed)], stdout=subprocess.PIPE, check=True)
            [figures] = json.loads(done.stdout)
            return figures[:-1]
        self.assertEqual(planned(), planned())
        self.assertNotEqual(planned(), planned(
            module='kronos_nova.planners.relieve', name='EXACT_PAIRS', value='0'))
