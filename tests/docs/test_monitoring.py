"""Files for monitoring agree with each other: metrics, alerts, playbooks."""

import ast
import pathlib
import re
import shutil
import subprocess

import yaml

from kronos_nova import policies
from tests import alert_rules
from tests.unit.cmd import test_exporter
from tools import dashboards

ROOT = pathlib.Path(__file__).parents[2]
RULES = ROOT / 'etc/kronos/prometheus/kronos.rules.yaml'
FORECAST_RULES = ROOT / 'etc/kronos/prometheus/kronos-forecast.rules.yaml'
FORECAST_RECIPE = ROOT / 'etc/kronos/policies/cpu-memory-forecast.yaml'
METRICS = re.compile(r'\bkronos_[a-z_]+')
RECORDS = re.compile(r'\b[a-z_]+:kronos_[a-z_]+:[a-z_]+')
E2E = ROOT / 'tests/e2e/executor/test_alerts.py'


def rules(kind):
    groups = yaml.safe_load(RULES.read_text())['groups']
    return [rule for group in groups for rule in group['rules'] if kind in rule]


def alerts():
    return rules('alert')


class MonitoringTest(test_exporter.ExporterTestCase):
    def families(self):
        self.everything()
        return set(re.findall(r'^# TYPE (\w+) ', self.scrape(), re.MULTILINE))

    def test_every_metric_is_in_the_documentation_and_nothing_else_is(self):
        text = (ROOT / 'doc/source/monitoring.rst').read_text()
        table = text.partition('\nMetrics\n')[2]
        self.assertEqual(self.families(), set(re.findall(r'``(kronos_\w+)``', table)))

    def test_alerts_ask_for_metrics_that_there_are(self):
        families = self.families()
        asked = {name for rule in (*alerts(), *rules('record'))
                 for name in METRICS.findall(RECORDS.sub('', rule['expr']))}
        self.assertEqual(set(), asked - families)

    def test_what_is_recorded_is_asked_for_and_what_is_asked_for_is_recorded(self):
        asked = {name for alert in alerts() for name in RECORDS.findall(alert['expr'])}
        self.assertEqual({rule['record'] for rule in rules('record')}, asked)

    def test_every_alert_has_a_playbook_a_severity_and_a_test(self):
        text = (ROOT / 'doc/source/alerts.rst').read_text()
        tested = (pathlib.Path(__file__).parent / 'alerts.test.yaml').read_text()
        titles = re.findall(r'^(Kronos\w+)\n=+$', text, re.MULTILINE)
        self.assertEqual(titles, [alert['alert'] for alert in alerts()])
        for alert in alerts():
            name = alert['alert']
            self.assertEqual(f'alerts.html#{name.lower()}', alert['annotations']['playbook'])
            self.assertIn(alert['labels']['severity'], ('critical', 'warning', 'info'))
            self.assertIn(name, tested)

    def test_every_alert_leads_to_a_dashboard_that_there_is(self):
        uids = {uid for _title, uid, _rows in dashboards.DASHBOARDS}
        self.assertGreater(len(alerts()), 10)
        for alert in alerts():
            path = alert['annotations']['dashboard'].partition('?')[0]
            self.assertIn(path.removeprefix('/d/'), uids)

    def test_the_list_of_alerts_names_for_each_the_test_of_its_fault(self):
        text = (ROOT / 'doc/source/alerts.rst').read_text()
        listed = {name: (severity, test) for name, severity, test in re.findall(
            r'   \* - `(\w+)`_\n     - (\w+)\n     - ``(\w+)``', text)}
        self.assertEqual({alert['alert']: alert['labels']['severity'] for alert in alerts()},
                         {name: severity for name, (severity, _test) in listed.items()})
        tests = {node.name: ast.unparse(node) for node in ast.walk(ast.parse(E2E.read_text()))
                 if isinstance(node, ast.FunctionDef)}
        for name, (_severity, test) in listed.items():
            self.assertIn(f"'{name}'", tests[test])

    def test_the_rules_of_those_tests_are_the_same_but_for_durations(self):
        shipped, hastened = RULES.read_text(), alert_rules.hastened(RULES.read_text())
        duration = re.compile(r'(?<=for: )\d+[smhd]|(?<=\[)\d+[smhd](?=\])')
        self.assertEqual(duration.sub('TIME', shipped), duration.sub('TIME', hastened))
        self.assertNotEqual(shipped, hastened)
        waits = [rule['for'] for group in yaml.safe_load(hastened)['groups']
                 for rule in group['rules'] if 'for' in rule]
        self.assertLess(10, len(waits))
        self.assertEqual(set(), {*waits} - {'2s', '5s', '10s'})

    def test_each_alert_fires_when_it_should_and_not_before(self):
        self.check('alerts.test.yaml')

    def test_what_is_recorded_for_forecasts_is_the_share_of_the_host(self):
        self.check('forecast.test.yaml')

    def check(self, file):
        if shutil.which('promtool') is None:
            self.skipTest('promtool is not installed')
        checked = subprocess.run(
            ['promtool', 'test', 'rules', str(pathlib.Path(__file__).parent / file)],
            capture_output=True, text=True, timeout=600)
        self.assertEqual(0, checked.returncode, checked.stdout + checked.stderr)

    def test_what_is_recorded_for_forecasts_is_the_profile_of_their_recipe(self):
        [group] = yaml.safe_load(FORECAST_RULES.read_text())['groups']
        [rule] = group['rules']
        policy = policies.load(FORECAST_RECIPE).active[0]
        self.assertEqual(policy.vm_profile_query.split(), rule['expr'].split())
        self.assertIn(rule['record'], policy.forecast.history_query)
