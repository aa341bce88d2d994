"""Notifications: their content, and that each is sent if and only if it happened."""

import os
import pathlib

import testtools

from kronos_nova import exception
from kronos_nova.db import stopping
from kronos_nova.drain import states as drains
from kronos_nova.objects import automation
from kronos_nova.objects import move as moves
from kronos_nova.objects import notification as n
from kronos_nova.objects import plan as plans
from tests.unit.db import fixtures
from tests.unit.db import notification_story

SAMPLES = pathlib.Path(__file__).parents[3] / 'doc/source/notification-samples'


class AnnouncingTestCase(testtools.TestCase):
    announces = True

    def setUp(self):
        super().setUp()
        self.story = notification_story.Story(
            self.useFixture(fixtures.ControlDatabase(self.announces)).database)
        self.journal, self.clock = self.story.journal, self.story.clock


class SilenceTest(AnnouncingTestCase):
    announces = False

    def test_without_topics_nothing_is_written(self):
        self.story.tell_all()
        self.assertEqual([], self.story.reported())


class SamplesTest(AnnouncingTestCase):
    """The samples of the documentation; KRONOS_WRITE_SAMPLES=1 writes them again."""

    def test_they_are_what_is_sent_today(self):
        self.story.tell_all()
        found = notification_story.samples(self.story.reported())
        self.assertEqual({*n.EVENTS}, {*found})
        if os.environ.get('KRONOS_WRITE_SAMPLES'):
            SAMPLES.mkdir(exist_ok=True)
            for event_type, text in found.items():
                (SAMPLES / f'{event_type}.json').write_text(text)
        self.assertEqual({f'{event_type}.json': text for event_type, text in found.items()},
                         {path.name: path.read_text() for path in SAMPLES.iterdir()})


class PlanTest(AnnouncingTestCase):
    def test_a_plan_that_needs_no_approval_names_no_approver(self):
        self.story.plan(('a', 'b'))
        [reported] = self.story.reported()
        data = reported.payload['kronos_object.data']
        self.assertEqual((n.PLAN_APPROVED, 'executing', None, {'planned': 1}),
                         (reported.event_type, data['state'], data['approved_by'], data['moves']))

    def test_an_observed_plan_is_not_told_of(self):
        self.story.plan(('a', 'b'), state=plans.OBSERVED)
        self.assertEqual([], self.story.events())

    def test_each_end_of_a_plan_that_never_ran_is_reported_once_with_its_reason(self):
        self.story.plan(('a', 'b'), state=plans.PROPOSED)
        self.journal.end_waiting('gpu', plans.SUPERSEDED, 'compute7 is being drained', self.clock())
        self.journal.end_waiting('gpu', plans.SUPERSEDED, 'compute7 is being drained', self.clock())
        self.story.plan(('a', 'b'), state=plans.PROPOSED)
        self.clock.go(7200)
        self.journal.close_plans(self.clock())
        self.journal.close_plans(self.clock())
        uuid = self.story.plan(('a', 'b'), state=plans.PROPOSED)
        report = plans.AggregateReport.from_json(self.journal.plan(uuid).report)
        self.journal.approve_plan(uuid, report.moves, 'jane', self.clock())
        self.journal.start_plan(uuid, [], self.clock(), left_out={1: 'the instance is gone'})
        ends = [each.payload['kronos_object.data'] for each in self.story.reported()
                if each.event_type == n.PLAN_VOID]
        self.assertEqual(
            [('superseded', 'compute7 is being drained'), ('expired', None),
             ('void', 'move 1: the instance is gone')],
            [(each['state'], each['reason']) for each in ends])

    def test_a_plan_that_is_finished_counts_its_moves(self):
        self.story.plan(('a', 'b'), ('a', 'c'))
        one, two = self.story.begin()
        self.story.end(one, moves.COMPLETED)
        self.story.end(two, moves.FAILED, error_type='MigrationFailed', error='why')
        self.journal.close_plans(self.clock())
        reported = self.story.reported()[-1]
        self.assertEqual((n.PLAN_FINISHED, {'completed': 1, 'failed': 1}),
                         (reported.event_type, reported.payload['kronos_object.data']['moves']))

    def test_what_is_refused_is_not_told(self):
        uuid = self.story.plan(('a', 'b'), state=plans.PROPOSED)
        self.journal.reject_plan(uuid, 'jane', self.clock())
        self.story.reported()
        self.assertRaises(exception.PlanNotWaiting, self.journal.reject_plan, uuid, 'joe',
                          self.clock())
        self.assertEqual([], self.story.events())


class MoveTest(AnnouncingTestCase):
    def setUp(self):
        super().setUp()
        self.story.plan(('a', 'b'))
        self.story.reported()

    def test_a_try_that_fails_is_reported_and_is_not_final(self):
        [move] = self.story.begin()
        self.story.retry(move)
        [move] = self.story.begin()
        self.story.end(move, moves.COMPLETED)
        reported = [(each.event_type, data['final'], data['retry_count'])
                    for each in self.story.reported()
                    for data in [each.payload['kronos_object.data']]]
        self.assertEqual([(n.MOVE_START, False, 0), (n.MOVE_ERROR, False, 1),
                          (n.MOVE_START, False, 1), (n.MOVE_END, True, 1)], reported)

    def test_one_that_is_given_back_has_not_failed(self):
        [move] = self.journal.dispatch(notification_story.WIDE, self.clock)
        taken = self.journal.claim(move.uuid, self.clock())
        self.journal.advance(taken, moves.PLANNED, self.clock(), detail='paused', owner=None)
        self.assertEqual([], self.story.events())

    def test_how_far_it_is_is_not_told(self):
        [move] = self.story.begin()
        self.story.reported()
        self.journal.advance(move, moves.MIGRATING, self.clock(), memory_total=100,
                             memory_remaining=7)
        self.assertEqual([], self.story.events())

    def test_a_stop_reports_every_move_that_it_gives_up(self):
        stop = automation.Switch(kind=automation.PAUSE, aggregate='*', value='stop', set_by='jane',
                                 set_at=self.clock(), reason='the storage is slow')
        stopping.Stopping(self.story.database, 'jane').stop(stop)
        changed, aborted = self.story.reported()
        self.assertEqual((n.AUTOMATION_CHANGED, n.MOVE_ABORT),
                         (changed.event_type, aborted.event_type))
        self.assertIn('the storage is slow', aborted.payload['kronos_object.data']['detail'])


class DrainTest(AnnouncingTestCase):
    def setUp(self):
        super().setUp()
        self.wish = self.story.drain()

    def change(self, state, **values):
        fixtures.bring(self.story.drains, self.wish, state, **values)

    def test_it_begins_with_the_wish_and_is_blocked_once(self):
        self.change(drains.DRAINING)
        for _look in range(2):
            self.change(drains.BLOCKED, blocked={'vm1': 'no host has room'})
        self.change(drains.DRAINING, blocked={})
        self.assertEqual([n.DRAIN_START, n.DRAIN_BLOCKED], self.story.events())

    def test_its_end_is_reported_once_and_that_it_goes_on_too(self):
        self.change(drains.EMPTY)
        self.change(drains.DRAINING)
        self.story.drains.end(self.wish, drains.ACTIVE, drains.RELEASING, self.clock(), 'jane')
        self.change(drains.RELEASED)
        self.assertEqual([n.DRAIN_START, n.DRAIN_END, n.DRAIN_START, n.DRAIN_END],
                         self.story.events())

    def test_of_many_servers_that_are_blocked_some_are_named(self):
        self.change(drains.BLOCKED, blocked={f'vm{number}': 'no' for number in range(50)})
        data = self.story.reported()[-1].payload['kronos_object.data']
        self.assertEqual((50, n.MOST_BLOCKED), (data['blocked_count'], len(data['blocked'])))


class ClearedSwitchTest(AnnouncingTestCase):
    def test_what_is_taken_away_has_no_value(self):
        self.story.switch(automation.PAUSE, 'pause')
        self.story.board.resume(automation.Switch(
            kind=automation.PAUSE, aggregate='gpu', value='', set_by='joe', set_at=self.clock()),
            everyone=True)
        self.assertEqual([('pause', 'jane@controller1'), ('', 'joe')],
                         [(data['value'], data['set_by']) for each in self.story.reported()
                          for data in [each.payload['kronos_object.data']]])
