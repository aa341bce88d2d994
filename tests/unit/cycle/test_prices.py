"""A plan is cut where it stops gaining what it costs."""

import dataclasses

import numpy as np
import testtools

from kronos_nova.cooldown.planning_history import PastTry
from kronos_nova.cycle.prices import COPY_CORES
from kronos_nova.cycle.prices import FULL_HOST
from kronos_nova.cycle.prices import SEEN
from kronos_nova.cycle.prices import SEEN_LEAST
from kronos_nova.cycle.prices import MinGain
from kronos_nova.cycle.prices import copy_prices
from kronos_nova.cycle.prices import prices
from kronos_nova.cycle.prices import still_gains
from kronos_nova.cycle.prices import worthwhile
from kronos_nova.load import load_statistics
from kronos_nova.planners.base import Limits
from kronos_nova.planners.greedy import Greedy
from tests.unit.planners import clouds


def uneven_in_one_of_two(weights):
    """Two hosts; of three instances of these weights the first two are on the fuller one."""
    return dataclasses.replace(
        clouds.idle([0, 0, 1], hosts=2), policies=('a', 'b'), policy_weights=np.array([0.5, 0.5]),
        thresholds=np.zeros(2), weights=np.array(weights),
        scores=np.array([[0.6, 0.3], [0.1, 0.3]]), host_scale=np.ones((2, 2)),
        capacity_scores=np.full((2, 2), np.nan), capacity_thresholds=np.full(2, np.inf))


class WorthTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        # All on one host: three moves gain 0.1, 0.1 and 0.07 of imbalance.
        sizes = np.array([0.1, 0.1, 0.1, 0.05, 0.02])
        problem = clouds.idle([0] * len(sizes), hosts=6)
        scores = np.zeros((6, 1))
        scores[0] = sizes.sum()
        self.problem = dataclasses.replace(
            problem, scores=scores, weights=sizes[:, None], thresholds=np.zeros(1))

    def plan(self, **price):
        cost = prices(self.problem, MinGain(**price), (), Even())
        before, after = (clouds.start(self.problem, prices=cost) for _ in range(2))
        steps = Greedy().plan(after, Limits(budget=10))
        kept = worthwhile(before, after, steps)
        replayed = clouds.start(self.problem)
        for step in kept:
            replayed.move(step.vm, step.destination)
        self.assertTrue(np.allclose(replayed.scores, after.scores))
        return steps, kept

    def test_without_a_price_everything_is_kept(self):
        steps, kept = self.plan()
        self.assertEqual(steps, kept)
        self.assertNotEqual([], steps)

    def test_what_gains_too_little_at_the_end_is_cut_off(self):
        steps, kept = self.plan(per_move=0.095)
        self.assertTrue(0 < len(kept) < len(steps))
        self.assertEqual(steps[:len(kept)], kept)

    def test_a_plan_that_is_not_worth_its_first_move_is_none(self):
        self.assertEqual([], self.plan(per_move=0.9)[1])

    def test_memory_has_a_price_too(self):
        # Instances here have half a GiB.
        self.assertEqual(self.plan(per_move=0.095)[1], self.plan(per_gib=0.19)[1])

    def test_no_cut_leaves_a_policy_spoilt(self):
        problem = uneven_in_one_of_two([[0.4, 0.2], [0.1, 0.0], [0.0, 0.3]])
        cost = prices(problem, MinGain(per_move=0.12), (), Even())
        before, after = (clouds.start(problem, prices=cost) for _ in range(2))
        steps = [clouds.step(after, vm, host) for vm, host in ((0, 1), (2, 0))]
        kept = worthwhile(before, after, steps)
        self.assertEqual([], kept)  # one move alone gains its price, but spoils policy b
        self.assertTrue(np.allclose(before.scores, after.scores))

    def test_what_is_left_of_a_plan_spoils_no_policy(self):
        """The first move of the plan lowers a most, and the second undoes its effect on b."""
        problem = uneven_in_one_of_two([[0.25, 0.05], [0.1, 0.0], [0.0, 0.05]])
        before, after = (clouds.start(problem) for _ in range(2))
        steps = [clouds.step(after, vm, host) for vm, host in ((0, 1), (2, 0))]
        self.assertEqual(steps, still_gains(before, steps))
        self.assertEqual([], still_gains(before, steps[:1]))


class ExcessTest(testtools.TestCase):
    """Four hosts; a move lowers the range of policy a, and takes b away from the mean."""

    def setUp(self):
        super().setUp()
        self.problem = dataclasses.replace(
            clouds.idle([3], hosts=4), policies=('a', 'b'), policy_weights=np.array([0.5, 0.5]),
            thresholds=np.full(2, 0.05), weights=np.array([[0.02, 0.2]]),
            scores=np.array([[0.0, 0.5], [0.0, 0.25], [0.0, 0.0], [0.1, 0.25]]),
            host_scale=np.ones((4, 2)), capacity_scores=np.full((4, 2), np.nan),
            capacity_thresholds=np.full(2, np.inf))

    def kept(self, problem):
        before, after = (clouds.start(problem) for _ in range(2))
        return worthwhile(before, after, [clouds.step(after, 0, 1)])

    def test_with_restraint_a_move_that_adds_to_the_excess_is_none(self):
        restrained = dataclasses.replace(self.problem, variances=np.zeros((1, 2)))
        self.assertEqual([], self.kept(restrained))

    def test_without_restraint_the_combined_imbalance_counts_alone(self):
        self.assertEqual(1, len(self.kept(self.problem)))


class Even:
    """A pace at which every move takes as long as any other, but between a and b of ``slow``."""

    def __init__(self, seconds=0.0, slow=()):
        self._seconds, self._slow = seconds, slow

    def seconds(self, uuid):
        return self._seconds

    def slowness(self, source, destination):
        return 1.5 if (source, destination) in self._slow else 0.5


class ExperienceTest(testtools.TestCase):
    """The cost of a move is learnt from earlier moves; instances here have half a GiB."""

    def setUp(self):
        super().setUp()
        self.problem = clouds.idle([0, 0, 1], hosts=3)

    def prices(self, *tries, pace=None, **price):
        found = prices(self.problem, MinGain(**price), tries, pace or Even())
        return lambda vm, source, destination: round(
            float(found.of_moves(vm, source, destination)), 6)

    def test_a_minute_is_what_the_instance_is_expected_to_take(self):
        of = self.prices(per_move=0.1, per_minute=0.01, pace=Even(180.0))
        self.assertEqual(0.13, of(0, 0, 2))

    def test_between_two_hosts_it_may_take_longer(self):
        of = self.prices(past('v0', 'h0', 'h1', 180), past('v1', 'h0', 'h2', 60), per_minute=0.01,
                         pace=Even(120.0, slow={('h0', 'h1')}))
        self.assertEqual(0.02, of(2, 1, 2))
        self.assertEqual(0.03, of(2, 0, 1))
        self.assertEqual(0.02, of(2, 0, 2))  # faster than elsewhere is no bonus

    def test_failures_count_for_the_instance_and_for_the_pair(self):
        failed = past('v0', 'h0', 'h1', None, failed=True)
        of = self.prices(failed, failed, per_failure=0.01)
        self.assertEqual(0.04, of(0, 0, 1))
        self.assertEqual(0.02, of(0, 0, 2))
        self.assertEqual(0.02, of(1, 0, 1))
        self.assertEqual(0.0, of(1, 1, 0))

    def test_what_was_moved_elsewhere_is_no_matter(self):
        of = self.prices(past('gone', 'h0', 'gone', None, failed=True), per_failure=0.01)
        self.assertEqual(0.0, of(0, 0, 1))


class CopyPricesTest(testtools.TestCase):
    """Savings that an optional move must reach."""

    def prices(self, load_stats, amount=1.0):
        problem = clouds.idle([0, 0], hosts=2)
        return copy_prices(problem, Even(3600.0), amount, load_stats)(np.arange(2))

    def known(self, *seconds):
        figures = np.zeros((2, load_statistics.FIGURES))
        figures[:, 0] = seconds
        return load_statistics.LoadStats(at=0.0, vms=('v0', 'v1'), figures=figures)

    def test_what_was_seen_for_a_short_time_must_save_more(self):
        long, short = self.prices({'cpu': self.known(SEEN, SEEN / 10)})
        self.assertAlmostEqual(2 * COPY_CORES / FULL_HOST, long)
        self.assertAlmostEqual(11 * COPY_CORES / FULL_HOST, short)

    def test_an_instance_is_known_as_long_as_in_the_policy_that_knows_it_best(self):
        both = self.prices({'cpu': self.known(SEEN, 0), 'memory': self.known(0, SEEN)})
        np.testing.assert_allclose(both, 2 * COPY_CORES / FULL_HOST)

    def test_what_is_not_known_counts_as_known_for_the_least_time(self):
        for stats in ({}, {'cpu': load_statistics.LoadStats()}):
            np.testing.assert_allclose(
                self.prices(stats), (1 + SEEN / SEEN_LEAST) * COPY_CORES / FULL_HOST)


def past(instance, source, destination, seconds, failed=False):
    return PastTry(instance_uuid=instance, source=source, destination=destination, memory_mb=512,
                   seconds=seconds, failed=failed)
