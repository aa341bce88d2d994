"""Every panel of the dashboards, asked of a real Prometheus that scrapes a real exporter."""

import dataclasses
import datetime
import json
import math
import re
import time

import requests

from kronos_nova import clock
from kronos_nova.db import counters
from kronos_nova.db import drains
from kronos_nova.db import repairs as repairs_db
from kronos_nova.db import scores
from kronos_nova.drain.states import BLOCKED
from kronos_nova.drain.states import Drain
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from kronos_nova.objects import repair as repairs
from tests.functional.prometheus import Prometheus
from tests.unit.cmd import test_automation
from tests.unit.cmd import test_exporter
from tests.unit.db import fixtures as db_fixtures
from tools import dashboards

OTHERS = re.compile(r'\b(libvirt|node)_')

RANGE_NEARNESS = 0.4
"""Share by which an increase or an age may differ between two servers. Raised to 1, a figure that
is counted twice is not noticed. Lowered, the moments of samples in so short a window make a
difference."""

WINDOW = '10s'
"""Stands for an hour and for a day, so that a test need not last that long."""


class DashboardsTest(test_exporter.ExporterTestCase):
    def setUp(self):
        super().setUp()
        self.prometheus = self.scraping(1)

    def scraping(self, count):
        """Return a Prometheus that scrapes so many exporters of the same database."""
        addresses = [self.start().removeprefix('http://').removesuffix('/metrics')
                     for _exporter in range(count)]
        return self.useFixture(Prometheus([
            {'job_name': 'kronos', 'static_configs': [{'targets': addresses}]}]))

    def live(self):
        """A bit of all that the dashboards show."""
        now = clock.utcnow()
        policy = dataclasses.replace(
            self.policy(0.05), coverage=1.0, sample_age=1.0, forecast=plans.ForecastReport(
                state='used', error=0.03, present_error=0.09, imbalance=0.4))
        self.evaluate(policies=(policy,), not_moved=(
            plans.Skip(reason='locked', instances=('vm1',)),), host_scores=(
                plans.HostScore('a', 'cpu', 0.5, 0.5),),
            losses=(plans.LossReport(level='', fits=3, does_not_fit=1, in_order=2, not_in_order=1,
                                     judged_at=time.time()),))
        scores.Scores(self.database).replace('spread', {'cpu': 1.0}, {'a': {'cpu': 0.5}}, now)
        type(self.journal)(self.database, 'one').heartbeat(now)
        drains.Drains(self.database).request([Drain(
            uuid='1', host='a', aggregate='gpu', state=BLOCKED, requested_by='jane', left=3,
            requested_at=now)])
        repairs_db.Repairs(self.database, clock.utcnow).plan(repairs.Repair(
            kind='leaked', instance_uuid='vm1', evidence='', before={}, after={}))
        counters.Counters(self.database).note_audit({'leaked': 1}, time.time())

    def run_plan(self, *planned, name='gpu'):
        """It was predicted how long its moves take."""
        found, now = db_fixtures.report(planned, name), clock.utcnow()
        return self.journal.record_plan(dataclasses.replace(found, moves=tuple(
            dataclasses.replace(move, expected_seconds=30.0) for move in found.moves)),
            plans.EXECUTING, now, now + datetime.timedelta(hours=1))

    def move(self):
        """A move that completes, and one that fails."""
        self.carry_out(1, seconds=45)
        self.journal.settle(self.journal.moves()[0].uuid, clock.utcnow())
        self.journal.close_plans(clock.utcnow())
        self.run_plan(('vm8', 'a', 'b'), ('vm9', 'a', 'b'))
        now = clock.utcnow()
        [first, _second] = self.journal.dispatch(test_automation.WIDE, clock.utcnow)
        taken = self.journal.claim(first.uuid, now)
        self.journal.advance(taken, moves.FAILED, now, finished_at=now,
                             error_type='MigrationFailed')

    def ask(self, query, prometheus=None):
        server = prometheus or self.prometheus
        answer = requests.get(f'{server.url}/api/v1/query', timeout=10, params={
            'query': query.replace('$aggregate', '.*').replace('[1h]', f'[{WINDOW}]').replace(
                '[24h]', f'[{WINDOW}]')}).json()
        self.assertEqual('success', answer['status'], (query, answer))
        return answer['data']['result']

    def test_every_query_returns_data(self):
        self.live()
        # A rate needs two samples: what is counted has to be there before it grows.
        self.move()
        time.sleep(2)
        self.journal.close_plans(clock.utcnow())
        self.grow()
        queries = self.queries()
        deadline = time.monotonic() + 60
        empty = queries
        while empty and time.monotonic() < deadline:
            time.sleep(0.5)
            empty = [query for query in empty if not self.ask(query)]
        self.assertEqual([], empty)
        self.assertLess(25, len(queries))

    @staticmethod
    def queries():
        return [target['expr'] for *_name, rows in dashboards.DASHBOARDS for row in rows
                for panel in row for target in panel['targets']
                # What there is of servers and their hosts is not Kronos' to export.
                if not OTHERS.search(target['expr'])]

    def shown(self, query, prometheus):
        """Return the values of a query, by their labels."""
        return {tuple(sorted(each['metric'].items())): float(each['value'][1])
                for each in self.ask(query, prometheus)}

    def differs(self, query, pair):
        """Return whether two exporters show something else than one. The figures of a range depend
        on the moments of its samples."""
        two, one = self.shown(query, pair), self.shown(query, self.prometheus)
        is_range = '[' in query
        nearness = RANGE_NEARNESS if is_range or 'time()' in query else 1e-9
        return (not two or two.keys() != one.keys() or (is_range and not any(two.values()))
                or not all(math.isclose(two[labels], one[labels], rel_tol=nearness)
                           for labels in two))

    def test_two_exporters_show_what_one_shows(self):
        pair = self.scraping(2)
        self.live()
        self.move()
        time.sleep(2)
        self.journal.close_plans(clock.utcnow())
        deadline = time.monotonic() + 60
        different = self.queries()
        while different and time.monotonic() < deadline:
            time.sleep(0.5)
            self.grow()     # a range without a change shows nothing, however often it is counted
            different = [query for query in different if self.differs(query, pair)]
        self.assertEqual([], different)

    def grow(self):
        """Count everything once more."""
        with self.database.writer() as session:
            session.connection().exec_driver_sql('UPDATE counters SET value = value + 1')

    def test_what_is_shipped_is_what_is_made(self):
        shipped = {path.name: path.read_text() for path in dashboards.TARGET.glob('*.json')}
        self.assertEqual(dashboards.written(), shipped)
        for text in shipped.values():
            found = json.loads(text)
            ids = [panel['id'] for panel in found['panels']]
            self.assertEqual(len(ids), len(set(ids)))
            self.assertTrue(all(p['gridPos']['x'] + p['gridPos']['w'] <= dashboards.WIDTH
                                for p in found['panels']))
