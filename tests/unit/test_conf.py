import pathlib
import re

import fixtures
import testtools
from oslo_config import cfg

from kronos_nova import conf as kronos_conf
from kronos_nova.conf import help_text
from kronos_nova.conf import kronos
from kronos_nova.cycle import options
from kronos_nova.objects import automation
from kronos_nova.objects import eligibility
from kronos_nova.objects import host_checks


def make_conf():
    conf = cfg.ConfigOpts()
    kronos_conf.register_opts(conf)
    conf([], default_config_files=[])
    return conf


class DeprecatedNamesTest(testtools.TestCase):
    def test_an_option_is_read_by_its_old_name(self):
        values = (('kronos', 'hold_cycles', 'stabilization_cycles', 3),
                  ('kronos', 'refusal_rest_cycles', 'rejection_backoff_cycles', 7),
                  ('kronos', 'return_window', 'no_return_window', 60),
                  ('kronos_executor', 'stagger', 'start_interval', 2.5))
        path = self.useFixture(fixtures.TempDir()).join('nova.conf')
        for group, old, new, value in values:
            with open(path, 'w') as file:
                file.write(f'[{group}]\n{old} = {value}\n')
            conf = cfg.ConfigOpts()
            kronos_conf.register_opts(conf)
            conf([], default_config_files=[path])
            self.assertEqual(value, conf[group][new])


class ChoicesTest(testtools.TestCase):
    """The options offer every value that planning knows, and no other."""

    def test_levels_and_checks_of_hosts(self):
        self.assertEqual(automation.LEVELS, tuple(name for name, _about in kronos.LEVELS))
        self.assertEqual(host_checks.ALL_CHECKS, kronos.CHECKS)

    def test_hints_about_moves(self):
        self.assertEqual(eligibility.HEEDED, eligibility.heeded(kronos.HINTS))

    def test_by_default_every_check_of_hosts_applies(self):
        self.assertEqual({*host_checks.ALL_CHECKS}, options.from_conf(make_conf()).host_checks)


class SeparateTest(testtools.TestCase):
    def test_a_value_of_one_configuration_is_not_in_another(self):
        one, other = make_conf(), make_conf()
        one.set_override('aggregates', ['rack'], 'kronos')
        one.set_default('automation', 'auto', 'kronos')
        self.assertEqual(([], 'observe'), (other.kronos.aggregates, other.kronos.automation))
        self.assertEqual([], make_conf().kronos.aggregates)

    def test_options_may_be_registered_again(self):
        conf = make_conf()
        conf.set_override('aggregates', ['rack'], 'kronos')
        kronos_conf.register_opts(conf)
        self.assertEqual(['rack'], conf.kronos.aggregates)


    def test_the_documentation_has_a_row_for_each_old_name(self):
        text = pathlib.Path(__file__).parents[2].joinpath('doc/source/upgrade.rst').read_text()
        rows = re.findall(r'   \* - Option\n     - ``(.+)``\n     - ``(.+)``\n', text)
        self.assertEqual(sorted(rows), sorted(
            (f'[{module.GROUP.name}] {old.name}', f'[{module.GROUP.name}] {option.name}')
            for module in kronos_conf.GROUPS for option in module.OPTS
            for old in option.deprecated_opts))
        self.assertGreater(len(rows), 3)


class HelpTest(testtools.TestCase):
    """Help has the shape of placement's: what it is, the default, when to change it."""

    OPTIONS = [(module.GROUP.name, option) for module in kronos_conf.GROUPS
               for option in module.OPTS]
    CHANGE = re.compile(
        r'^(Raise|Lower|Set|Change|Turn|Leave|Add|Read some days) |If disabled, ', re.MULTILINE)

    def test_help_names_the_default_and_when_to_change_it(self):
        self.assertGreater(len(self.OPTIONS), 140)
        self.assertEqual([], [f'[{group}] {option.name}' for group, option in self.OPTIONS
                              if '\n\nBy default, ' not in option.help
                              or not self.CHANGE.search(option.help)])

    def test_help_is_in_whole_sentences(self):
        self.assertEqual([], [
            f'[{group}] {option.name}: {paragraph[-40:]}' for group, option in self.OPTIONS
            for paragraph in option.help.rstrip().split('\n\n')
            if not paragraph.startswith(('* ', 'Example: ')) and paragraph[-1] not in '.:'])

    def test_related_options_exist(self):
        own = {option.name for _group, option in self.OPTIONS} | {'state_path'}
        unknown = []
        for group, option in self.OPTIONS:
            _help, _, related = option.help.partition('\n\nRelated options: ')
            for word in re.findall('``([^`]+)``', related):
                section, _, name = word.rpartition(' ')
                if (not section or section.startswith('[kronos')) and name not in own and \
                        not name.startswith('[kronos'):
                    unknown.append(f'[{group}] {option.name}: {word}')
        self.assertEqual([], unknown)

    def test_each_paragraph_is_one_line(self):
        option = cfg.StrOpt('a', help='\nOne\ntwo.\n\n* three\n  four\n* five\n\nSix.\n')
        help_text.unwrap([option])
        self.assertEqual('One two.\n\n* three four\n* five\n\nSix.\n', option.help)
