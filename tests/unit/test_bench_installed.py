"""Cycles of an installation in virtual time are right about small clouds."""

import io

import fixtures
import numpy as np
import testtools

from bench import budgets
from bench import dispatch
from bench import inputs
from bench import installation
from bench import installed
from bench import one_plan
from bench import operation
from bench import split
from bench import trial
from kronos_nova.objects import plan
from kronos_nova.objects.metrics import VM_PROFILE
from kronos_nova.objects.metrics import MetricQuery
from kronos_nova.objects.move import Caps
from kronos_nova.planners import greedy

CAPS = Caps(total=2, per_source=1, per_destination=2)


def cloud(loads, place, hosts=2, aggregates=None):
    """Servers of one vCPU and 4 GiB with these loads of CPU and hardly any of memory."""
    count = len(place)
    problem = inputs.problem(
        mode='spread', loads=np.stack([loads, np.full(count, 1e-3)], axis=1).astype(float),
        vm_host=np.array(place), limits=np.tile([64.0, 65536.0], (hosts, 1)),
        demands=np.tile([1.0, 4096.0], (count, 1)), threshold=0.1)
    return installation.Cloud(problem, aggregates)


def operated(found, threshold=0.1, budget=10, **options):
    return operation.Installation(
        found, installation.policies(found.problem, 'spread', threshold, budget),
        installation.conf(**{'restraint': 0.0, **options}))


def move(order, source='a', destination='b', begins=0.0, seconds=10.0, **others):
    return plan.PlannedMove(**{
        'order': order, 'phase': plan.SPREAD, 'instance_uuid': f'vm{order}', 'source': source,
        'destination': destination, 'memory_mb': 1024, 'combined_after': 0.0, 'reason': '',
        'begins_after': begins, 'expected_seconds': seconds, **others})


def report(name, *moves):
    return plan.AggregateReport(name=name, outcome=plan.PLANNED, mode='spread', planner='spread',
                                moves=moves)


class DispatchTest(testtools.TestCase):
    def times(self, *reports, stale_after=1800.0):
        return [(run.key, run.begun, run.ended)
                for run in dispatch.dispatched(reports, CAPS, stale_after)]

    def test_one_plan_is_carried_out_as_it_expects(self):
        self.assertEqual([(('x', 1), 0.0, 10.0), (('x', 2), 10.0, 15.0)], self.times(
            report('x', move(1), move(2, begins=10.0, seconds=5.0))))

    def test_the_caps_hold_for_all_plans_together(self):
        plans = [report(name, move(1, source=name, destination=f'to {name}')) for name in 'xyz']
        self.assertEqual([0.0, 0.0, 10.0], [begun for _key, begun, _ended in self.times(*plans)])

    def test_a_move_that_is_late_is_given_up_with_those_that_depend_on_it(self):
        found = self.times(report('x', move(1, seconds=100.0), move(2),
                                  move(3, source='c', depends_on=(2,)),
                                  move(4, phase=plan.EVACUATE)), stale_after=50.0)
        self.assertEqual([1, 4], [order for (_name, order), _begun, _ended in found])


class CloudTest(testtools.TestCase):
    def test_hosts_that_do_not_count_are_left_out_as_the_policies_say(self):
        problem = cloud([.1, .5, .2, .3, .3], range(5), hosts=5).problem
        found = installation.Cloud(problem, imbalance_over=.8)
        self.assertAlmostEqual(.1, found.imbalances()[0])
        self.assertFalse(found.is_balanced(.05))
        planned = operation.Installation(
            found, installation.policies(problem, threshold=.1, imbalance_over=.8),
            installation.conf(restraint=0.0)).evaluate()
        self.assertEqual([plan.BALANCED], [each.outcome for each in planned])

    def test_monitoring_shows_no_more_than_a_host_has(self):
        found = cloud([0.8, 0.8, 0.5], [0, 0, 1])
        query = MetricQuery('cpu', VM_PROFILE, '')
        self.assertEqual([0.5, 0.5, 0.5], [sample.value for sample in found.query(query).samples])
        found.move('vm0000000', 'cmp00001')
        np.testing.assert_allclose([0.8, 1.3], found.scores()[:, 0])

    def test_the_imbalance_is_that_of_the_worst_aggregate_without_disabled_hosts(self):
        found = cloud([0.5, 0.1, 0.4, 0.3, 0.9], [0, 1, 2, 3, 4], 5,
                      {'one': np.array([0, 1]), 'other': np.array([2, 3, 4])})
        found.disabled.add(4)
        self.assertAlmostEqual(0.4, found.imbalances()[0])


class OperationTest(testtools.TestCase):
    def test_an_uneven_cloud_is_evened_in_one_plan_and_then_balanced(self):
        found = operation.operate(operated(cloud([0.2] * 4, [0] * 4)), 0.1, 10)
        self.assertEqual((1, 2, 8.0, plan.BALANCED),
                         (found.cycles, len(found.made), found.gib, found.last))
        self.assertEqual((0.0, 0.0), found.imbalances)

    def test_the_next_evaluation_is_after_the_last_move_and_the_cooldown(self):
        case = operated(cloud([0.2] * 4, [0] * 4), cooldown=700, evaluation_interval=300)
        ended = case.carry_out(case.evaluate())
        case.rest()
        self.assertTrue(ended + 700 <= case.cloud.now < ended + 1000)
        self.assertEqual(0.0, (case.cloud.now - installation.BEGIN) % 300)

    def test_cycles_remember_what_was_moved(self):
        case = operated(cloud([0.2] * 4, [0] * 4), restraint=1.0)
        case.carry_out(case.evaluate())
        case.rest()
        history, moved = case.history(), {each.move.instance_uuid for each in case.made}
        self.assertEqual(dict.fromkeys(moved, 1), history.instances_moved)
        self.assertEqual(moved, {past.instance_uuid for past in history.moves})
        self.assertEqual(moved, {uuid for uuid, left in history.instances.items() if left > 0})
        self.assertEqual(['cpu', 'memory'], sorted(history.load_stats[installation.AGGREGATE]))

    def test_a_cloud_that_cannot_be_evened_is_given_up(self):
        found = operation.operate(operated(cloud([0.5], [0])), 0.1, 10)
        self.assertEqual((None, plan.NO_MOVE), (found.cycles, found.last))


class FiguresTest(testtools.TestCase):
    def test_a_cycle_is_judged_as_a_bare_planner_is(self):
        problem = inputs.random_cluster(1, 6, 40)
        bare = trial.plan(greedy.Greedy(), problem, 8)
        whole = trial.installed(problem, 'spread', 8, restraint=0.0, spread_planner='greedy')
        self.assertEqual((bare.moves, 0), (whole.moves, whole.refused))
        self.assertAlmostEqual(bare.combined, whole.combined)
        self.assertLess(trial.installed(inputs.random_cluster(1, 6, 40, mode='pack'), 'pack',
                                        8).hosts, 6)

    def test_what_need_not_have_moved_is_trimmed(self):
        problem = cloud([0.3, 0.3, 0.05], [0, 0, 0]).problem
        made = [operation.MadeMove(0, 0, 0, move(1, 'cmp00000', 'cmp00001', instance_uuid=uuid))
                for uuid in problem.vms[1:]]
        self.assertEqual(4.0, installed.trimmed_gib(problem, made, 0.1))

    def test_restraint_is_compared_with_none_and_with_the_least_that_was_copied(self):
        def row(variant, cycles, gib):
            return ('c', .1, 10, variant, cycles, 1.0, .0, .0, 9, gib, gib / 2, .1, 'balanced')

        cases = [row('restraint 0', 2, 50.0), row('greedy', 4, 40.0), row('restraint 1', 4, 60.0),
                 row('restraint 2', installed.NEVER, 10.0)]
        one, two = (dict(zip(installed.COMPARED, found, strict=True))
                    for found in installed._compared(cases))
        self.assertAlmostEqual(2.0, one['cycles / restraint 0'])
        self.assertAlmostEqual(1.5, one['GiB / least known'])
        self.assertEqual((installed.NEVER, None),
                         (two['cycles / restraint 0'], two['GiB / least known']))
        self.assertEqual(3, len(list(installed._failures(installed._compared(cases)))))

    def test_random_clusters_are_the_same_for_the_same_seed(self):
        one, again, other = (inputs.cluster.__wrapped__(inputs.random_name(seed), threshold=.1)
                             for seed in (1, 1, 2))
        self.assertIn(len(one.hosts), range(12, 31))
        self.assertEqual([.1, .1], one.thresholds.tolist())
        self.assertEqual(one.vm_host.tolist(), again.vm_host.tolist())
        self.assertNotEqual(one.vm_host.tolist(), other.vm_host.tolist())

    def test_hot_minutes_end_when_the_load_has_left(self):
        found = cloud([0.5, 0.45], [0, 0])
        made = [operation.MadeMove(0, 0, installation.BEGIN + 600, move(
            1, 'cmp00000', 'cmp00001', instance_uuid='vm0000000'))]
        self.assertEqual(10.0, split.hot_minutes(found.problem, made))

    def test_a_larger_budget_that_ends_worse_is_a_failure(self):
        class Case:
            cluster, mode, restraint, least = 'c', 'spread', 0.0, 0.025

            def planned(self, budget, _age):
                end = {10: 0.5, 20: 0.3, 50: 0.4, 100: 0.01, 200: 0.02}[budget]
                return one_plan.Planned(end, (), 0.0)

        self.useFixture(fixtures.MonkeyPatch('sys.stderr', io.StringIO()))
        rows = list(budgets._rows(Case(), [50, 10, 20, 200, 100], True))
        self.assertEqual([10, 20, 50, 100, 200], [row[3] for row in rows])
        [failure] = budgets._worse(rows)
        self.assertIn('budget 50', failure)
