"""Hosts that may be lost, judged in evaluations."""

import dataclasses
import datetime

import fixtures

from kronos_nova import exception
from kronos_nova.cycle import losses
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.db import evaluations
from kronos_nova.objects import plan as plans
from kronos_nova.objects import snapshot
from kronos_nova.objects.shape import Shape
from kronos_nova.policies import loader
from kronos_nova.room import failover
from tests.unit.cycle import test_evaluation

FULL = {'VCPU': 64}
"""Resources that leave no room on a host."""
HALF = Shape(name='half', vcpus=32, memory_mb=0)
TENTH = Shape(name='tenth', vcpus=10, memory_mb=0)


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

    def test_a_migration_in_progress_counts_as_completed(self):
        """During the migration, the server has allocations on both hosts."""
        self.cloud.hosts, self.cloud.aggregates = 'abc', {'gpu': tuple('abc')}
        self.cloud.placed, self.cloud.used = {'vm1': 'a', 'vm3': 'c'}, FULL
        read = self.cloud.read

        def migrating(scopes=None, moves=()):
            found = read(scopes, moves)
            return dataclasses.replace(
                found, instances=tuple(dataclasses.replace(
                    each, resources={} if each.uuid == 'vm1' else each.resources)
                    for each in found.instances),
            ).with_moves_under_way([snapshot.MoveUnderWay(
                instance_uuid='vm1', source='a', destination='b', arrived={'VCPU': 2})])

        self.patch(self.cloud, 'read', migrating)
        [report] = self.run_cycle().aggregates
        self.assertEqual((3, 0), (report.losses[0].fits, report.losses[0].does_not_fit))

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
        self.options, self.made = test_evaluation.OPTIONS, 0
        real = failover.failover_of

        def count(*args):
            self.made += 1
            return real(*args)
        self.patch(failover, 'failover_of', count)

    def tick(self):
        self.time += self.step
        return self.time

    def reports(self, step=0.1, seconds=1.0, names=('gpu',), cloud=None, now=0.0):
        self.step = step
        planner_ports = PlannerPorts(source=self.cloud, clock=self.tick, now=now)
        return self.judge.reports(
            cloud or self.cloud.read(), names, loader.parse(test_evaluation.POLICIES),
            self.options, planner_ports, seconds, self.cloud)

    def test_time_is_saved_up_until_there_is_enough_for_a_round(self):
        first = self.reports(step=1.0)['gpu'].losses
        self.assertEqual(1, self.made)
        for _evaluation in range(3):
            self.assertIs(first, self.reports(step=1.0)['gpu'].losses)
        self.assertEqual(1, self.made)
        for _evaluation in range(200):
            self.reports(step=1.0)
        self.assertIn(self.made, range(2, 5))

    def test_the_second_round_does_not_wait_as_long_as_the_first_one_took(self):
        """Each evaluation allows a second."""
        self.reports(step=1.0)
        waited = 0
        while self.made == 1:
            self.reports(step=1.0, seconds=20.0)
            waited += 1
        self.assertIn(waited, range(2, 6))

    def test_while_the_cloud_does_not_change_verdicts_stay_true_without_a_check(self):
        first = self.reports(step=0.01)['gpu'].losses
        later = dataclasses.replace(self.cloud.read(), taken_at='2026-01-05T10:05:00')
        [found] = self.reports(step=0.01, seconds=100.0, cloud=later, now=300.0)['gpu'].losses
        self.assertEqual((1, 300.0), (self.made, found.judged_at))
        self.assertEqual(first, (dataclasses.replace(found, judged_at=0.0),))

    def test_a_change_of_the_cloud_or_of_an_option_is_checked(self):
        self.reports(step=0.01)
        self.cloud.used = FULL
        [found] = self.reports(step=0.01, seconds=100.0)['gpu'].losses
        self.assertEqual((2, 2), (self.made, found.does_not_fit))
        self.options = dataclasses.replace(self.options, restrict_to_az=True)
        self.reports(step=0.01, seconds=100.0)
        self.assertEqual(3, self.made)

    def test_after_a_check_that_failed_nothing_is_taken_for_the_result_of_an_earlier_cloud(self):
        before = self.cloud.read()
        self.reports(step=0.01, cloud=before)
        self.cloud.used = FULL

        def fail(*_args):
            raise ValueError('no')

        with fixtures.MonkeyPatch('kronos_nova.cycle.losses._share', fail):
            self.assertRaises(ValueError, self.reports, step=0.01, seconds=100.0)
        self.reports(step=0.01, seconds=100.0, cloud=before)
        self.assertEqual(3, self.made)

    def test_a_check_that_time_has_cut_goes_on_although_the_cloud_does_not_change(self):
        self.reports(step=5.0)
        [found] = self.reports(step=0.01, seconds=1000.0)['gpu'].losses
        self.assertEqual((2, 2, 0), (self.made, found.fits, found.not_judged))

    def test_what_there_was_no_time_for_is_counted_as_not_judged(self):
        [found] = self.reports(step=5.0)['gpu'].losses
        self.assertEqual((0, 2), (found.fits, found.not_judged))

    def test_failure_domains_have_a_report_a_level(self):
        cloud = self.cloud.read()
        cloud = dataclasses.replace(cloud, hosts=tuple(
            dataclasses.replace(host, domains={'rack': 'r1'}) for host in cloud.hosts))
        hosts, racks = self.reports(step=0.01, cloud=cloud)['gpu'].losses
        self.assertEqual(('', 2, 0), (hosts.level, hosts.fits, hosts.does_not_fit))
        self.assertEqual(('rack', 0, 1, 'r1'), (
            racks.level, racks.fits, racks.does_not_fit, racks.worst))

    def test_the_pool_of_unassigned_hosts_is_judged_and_an_unknown_aggregate_is_not(self):
        self.cloud.aggregates = {}
        found = self.reports(step=0.01, names=(snapshot.UNASSIGNED, 'gone'))
        self.assertEqual([snapshot.UNASSIGNED], [*found])

    def count(self, *flavors, **given):
        """The slots of flavors, each as (flavor, now, after a loss)."""
        self.options = dataclasses.replace(self.options, slot_flavors=flavors)
        self.cloud.read_flavors = lambda: (HALF, TENTH)
        return [(each.flavor, each.now, each.after_loss)
                for each in self.reports(step=0.01, **given)['gpu'].slots]

    def test_slots_of_flavors_are_counted_now_and_after_a_loss(self):
        """3 of 64 VCPUs are in use on a and 1 on b, and 4 on the one that is left."""
        self.assertEqual([('half', 2, 1), ('tenth', 12, 6)], self.count('half', 'tenth'))

    def test_without_a_host_that_may_be_lost_there_are_none_after_a_loss(self):
        self.cloud.used = FULL
        self.assertEqual([('half', 0, None)], self.count('half'))

    def test_a_name_that_is_no_flavor_is_left_out(self):
        self.assertEqual([('half', 2, 1)], self.count('gone', 'half'))
        self.assertEqual([], self.count())

    def test_flavors_that_cannot_be_read_keep_no_verdict_back(self):
        def fail():
            raise exception.InventoryError(what='nova', problem='is away', remedy='wait')
        self.options = dataclasses.replace(self.options, slot_flavors=('half',))
        self.cloud.read_flavors = fail
        found = self.reports(step=0.01)['gpu']
        self.assertEqual(((), 2), (found.slots, found.losses[0].fits))


class SlotHistoryTest(test_evaluation.CycleTestCase):
    def test_an_evaluation_keeps_the_slots_that_it_counted(self):
        self.cloud.read_flavors = lambda: (HALF, TENTH)
        self.run_cycle()
        self.clock.go(100)
        watched = dataclasses.replace(test_evaluation.OPTIONS, slot_flavors=('tenth',))
        self.run_cycle(engine_options=watched)
        kept = evaluations.Evaluations(self.database).slots_since(
            'gpu', self.clock() - datetime.timedelta(days=1))
        self.assertEqual({'tenth': [(self.clock(), 12)]}, kept)
