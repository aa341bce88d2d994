import fixtures
import testtools
from oslo_config import cfg

from kronos_nova import conf as kronos_conf


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


class SeparateTest(testtools.TestCase):
    def test_what_one_configuration_is_told_another_does_not_hear(self):
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
