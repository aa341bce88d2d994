"""Plans for the load that lasts, down to the target and no further."""

import dataclasses

import numpy as np
import testtools

from kronos_nova.cooldown import PlanningHistory
from kronos_nova.cycle import restraint
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.cycle.restraint import Restraint
from kronos_nova.cycle.restraint import exceeds_noise
from kronos_nova.cycle.steps import plan_cycle
from kronos_nova.cycle.steps import still_valid
from kronos_nova.load import LoadStats
from kronos_nova.load.load_statistics import FORGOTTEN
from kronos_nova.objects import snapshot as objects
from kronos_nova.objects.plan import SPREAD
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import StepRecorder
from kronos_nova.policies import Policy
from kronos_nova.policies import PolicySet
from tests.unit.cycle import test_steps as clouds
from tests.unit.planners.clouds import idle
from tests.unit.planners.clouds import start


class Cloud(testtools.TestCase):
    """Three hosts, and eight instances of a tenth of one, all on the first."""

    def setUp(self):
        super().setUp()
        self.hosts = ('h0', 'h1', 'h2')
        self.loads = {f'vm{number}': .1 for number in range(8)}
        self.place = {}
        self.policy = {**clouds.POLICY, 'threshold': .4}
        self.options = EngineOptions(aggregates=('agg',), include_unassigned_hosts=False,
                                     restraint=Restraint(1.0))
        self.learnt, self.variance, self.under_way = {}, .0001, ()
        self.unread = {}
        self.sizes = {}

    def ports(self):
        return PlannerPorts(source=clouds.Recorded(imbalance=self.scores(), vm_profile=self.loads),
                            clock=lambda: 0.0, now=clouds.NOW, learn=self.learnt.__setitem__)

    def scores(self):
        return {host: sum(load for name, load in self.loads.items() if self.on(name) == host)
                for host in self.hosts}

    def on(self, name):
        return self.place.get(name, 'h0')

    def snapshot(self):
        return objects.Snapshot(
            taken_at='', hosts=tuple(dataclasses.replace(clouds.host(name), inventory={
                'VCPU': objects.ResourceInventory(total=self.sizes.get(name, 16))})
                for name in self.hosts),
            instances=tuple(clouds.instance(name, self.on(name)) for name in self.loads),
            aggregates=(objects.Aggregate(name='agg', uuid='agg', hosts=self.hosts),),
            moves_under_way=self.under_way, unread=self.unread)

    def plan(self, stats=None, **options):
        report, = plan_cycle(
            self.snapshot(), PolicySet(policies=(Policy(**self.policy),)),
            dataclasses.replace(self.options, **options), self.ports(),
            PlanningHistory(load_stats={'agg': {'cpu': stats}} if stats else {})).aggregates
        return report

    def seen(self, **means):
        """Instances that were known for a day, flickering around a mean."""
        figures = [[86400, means.get(name, load), self.variance, means.get(name, load), 0.0]
                   for name, load in self.loads.items()]
        return LoadStats(clouds.NOW - 300, tuple(self.loads), np.array(figures))


class OneMove:
    """A planner of one move, from the last host to the first."""

    phase = SPREAD

    def plan(self, state, limits):
        return [StepRecorder(state).record(len(state.vm_host) - 1, 0, 'evens the load')]


class NoiseTest(testtools.TestCase):
    def state(self, scores, noise):
        """Hosts with one server of a hundredth on the last; the second host has no room for it."""
        limits = np.full((len(scores), 1), 100.0)
        limits[1] = 0.0
        return start(dataclasses.replace(
            idle([len(scores) - 1], hosts=len(scores)), scores=np.array(scores)[:, None],
            weights=np.array([[.01]]), noise=noise and np.array([noise]), limits=limits))

    def test_what_is_removed_from_the_imbalance_is_compared_with_noise(self):
        for noise, is_more in ((None, True), (.005, True), (.02, False)):
            before = self.state([.28, .1, .3], noise)
            self.assertEqual(is_more, exceeds_noise(before, before.after([(0, 0)])))

    def test_hosts_far_outside_the_target_range_are_relieved_one_after_the_other(self):
        before = self.state([.1, .1, .9, .9], .05)
        self.assertTrue(exceeds_noise(before, before.after([(0, 0)])))

    def test_a_plan_that_removes_noise_alone_is_not_made(self):
        for noise, moves in ((.005, 1), (.02, 0)):
            state = self.state([.28, .1, .3], noise)
            self.assertEqual(moves, len(Restraint(1.0).plan(OneMove(), state, Limits(budget=1))))
            self.assertEqual(moves == 0, state.vm_host.tolist() == [2])


class RestraintTest(Cloud):
    def test_a_plan_begins_above_the_threshold_and_ends_at_the_target(self):
        report = self.plan()
        imbalance = report.policies[0].imbalance_after
        self.assertTrue(.2 < imbalance <= .4 + 1e-9)
        self.assertEqual(3, len(report.moves))
        self.assertEqual(3, len(self.plan(spread_planner='greedy', restraint=Restraint()).moves))
        self.policy['threshold'] = .9
        self.assertEqual('balanced', self.plan().outcome)

    def test_where_no_single_move_lowers_the_imbalance_several_do(self):
        self.hosts = 'h0', 'h1', 'h2', 'h3'
        self.place = dict.fromkeys(('vm0', 'vm1', 'vm2', 'vm3'), 'h1')
        self.policy['threshold'] = .3
        report = self.plan(spread_planner='greedy')
        self.assertEqual(2, len(report.moves))
        self.assertLessEqual(report.policies[0].imbalance_after, .3 + 1e-9)

    def test_an_instance_that_is_mostly_idle_is_not_moved_for_what_it_does_now(self):
        self.loads = {'calm': .2, 'quiet': .2, 'wild': .3}
        report = self.plan(self.seen(wild=.02))
        self.assertEqual(['calm'], [move.instance_uuid for move in report.moves])

    def test_what_is_reported_is_what_was_measured(self):
        self.loads = {'calm': .2, 'quiet': .2, 'wild': .3}
        report = self.plan(self.seen(wild=.02))
        [policy] = report.policies
        self.assertAlmostEqual(.7, policy.imbalance_before)
        self.assertAlmostEqual(.5, policy.imbalance_after)
        self.assertAlmostEqual(.5, report.combined_after)

    def test_an_instance_is_moved_once_in_a_plan_and_never_there_and_back(self):
        """Moves that lower the risk of full hosts may contradict those that even them out."""
        moved, self.policy['threshold'] = 0, .2
        for seed in range(60):
            rng = np.random.default_rng(seed)
            loads, variances = rng.choice([.05, .1, .2, .3], 6), rng.choice([.0001, .01, .03], 6)
            self.loads = {f'vm{number}': float(load) for number, load in enumerate(loads)}
            self.place = {name: f'h{rng.integers(3)}' for name in self.loads}
            figures = [[86400, load, variance, load, 0.0]
                       for load, variance in zip(loads, variances, strict=True)]
            moves = self.plan(
                LoadStats(clouds.NOW - 300, tuple(self.loads), np.array(figures))).moves
            names = [move.instance_uuid for move in moves]
            self.assertEqual(sorted(set(names)), sorted(names))
            moved += len(moves)
        self.assertGreater(moved, 60)

    def test_what_is_in_progress_is_likely_to_load_the_host_it_goes_to_as_it_does_now(self):
        self.hosts = 'h0', 'h1'
        self.loads = {'wild': .3, **{f'vm{number}': .1 for number in range(6)}}
        self.policy['threshold'] = .2
        self.under_way = (objects.MoveUnderWay(
            instance_uuid='wild', source='h0', destination='h1'),)
        report = self.plan(self.seen(wild=.05))
        self.assertEqual(1, len(report.moves))
        self.assertAlmostEqual(report.combined_after, report.moves[-1].combined_after)

    def test_what_is_known_of_a_load_in_one_policy_alone_stays_on_its_host(self):
        problem = dataclasses.replace(
            idle([0, 1], hosts=2), weights=np.array([[.4], [.1]]), scores=np.array([[.6], [.1]]),
            unweighed=np.array([True, False]))
        expected = restraint.outlook(problem, restraint.learnt({}, problem, clouds.NOW)).problem
        self.assertEqual([[.6], [.1]], expected.scores.tolist())

    def test_the_target_stays_above_what_no_placement_goes_below(self):
        """One instance has .8. The other hosts have .3 in the mean, so that .5 is always left."""
        problem = dataclasses.replace(
            idle([0, 1, 1, 1], hosts=3), weights=np.array([[.8], [.2], [.2], [.2]]),
            scores=np.array([[.8], [.6], [.0]]), thresholds=np.array([.4]))
        for variance in (0.0, .001, .01):
            found = restraint.outlook(
                dataclasses.replace(problem, variances=np.full((4, 1), variance)), {})
            self.assertAlmostEqual(.5, found.least[0])
            near = min(max(found.noise[0], restraint.LEAST_GAIN * .4), .2)
            part = (found.problem.thresholds[0] - .5) / near
            self.assertTrue(restraint.LEAST_TARGET - 1e-9 <= part <= 1 + 1e-9, (variance, part))

    def test_loads_are_evened_out_though_one_server_alone_is_above_the_threshold(self):
        """The server of .6 and the mean of the other hosts are .4 apart."""
        self.hosts = 'h0', 'h1', 'h2'
        self.loads = {'large': .6, **{f'vm{number}': .1 for number in range(4)}}
        self.place = {'large': 'h0', 'vm0': 'h1', 'vm1': 'h1', 'vm2': 'h1', 'vm3': 'h2'}
        self.policy['threshold'] = .25
        report = self.plan()
        self.assertEqual([('h1', 'h2')], [(each.source, each.destination)
                                          for each in report.moves])

    def test_a_load_that_is_not_likely_to_last_is_no_reason_to_move(self):
        report = self.plan(self.seen(**dict.fromkeys(self.loads, .01)))
        self.assertEqual(('no_move', ()), (report.outcome, report.moves))

    def test_every_look_is_learnt_from_also_where_nothing_is_to_be_done(self):
        self.policy['threshold'] = .9
        self.plan()
        self.assertEqual(set(self.loads), set(self.learnt['agg']['cpu'].vms))

    def test_what_is_learnt_outlives_a_short_time_without_data(self):
        stats, scores = self.seen(), self.scores
        self.scores = dict
        self.assertEqual('no_data', self.plan(stats, evacuate_disabled_hosts=True).outcome)
        self.assertEqual({'cpu': stats}, self.learnt['agg'])
        self.scores = scores
        self.plan(self.learnt['agg']['cpu'])
        self.assertGreater(self.learnt['agg']['cpu'].known_seconds(('vm0',))[0], 80000)
        self.scores = dict
        for seconds, kept in ((FORGOTTEN, {'cpu'}), (FORGOTTEN + 1, set())):
            old = dataclasses.replace(stats, at=clouds.NOW - seconds)
            self.plan(old, evacuate_disabled_hosts=True)
            self.assertEqual(kept, self.learnt['agg'].keys())

    def test_what_is_learnt_outlives_a_time_in_which_a_host_cannot_be_read(self):
        self.place['vm7'] = 'h2'
        self.plan(self.seen())
        whole, hosts, loads = self.learnt['agg']['cpu'], self.hosts, self.loads
        self.hosts = hosts[:2]
        self.loads = {name: load for name, load in loads.items() if name != 'vm7'}
        for unread, seconds in (({'agg': 'cell two does not answer'}, 86400), ({}, 0)):
            self.unread = unread
            self.plan(whole)
            found = self.learnt['agg']['cpu'].known_seconds(('vm0', 'vm7'))
            self.assertEqual([86400, seconds], found.tolist())

    def test_a_larger_host_that_joins_the_aggregate_changes_no_likely_load(self):
        """Profiles are fractions of a host of 16 CPUs. A host of 64 joins and leaves again."""
        self.policy['threshold'] = .7
        self.plan()
        moves = [(move.phase, move.instance_uuid) for move in self.plan(self.seen()).moves]
        known = self.learnt['agg']['cpu']
        self.hosts += ('h9',)
        self.sizes = {'h9': 64}
        report = self.plan(known)
        self.assertEqual(moves, [(move.phase, move.instance_uuid) for move in report.moves])
        self.assertIn('load of h0 cpu 0.8', report.moves[0].reason)
        large = self.learnt['agg']['cpu']
        np.testing.assert_allclose(known.figures * [1, 1/4, 1/16, 1/4, 1/16], large.figures)
        self.hosts = self.hosts[:-1]
        self.plan(large)
        np.testing.assert_allclose(known.figures, self.learnt['agg']['cpu'].figures)

    def test_without_restraint_nothing_is_learnt(self):
        self.plan(restraint=Restraint())
        self.assertEqual({}, self.learnt)

    def test_an_approved_plan_is_looked_at_by_the_same_load(self):
        self.loads = {'calm': .2, 'quiet': .2, 'wild': .3}
        stats = self.seen(wild=.02)
        policies = PolicySet(policies=(Policy(**self.policy),))
        memory = PlanningHistory(load_stats={'agg': {'cpu': stats}})
        self.assertEqual({}, still_valid(self.snapshot(), policies, self.options, self.ports(),
                                         memory, self.plan(stats)).wrong)
        calm = PlanningHistory(
            load_stats={'agg': {'cpu': self.seen(calm=.01, quiet=.01, wild=.02)}})
        self.assertEqual([1], list(still_valid(self.snapshot(), policies, self.options,
                                            self.ports(), calm, self.plan(stats)).wrong))

    def test_those_that_flicker_are_parted_before_the_load_is_spread(self):
        self.hosts, self.variance = ('h0', 'h1'), .03
        self.loads = {'a': .3, 'b': .3, 'c': .1}
        self.policy['threshold'] = .1
        report = self.plan(self.seen())
        self.assertEqual('relieve', report.moves[0].phase)
        self.assertIn('makes h0 less likely to become full', report.moves[0].reason)

    def test_the_load_is_not_spread_where_that_makes_hosts_likelier_to_become_full(self):
        self.hosts, self.place = ('h0', 'h1'), {'wild': 'h1'}
        self.loads, self.policy['threshold'] = {'a': .05, 'b': .05, 'c': .7, 'wild': .7}, .05
        figures = [[86400, load, .05 if name == 'wild' else 1e-5, load, 0.0]
                   for name, load in self.loads.items()]
        stats = LoadStats(clouds.NOW - 300, tuple(self.loads), np.array(figures))
        self.assertEqual((), self.plan(stats, restraint=Restraint(.1)).moves)
        self.assertEqual(1, len(self.plan(self.seen(), restraint=Restraint(.1)).moves))

    def test_a_full_host_is_relieved_also_where_every_policy_is_within_its_threshold(self):
        self.hosts, self.place = ('h0', 'h1'), {'other': 'h1'}
        self.loads = {'large': .8, 'small': .16, 'other': .62}
        [move] = self.plan(stabilization_cycles=3).moves
        self.assertEqual(('small', 'relieve'), (move.instance_uuid, move.phase))
        self.assertEqual('balanced', self.plan(restraint=Restraint()).outcome)
        self.assertEqual('no_move', self.plan(self.seen(large=.2)).outcome)
        self.loads['large'] = .73
        self.assertEqual('balanced', self.plan().outcome)

    def test_no_host_is_made_fuller_to_make_another_less_full(self):
        """Two hosts at .87 and .95 are no better than two at .91, where all are nearly full."""
        self.hosts, self.variance = ('h0', 'h1', 'h2', 'h3'), 1e-6
        for loads in ([.91, .91, .91, .93], [.89, .91, .92, .93]):
            self.loads = {f'{size}{host}': part * load for host, load in enumerate(loads)
                          for size, part in (('large', .6), ('small', .04), ('other', .36))}
            self.place = {name: f'h{name[-1]}' for name in self.loads}
            for threshold in (.4, .015):
                self.policy['threshold'] = threshold
                moves = self.plan(self.seen(), spread_planner='spread').moves
                self.assertEqual((), tuple(move for move in moves if move.phase == 'relieve'))

    def test_a_disabled_host_is_emptied_as_without_restraint_where_nothing_is_imbalanced(self):
        self.policy['threshold'] = .9
        cloud = self.snapshot()
        service = objects.Service(state='up', status='disabled')
        cloud = dataclasses.replace(cloud, hosts=(
            dataclasses.replace(cloud.hosts[0], service=service), *cloud.hosts[1:]))
        report, = plan_cycle(
            cloud, PolicySet(policies=(Policy(**self.policy),)),
            dataclasses.replace(self.options, evacuate_disabled_hosts=True),
            self.ports()).aggregates
        self.assertEqual({'evacuate'}, {move.phase for move in report.moves})


class SizeTest(Cloud):
    """Properties of plans for clouds of any size."""

    def test_many_hosts_are_brought_to_the_threshold_as_few_are(self):
        """The more hosts there are, the less a single move does to the highest and the lowest."""
        for pairs in (1, 100):
            self.hosts = tuple(f'h{number}' for number in range(2 * pairs))
            self.loads = {f'vm{host:03}{part}': .15 for host in range(pairs) for part in 'abcdef'}
            self.loads |= {f'vm{host:03}a': .1 for host in range(pairs, 2 * pairs)}
            self.place = {name: f'h{int(name[2:5])}' for name in self.loads}
            self.policy |= {'threshold': .2, 'max_migrations_per_cycle': 1000}
            report = self.plan()
            self.assertLessEqual(report.policies[0].imbalance_after, .2 + 1e-9)
            self.assertEqual(2 * pairs, len(report.moves))

    def test_a_plan_that_is_one_of_several_says_so(self):
        self.hosts = tuple(f'h{number}' for number in range(8))
        self.loads = {f'vm{number:02}': .1 for number in range(36)}
        self.place = {name: f'h{int(name[2:]) // 9}' for name in self.loads}
        self.policy |= {'threshold': .1, 'max_migrations_per_cycle': 4}
        report = self.plan(cooldown=600)
        self.assertEqual(4, len(report.moves))
        self.assertIn('This plan is the first of about', ' '.join(report.notes))

    def test_a_plan_after_which_no_other_follows_does_not_say_so(self):
        """One server of .3 and one of .1 are left on h0, and the other host is idle."""
        self.hosts, self.policy['threshold'] = ('h0', 'h1'), .05
        self.loads = {'a': .3, 'b': .13, 'c': .1}
        report = self.plan(cooldown=600)
        self.assertGreater(report.policies[0].imbalance_after, .05)
        self.assertNotEqual((), report.moves)
        self.assertNotIn('first of', ' '.join(report.notes))

    def test_noise_is_not_chased_and_said_where_the_threshold_is_below_it(self):
        self.hosts = tuple(f'h{number}' for number in range(10))
        self.place = {name: f'h{number}' for number, name in enumerate(self.loads)}
        self.variance, self.policy['threshold'] = .0025, .05
        means = dict(self.loads)
        self.loads |= {'vm0': .2, 'vm1': .02}
        report = self.plan(self.seen(**means))
        self.assertEqual(((), 'no_move'), (report.moves, report.outcome))
        [warning] = [each for each in report.warnings if 'noise' in each]
        self.assertIn('the threshold 0.05 is below what noise makes', warning)
        self.assertTrue(.1 < report.policies[0].noise < .2)
        self.assertIn('likely to last', ' '.join(report.notes))

    def test_what_no_placement_can_repair_is_said_and_not_chased(self):
        self.loads = {'large': .8, 'small': .1, 'other': .1}
        self.place = {'large': 'h0', 'small': 'h1', 'other': 'h2'}
        report = self.plan(self.seen())
        self.assertEqual(((), 'no_move'), (report.moves, report.outcome))
        self.assertIn('no placement goes below 0.700', ' '.join(report.notes))
