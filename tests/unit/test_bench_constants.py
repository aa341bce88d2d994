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
import dataclasses


@dataclasses.dataclass(frozen=True)
class Limits:
    most: int = 7
    name: str = 'usual'
    parts: tuple[float, ...] = (0.1, 0.2)


LIMITS = Limits(most=5, name='small')
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
            {'Limits.most': 7, 'Limits.parts': (0.1, 0.2), 'LIMITS.most': 5,
             'WHOLE': 3, 'PART': 0.5, 'PAIRS': ((0.1, 4), (0.2, 8))},
            {each.name: each.value for each in constants.constants('planner_with_constants')})

    def test_whole_numbers_stay_whole_and_above_zero(self):
        found = {each.name: each.scaled(0.25)
                 for each in constants.constants('planner_with_constants')}
        self.assertEqual((1, 0.125, ((0.025, 1), (0.05, 2)), 2), (
            found['WHOLE'], found['PART'], found['PAIRS'], found['LIMITS.most']))

    def test_another_value_counts_in_default_arguments_too(self):
        self.assertEqual((12, 0.5), self._changed('WHOLE', '12').chosen())

    def test_another_value_counts_in_an_object_alone(self):
        self.assertEqual(20, self._changed('LIMITS.most', '20').LIMITS.most)

    def test_another_default_counts_in_the_objects_without_an_own_value(self):
        limits = self._changed('Limits.parts', '(0.5,)').LIMITS
        self.assertEqual((5, (0.5,)), (limits.most, limits.parts))

    def _changed(self, name, value):
        finder = constants.Changing('planner_with_constants', name, value)
        self.useFixture(fixtures.MonkeyPatch('sys.meta_path', [finder, *sys.meta_path]))
        return importlib.import_module('planner_with_constants')

    def test_a_plan_changes_with_the_constant_that_it_depends_on(self):
        def planned(**changed):
            task = {'module': None, 'name': None, 'value': None, 'classes': ['R'], 'seeds': [0]}
            done = subprocess.run([sys.executable, '-m', 'bench.constants',
                                   json.dumps(task | changed)], stdout=subprocess.PIPE, check=True)
            [figures] = json.loads(done.stdout)
            return figures[:-1]
        self.assertNotEqual(planned(), planned(
            module='kronos_nova.planners.relieve', name='BUDGET.pairs', value='(0,)'))
