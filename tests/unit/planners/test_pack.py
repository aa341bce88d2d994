"""pack frees hosts, keeps every rule on the way, and gets out of hosts that are full."""

import dataclasses

import numpy as np
import testtools
from hypothesis import assume
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from kronos_nova.model import Problem
from kronos_nova.model.keys import equal_rows
from kronos_nova.planners.base import Limits
from kronos_nova.planners.ffd import FirstFitDecreasing
from kronos_nova.planners.pack import Pack
from tests.unit.planners import clouds


def plan(planner, problem, limits):
    """(steps, state after them)"""
    state = clouds.start(problem)
    return planner.plan(state, limits), state


def freed(problem, state):
    """Count the empty hosts. A host that is a destination of a move in progress is not empty."""
    arriving = set(problem.arriving)
    return len(set(problem.vm_host) | arriving) - len(set(state.vm_host) | arriving)


def cloud(hosts, vms, limit):
    """Hosts of the same size; an instance is (host, VCPU, MEMORY_MB)."""
    vm_host, *demands = np.array(vms, dtype=float).T
    demands, limits = np.array(demands).T, np.tile(np.array(limit, float), (hosts, 1))
    vm_host = vm_host.astype(int)
    used, weights = np.zeros((hosts, 2)), demands / limits[0]
    np.add.at(used, vm_host, demands)
    return Problem(
        hosts=tuple(f'h{n}' for n in range(hosts)), vms=tuple(f'v{n}' for n in range(len(vms))),
        policies=('cpu', 'memory'), resource_classes=('VCPU', 'MEMORY_MB'),
        policy_weights=np.full(2, 0.5), thresholds=np.zeros(2), scores=used / limits,
        weights=weights, host_scale=np.ones((hosts, 2)), capacity_scores=used / limits,
        capacity_thresholds=np.ones(2), vm_host=vm_host, memory_mb=demands[:, 1].astype(int),
        movable=np.ones(len(vms), bool), available=np.ones(hosts, bool), used=used, limits=limits,
        demands=demands)


def fewest_hosts(problem, budget):
    """The fewest hosts in use after any sequence of moves within the budget."""
    fewest, places, seen = 99, {tuple(problem.vm_host.tolist())}, set()
    for _ in range(budget + 1):
        fewest = min([fewest, *(len(set(place)) for place in places)])
        seen |= places
        places = {after for place in places for after in _after_one_move(problem, place)} - seen
    return fewest


def _after_one_move(problem, place):
    used = np.zeros(problem.limits.shape)
    np.add.at(used, list(place), problem.demands)
    for vm, here in enumerate(place):
        for host in range(len(problem.hosts)):
            if host != here and (used[host] + problem.demands[vm] <= problem.limits[host]).all():
                yield (*place[:vm], host, *place[vm + 1:])


class PackTest(testtools.TestCase):
    @settings(max_examples=40 * clouds.MANY, deadline=None)
    @given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4), st.integers(1, 4)),
                    min_size=4, max_size=7), st.integers(2, 5))
    def test_as_many_hosts_are_freed_as_can_be(self, servers, budget):
        problem = cloud(4, servers, [8, 8])
        assume((problem.used <= problem.limits).all())
        _steps, state = plan(Pack(), problem, Limits(budget=budget))
        self.assertEqual(fewest_hosts(problem, budget), len(set(state.vm_host.tolist())))

    @clouds.judges(4)
    @settings(max_examples=40 * clouds.MANY, deadline=None)
    @given(clouds.problems())
    def test_every_constraint_holds_after_every_step(self, problem):
        steps, _ = plan(Pack(), problem, Limits(budget=6))
        self.assertLessEqual(len([*clouds.replayed(self, problem, steps)]), 6)

    @settings(max_examples=40 * clouds.MANY, deadline=None)
    @given(clouds.problems())
    def test_it_never_frees_fewer_hosts_than_ffd(self, problem):
        limits = Limits(budget=6)
        _, simple = plan(FirstFitDecreasing(), problem, limits)
        _, state = plan(Pack(), problem, limits)
        self.assertGreaterEqual(freed(problem, state), freed(problem, simple))

    @settings(max_examples=20 * clouds.MANY, deadline=None)
    @given(clouds.problems())
    def test_it_is_the_same_every_time_and_moves_nothing_without_a_host_freed(self, problem):
        steps, state = plan(Pack(), problem, Limits(budget=6))
        self.assertEqual(plan(Pack(), problem, Limits(budget=6))[0], steps)
        self.assertTrue(not steps or freed(problem, state) > 0)

    @settings(max_examples=10 * clouds.MANY, deadline=None)
    @given(clouds.problems())
    def test_at_the_deadline_it_is_as_good_as_ffd(self, problem):
        limits = Limits(budget=6, clock=lambda: 1.0, deadline=1.0)
        _, simple = plan(FirstFitDecreasing(), problem, limits)
        _, state = plan(Pack(), problem, limits)
        self.assertGreaterEqual(freed(problem, state), freed(problem, simple))


class FirstFitDecreasingTest(testtools.TestCase):
    def test_a_reason_says_whether_the_host_is_emptied(self):
        """Only one instance of h0 fits elsewhere, and the only one of h1 fits on h2."""
        problem = cloud(3, [(0, 5, 1), (0, 1, 1), (1, 2, 1), (2, 2, 1), (2, 5, 1)], (10, 10))
        steps, state = plan(FirstFitDecreasing(), problem, Limits(budget=1))
        self.assertEqual(['empties h1'], [step.why for step in steps])
        steps, state = plan(FirstFitDecreasing(), dataclasses.replace(
            problem, movable=np.arange(5) == 1), Limits(budget=9))
        self.assertEqual(['takes servers off h0, which is not emptied'],
                         [step.why for step in steps])
        self.assertGreater(state.guests[0], 0)


class FullHostsTest(testtools.TestCase):
    """One host is out of VCPU, another out of memory; a third is small and could go."""

    def setUp(self):
        super().setUp()
        self.problem = cloud(3, [
            (0, 4, 1), (0, 4, 1),   # all VCPU taken, six memory left
            (1, 1, 4), (1, 1, 4),   # all memory taken, six VCPU left
            (2, 1, 1), (2, 1, 1)], limit=(8, 8))

    def test_ffd_can_free_none(self):
        self.assertEqual([], plan(FirstFitDecreasing(), self.problem, Limits(budget=9))[0])

    def test_full_hosts_exchange_instances_until_one_is_free(self):
        steps, state = plan(Pack(), self.problem, Limits(budget=9))
        self.assertEqual(1, freed(self.problem, state))
        self.assertLessEqual(len(steps), 6)

    def test_a_host_that_the_budget_cannot_empty_is_not_started(self):
        self.assertEqual([], plan(Pack(), self.problem, Limits(budget=2))[0])


class EqualRowsTest(testtools.TestCase):
    @given(st.integers(1, 4).flatmap(lambda width: st.lists(
        st.tuples(*[st.sampled_from([0.0, 0.5, 1.0])] * width), min_size=1)))
    def test_they_are_numbered_as_numpy_would(self, rows):
        expected = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
        self.assertEqual(expected.tolist(), equal_rows(np.array(rows)).tolist())

    def test_rows_of_nothing_are_equal(self):
        self.assertEqual([0, 0, 0], equal_rows(np.zeros((3, 0))).tolist())
        self.assertEqual([], equal_rows(np.zeros((0, 2))).tolist())
