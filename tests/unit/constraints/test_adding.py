"""A constraint is added by a class and its entry point; the page that says how has nine files."""

import pathlib
import re
from importlib import metadata
from unittest import mock

import numpy as np
from stevedore.extension import ExtensionManager

from kronos_nova import extensions
from kronos_nova.constraints import base
from kronos_nova.model.rules import PlacementRule
from tests.unit.cycle import test_steps

ROOT = pathlib.Path(__file__).parents[3]
PAGE = ROOT / 'doc' / 'source' / 'model.rst'
MOST_FILES = 9


class Licensed:
    """A toy: ``a`` has a licence for h2 alone."""

    @staticmethod
    def compile(problem, snapshot, rules):
        kind = np.array([uuid == 'a' for uuid in problem.vms], dtype=np.intp)
        allowed = np.array([[True] * len(problem.hosts),
                            [name == 'h2' for name in problem.hosts]])
        yield PlacementRule(reason='rule', kind=kind, allowed=allowed,
                            names=lambda vm, host=None: 'the licence',
                            why=lambda state, vm, host: 'there is no licence')


def listed_files():
    """The files of the page's numbered list."""
    text = PAGE.read_text()
    section = text[text.index('How to add a constraint'):text.index('The question\n===')]
    return [path for line in re.findall(r'^\d\. .*(?:\n   .*)*', section, re.MULTILINE)
            for path in re.findall(r'``([\w./]+\.(?:py|cfg|rst))``', line)]


class AddingTest(test_steps.PipelineTestCase):
    def setUp(self):
        super().setUp()
        extensions.installed.cache_clear()
        self.addCleanup(extensions.installed.cache_clear)
        toy = metadata.EntryPoint('licensed', f'{__name__}:Licensed', base.NAMESPACE)
        real = ExtensionManager.list_entry_points

        def listed(manager):
            return [*real(manager), toy] if manager.namespace == base.NAMESPACE else real(manager)

        patched = mock.patch.object(ExtensionManager, 'list_entry_points', listed)
        patched.start()
        self.addCleanup(patched.stop)

    def test_what_violates_it_is_moved_with_its_name_and_nothing_goes_elsewhere(self):
        report = self.plan()
        [move] = [move for move in report.moves if move.instance_uuid == 'a']
        self.assertEqual(('h2', 'affinity'), (move.destination, move.phase))
        self.assertTrue(move.reason.startswith('the licence must have it elsewhere'), move.reason)

    def test_where_its_host_is_away_it_stays_and_says_why(self):
        del self.hosts['h2']
        report = self.plan()
        self.assertNotIn('a', [move.instance_uuid for move in report.moves])
        self.assertTrue(any(warning.startswith('the licence stays violated')
                            for warning in report.warnings), report.warnings)

    def test_the_page_has_so_many_files_and_they_exist(self):
        found = listed_files()
        self.assertEqual(sorted(set(found)), sorted(found))
        self.assertLessEqual(3, len(found))
        self.assertLessEqual(len(found), MOST_FILES)
        self.assertEqual([], [path for path in found if not (ROOT / path).is_file()])
