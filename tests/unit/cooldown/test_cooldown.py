"""Servers that were moved stay for a while, longer each time, and are not sent back."""

import testtools
from hypothesis import given
from hypothesis import strategies as st

from kronos_nova.cooldown import PastMove
from kronos_nova.cooldown import PlanningHistory
from kronos_nova.cooldown import growing
from kronos_nova.cooldown import left


class PlanningHistoryTest(testtools.TestCase):
    def test_nothing_lasts_longer_than_is_configured_now(self):
        history = PlanningHistory(aggregates={'gpu': 9000}, instances={'a': 9000, 'b': 5},
                        quarantines={'c': 9000, 'd': -1})
        self.assertEqual(
            PlanningHistory(aggregates={'gpu': 600}, instances={'a': 60, 'b': 5},
                            quarantines={'c': 70, 'd': -1}), history.clamped(600, 60, 70))

    def test_any_quarantine_stands_where_they_are_indefinite(self):
        history = PlanningHistory(quarantines={'c': 9000})
        self.assertEqual(history, history.clamped(1, 1, -1))

    def test_what_is_over_holds_nothing(self):
        history = PlanningHistory(aggregates={'gpu': 0}, instances={'a': 0},
                                  quarantines={'b': 0, 'c': -1})
        self.assertFalse(history.is_cooling('gpu'))
        self.assertEqual([None, None, 'quarantine'], [history.hold_on(uuid) for uuid in 'abc'])

    def test_quarantine_says_more_than_cooldown(self):
        history = PlanningHistory(instances={'a': 5}, quarantines={'a': 5})
        self.assertEqual('quarantine', history.hold_on('a'))


class GrowingTest(testtools.TestCase):
    def test_each_time_is_longer_up_to_the_longest(self):
        self.assertEqual([60, 120, 240, 300, 300], [growing(60, 2, 300, n) for n in range(5)])

    def test_a_factor_of_one_keeps_it(self):
        self.assertEqual(60, growing(60, 1, 300, 7))

    def test_a_longest_below_the_first_does_not_shorten_it(self):
        self.assertEqual([60, 60], [growing(60, 2, 10, n) for n in range(2)])

    @given(st.integers(1, 10_000), st.floats(1, 10), st.integers(0, 10_000), st.integers(0, 10**6))
    def test_it_never_shrinks_and_always_ends(self, seconds, factor, longest, times):
        self.assertTrue(seconds <= growing(seconds, factor, longest, times)
                        <= max(seconds, longest))


class LeftTest(testtools.TestCase):
    def test_only_moves_within_the_window_count(self):
        moves = [PastMove(instance_uuid='a', source='h1', destination='h2', ended_at=100),
                 PastMove(instance_uuid='a', source='h0', destination='h1', ended_at=10)]
        self.assertEqual({('a', 'h1')}, left(moves, 50))
        self.assertEqual({('a', 'h1'), ('a', 'h0')}, left(moves, 10))
