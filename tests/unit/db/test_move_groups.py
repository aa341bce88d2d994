"""Moves of a plan that help only together: approved, begun and given up together."""

import dataclasses
import datetime

import testtools

from kronos_nova.db import journal as db_journal
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from kronos_nova.operations import approving
from tests.unit.db import fixtures

WIDE = moves.Caps(total=9, per_source=9, per_destination=9)
NARROW = moves.Caps(total=1, per_source=1, per_destination=1)


class MoveGroupsTest(testtools.TestCase):
    """Moves 1 and 3 are a group, and move 4 depends on move 3."""

    def setUp(self):
        super().setUp()
        self.clock = fixtures.Clock()
        self.database = self.useFixture(fixtures.ControlDatabase()).database
        self.journal = db_journal.Journal(self.database, 'one')

    def plan(self, state=plans.EXECUTING):
        report = fixtures.report([('vm1', 'a', 'b'), ('vm2', 'c', 'd'), ('vm3', 'e', 'f'),
                                  ('vm4', 'g', 'h', 3)])
        return self.journal.record_plan(
            dataclasses.replace(report, moves=tuple(
                dataclasses.replace(move, group=1 if move.order in (1, 3) else None,
                                    expected_seconds=100.0) for move in report.moves)),
            state, self.clock(), self.clock() + datetime.timedelta(hours=1))

    def approve(self, **chosen):
        uuid = self.plan(plans.PROPOSED)
        approving.approve(self.journal, self.journal.plan(uuid), 'jane', self.clock(), **chosen)
        report = plans.AggregateReport.from_json(self.journal.plan(uuid).report)
        return [move.order for move in report.moves]

    def dispatched(self, caps=WIDE, stale_after=None):
        return [move.ordinal for move in self.journal.dispatch(
            caps, self.clock, stale_after=stale_after)]

    def end(self, ordinal, *states):
        [uuid] = [move.uuid for move in self.journal.moves() if move.ordinal == ordinal]
        move = self.journal.claim(uuid, self.clock())
        for state in states:
            move = self.journal.advance(move, state, self.clock(), 'ended')

    def test_the_journal_keeps_the_group(self):
        self.plan()
        self.assertEqual([1, None, 1, None], [move.group for move in sorted(
            self.journal.moves(), key=lambda move: move.ordinal)])

    def test_a_group_is_left_out_as_a_whole_and_what_depends_on_it_too(self):
        self.assertEqual([2], self.approve(skip=[1]))

    def test_a_move_that_is_left_out_leaves_no_other_group_out(self):
        self.assertEqual([1, 3, 4], self.approve(skip=[2]))

    def test_a_group_is_made_as_a_whole(self):
        self.assertEqual([1, 3], self.approve(only=[1]))

    def test_a_group_that_a_move_depends_on_is_made_too(self):
        self.assertEqual([1, 3, 4], self.approve(only=[4]))

    def test_what_makes_room_for_a_move_that_is_left_out_is_left_out_too(self):
        report = fixtures.making_room(fixtures.report([
            ('vm1', 'a', 'b'), ('vm2', 'b', 'c', 1), ('vm3', 'c', 'd', 2), ('vm4', 'e', 'f')]),
            1, 2)
        uuid = self.journal.record_plan(report, plans.PROPOSED, self.clock(),
                                        self.clock() + datetime.timedelta(hours=1))
        approving.approve(self.journal, self.journal.plan(uuid), 'jane', self.clock(), skip=[3])
        kept = plans.AggregateReport.from_json(self.journal.plan(uuid).report).moves
        self.assertEqual([4], [move.order for move in kept])

    def test_what_makes_room_for_the_only_move_that_is_made_is_made_too(self):
        report = fixtures.making_room(fixtures.report([
            ('vm1', 'a', 'b'), ('vm2', 'b', 'c', 1), ('vm3', 'e', 'f')]), 1)
        uuid = self.journal.record_plan(report, plans.PROPOSED, self.clock(),
                                        self.clock() + datetime.timedelta(hours=1))
        approving.approve(self.journal, self.journal.plan(uuid), 'jane', self.clock(), only=[2])
        kept = plans.AggregateReport.from_json(self.journal.plan(uuid).report).moves
        self.assertEqual([1, 2], [move.order for move in kept])

    def test_what_makes_room_for_several_moves_is_begun_as_long_as_one_of_them_waits(self):
        report = fixtures.making_room(fixtures.report([
            ('vm1', 'a', 'b'), ('vm2', 'c', 'a', 1), ('vm3', 'd', 'a', 1)]), 1)
        self.journal.record_plan(report, plans.EXECUTING, self.clock(),
                                 self.clock() + datetime.timedelta(hours=1))
        first, second, third = sorted(self.journal.moves(), key=lambda move: move.ordinal)
        self.journal.request_abort(second.uuid, 'jane', self.clock())
        self.assertEqual([2], [move.ordinal for move in self.journal.abandon(
            self.clock(), self.clock())])
        self.journal.request_abort(third.uuid, 'jane', self.clock())
        given_up = self.journal.abandon(self.clock(), self.clock())
        self.assertEqual({1, 3}, {move.ordinal for move in given_up})
        self.assertEqual('only makes room for moves that do not take place: 2, 3',
                         self.journal.events(first.uuid)[-1][-1])

    def test_a_group_that_cannot_be_finished_in_time_is_not_begun(self):
        self.plan()
        self.clock.go(310)
        self.assertEqual([2], self.dispatched(stale_after=400.0))

    def test_a_group_that_can_be_finished_in_time_is_begun(self):
        self.plan()
        self.clock.go(150)
        self.assertEqual([1, 2, 3], self.dispatched(stale_after=400.0))

    def test_a_group_that_has_begun_is_finished(self):
        self.plan()
        self.assertEqual([1], self.dispatched(NARROW, 400.0))
        self.clock.go(390)
        self.assertEqual([2, 3], self.dispatched(WIDE, 400.0))

    def test_the_rest_of_a_group_is_given_up_where_none_of_it_was_made(self):
        self.plan()
        self.dispatched(NARROW)
        self.end(1, moves.FAILED)
        given_up = self.journal.abandon(self.clock(), self.clock())
        self.assertEqual({3, 4}, {move.ordinal for move in given_up})
        [third] = [move.uuid for move in given_up if move.ordinal == 3]
        [event] = [each for each in self.journal.events(third)
                   if each[2] == moves.ABANDONED]
        self.assertIn('helps only together with move 1, which is failed', event)

    def test_the_rest_of_a_group_of_which_a_move_was_made_goes_on(self):
        self.plan()
        self.dispatched(NARROW)
        self.end(1, moves.MIGRATING, moves.VERIFYING, moves.COMPLETED)
        self.assertEqual([], self.journal.abandon(self.clock(), self.clock()))
        self.assertEqual([2, 3], self.dispatched())
