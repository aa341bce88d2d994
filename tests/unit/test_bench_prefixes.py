"""Counts of the bench of prefixes."""

import testtools

from bench import prefixes


class PrefixesTest(testtools.TestCase):
    def test_a_prefix_is_worse_where_the_imbalance_is_above_that_of_the_start(self):
        found = prefixes.prefixes((0.5, 0.6, 0.5, 0.4), (None, None, None))
        self.assertEqual((3, 1, 1), (found.count, found.worse, found.outside))
        self.assertAlmostEqual(0.1, found.most)

    def test_one_that_ends_within_a_group_is_counted_apart(self):
        found = prefixes.prefixes((0.5, 0.6, 0.4, 0.7), (1, 1, 2))
        self.assertEqual((2, 1, (2, 1)), (found.worse, found.outside, found.groups))

    def test_figures_of_plans_add_up(self):
        one = prefixes.prefixes((0.5, 0.6, 0.4), (1, 1))
        both = one + prefixes.prefixes((0.5, 0.4), (None,))
        self.assertEqual((3, 1, 0, (2,)), (both.count, both.worse, both.outside, both.groups))

    def test_an_empty_plan_has_none(self):
        self.assertEqual(prefixes.Prefixes(), prefixes.prefixes((0.5,), ()))
