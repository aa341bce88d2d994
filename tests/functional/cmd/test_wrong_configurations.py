"""Wrong configurations, and what the command ``kronos-test-config`` says of each."""

import json
import pathlib
import subprocess

import ddt

from tests.e2e.box.settings import command
from tests.functional.executor.test_broker import Broker
from tests.functional.mariadb import MariaDB
from tests.unit.cmd import configured

TRACES = 'Traceback', 'EventletDeprecationWarning', 'Background on this error'

# What is replaced in nova.conf by what; which check fails, and its words.
WRONG = {
    'broker password': (
        'guest:guest@', 'guest:gues@', 'broker',
        r'^\[DEFAULT\] transport_url: 127.0.0.1:\d+: .*ACCESS_REFUSED.* Compare the option with '
        r'that of the other services of Nova\.$'),
    'broker that is not there': (
        r'@127.0.0.1', '@127.0.0.2', 'broker',
        r'^\[DEFAULT\] transport_url: 127.0.0.2:\d+: .*[Cc]onnection refused.*\. Compare'),
    'cron': (
        '[kronos]', '[kronos]\nmaintenance_window = gpu; 0 25 * * sat; 60', 'windows',
        r'^\[kronos\] maintenance_window: "gpu; 0 25 \* \* sat; 60": .*25.*\. Write it as AGGR'),
    'name of an option': (
        '[kronos]', '[kronos]\nevaluation_intervall = 60', 'typos',
        r'\[kronos\] evaluation_intervall: there is no such option; perhaps evaluation_interval'),
    'number': (
        '[kronos]', '[kronos]\nevaluation_interval = often', 'options',
        r"^\[kronos\] evaluation_interval: 'often' is no whole number$"),
    'level': (
        '[kronos]', '[kronos]\nautomation = sometimes', 'options',
        r"^\[kronos\] automation: Valid values are \[off, .*\], but found 'sometimes'$"),
    'aggregate': (
        'aggregates = gpu', 'aggregates = gpus', 'scope',
        r'^\[kronos\] aggregates, gpus: there is no aggregate of that name\. .*'
        'openstack aggregate list'),
    'path of the policies': (
        'policies.yaml', 'policy.yaml', 'policies', r'policy\.yaml: .*No such file'),
    'address of Prometheus': (
        '{prometheus}', 'http://127.0.0.1:1', 'prometheus', r'Connection refused'),
    'password of the control database': (
        'box:box@', 'box:bix@', 'database',
        r'^\[kronos_database\] connection: .*Access denied for user .*\. Compare user, password'),
    'token of Nova': (
        'auth_type = admin_token', 'auth_type = passwort', 'nova',
        r'^\[kronos_nova\]: .*passwort.*\. Give auth_type'),
    'line that is no line': (
        '[kronos]', '[kronos\naggregates', None, r'^kronos-test-config: .*nova\.conf:\d+'),
}


@ddt.ddt
class WrongConfigurationsTest(configured.ConfiguredTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.broker, cls.database = Broker(), MariaDB()
        for each in (cls.broker, cls.database):
            each.setUp()
            cls.addClassCleanup(each.cleanUp)
        cls.transport_url = cls.broker.server.url
        cls.database_url = cls.database.empty()

    def write(self):
        super().write()
        with open(self.conf, 'a') as file:
            file.write(f'[kronos_database]\nconnection = {self.database_url}\n')

    def run_command(self, *args):
        done = subprocess.run(
            [*command('kronos-nova', 'kronos-test-config'), '--config-file', self.conf, *args],
            capture_output=True, text=True, timeout=120)
        for trace in TRACES:
            self.assertNotIn(trace, done.stdout + done.stderr)
        return done

    def spoil(self, old, new):
        path = pathlib.Path(self.conf)
        text = path.read_text()
        old, new = (each.format(prometheus=self.prometheus) for each in (old, new))
        self.assertIn(old, text)
        path.write_text(text.replace(old, new, 1))

    def test_none(self):
        done = self.run_command('-f', 'json')
        self.assertEqual((0, ''), (done.returncode, done.stderr), done.stdout)
        states = {row['check']: row['state'] for row in json.loads(done.stdout)['checks']}
        self.assertEqual({'api', 'claims', 'plugin'},
                         {name for name, state in states.items() if state != 'ok'})

    @ddt.data(*WRONG)
    def test_a_wrong(self, what):
        old, new, check, sentence = WRONG[what]
        self.spoil(old, new)
        done = self.run_command('-f', 'json')
        if check is None:
            self.assertEqual(2, done.returncode)
            self.assertRegex(done.stderr, sentence)
            return
        self.assertEqual((1, ''), (done.returncode, done.stderr), done.stdout)
        found = {row['check']: row for row in json.loads(done.stdout)['checks']}
        self.assertEqual('failed', found[check]['state'], found[check])
        self.assertRegex(found[check]['detail'], sentence)
        self.assertNotIn('guest:', done.stdout)

    def test_tables_are_not_cut_in_a_pipe(self):
        self.spoil('aggregates = gpu', f'aggregates = {"x" * 150}')
        said = self.run_command().stdout
        self.assertIn(' scope ', said)
        self.assertTrue(any('x' * 150 in line for line in said.split('\n')), said)
