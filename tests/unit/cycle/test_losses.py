"""Which hosts may be lost, judged in evaluations."""

import dataclasses

from kronos_nova.cycle import losses
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.objects import plan as plans
from kronos_nova.objects import snapshot
from kronos_nova.policies import loader
from kronos_nova.room import failover
from tests.unit.cycle import test_evaluation

FULL = {'VCPU': 64}
"""What leaves no room on a host."""


class LossesTest(test_evaluation.CycleTestCase):
    def test_an_evaluation_says_which_hosts_may_be_lost(self):
        [report] = self.run_cycle().aggregates
        [found] = report.losses
        self.assertEqual(('', 2, 0, 0, 0, 2), (found.level, found.fits, found.does_not_fit,
                                               found.not_found, found.not_judged, found.in_order))
        self.assertEqual(self.clock().timestamp(), found.judged_at)

    def test_it_is_kept_with_the_evaluation(self):
        self.run_cycle()
        kept = plans.AggregateReport.from_json(self.cycles.of_aggregate('gpu').report)
        self.assertEqual(2, kept.losses[0].fits)

    def test_the_worst_loss_is_named_with_the_reason(self):
        self.cloud.used = FULL
        [report] = self.run_cycle().aggregates
        [found] = report.losses
        self.assertEqual((0, 2, 'a'), (found.fits, found.does_not_fit, found.worst))
        self.assertIn('3 of 3 servers find no place, such as vm1: it needs 1 VCPU', found.why)

    def test_the_option_turns_it_off(self):
        off = dataclasses.replace(test_evaluation.OPTIONS, failover_check_percent=0)
        [report] = self.run_cycle(engine_options=off).aggregates
        self.assertEqual((), report.losses)

    def test_a_fault_in_it_keeps_no_plan_from_being_made(self):
        def fail(*_args):
            raise ValueError('no')
        self.patch(failover, 'failover_of', fail)
        [report] = self.run_cycle().aggregates
        self.assertEqual((plans.PLANNED, ()), (report.outcome, report.losses))


class LossJudgeTest(test_evaluation.CycleTestCase):
    """By a clock on which each look takes a tenth of a second."""

    def setUp(self):
        super().setUp()
        self.judge, self.time = losses.LossJudge(), 0.0
        self.made = 0
        real = failover.failover_of

        def count(*args):
            self.made += 1
            return real(*args)
        self.patch(failover, 'failover_of', count)

    def tick(self):
        self.time += self.step
        return self.time

    def reports(self, step=0.1, seconds=1.0, names=('gpu',), cloud=None):
        self.step = step
        planner_ports = PlannerPorts(source=self.cloud, clock=self.tick, now=0.0)
        return self.judge.reports(
            cloud or self.cloud.read(), names, loader.parse(test_evaluation.POLICIES),
            test_evaluation.OPTIONS, planner_ports, seconds)

    def test_time_is_saved_up_until_there_is_enough_for_a_round(self):
        first = self.reports(step=1.0)['gpu']
        self.assertEqual(1, self.made)
        for _evaluation in range(3):
            self.assertIs(first, self.reports(step=1.0)['gpu'])
        self.assertEqual(1, self.made)
        for _evaluation in range(200):
            self.reports(step=1.0)
        self.assertIn(self.made, range(2, 5))

    def test_what_there_was_no_time_for_is_counted_as_not_judged(self):
        [found] = self.reports(step=5.0)['gpu']
        self.assertEqual((0, 2), (found.fits, found.not_judged))

    def test_failure_domains_have_a_report_a_level(self):
        cloud = self.cloud.read()
        cloud = dataclasses.replace(cloud, hosts=tuple(
            dataclasses.replace(host, domains={'rack': 'r1'}) for host in cloud.hosts))
        hosts, racks = self.reports(step=0.01, cloud=cloud)['gpu']
        self.assertEqual(('', 2, 0), (hosts.level, hosts.fits, hosts.does_not_fit))
        self.assertEqual(('rack', 0, 1, 'r1'), (
            racks.level, racks.fits, racks.does_not_fit, racks.worst))

    def test_the_pool_of_unassigned_hosts_is_judged_and_an_unknown_aggregate_is_not(self):
        self.cloud.aggregates = {}
        found = self.reports(step=0.01, names=(snapshot.UNASSIGNED, 'gone'))
        self.assertEqual([snapshot.UNASSIGNED], [*found])
