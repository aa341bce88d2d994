"""An evaluation reads each metric once, whatever it does with it."""

import collections
import dataclasses
import uuid

from kronos_nova.cycle import metrics
from kronos_nova.cycle import steps
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.db import drains
from kronos_nova.drain import states as drain_objects
from kronos_nova.objects import plan as plans
from kronos_nova.policies import loader
from tests.unit.cycle import test_evaluation

OF_MOVES = """migration:
  dirty_rate_query: dirty
  label: uuid
"""


class CountingCloud(test_evaluation.RecordedCloud):
    """Counts queries, and answers each with other figures than the one before."""

    def __init__(self, clock):
        super().__init__(clock)
        self.asked = collections.Counter()

    def query(self, query):
        self.asked[query.promql] += 1
        found = super().query(query)
        if query.promql == 'hosts' and self.asked['hosts'] > 1:
            raise AssertionError('the loads of hosts were asked for twice')
        return found


class OnceTest(test_evaluation.CycleTestCase):
    def setUp(self):
        super().setUp()
        self.cloud = CountingCloud(self.clock)

    def approved(self):
        self.run_cycle(rules=self.level(gpu='approve'))
        [plan] = self.journal.plans()
        report = plans.AggregateReport.from_json(plan.report)
        self.journal.approve_plan(plan.uuid, report.moves, 'jane', self.clock())
        self.clock.go(60)
        self.cloud.asked.clear()

    def test_an_approved_plan_is_checked_by_the_samples_that_planning_sees(self):
        self.patch(test_evaluation, 'POLICIES', test_evaluation.POLICIES + OF_MOVES)
        self.approved()
        self.run_cycle(rules=self.level(gpu='approve'))
        self.assertEqual({'hosts': 1, 'servers': 1, 'dirty': 1}, self.cloud.asked)
        self.assertEqual([plans.EXECUTING], self.states())

    def test_the_aggregate_of_an_approved_plan_is_measured_once(self):
        self.approved()
        measured, real = [], metrics.measure
        self.patch(metrics, 'measure', lambda *args: measured.append(1) or real(*args))
        self.run_cycle(rules=self.level(gpu='approve'))
        self.assertEqual(1, len(measured))

    def test_a_drain_asks_nothing_that_planning_asks_too(self):
        self.cloud.aggregates = {'gpu': ('a', 'b'), 'other': ('a', 'b')}
        wanted = drain_objects.Drain(
            uuid=str(uuid.uuid4()), host='a', aggregate='gpu', state=drain_objects.DRAINING,
            requested_by='jane', requested_at=self.clock())
        drains.Drains(self.database).request([wanted])
        self.cycles.begin('other', 'one', self.clock(), 1)
        self.run_cycle(engine_options=dataclasses.replace(
            test_evaluation.OPTIONS, aggregates=('gpu', 'other')))
        self.assertEqual({'hosts': 1, 'servers': 1}, self.cloud.asked)

    def test_making_a_cycle_asks_nothing(self):
        policies = loader.parse(test_evaluation.POLICIES + OF_MOVES)
        ports = PlannerPorts(source=self.cloud, clock=lambda: 0.0, now=0.0)
        steps.Line(self.cloud.read(), policies, test_evaluation.OPTIONS, ports,
                   steps.PlanningHistory())
        self.assertEqual({}, self.cloud.asked)
