"""``bench moves`` makes the plan that its workers carry out."""

import testtools

from bench import moves


class PlanTest(testtools.TestCase):
    def test_a_plan_has_the_wanted_number_of_moves_in_order(self):
        plan = moves._report(3)
        self.assertEqual([1, 2, 3], [each.order for each in plan.moves])
        self.assertEqual(['host1', 'host2', 'host3'], [each.source for each in plan.moves])
