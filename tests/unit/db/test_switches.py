"""Levels, pauses and stops in the control database, and what they do to moves."""

import datetime

import testtools
from oslo_config import cfg

from kronos_nova import exception
from kronos_nova.db import journal as db_journal
from kronos_nova.db import stopping
from kronos_nova.db import switches
from kronos_nova.executor import permits
from kronos_nova.objects import automation
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from tests.unit.db import fixtures

WIDE = moves.Caps(total=9, per_source=9, per_destination=9)


class SwitchTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.clock = fixtures.Clock()
        self.database = self.useFixture(fixtures.ControlDatabase()).database
        self.board = switches.SwitchBoard(self.database)
        self.journal = db_journal.Journal(self.database, 'one')

    def switch(self, value, aggregate=automation.EVERY, kind=automation.LEVEL, reason=''):
        return automation.Switch(kind=kind, aggregate=aggregate, value=value, set_by='jane',
                                 set_at=self.clock(), reason=reason)

    def pause(self, value='pause', aggregate=automation.EVERY, reason=''):
        return self.switch(value, aggregate, automation.PAUSE, reason)


class BoardTest(SwitchTestCase):
    def test_a_level_for_all_replaces_those_of_single_aggregates(self):
        self.board.set(self.switch('auto', 'gpu'))
        self.assertEqual({'gpu'}, {*self.board.read().levels})
        self.board.set(self.switch('observe'))
        self.assertEqual({'*': 'observe'},
                         {name: each.value for name, each in self.board.read().levels.items()})

    def test_a_switch_that_is_set_again_has_the_newest_author(self):
        self.board.set(self.switch('auto', 'gpu'))
        self.clock.go(5)
        self.board.set(self.switch('approve', 'gpu', reason='month end'))
        found = self.board.read().levels['gpu']
        self.assertEqual(('approve', 'month end', self.clock()),
                         (found.value, found.reason, found.set_at))

    def test_each_change_is_reported_to_one_who_asks(self):
        self.board.set(self.switch('auto', 'gpu', reason='tried for a week'))
        self.board.set(self.pause('stop'))
        self.board.resume(self.pause(''))
        self.assertEqual(
            ['The level of aggregate gpu is auto, set by jane (tried for a week)',
             'Stopped all aggregates, by jane', 'Resumed all aggregates, by jane'],
            [event.sentence for event in self.board.untold()])
        self.assertEqual([], switches.SwitchBoard(self.database).untold())

    def test_a_resume_of_all_ends_every_pause_and_leaves_the_levels(self):
        self.board.set(self.switch('auto', 'gpu'))
        for aggregate in ('gpu', 'db', '*'):
            self.board.set(self.pause(aggregate=aggregate))
        self.assertEqual(1, len(self.board.resume(self.pause('', 'db'))))
        self.assertEqual(2, len(self.board.resume(self.pause(''))))
        self.assertEqual({}, self.board.read().pauses)
        self.assertEqual({'gpu'}, {*self.board.read().levels})

    def test_who_did_what_and_why_is_kept(self):
        self.board.set(self.pause(reason='switch upgrade'))
        self.board.resume(self.pause('', reason='done'))
        self.assertEqual([('', 'done'), ('pause', 'switch upgrade')],
                         [(each.value, each.reason) for each in self.board.history()])


class HeldMovesTest(SwitchTestCase):
    """A plan of two moves, one taken on by a worker and one waiting."""

    def setUp(self):
        super().setUp()
        self.defaults = automation.Defaults(level='auto')
        self.permits = permits.Permits(self.database, lambda: self.defaults,
                                       lambda _aggregate, _now: True)
        report = fixtures.report([('vm1', 'a', 'b'), ('vm2', 'a', 'b')])
        self.plan = self.journal.record_plan(report, plans.EXECUTING, self.clock(),
                                             self.clock() + datetime.timedelta(hours=1))
        [first] = self.journal.dispatch(moves.Caps(total=1, per_source=9, per_destination=9),
                                        self.clock)
        self.first = self.journal.claim(first.uuid, self.clock())

    def begin(self):
        return self.journal.begin(
            self.first, self.clock(),
            lambda session, plan: self.permits.why_not(session, plan, 'a', self.clock()))

    def states(self):
        return [move.state for move in self.journal.moves(self.plan)]

    def test_a_move_begins_where_nothing_is_against_it(self):
        self.assertEqual(moves.MIGRATING, self.begin().state)

    def test_no_move_begins_once_a_pause_is_set(self):
        self.board.set(self.pause(reason='uplinks down'))
        held = self.assertRaises(exception.MoveHeld, self.begin)
        self.assertEqual('Kronos is paused: pause by jane (uplinks down)', str(held))
        self.assertEqual([moves.CHECKING, moves.PLANNED], self.states())

    def test_no_move_begins_once_its_aggregate_is_only_observed(self):
        self.board.set(self.switch('observe', 'gpu'))
        self.assertRaises(exception.MoveHeld, self.begin)

    def test_no_move_begins_and_none_fails_while_an_option_is_invalid(self):
        """A service read its configuration again, and oslo.config refuses the value."""
        def invalid():
            raise cfg.ConfigFileValueError('Value for option automation is not valid')

        self.permits = permits.Permits(self.database, invalid, lambda _aggregate, _now: True)
        held = self.assertRaises(exception.MoveHeld, self.begin)
        self.assertEqual('Value for option automation is not valid', str(held))
        self.assertEqual([moves.CHECKING, moves.PLANNED], self.states())

    def test_an_approved_plan_goes_on_when_the_level_is_lowered_to_approve(self):
        self.board.set(self.switch('approve', 'gpu'))
        [running] = self.journal.running_plans()
        self.assertEqual(([], {self.plan: 'the level of gpu is approve now'}),
                         self.permits.sort([running], self.clock()))
        approved = plans.RunningPlan(uuid='p', aggregate='gpu', purpose='balance',
                                     is_approved=True)
        self.assertEqual((['p'], {}), self.permits.sort([approved], self.clock()))

    def test_a_stop_abandons_what_waits_and_asks_for_the_end_of_what_runs(self):
        self.begin()
        done = stopping.Stopping(self.database, 'jane').stop(self.pause('stop'))
        self.assertEqual(stopping.Stopped(abandoned=1, under_way=1), done)
        self.assertEqual([moves.MIGRATING, moves.ABANDONED], self.states())
        self.assertTrue(self.journal.move(self.first.uuid).abort_requested)

    def test_a_stop_that_lets_finish_aborts_only_what_nova_was_not_asked_for(self):
        self.begin()
        stopping.Stopping(self.database, 'jane').stop(self.pause('stop'), let_finish=True)
        self.assertEqual([moves.MIGRATING, moves.ABANDONED], self.states())
        self.assertFalse(self.journal.move(self.first.uuid).abort_requested)

    def test_a_stop_that_lets_finish_ends_what_was_only_taken_on(self):
        stopping.Stopping(self.database, 'jane').stop(self.pause('stop'), let_finish=True)
        self.assertTrue(self.journal.move(self.first.uuid).abort_requested)
        self.assertRaises(exception.MoveHeld, self.begin)

    def test_a_stop_ends_a_plan_that_is_approved_and_has_not_started(self):
        report = fixtures.report([('vm3', 'c', 'd'), ('vm4', 'c', 'd')], name='db')
        plan = self.journal.record_plan(report, plans.PROPOSED, self.clock(),
                                        self.clock() + datetime.timedelta(hours=1))
        self.journal.approve_plan(plan, report.moves, 'jane', self.clock())
        other = stopping.Stopping(self.database, 'jane').stop(self.pause('stop', 'gpu'))
        self.assertEqual([plan], [each.uuid for each in self.journal.approved_plans()])
        self.assertEqual(1, other.abandoned)
        done = stopping.Stopping(self.database, 'jane').stop(self.pause('stop', '*'))
        self.assertEqual(2, done.abandoned)
        self.assertEqual([], self.journal.approved_plans())
        ended = self.journal.plan(plan)
        self.assertEqual(plans.STOPPED, ended.state)
        self.assertIn('Kronos was stopped', ended.ended_because)
        self.assertRaises(exception.PlanNotWaiting, self.journal.start_plan, plan, report.moves,
                          self.clock())

    def test_a_stop_of_another_aggregate_touches_nothing(self):
        done = stopping.Stopping(self.database, 'jane').stop(self.pause('stop', 'db'))
        self.assertEqual(stopping.Stopped(abandoned=0, under_way=0), done)
        self.assertEqual(moves.MIGRATING, self.begin().state)

    def test_moves_of_a_forbidden_plan_are_abandoned_with_the_reason(self):
        self.journal.abandon(self.clock(), self.clock() - datetime.timedelta(hours=1),
                             {self.plan: 'the level of gpu is observe now'})
        [_first, second] = self.journal.moves(self.plan)
        self.assertEqual(moves.ABANDONED, second.state)
        self.assertIn('observe now', self.journal.events(second.uuid)[-1][-1])
