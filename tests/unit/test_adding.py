"""An option and a planner are added by what the page says, and take effect."""

import dataclasses
import pathlib
import re
from importlib import metadata
from unittest import mock

import fixtures
import testtools
from oslo_config import cfg
from stevedore.extension import ExtensionManager

from kronos_nova import conf as kronos_conf
from kronos_nova import extensions
from kronos_nova.conf import kronos
from kronos_nova.conf import unknown_options
from kronos_nova.cycle import options as cycle_options
from kronos_nova.objects.plan import SPREAD
from kronos_nova.planners import base
from kronos_nova.record import options as recorded_options
from tests.unit.cycle import test_steps

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / 'doc/source/extending.rst'


def listed_files(title):
    """The files of a numbered list of the page."""
    text = PAGE.read_text()
    section = text[text.index(f'{title}\n==='):]
    return [path for line in re.findall(r'^\d\. .*(?:\n   .*)*', section.split('.. _')[0],
                                        re.MULTILINE)
            for path in re.findall(r'``([\w./]+\.(?:py|cfg|rst))``', line)]


class PageTest(testtools.TestCase):
    def test_the_files_of_the_lists_exist(self):
        for title, count in (('How to add an option', 3), ('How to add a planner', 6)):
            found = listed_files(title)
            self.assertEqual(count, len(found), found)
            self.assertEqual([], [path for path in found if not (ROOT / path).is_file()])


class OptionTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        toy = cfg.IntOpt('toy_limit', mutable=True, default=3, min=0, help='A toy.')
        self.patch(kronos, 'OPTS', [*kronos.OPTS, toy])
        fields = dataclasses.make_dataclass(
            'EngineOptions', [('toy_limit', int, 3)], bases=(cycle_options.EngineOptions,),
            frozen=True, kw_only=True)
        self.patch(cycle_options, 'EngineOptions', fields)

    def configured(self, text):
        path = self.useFixture(fixtures.TempDir()).join('nova.conf')
        pathlib.Path(path).write_text(f'[kronos]\n{text}\n')
        conf = cfg.ConfigOpts()
        kronos_conf.register_opts(conf)
        conf([], default_config_files=[path])
        return conf

    def test_plans_are_given_its_value(self):
        self.assertEqual(5, cycle_options.from_conf(self.configured('toy_limit = 5')).toy_limit)
        self.assertEqual(3, cycle_options.from_conf(self.configured('')).toy_limit)

    def test_it_is_known_and_recorded(self):
        conf = self.configured('toy_limit = 5')
        self.assertEqual([], unknown_options.unknown_keys(conf))
        self.assertEqual(5, recorded_options.in_force(conf)['kronos']['toy_limit'])


class FirstToLast:
    """A toy: the first instance goes to the last host."""

    phase = SPREAD

    def plan(self, state, limits):
        last = len(state.problem.hosts) - 1
        return base.one_by_one(state, limits, lambda: (
            (0, last, 'the toy wants it there') if state.vm_host[0] != last else None))


class PlannerTest(test_steps.PipelineTestCase):
    planners = 'toy', 'ffd'

    def setUp(self):
        super().setUp()
        extensions.installed.cache_clear()
        self.addCleanup(extensions.installed.cache_clear)
        toy = metadata.EntryPoint('toy', f'{__name__}:FirstToLast', base.NAMESPACE)
        real = ExtensionManager.list_entry_points

        def listed(manager):
            return [*real(manager), toy] if manager.namespace == base.NAMESPACE else real(manager)

        patched = mock.patch.object(ExtensionManager, 'list_entry_points', listed)
        patched.start()
        self.addCleanup(patched.stop)

    def test_an_option_names_it_and_its_moves_are_planned(self):
        [move] = self.plan().moves
        self.assertEqual(('a', 'h2', SPREAD), (move.instance_uuid, move.destination, move.phase))
        self.assertTrue(move.reason.startswith('the toy wants it there'), move.reason)
