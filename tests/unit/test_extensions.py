"""Extensions that other distributions install."""

from importlib import metadata
from unittest import mock

import testtools
from stevedore.extension import ExtensionManager

from kronos_nova import exception
from kronos_nova import extensions
from kronos_nova.constraints import base as constraints
from kronos_nova.planners import base as planners


class BrokenTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        extensions.installed.cache_clear()
        self.addCleanup(extensions.installed.cache_clear)

    def assert_refused(self, namespace, ask):
        broken = metadata.EntryPoint('mine', 'no_such_module:Thing', namespace)
        with mock.patch.object(ExtensionManager, 'list_entry_points', return_value=[broken]):
            error = self.assertRaises(exception.ConfigurationError, ask)
        self.assertEqual(
            f'entry point "mine = no_such_module:Thing" of {namespace}: cannot be imported: '
            "ModuleNotFoundError: No module named 'no_such_module'. Repair or remove the "
            'package that installed it', str(error))

    def test_one_planner_that_cannot_be_imported_is_one_error(self):
        self.assert_refused(planners.NAMESPACE, lambda: planners.load('spread', ('spread',)))

    def test_one_constraint_that_cannot_be_imported_is_one_error(self):
        self.assert_refused(constraints.NAMESPACE,
                            lambda: constraints.compile_model(None, None, None))
