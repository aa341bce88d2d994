import dataclasses
import datetime

import testtools

from kronos_nova.executor import progress
from kronos_nova.objects import move as moves

NOW = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)


def move(state=moves.MIGRATING, **changes):
    return moves.MoveRecord(**{**dict(
        uuid='move', plan_uuid='plan', aggregate='gpu', ordinal=1, phase='spread',
        instance_uuid='vm1', source='a', destination='b', memory_mb=2048, reason='spreads',
        state=state, not_before=NOW, created_at=NOW, requested_at=NOW), **changes})


class ProgressTest(testtools.TestCase):
    def test_how_much_is_copied(self):
        self.assertEqual(75.0, progress.percent(move(memory_total=400, memory_remaining=100)))
        self.assertEqual(0.0, progress.percent(move(memory_total=400, memory_remaining=500)))
        self.assertEqual(100.0, progress.percent(move(moves.COMPLETED)))
        for unknown in (move(), move(memory_total=0, memory_remaining=0),
                        move(moves.PLANNED, memory_total=400, memory_remaining=100)):
            self.assertIsNone(progress.percent(unknown))

    def test_the_end_uses_moves_of_about_the_same_memory(self):
        small, large = [(1024, 10.0)] * 20, [(65536, 1000.0)] * 20
        for memory_mb, seconds in ((1024, 10.0), (2048, 20.0), (65536, 1000.0)):
            self.assertEqual(seconds, progress.expected_seconds(
                move(memory_mb=memory_mb), lambda: small + large))
        self.assertEqual(NOW + datetime.timedelta(seconds=20),
                         progress.estimated_end(move(), lambda: small))

    def test_how_wrong_predictions_were_is_their_median(self):
        self.assertEqual(0.25, progress.error([(10.0, 10.0), (75.0, 100.0), (100.0, 10.0)]))
        self.assertIsNone(progress.error([]))

    def test_what_the_plan_expected_goes_before(self):
        def unasked():
            raise AssertionError('moves of the past are not read for that')
        self.assertEqual(30.0, progress.expected_seconds(move(expected_seconds=30.0), unasked))
        self.assertEqual(30.0, progress.remaining_seconds(
            [move(moves.PLANNED, expected_seconds=30.0, requested_at=None)], unasked,
            moves.Caps(total=2, per_source=2, per_destination=2), NOW))

    def test_nothing_is_reported_without_observations_or_before_it_begins(self):
        self.assertIsNone(progress.estimated_end(move(), list))
        self.assertIsNone(progress.estimated_end(move(moves.PLANNED), lambda: [(1024, 10.0)]))


class RemainingTest(testtools.TestCase):
    CAPS = moves.Caps(total=2, per_source=2, per_destination=2)

    def move(self, number, **what):
        return move(**{'state': moves.PLANNED, 'uuid': str(number), 'instance_uuid': str(number),
                       'memory_mb': 1024, 'requested_at': None, **what})

    def remaining(self, *waiting, observed=((1024, 10.0),)):
        return progress.remaining_seconds(waiting, lambda: observed, self.CAPS, NOW)

    def test_moves_follow_each_other_as_the_caps_let_them(self):
        self.assertEqual(0, self.remaining())
        self.assertEqual(10, self.remaining(self.move(1)))
        self.assertEqual(10, self.remaining(self.move(1), self.move(2)))
        self.assertEqual(20, self.remaining(self.move(1), self.move(2), self.move(3)))

    def test_what_one_took_already_is_not_counted_again(self):
        begun = NOW - datetime.timedelta(seconds=4)
        self.assertEqual(6, self.remaining(
            self.move(1, state=moves.MIGRATING, requested_at=begun)))

    def test_the_end_of_a_move_that_takes_far_too_long_is_not_predicted(self):
        for seconds, expected in ((59, 1), (61, None)):
            begun = NOW - datetime.timedelta(seconds=seconds)
            self.assertEqual(expected, self.remaining(
                self.move(1, state=moves.MIGRATING, requested_at=begun)))

    def test_they_go_in_the_order_of_their_positions(self):
        found = [self.move(n, position=3 - n, expected_seconds=float(seconds))
                 for n, seconds in enumerate((5, 1, 1))]
        self.assertEqual(6, self.remaining(*found, observed=()))
        self.assertEqual(5, self.remaining(*(dataclasses.replace(each, position=each.position * -1)
                                             for each in found), observed=()))

    def test_nothing_is_reported_without_observations(self):
        self.assertIsNone(self.remaining(self.move(1), observed=()))
