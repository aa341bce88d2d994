"""The order in which the moves of a way are made."""

import dataclasses

import numpy as np
import testtools

from kronos_nova.planners.base import Limits
from kronos_nova.planners.level import possible
from kronos_nova.planners.order import Ordering
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


class PossibleTest(testtools.TestCase):
    def test_a_move_beyond_the_budget_makes_the_room_that_an_earlier_one_needs(self):
        problem = dataclasses.replace(
            clouds.idle([0, 1], hosts=3), weights=np.array([[0.3], [0.3]]),
            scores=np.array([[0.9], [0.6], [0.0]]), limits=np.array([[9.0], [1.0], [9.0]]),
            used=np.array([[1.0], [1.0], [0.0]]))
        way, one = [(0, 1), (1, 2)], dataclasses.replace(LIMITS, budget=1, overload_ceiling=9.0)
        self.assertEqual([], possible(clouds.start(problem), way[:1], one))
        self.assertEqual([(1, 2)], possible(clouds.start(problem), way, one))
