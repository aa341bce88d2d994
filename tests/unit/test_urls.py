"""URLs of options: what is wrong with one is said with what to write."""

import ddt
import fixtures
import testtools
from oslo_config import cfg

from kronos_nova import conf as kronos_conf
from kronos_nova.conf import invalid_values

WRONG = {
    'prometheus:9090': 'lacks http:// or https://: write http://prometheus:9090',
    'prometheus': 'lacks http:// or https://: write http://prometheus',
    '10.0.0.1:9090': 'lacks http:// or https://: write http://10.0.0.1:9090',
    '[fd00::1]:9090': 'lacks http:// or https://: write http://[fd00::1]:9090',
    'localhost:9090/prometheus': 'write http://localhost:9090/prometheus',
    '//prom:9090': 'write http://prom:9090',
    'http:prometheus:9090': 'lacks ://',
    'http//p:9090': 'lacks ://',
    '': 'is empty',
    'ftp://prom': 'begins with ftp://: write http://',
    'http://': 'names no host',
    'http://[fd00::1:9090': 'in brackets',
    'http://p:9090x': 'write HOST:PORT',
    'http://p:99999': 'write HOST:PORT',
    'http://p: 9090': 'write HOST:PORT',
    'http://p:9090/graph?x=1': 'remove what begins with ?',
    '<http://p:9090>': 'write http:// or https://',
    'HTTP://p:9090': 'begins with HTTP://: write http://',
    'kronos:s3cret@prom:9090': 'write http://prom:9090',
    'http://kronos:s3cret@[::1': 'in brackets',
    'http://kronos:s3c/ret@prom:9090x': 'in brackets',
}


@ddt.ddt
class UrlTest(testtools.TestCase):
    def wrong(self, value, group='kronos_prometheus', name='url'):
        path = self.useFixture(fixtures.TempDir()).join('nova.conf')
        with open(path, 'w') as file:
            file.write(f'[{group}]\n{name} = {value}\n')
        conf = cfg.ConfigOpts()
        kronos_conf.register_opts(conf)
        conf([], default_config_files=[path])
        return invalid_values.described(invalid_values.values(conf))

    @ddt.data(*WRONG.items())
    @ddt.unpack
    def test_a_wrong_one_names_the_option_and_what_to_write(self, value, words):
        said = self.wrong(value)
        self.assertIn('[kronos_prometheus] url: "', said)
        self.assertIn(words, said)
        for inside in ('URIReference', 's3cret', 's3c/ret'):
            self.assertNotIn(inside, said)

    @ddt.data('endpoint_override', 'placement_endpoint_override')
    def test_other_urls_are_checked_in_the_same_way(self, name):
        self.assertIn('write http://nova:8774', self.wrong('nova:8774', 'kronos_nova', name))

    @ddt.data('http://prometheus:9090', 'https://metrics.example.com/prometheus/',
              'http://[fd00::1]:9090', 'http://10.0.0.1', 'http://a_b:1/select/0/prometheus')
    def test_right_ones(self, value):
        self.assertEqual('', self.wrong(value))
