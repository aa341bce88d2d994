"""An aggregate that cannot be planned or written down, beside one that can."""

import dataclasses
import datetime

import fixtures

from kronos_nova.cycle import persist
from kronos_nova.cycle import steps
from kronos_nova.objects import plan as plans
from kronos_nova.objects.automation import Defaults
from tests.unit.cycle import test_evaluation
from tests.unit.db import fixtures as db_fixtures

OBSERVE = dataclasses.replace(test_evaluation.RULES,
                              automation=Defaults(level='observe', levels={}))


class TwoAggregatesTest(test_evaluation.CycleTestCase):
    """``gpu`` is healthy; what is done to ``bad`` must not be seen in it."""

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.cycles.begin('bad', 'one', self.clock(), 1)
        real = self.cloud.read

        def read(scopes=None, moves=()):
            snapshot = real(scopes)
            return dataclasses.replace(
                snapshot, aggregates=(*snapshot.aggregates, dataclasses.replace(
                    snapshot.aggregates[0], name='bad', uuid='bad')))

        self.cloud.read = read
        self.both = dataclasses.replace(test_evaluation.OPTIONS, aggregates=('bad', 'gpu'))

    def break_planning(self):
        real = steps.Line.plan

        def plan(this, scope):
            if scope.name == 'bad':
                raise OverflowError('int too big to convert\x1b[2J')
            return real(this, scope)

        self.patch(steps.Line, 'plan', plan)

    def outcomes(self):
        return {row.aggregate: row.outcome for row in self.cycles.last()}

    def test_one_that_cannot_be_planned_is_failed_with_its_reason(self):
        healthy = self.run_cycle(rules=OBSERVE)
        self.break_planning()
        report = self.run_cycle(rules=OBSERVE, engine_options=self.both)
        bad, good = report.aggregates
        self.assertEqual((plans.FAILED, ()), (bad.outcome, bad.moves))
        self.assertIn('int too big to convert', bad.warnings[0])
        self.assertTrue(bad.warnings[0].isprintable())
        self.assertEqual(healthy.aggregates[0], good)
        self.assertEqual(plans.FAILED, self.outcomes()['bad'])
        self.assertIn('Traceback', self.log.output)

    def test_one_that_cannot_be_written_down(self):
        real = persist.ResultWriter._save_scores

        def keep(this, report, now):
            if report.name == 'bad':
                raise TypeError('not today')
            real(this, report, now)

        self.patch(persist.ResultWriter, '_save_scores', keep)
        self.run_cycle(engine_options=self.both)
        self.assertIn('saving the result of aggregate bad', self.log.output)
        self.assertIsNotNone(self.outcomes()['gpu'])

    def test_an_approved_plan_that_cannot_be_read(self):
        report = db_fixtures.report([('vm1', 'a', 'b')], name='bad')
        expires = self.clock() + datetime.timedelta(hours=1)
        uuid = self.journal.record_plan(report, plans.PROPOSED, self.clock(), expires)
        self.journal.approve_plan(uuid, report.moves, 'jane', self.clock())
        self.patch(plans.AggregateReport, 'from_json', lambda text: text['nothing'])
        self.run_cycle(engine_options=self.both)
        self.assertIn(uuid, self.log.output)
        self.assertIsNotNone(self.outcomes()['gpu'])
