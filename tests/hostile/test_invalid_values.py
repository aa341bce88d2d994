"""A value that an option cannot have keeps no service of Nova from starting, and no request."""

import sys
import types
from unittest import mock

import fixtures
import testtools
from oslo_config import cfg

from kronos_nova import conf as kronos_conf
from kronos_nova.conf import invalid_values
from kronos_nova.plugin import entry

MISTYPED = """[kronos]
atomic_moves = al
cooldown = 10m
[kronos_scheduler]
weight_multiplier = 1,5
[kronos_prometheus]
url = http://kronos:secret123@[::1
"""


class MistypedValueTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.logger = self.useFixture(fixtures.FakeLogger())
        self.useFixture(fixtures.MonkeyPatch(
            'kronos_nova.plugin.entry.KronosDriver._is_refused', False))
        self.nova = types.SimpleNamespace(SERVICE_MANAGERS={'nova-compute': 'nova.compute'})
        patched = mock.patch.dict(sys.modules, {'nova.service': self.nova})
        patched.start()
        self.addCleanup(patched.stop)

    def conf(self, text):
        path = self.useFixture(fixtures.TempDir()).join('nova.conf')
        with open(path, 'w') as file:
            file.write(text)
        conf = cfg.ConfigOpts()
        conf(['--config-file', path], project='nova')
        return conf

    def test_the_service_is_plain_nova_and_says_so_once(self):
        conf = self.conf(MISTYPED)
        for _notifier in range(3):
            entry.KronosDriver(conf, [], None)
        self.assertEqual({'nova-compute': 'nova.compute'}, self.nova.SERVICE_MANAGERS)
        [line] = self.logger.output.splitlines()
        for part in ('runs as plain Nova', '[kronos] atomic_moves: ', "'al'",
                     "[kronos] cooldown: '10m' is no whole number",
                     "[kronos_scheduler] weight_multiplier: '1,5' is no number",
                     '[kronos_prometheus] url: '):
            self.assertIn(part, line)
        self.assertNotIn('secret123', line)

    def test_whatever_reads_the_options_after_that_goes_on(self):
        conf = self.conf(MISTYPED)
        entry.KronosDriver(conf, [], None)
        self.assertEqual({}, invalid_values.values(conf))
        self.assertEqual(('all', 1.0),
                         (conf.kronos.atomic_moves, conf.kronos_scheduler.weight_multiplier))

    def test_what_is_right_is_loaded(self):
        conf = self.conf('[kronos]\natomic_moves = kronos\n')
        entry.KronosDriver(conf, [], None)
        self.assertEqual({**entry.MANAGERS}, self.nova.SERVICE_MANAGERS)
        self.assertEqual({}, invalid_values.values(conf))
        self.assertEqual('', self.logger.output)

    def test_every_default_is_a_value_that_the_option_can_have(self):
        conf = cfg.ConfigOpts()
        kronos_conf.register_opts(conf)
        conf([], default_config_files=[])
        for module in kronos_conf.GROUPS:
            wrong = {(module.GROUP.name, option.dest) for option in module.list_opts()}
            invalid_values.use_defaults(conf, wrong)
        self.assertEqual({}, invalid_values.values(conf))
