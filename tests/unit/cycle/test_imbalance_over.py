"""An aggregate of which some hosts do not count in the imbalance of a policy."""

import dataclasses

import numpy as np
import testtools

from kronos_nova.cycle import forecast_columns
from kronos_nova.cycle import restraint
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.cycle.restraint import Restraint
from kronos_nova.cycle.steps import plan_cycle
from kronos_nova.load import forecast
from kronos_nova.objects import snapshot as objects
from kronos_nova.objects.dry_run import AGREED
from kronos_nova.policies import Policy
from kronos_nova.policies import PolicySet
from tests.unit.cycle import test_steps
from tests.unit.planners import clouds

HOSTS = tuple(f'h{number:02}' for number in range(40))
PLANNERS = 'greedy', 'spread'


class ImbalanceOverTest(testtools.TestCase):
    """One host of 40 has a load of .95 that cannot leave, and the others have .3."""

    def setUp(self):
        super().setUp()
        self.scores = dict.fromkeys(HOSTS, .3) | {'h00': .95}
        self.hosts = tuple(test_steps.host(name) for name in HOSTS)

    def plan(self, over, *, restrained=False, planner='greedy'):
        instances = tuple(test_steps.instance(f'{name}-{number}', name)
                          for name in HOSTS[1:] for number in range(3))
        source = test_steps.Recorded(
            imbalance=self.scores,
            vm_profile={each.uuid: self.scores[each.host] / 3 for each in instances})
        policy = Policy(**test_steps.POLICY | {'threshold': .2, 'imbalance_over': over})
        report, = plan_cycle(
            objects.Snapshot(
                taken_at='', hosts=self.hosts, instances=instances,
                aggregates=(objects.Aggregate(name='agg', uuid='agg', hosts=HOSTS),)),
            PolicySet(policies=(policy,)),
            EngineOptions(aggregates=('agg',), include_unassigned_hosts=False,
                          spread_planner=planner,
                          restraint=Restraint(1.0) if restrained else Restraint()),
            PlannerPorts(source=source, clock=lambda: 0.0, now=test_steps.NOW,
                         dry_run=lambda *_asked: AGREED)).aggregates
        return report

    def test_one_odd_host_does_not_keep_the_aggregate_above_its_threshold(self):
        for planner in PLANNERS:
            report = self.plan(.95, planner=planner)
            self.assertEqual(('balanced', 0.0), (report.outcome, report.combined_before))
            report = self.plan(1.0, planner=planner)
            self.assertNotEqual('balanced', report.outcome)
            self.assertAlmostEqual(.65, report.combined_before)

    def test_with_restraint_it_does_only_if_it_is_full(self):
        self.assertEqual('no_move', self.plan(.95, restrained=True).outcome)
        self.scores['h00'] = .85
        self.assertEqual('balanced', self.plan(.95, restrained=True).outcome)
        self.assertEqual('no_move', self.plan(1.0, restrained=True).outcome)

    def test_what_counts_is_evened_out_and_the_odd_host_left_alone(self):
        self.scores |= dict.fromkeys(HOSTS[10:15], .6)
        for restrained in (False, True):
            report = self.plan(.95, restrained=restrained, planner='spread')
            self.assertEqual('planned', report.outcome)
            self.assertAlmostEqual(.3, report.policies[0].imbalance_before)
            self.assertLessEqual(report.policies[0].imbalance_after, .2 + 1e-9)
            self.assertNotIn('h00', {move.destination for move in report.moves})

    def test_hosts_that_are_not_available_do_not_count_among_those_that_are_left_out(self):
        self.hosts = (*self.hosts[:19], *(
            test_steps.host(name, status='disabled') for name in HOSTS[19:]))
        self.assertAlmostEqual(.65, self.plan(.95).combined_before)    # a twentieth of 19 is none


class ProblemTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        problem = clouds.idle([0, 1, 2, 3], hosts=4)
        self.problem = dataclasses.replace(
            problem, weights=np.array([[.6], [.3], [.3], [.1]]), left_out=np.array([1]),
            scores=np.array([[.6], [.3], [.3], [.1]]))

    def test_the_hours_to_come_leave_out_as_many(self):
        columns = forecast_columns.ForecastColumns(
            judgement=forecast.UNKNOWN, names=('a', 'b'), weights=np.zeros((4, 2)),
            scores=np.zeros((4, 2)), variances=np.zeros((4, 2)))
        expanded = forecast_columns.expanded(self.problem, {'p': columns}, with_variances=True)
        self.assertEqual([1, 1, 1], expanded.left_out.tolist())

    def test_what_noise_makes_of_the_others_is_less(self):
        noises = [restraint.outlook(dataclasses.replace(
            self.problem, variances=np.full((4, 1), .01), left_out=left_out), {}).noise[0]
            for left_out in (None, np.array([1]))]
        self.assertGreater(noises[0], noises[1])
