"""The policy file of kronos-api, before anyone gets access by it."""

import pathlib

import fixtures
import testtools
from oslo_config import cfg

from kronos_nova import conf as kronos_conf
from kronos_nova import exception
from kronos_nova.api import policies


class PolicyFileTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.path = self.folder / 'policy.yaml'

    def load(self, option='policy.yaml'):
        """The rules, as ``[kronos_api] policy_file`` names them."""
        (self.folder / 'nova.conf').write_text(
            f'[kronos_api]\npolicy_file = {option}\n' if option else '')
        conf = cfg.ConfigOpts()
        kronos_conf.register_opts(conf)
        conf([], project='nova', default_config_files=[str(self.folder / 'nova.conf')])
        return policies.enforcer(conf)

    def assertRefused(self, *words):
        error = self.assertRaises(exception.ConfigurationError, self.load)
        for word in ('[kronos_api] policy_file', 'policy.yaml', *words):
            self.assertIn(word, str(error))

    def test_without_the_option_the_defaults_hold(self):
        self.assertIn('kronos:plans:approve', self.load(option=None).rules)

    def test_a_file_of_comments_is_one_of_defaults(self):
        self.path.write_text('# "kronos_admin": "role:admin"\n')
        self.load()

    def test_rules_and_names_of_ones_own_are_taken(self):
        self.path.write_text('"night_shift": "role:night"\n'
                             '"kronos:plans:approve": "rule:night_shift or rule:kronos_admin"\n'
                             '"kronos:plans:reject": "!"\n"kronos:plans:list": "@"\n')
        self.assertEqual('(rule:night_shift or rule:kronos_admin)',
                         str(self.load().rules['kronos:plans:approve']))

    def test_a_file_that_is_named_and_missing_is_refused(self):
        self.assertRefused('the file does not exist', 'Correct the path')

    def test_an_empty_file_is_refused(self):
        self.path.write_text('')
        self.assertRefused('is empty')

    def test_a_file_that_ends_in_the_middle_is_refused(self):
        whole = '"kronos:plans:approve": "role:admin"\n"kronos:plans:reject": "rule:kronos_admin"\n'
        for end in (len(whole), 0):
            self.path.write_text(f'{whole[:end]}"kronos:plans:list":')
            self.assertRefused('the rule "kronos:plans:list" is empty')
        for end in (len(whole) - 2, len(whole) - 9, 20, 4):
            self.path.write_text(whole[:end])
            self.assertRefused()

    def test_a_name_that_is_misspelt_is_refused(self):
        self.path.write_text('"kronos:plans:approves": "role:admin"\n')
        self.assertRefused('"kronos:plans:approves"', 'kronos:plans:approve')

    def test_a_reference_to_no_rule_is_refused(self):
        self.path.write_text('"kronos:plans:approve": "rule:kronos_admn"\n')
        self.assertRefused('refer to a rule that does not exist', 'kronos:plans:approve')

    def test_references_in_a_circle_are_refused(self):
        self.path.write_text('"kronos_admin": "rule:kronos_operator"\n')
        self.assertRefused('in a circle', 'kronos_admin')

    def test_a_rule_that_cannot_be_understood_is_refused(self):
        for rule in ('role admin', 'role:admin or', '(role:admin', 'nobody'):
            self.path.write_text(f'"kronos:plans:approve": "{rule}"\n')
            self.assertRefused('"kronos:plans:approve"')
