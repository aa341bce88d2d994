"""Typos in a configuration: each is named, and none is passed over."""

import fixtures
import testtools
from oslo_config import cfg

from kronos_nova import conf as kronos_conf
from kronos_nova.conf import unknown_options


class StrictTest(testtools.TestCase):
    def conf(self, text):
        path = self.useFixture(fixtures.TempDir()).join('nova.conf')
        with open(path, 'w') as file:
            file.write(text)
        conf = cfg.ConfigOpts()
        kronos_conf.register_opts(conf)
        conf(['--config-file', path], project='nova')
        return conf

    def test_what_is_right(self):
        conf = self.conf('[DEFAULT]\nanything = 1\n[oslo_messaging_notifications]\n'
                         'driver = noop\ndriver = kronos\n[kronos]\naggregates = gpu\n'
                         'evaluation-interval = 60\n[kronos_database]\nmax_retries = 3\n'
                         '[kronos_nova]\nauth_type = admin_token\ntoken = t\nendpoint = http://x\n'
                         '[neutron]\nnonsense = 1\n')
        self.assertEqual([], unknown_options.unknown_keys(conf))
        self.assertFalse(unknown_options.lacks_driver(conf))

    def test_keys_and_groups_that_there_are_not(self):
        problems = unknown_options.unknown_keys(self.conf(
            '[kronos]\naggregatez = gpu\nzzz = 1\n[kronos_prometeus]\nurl = x\n'))
        self.assertEqual(3, len(problems))
        self.assertIn('[kronos] aggregatez: there is no such option; perhaps aggregates is meant',
                      problems)
        self.assertIn('[kronos] zzz: there is no such option', problems)
        self.assertIn('there is no group [kronos_prometeus]; perhaps kronos_prometheus is meant',
                      problems)

    def test_a_nova_conf_that_does_not_load_kronos(self):
        self.assertTrue(unknown_options.lacks_driver(self.conf('[kronos]\naggregates = gpu\n')))
        self.assertTrue(unknown_options.lacks_driver(self.conf(
            '[oslo_messaging_notifications]\ndriver = messagingv2\n')))
