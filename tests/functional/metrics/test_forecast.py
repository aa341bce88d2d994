"""Forecasts of hours to come from nine days that a real Prometheus has."""

import os
import pathlib
import shutil
import subprocess
import time

import fixtures
import numpy as np
import testtools

from kronos_nova import exception
from kronos_nova import policies
from kronos_nova.cycle import forecast_columns
from kronos_nova.cycle.forecast_columns import HOUR
from kronos_nova.cycle.forecast_columns import ForecastCache
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.cycle.restraint import Restraint
from kronos_nova.cycle.steps import plan_cycle
from kronos_nova.metrics import prometheus
from kronos_nova.metrics.endpoint import Endpoint
from kronos_nova.objects import snapshot as objects
from kronos_nova.objects.metrics import MetricQuery
from kronos_nova.objects.metrics import Times
from tests.functional.prometheus import Prometheus

RECORDED = 'domain:kronos_vm_cpu:share_of_host'
RECIPE = pathlib.Path(__file__).parents[3] / 'etc/kronos/policies/cpu-memory-forecast.yaml'
EVERY = 300
PLACE = {'instance-00000001': 'cmp1', 'instance-00000002': 'cmp1', 'instance-00000003': 'cmp1',
         'instance-00000004': 'cmp2'}
POLICIES = """
policies:
- name: cpu
  mode: spread
  weight: 1.0
  threshold: 0.3
  imbalance_query: sum by (host) (vm)
  vm_profile_query: sum by (domain) (vm)
  vm_profile_label: domain
  vm_profile_label_type: name
  forecast: {horizon_hours: 6, history_query: 'avg_over_time(%s[1h])'}
"""


def busy(number, at, rises_at):
    """The use of a guest: the first three are busy for eight hours of each day."""
    hour = (at // HOUR - rises_at) % 24
    return .25 if number < 3 and hour < 8 else .02


class ForecastTest(testtools.TestCase):
    """It is now three hours before the guests of one host are busy, as every day."""

    def setUp(self):
        super().setUp()
        if shutil.which('promtool') is None:
            raise RuntimeError('promtool is not installed; see bindep.txt')
        self.now = time.time()
        self.rises_at = int(self.now // HOUR) + 3
        folder = self.useFixture(fixtures.TempDir()).path
        self.server = self.useFixture(Prometheus([], data=self.backfilled(folder)))
        self.client = prometheus.PrometheusClient(Endpoint(url=self.server.url))

    def backfilled(self, folder):
        """A data folder with what the rules would have recorded, and the load of now."""
        text = os.path.join(folder, 'recorded.txt')
        # Two hours more would be in Prometheus' own head; it is not to be asked for these.
        end = int(self.now // EVERY) * EVERY
        with open(text, 'w') as file:
            file.write(f'# TYPE {RECORDED} gauge\n')
            for number, domain in enumerate(PLACE):
                for at in range(end - 9 * 24 * HOUR, end + 1, EVERY):
                    file.write(f'{RECORDED}{{domain="{domain}"}} '
                               f'{busy(number, at - 1, self.rises_at)} {at}\n')
            file.write('# TYPE vm gauge\n')
            for number, (domain, host) in enumerate(PLACE.items()):
                for at in range(end - 600, end + 1800, 60):
                    file.write(f'vm{{domain="{domain}",host="{host}"}} '
                               f'{busy(number, self.now, self.rises_at)} {at}\n')
            file.write('# EOF\n')
        data = os.path.join(folder, 'data')
        made = subprocess.run(
            ['promtool', 'tsdb', 'create-blocks-from', 'openmetrics', text, data],
            capture_output=True, text=True, timeout=300)
        self.assertEqual(0, made.returncode, made.stdout + made.stderr)
        return data

    def plan(self, forecast_cache=None):
        snapshot = objects.Snapshot(
            taken_at='', aggregates=(objects.Aggregate(name='agg', uuid='agg',
                                                       hosts=('cmp1', 'cmp2')),),
            hosts=tuple(objects.Host(
                name=name, uuid=name, service=objects.Service(state='up', status='enabled'),
                inventory={'VCPU': objects.ResourceInventory(total=16)})
                for name in ('cmp1', 'cmp2')),
            instances=tuple(objects.Instance(
                uuid=f'uuid-of-{name}', name=name, display_name='', host=host, project_id='p',
                status='ACTIVE', vcpus=1, memory_mb=1024, disk_gb=0, resources={'VCPU': 1})
                for name, host in PLACE.items()))
        report, = plan_cycle(
            snapshot, policies.parse(POLICIES % RECORDED),
            EngineOptions(aggregates=('agg',), include_unassigned_hosts=False,
                          restraint=Restraint(1.0)),
            PlannerPorts(source=self.client, clock=lambda: 0.0, now=self.now,
                         forecast_cache=forecast_cache or ForecastCache())).aggregates
        return report

    def test_what_comes_every_day_is_planned_for_before_it_comes(self):
        report = self.plan()
        found = report.policies[0]
        self.assertLess(found.imbalance_before, .1)
        self.assertEqual('used', found.forecast.state, found.forecast.detail)
        self.assertAlmostEqual(.75 - .02, found.forecast.imbalance, delta=.05)
        self.assertLess(found.forecast.error, .02)
        self.assertGreater(found.forecast.present_error, .05)
        self.assertEqual('planned', report.outcome)
        self.assertEqual({'cmp2'}, {move.destination for move in report.moves})
        self.assertIn('cpu in 3 h', report.moves[0].reason)

    def test_what_the_recipe_asks_of_the_past_is_what_the_rules_recorded(self):
        query = policies.load(RECIPE).active[0].forecast.history_query
        hour = int(self.now // HOUR) - 24
        table = forecast_columns.HourlyHistory()
        table.read(self.client, MetricQuery('cpu', 'history', query), 'domain', [hour, hour + 4],
                   self.now)
        rows = [row for _position, row, _host in table.series(list(PLACE))]
        expected = [[busy(number, at * HOUR, self.rises_at) for at in (hour, hour + 4)]
                    for number in range(len(PLACE))]
        np.testing.assert_allclose(expected, table.matrix([hour, hour + 4])[rows], rtol=.01)

    def test_an_hour_later_only_what_is_new_is_asked_for(self):
        forecast_cache = ForecastCache()
        self.plan(forecast_cache)
        asked, ask = [], self.client.query_range

        def query_range(query, times):
            asked.append(times)
            return ask(query, times)
        self.client.query_range = query_range
        self.plan(forecast_cache)
        self.assertEqual([], asked)
        self.now += HOUR
        self.plan(forecast_cache)
        self.assertEqual([0, 0], [times.last - times.first for times in asked])

    def test_a_query_that_prometheus_refuses_is_an_error_and_more_than_it_answers_too(self):
        ask = self.client.query_range
        self.assertRaises(exception.MetricsQueryRefused, ask, MetricQuery('cpu', 'history', 'sum('),
                          Times(0, HOUR, HOUR))
        self.assertRaises(exception.MetricsQueryRefused, ask, MetricQuery('cpu', 'history', 'vm'),
                          Times(0, self.now, 1))
