"""The hosts that an integer program considers, and the sizes of instances."""

import dataclasses

import numpy as np
import testtools

from kronos_nova.model import Problem
from kronos_nova.model.assignment import parts_of_free_room
from kronos_nova.model.assignment import roomiest
from tests.unit.planners import clouds

FEW = 4
"""Pairs of an instance size and a host with which a program considers two of five hosts, as the
instances have two sizes."""


class RoomiestTest(testtools.TestCase):
    """Instances of 1 and 2 VCPU leave h0. Of the hosts h1 to h4, the last two have most room."""

    PROBLEM = dataclasses.replace(
        clouds.idle([0, 0, 0], hosts=5), demands=np.array([[1.0], [1.0], [2.0]]),
        limits=np.array([[9.0], [1.0], [2.0], [3.0], [4.0]]),
        draining=np.array([True, False, False, False, False]),
        available=np.array([False, True, True, True, True]))

    def assert_last_two(self, problem: Problem) -> None:
        self.assertEqual([3, 4], np.flatnonzero(roomiest(clouds.start(problem), FEW)).tolist())

    def test_the_hosts_with_most_room_are_considered(self):
        self.assert_last_two(self.PROBLEM)

    def test_what_hosts_share_does_not_make_them_equal(self):
        provider = np.stack([np.arange(5), np.full(5, 5)], axis=1)
        limits = np.column_stack([np.append(self.PROBLEM.limits, 0.0), [0.0] * 5 + [99.0]])
        self.assert_last_two(self._with_class('DISK_GB', np.ones(3), limits, provider=provider,
                                              shared=('pool',)))

    def test_a_class_that_only_some_hosts_have_does_not_make_the_others_equal(self):
        limits = np.column_stack([self.PROBLEM.limits, [2.0, 2.0, 0.0, 0.0, 0.0]])
        self.assert_last_two(self._with_class('VGPU', np.array([0.0, 0.0, 1.0]), limits))

    def test_a_host_without_a_class_that_is_needed_comes_last(self):
        limits = np.column_stack([self.PROBLEM.limits, [9.0, 9.0, 9.0, 9.0, 0.0]])
        problem = self._with_class('DISK_GB', np.ones(3), limits)
        self.assertEqual([2, 3], np.flatnonzero(roomiest(clouds.start(problem), FEW)).tolist())

    def _with_class(self, name: str, demands: np.ndarray, limits: np.ndarray,
                    **fields: object) -> Problem:
        return dataclasses.replace(
            self.PROBLEM, resource_classes=('VCPU', name), limits=limits,
            used=np.zeros(limits.shape), demands=np.column_stack([self.PROBLEM.demands, demands]),
            **fields)


class PartsOfFreeRoomTest(testtools.TestCase):
    def test_what_hosts_share_counts_as_what_they_have(self):
        problem = dataclasses.replace(
            clouds.idle([0, 0], hosts=2), resource_classes=('VCPU', 'DISK_GB'),
            demands=np.array([[4.0, 10.0], [1.0, 20.0]]), used=np.zeros((3, 2)),
            limits=np.array([[5.0, 0.0], [5.0, 0.0], [0.0, 1000.0]]),
            provider=np.array([[0, 2], [1, 2]]), shared=('pool',))
        found = parts_of_free_room(clouds.start(problem), np.array([0, 1]))
        self.assertEqual([0.4, 0.1], found.tolist())
