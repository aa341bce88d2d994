"""The order in which the moves of a way are made."""

import dataclasses

import numpy as np
import testtools

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.model import Group
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import Step
from kronos_nova.planners.level import possible
from kronos_nova.planners.order import Ordering
from kronos_nova.planners.order import Prefixes
from kronos_nova.planners.order import dependencies
from kronos_nova.planners.order import without_detours
from tests.unit.planners import clouds

LIMITS = Limits(budget=10)
UNEVEN = dataclasses.replace(
    clouds.idle([0, 1], hosts=3), weights=np.full((2, 1), 0.2),
    scores=np.array([[0.5], [0.4], [0.3]]))
"""Instance 0 evens the load on host 2; instance 1 on host 0 makes it more uneven."""
EVENS, SPOILS = (0, 2), (1, 0)


class OrderingTest(testtools.TestCase):
    def ordered(self, moves, **limits):
        ordering = Ordering(clouds.start(UNEVEN), LIMITS, **limits)
        self.assertTrue(ordering.do_all(moves))
        return ordering.done

    def test_the_order_given_is_kept_as_far_as_it_is_possible(self):
        self.assertEqual([SPOILS, EVENS], self.ordered([SPOILS, EVENS]))

    def test_a_move_that_spoils_a_policy_waits_for_one_that_does_not(self):
        self.assertEqual([EVENS, SPOILS], self.ordered([SPOILS, EVENS], most=np.array([0.3])))

    def test_it_is_made_where_no_other_move_is_possible(self):
        self.assertEqual([SPOILS], self.ordered([SPOILS], most=np.array([0.3])))


class OtherOrderTest(testtools.TestCase):
    """Host 1 has room for one instance. Of the two that go there the one from host 2 has to be
    first: only then there is room on host 2 for the one that leaves host 1 to the other."""

    PROBLEM = dataclasses.replace(
        clouds.idle([0, 1, 2], hosts=3), limits=np.array([[1.0], [2.0], [1.0]]),
        used=np.array([[1.0], [1.0], [1.0]]))
    FIRST, SECOND, THIRD = (2, 1), (1, 2), (0, 1)

    def test_a_dead_end_is_left_without_putting_an_instance_aside(self):
        ordering = Ordering(clouds.start(self.PROBLEM), Limits(budget=3))
        self.assertTrue(ordering.do_all([self.THIRD, self.FIRST, self.SECOND]))
        self.assertEqual([self.FIRST, self.SECOND, self.THIRD], ordering.done)
        self.assertEqual([1, 2, 1], ordering.state.vm_host.tolist())

    def test_what_is_possible_is_made_where_there_is_no_order(self):
        ordering = Ordering(clouds.start(self.PROBLEM), Limits(budget=2))
        self.assertFalse(ordering.do_all([self.THIRD, self.FIRST]))
        self.assertEqual([self.THIRD], ordering.done)
        self.assertEqual([1, 1, 2], ordering.state.vm_host.tolist())


class HinderedOrderTest(testtools.TestCase):
    """Each of three moves goes to another host. Only with the first of them made last is there an
    order: it takes what the second one needs."""

    FIRST, SECOND, THIRD = (0, 1), (1, 2), (2, 0)
    PROBLEM = dataclasses.replace(
        clouds.idle([4, 0, 3], hosts=5), used=np.array([[1.0], [0.0], [0.0], [1.0], [1.0]]),
        limits=np.array([[1.0], [1.0], [1.0], [1.0], [1.0]]))

    def assert_ordered(self, problem):
        ordering = Ordering(clouds.start(problem), Limits(budget=3))
        self.assertTrue(ordering.do_all([self.FIRST, self.SECOND, self.THIRD]))
        self.assertEqual([self.SECOND, self.THIRD, self.FIRST], ordering.done)

    def test_a_move_takes_the_last_room_of_a_provider_that_hosts_share(self):
        provider = np.stack([np.arange(5), [0, 5, 5, 5, 4]], axis=1)
        used = np.array([[1.0, 1.0], [0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
        limits = np.array([[1.0, 9.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 9.0], [0.0, 2.0]])
        self.assert_ordered(dataclasses.replace(
            self.PROBLEM, resource_classes=('VCPU', 'DISK_GB'), demands=np.ones((3, 2)),
            provider=provider, shared=('pool',), used=used, limits=limits))

    def test_a_move_takes_the_last_place_of_its_group_in_a_failure_domain(self):
        group = Group(uuid='g', name='g', members=np.arange(3), anti=True, hard=True,
                      max_per_host=2, places=np.array([0, 1, 1, 1, 2]))
        self.assert_ordered(dataclasses.replace(self.PROBLEM, groups=(group,)))


class ReservedRoomTest(testtools.TestCase):
    """The hosts in use have 5 free, of which as much as the largest host has must stay free. The
    room of h2 counts once v0 is there. Then h1 may become empty, and its room no longer counts."""

    MOVES = ((0, 2), (2, 0))

    def waits(self, *others, moves=MOVES):
        hosts = 3 + len(others)
        problem = clouds.idle([0, 0, 1, *others], hosts=hosts)
        problem = dataclasses.replace(
            problem, used=np.bincount(problem.vm_host, minlength=hosts)[:, None].astype(float),
            limits=np.full((hosts, 1), 4.0))
        before = clouds.start(problem, rules=ConstraintRules(reserve_hosts=1))
        after = before.copy()
        steps = [clouds.step(after, vm, host) for vm, host in moves]
        return dependencies(steps, before)

    def test_a_host_becomes_empty_after_the_move_that_brings_the_room_kept_free_instead(self):
        self.assertEqual([(), (0,)], self.waits())

    def test_the_last_instance_leaves_a_host_after_the_one_that_keeps_it_in_use(self):
        self.assertEqual([(), (0,)], self.waits(moves=((0, 1), (2, 0))))

    def test_it_waits_for_none_where_enough_is_free_without_that(self):
        self.assertEqual([(), ()], self.waits(3))


class PossibleTest(testtools.TestCase):
    def test_a_move_beyond_the_budget_makes_the_room_that_an_earlier_one_needs(self):
        problem = dataclasses.replace(
            clouds.idle([0, 1], hosts=3), weights=np.array([[0.3], [0.3]]),
            scores=np.array([[0.9], [0.6], [0.0]]), limits=np.array([[9.0], [1.0], [9.0]]),
            used=np.array([[1.0], [1.0], [0.0]]))
        way, one = [(0, 1), (1, 2)], dataclasses.replace(LIMITS, budget=1, overload_ceiling=9.0)
        self.assertEqual([], possible(clouds.start(problem), way[:1], one))
        self.assertEqual([(1, 2)], possible(clouds.start(problem), way, one))


class PrefixesTest(testtools.TestCase):
    """Loads of .9, .5 and .3. Moving .5 from the first host to the second, or .3 from the second to
    the third, is worse than the start; both together are better."""

    PROBLEM = dataclasses.replace(
        clouds.idle([0, 1, 1, 0], hosts=4), weights=np.array([[0.5], [0.3], [0.05], [0.05]]),
        scores=np.array([[0.9], [0.5], [0.3], [0.3]]))
    FIRST, SECOND, ALONE = (0, 1), (1, 2), (3, 3)

    def sorted(self, moves, problem=PROBLEM):
        start = clouds.start(problem)
        steps = [Step(vm=vm, source=int(problem.vm_host[vm]), destination=host, reason='',
                      combined_after=0.0) for vm, host in moves]
        found = Prefixes(start, steps)
        order = found.order()
        return [moves[n] for n in order], found.joint_moves(order)

    def test_moves_that_help_only_together_are_a_group(self):
        self.assertEqual(([self.FIRST, self.SECOND], [1, 1]),
                         self.sorted([self.FIRST, self.SECOND]))

    def test_a_move_that_helps_alone_comes_first_and_is_in_no_group(self):
        self.assertEqual(([self.ALONE, self.SECOND, self.FIRST], [None, 1, 1]),
                         self.sorted([self.FIRST, self.ALONE, self.SECOND]))

    def test_a_plan_that_may_be_cut_anywhere_keeps_its_order(self):
        moves = [self.ALONE, (2, 2)]
        for order in (moves, moves[::-1]):
            self.assertEqual((order, [None, None]), self.sorted(order))

    def test_an_order_that_nothing_allows_is_not_chosen(self):
        """The second host is full until its instance leaves."""
        full = dataclasses.replace(
            self.PROBLEM, limits=np.array([[9.0], [1.0], [9.0], [9.0]]),
            used=np.array([[2.0], [1.0], [0.0], [0.0]]))
        moves = [self.SECOND, self.FIRST]
        self.assertEqual((moves, [1, 1]), self.sorted(moves, full))

    def test_outside_groups_no_prefix_is_above_the_start(self):
        rng = np.random.default_rng(3)
        grouped = 0
        for _ in range(200):
            weights = rng.choice([0.05, 0.1, 0.2, 0.4], (8, 1))
            place = rng.integers(0, 4, 8)
            scores = np.zeros((4, 1))
            np.add.at(scores, place, weights)
            problem = dataclasses.replace(clouds.idle(place.tolist(), hosts=4), weights=weights,
                                          scores=scores)
            moves = [(int(vm), int(rng.choice([host for host in range(4) if host != place[vm]])))
                     for vm in rng.permutation(8)[:5]]
            order, groups = self.sorted(moves, problem)
            self.assertEqual({*moves}, {*order})
            state = clouds.start(problem)
            before = state.combined()
            for number, (vm, host) in enumerate(order):
                state.move(vm, host)
                rest = groups[number + 1:]
                is_within = groups[number] is not None and (
                    not rest or rest[0] == groups[number])
                self.assertTrue(is_within or state.combined() <= before + 1e-9)
            grouped += any(group is not None for group in groups)
        self.assertGreater(grouped, 20)


class DetoursTest(testtools.TestCase):
    """v0 goes to h1, and v1 by h2 to h3. What counts is that v1 leaves h0."""

    MOVES = [(0, 1), (1, 2), (1, 3)]

    def kept(self, **options):
        return without_detours(clouds.start(clouds.idle([0, 0], hosts=4)), self.MOVES,
                               lambda state: float(state.vm_host[1] == 0), **options)

    def test_one_that_moves_twice_moves_once(self):
        self.assertEqual([(0, 1), (1, 2)], self.kept())

    def test_one_that_returns_stays(self):
        self.assertEqual([(0, 1)], without_detours(
            clouds.start(clouds.idle([0, 0], hosts=4)), [(0, 1), (1, 2), (1, 0)],
            lambda state: float(state.vm_host[1] != 0)))

    def test_one_that_serves_nothing_is_left_out(self):
        self.assertEqual([(1, 2)], self.kept(every=True))
