"""Nova's release and methods as Kronos expects them."""

import testtools
from nova import version

from kronos_nova.plugin import compat


class ReleaseTest(testtools.TestCase):
    def of(self, text):
        self.patch(version.version_info, 'version_string', lambda: text)
        return compat.version_problem()

    def test_known_releases_have_no_problem(self):
        self.assertEqual([None, None], [self.of(f'{major}.0.1') for major in compat.SUPPORTED])

    def test_another_release_is_named_with_the_known_ones_and_a_remedy(self):
        for found in ('32.1.0', '35.0.0.0rc1', 'unknown'):
            problem = self.of(found)
            self.assertIn(f'Nova {found} is not a release', problem)
            self.assertIn('34 (2026.2)', problem)
            self.assertIn('remove "driver = kronos"', problem)


class SignatureTest(testtools.TestCase):
    HERE = 'tests.unit.plugin.test_compat:SignatureTest'

    def method(self, one, two):
        """A method to be expected."""

    def test_a_method_with_the_expected_parameters_has_no_problem(self):
        self.assertEqual([], compat.signature_problems(
            {f'{self.HERE}.method': ('self', 'one', 'two'), f'{self.HERE}.HERE': None}))

    def test_other_parameters_are_named_with_the_expected_ones(self):
        self.assertEqual(
            [f"{self.HERE}.method takes ('self', 'one', 'two'), not ('self', 'one')"],
            compat.signature_problems({f'{self.HERE}.method': ('self', 'one')}))

    def test_a_missing_module_or_method_is_named(self):
        self.assertEqual(
            ['nova.none:x is missing', f'{self.HERE}.none is missing'],
            compat.signature_problems({'nova.none:x': None, f'{self.HERE}.none': ('self',)}))
