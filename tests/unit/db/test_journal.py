import dataclasses
import datetime

import sqlalchemy as sa
import testtools

from kronos_nova import exception
from kronos_nova.db import counters
from kronos_nova.db import journal as db_journal
from kronos_nova.db import models
from kronos_nova.db.journal import rows
from kronos_nova.objects import automation
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from tests.unit.db import fixtures

WIDE = moves.Caps(total=100, per_source=100, per_destination=100)


class PlanLifeTest(testtools.TestCase):
    """Each state of a plan, and what may follow."""

    def setUp(self):
        super().setUp()
        self.clock = fixtures.Clock()
        self.database = self.useFixture(fixtures.ControlDatabase()).database
        self.journal = db_journal.Journal(self.database, 'one')

    def plan(self, state=plans.PROPOSED, name='gpu'):
        return self.journal.record_plan(
            fixtures.report([('vm1', 'a', 'b')], name), state, self.clock(),
            self.clock() + datetime.timedelta(hours=1))

    def test_an_observed_plan_is_approved_while_it_is_made_again_and_again(self):
        uuid = self.plan(plans.OBSERVED)
        self.clock.go(5000)
        self.assertEqual(uuid, self.plan(plans.OBSERVED))
        self.clock.go(3000)
        self.journal.approve_plan(uuid, fixtures.report([('vm1', 'a', 'b')]).moves, 'jane',
                                  self.clock())
        self.assertEqual(plans.APPROVED, self.journal.plan(uuid).state)

    def test_an_observed_plan_that_is_too_old_is_not_approved(self):
        uuid = self.plan(plans.OBSERVED)
        self.clock.go(3700)
        self.assertRaises(exception.PlanNotWaiting, self.journal.approve_plan, uuid, (), 'jane',
                          self.clock())

    def test_an_observed_plan_is_not_approved_where_another_waits(self):
        uuid = self.plan(plans.OBSERVED)
        self.plan()
        self.assertRaises(exception.PlanPending, self.journal.approve_plan, uuid, (), 'jane',
                          self.clock())

    def test_a_proposal_that_was_approved_meanwhile_is_not_superseded(self):
        uuid = self.plan()
        self.journal.approve_plan(uuid, fixtures.report([('vm1', 'a', 'b')]).moves, 'jane',
                                  self.clock())
        self.journal.end_plan(uuid, plans.PROPOSED, plans.SUPERSEDED, 'a new one is better',
                              self.clock())
        self.assertEqual(plans.APPROVED, self.journal.plan(uuid).state)

    def test_a_state_that_may_not_follow_is_refused(self):
        uuid = self.plan()
        self.assertRaises(exception.IllegalPlanTransition, self.journal.end_plan, uuid,
                          plans.PROPOSED, plans.DONE, '', self.clock())


    def test_a_host_on_which_servers_give_way_is_not_being_emptied(self):
        report = fixtures.report([('vm1', 'b', 'c'), ('vm2', 'a', 'b', 1)], phase=plans.EVACUATE)
        self.journal.record_plan(report, plans.EXECUTING, self.clock(),
                                 self.clock() + datetime.timedelta(hours=1))
        self.assertEqual({'a'}, self.journal.hosts_being_emptied())


class JournalTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.database = self.useFixture(fixtures.ControlDatabase()).database
        self.clock = fixtures.Clock()
        self.journal = self.worker('one')

    def worker(self, name):
        return db_journal.Journal(self.database, name)

    def plan(self, *planned, state=plans.EXECUTING, name='gpu', purpose=automation.BALANCE):
        return self.journal.record_plan(
            fixtures.report(planned, name), state, self.clock(),
            self.clock() + datetime.timedelta(hours=1), purpose=purpose)

    def take(self, caps=WIDE, journal=None):
        return [m.instance_uuid for m in self.taken(caps, journal or self.journal)]

    def taken(self, caps=WIDE, journal=None):
        journal = journal or self.journal
        return [journal.claim(move.uuid, self.clock())
                for move in journal.dispatch(caps, self.clock)]

    def finish(self, instance, state, **values):
        move = next(m for m in self.journal.mine() if m.instance_uuid == instance)
        path = {moves.FAILED: (moves.FAILED,),
                moves.COMPLETED: (moves.MIGRATING, moves.VERIFYING, moves.COMPLETED)}[state]
        for step in path:
            move = self.journal.advance(move, step, self.clock(), finished_at=self.clock(),
                                        **values)

    def test_a_plan_that_is_only_observed_has_nothing_to_take(self):
        self.plan(('vm1', 'a', 'b'), state=plans.OBSERVED)
        self.assertEqual([], self.take())
        self.assertEqual([plans.OBSERVED], [p.state for p in self.journal.plans()])

    def test_an_aggregate_has_one_open_plan(self):
        self.plan(('vm1', 'a', 'b'))
        self.assertRaises(exception.PlanPending, self.plan, ('vm2', 'a', 'b'))
        self.plan(('vm2', 'a', 'b'), name='other')

    def test_moves_go_when_it_is_their_turn_and_not_as_they_were_planned(self):
        report = fixtures.report([('vm1', 'a', 'b'), ('vm2', 'c', 'd'), ('vm3', 'e', 'f')])
        turns = dict(zip(('vm1', 'vm2', 'vm3'), (20.0, 0.0, 10.0), strict=True))
        report = dataclasses.replace(report, moves=tuple(dataclasses.replace(
            move, begins_after=turns[move.instance_uuid], expected_seconds=7.0,
            expected_downtime=0.1) for move in report.moves))
        self.journal.record_plan(report, plans.EXECUTING, self.clock(), self.clock())
        self.assertEqual(['vm2', 'vm3', 'vm1'], self.take())
        self.assertEqual({(7.0, 0.1)}, {(move.expected_seconds, move.expected_downtime)
                                        for move in self.journal.moves()})

    def test_it_tells_how_long_moves_took_and_which_failed(self):
        self.plan(('vm1', 'a', 'b'), ('vm2', 'c', 'd'))
        before = self.clock()
        first, _second = self.taken()
        self.finish('vm2', moves.FAILED)
        begun = self.clock()
        first = self.journal.advance(first, moves.MIGRATING, begun, requested_at=begun)
        first = self.journal.advance(first, moves.VERIFYING, begun)
        ended = begun + datetime.timedelta(seconds=90)
        self.journal.advance(first, moves.COMPLETED, ended, finished_at=ended)
        self.assertEqual(
            [('vm2', 'c', 'd', None, True), ('vm1', 'a', 'b', 90.0, False)],
            [(past.instance_uuid, past.source, past.destination, past.seconds, past.failed)
             for past in self.journal.tries(before)])
        self.assertEqual([], self.journal.tries(ended + datetime.timedelta(seconds=1)))

    def test_a_move_whose_clock_was_set_back_has_no_duration(self):
        self.plan(('vm1', 'a', 'b'))
        [move] = self.taken()
        begun = self.clock()
        ended = begun - datetime.timedelta(days=1)
        move = self.journal.advance(move, moves.MIGRATING, begun, requested_at=begun,
                                    expected_seconds=7.0)
        move = self.journal.advance(move, moves.VERIFYING, ended)
        self.journal.advance(move, moves.COMPLETED, ended, finished_at=ended)
        [past] = self.journal.tries(ended)
        self.assertEqual((None, None), (past.seconds, past.lasted))
        self.assertEqual([], self.journal.durations())
        self.assertEqual([], self.journal.predictions())
        self.assertEqual([], [each for each in counters.Counters(self.database).read()
                              if each.name == counters.MOVE_SECONDS and each.value])

    def test_what_was_refused_is_known_and_is_no_failed_try(self):
        before = self.clock()
        for purpose, uuids in ((automation.DRAIN, ('vm1', 'vm2')),
                               (automation.BALANCE, ('vm3', 'vm4'))):
            self.plan(*((uuid, 'a', 'b') for uuid in uuids), name=purpose, purpose=purpose)
            self.taken()
            for uuid, error_type in zip(uuids, ('PreFlightError', 'MigrationFailed'), strict=True):
                self.finish(uuid, moves.FAILED, error_type=error_type, error=f'{error_type} it')
        self.assertEqual({'vm1': {'b': 'PreFlightError it'}, 'vm3': {'b': 'PreFlightError it'}},
                         self.journal.refused_since(before))
        self.assertEqual(['vm2', 'vm4'],
                         sorted(past.instance_uuid for past in self.journal.tries(before)))
        self.assertEqual({'vm2': ['MigrationFailed it']}, self.journal.failures_of_drains(before))
        self.clock.go(1)
        self.assertEqual({}, self.journal.refused_since(self.clock()))

    def test_what_nova_was_asked_for_is_known_while_it_is_tried_again(self):
        self.plan(('vm1', 'a', 'b'), ('vm2', 'c', 'd'))
        before = self.clock()
        first, _second = self.taken()
        asked = self.clock()
        first = self.journal.advance(first, moves.MIGRATING, asked, requested_at=asked)
        self.journal.advance(first, moves.PLANNED, asked, retry_count=1)
        self.assertEqual({('vm1', 'a', 'b')}, self.journal.requested_since(before))
        self.assertEqual(set(), self.journal.requested_since(
            asked + datetime.timedelta(seconds=1)))

    def test_moves_are_taken_in_order_and_once(self):
        self.plan(('vm1', 'a', 'b'), ('vm2', 'c', 'd'))
        self.assertEqual(['vm1', 'vm2'], self.take())
        self.assertEqual([], self.take(journal=self.worker('two')))

    def test_no_cap_is_passed(self):
        self.plan(('vm1', 'a', 'b'), ('vm2', 'a', 'c'), ('vm3', 'd', 'b'), ('vm4', 'e', 'f'))
        self.assertEqual(['vm1', 'vm4'], self.take(moves.Caps(total=3, per_source=1,
                                                              per_destination=1)))
        self.assertEqual(['vm2'], self.take(moves.Caps(total=3, per_source=2, per_destination=1)))
        self.assertEqual([], self.take(moves.Caps(total=3, per_source=9, per_destination=9)))

    def test_a_move_waits_for_those_it_depends_on(self):
        self.plan(('vm1', 'a', 'b'), ('vm2', 'b', 'a', 1))
        self.assertEqual(['vm1'], self.take())
        self.assertEqual([], self.take())
        self.finish('vm1', moves.COMPLETED)
        self.assertEqual(['vm2'], self.take())

    def test_a_move_is_given_up_when_one_it_depends_on_failed(self):
        uuid = self.plan(('vm1', 'a', 'b'), ('vm2', 'b', 'a', 1))
        self.take()
        self.finish('vm1', moves.FAILED)
        given_up = self.journal.abandon(self.clock(), self.clock())
        self.assertEqual(['vm2'], [m.instance_uuid for m in given_up])
        self.journal.close_plans(self.clock())
        self.assertEqual(plans.EXECUTING, self.journal.plan(uuid).state)
        self.clock.go(1)
        for move in self.journal.unsettled(self.clock()):
            self.journal.settle(move.uuid, self.clock())
        self.journal.close_plans(self.clock())
        self.assertEqual(plans.DONE, self.journal.plan(uuid).state)

    def test_a_move_that_waited_too_long_is_given_up(self):
        self.plan(('vm1', 'a', 'b'))
        self.clock.go(100)
        self.assertEqual([], self.journal.abandon(
            self.clock(), self.clock() - datetime.timedelta(seconds=100)))
        self.assertEqual(1, len(self.journal.abandon(
            self.clock(), self.clock() - datetime.timedelta(seconds=99))))

    def test_moves_are_due_one_after_the_other(self):
        self.journal.record_plan(
            fixtures.report([('vm1', 'a', 'b'), ('vm2', 'c', 'd'), ('vm3', 'e', 'f')]),
            plans.EXECUTING, self.clock(), self.clock(), start_interval=10)
        self.assertEqual(['vm1'], self.take())
        self.clock.go(9)
        self.assertEqual([], self.take())
        self.clock.go(11)
        self.assertEqual(['vm2', 'vm3'], self.take())

    def test_a_step_is_taken_once(self):
        self.plan(('vm1', 'a', 'b'))
        [move] = self.taken()
        self.journal.advance(move, moves.CLAIMING, self.clock())
        self.assertRaises(exception.MoveLost, self.journal.advance, move, moves.CLAIMING,
                          self.clock())

    def test_a_move_that_was_taken_on_since_it_was_read_is_left_alone(self):
        self.plan(('vm1', 'a', 'b'))
        [move] = self.journal.dispatch(WIDE, self.clock)
        with self.database.reader() as session:
            read = session.get(models.MoveRow, move.uuid)
        self.journal.claim(move.uuid, self.clock())
        with self.database.writer() as session:
            self.assertFalse(rows.transit(session, read, moves.PLANNED, self.clock(), 'two'))
        self.assertEqual(moves.CHECKING, self.journal.move(move.uuid).state)

    def test_a_state_cannot_be_skipped(self):
        self.plan(('vm1', 'a', 'b'))
        [move] = self.taken()
        self.assertRaises(exception.IllegalTransition, self.journal.advance, move,
                          moves.COMPLETED, self.clock())
        self.assertEqual([moves.CHECKING], [m.state for m in self.journal.mine()])

    def test_the_moves_of_a_dead_worker_go_to_another(self):
        self.plan(('vm1', 'a', 'b'))
        self.journal.heartbeat(self.clock())
        [move] = self.taken()
        self.clock.go(61)
        heir = self.worker('two')
        heir.heartbeat(self.clock())
        silent = heir.owners()
        self.assertEqual(['one'], list(silent))
        [adopted] = heir.adopt(self.clock(), silent)
        self.assertEqual((move.uuid, 'two', True), (adopted.uuid, adopted.owner, adopted.adopted))
        self.assertRaises(exception.MoveLost, self.journal.advance, move, moves.CLAIMING,
                          self.clock())
        self.assertEqual([], self.worker('three').adopt(self.clock(), silent))

    def test_a_worker_that_has_just_said_that_it_lives_keeps_its_moves(self):
        self.plan(('vm1', 'a', 'b'))
        self.taken()
        heir = self.worker('two')
        silent = heir.owners()
        self.clock.go(1)
        self.journal.heartbeat(self.clock())
        self.assertEqual([], heir.adopt(self.clock(), silent))
        self.assertEqual(1, len(self.journal.mine()))

    def test_a_sign_of_life_that_was_removed_comes_again_as_another(self):
        self.plan(('vm1', 'a', 'b'))
        self.taken()
        heir = self.worker('two')
        before = heir.owners()
        with self.journal.database.writer() as session:
            session.execute(sa.delete(models.WorkerRow))
        self.assertEqual({'one': None}, heir.owners())
        self.clock.go(1)
        self.journal.heartbeat(self.clock())
        self.assertNotEqual(before, heir.owners())

    def test_what_a_worker_leaves_may_be_adopted_at_once(self):
        self.plan(('vm1', 'a', 'b'))
        [move] = self.taken()
        move = self.journal.advance(move, moves.CLAIMING, self.clock())
        self.journal.retire(self.clock())
        heir = self.worker('two')
        self.assertEqual({None: None}, heir.owners())
        self.assertEqual([move.uuid], [m.uuid for m in heir.adopt(self.clock(), {None: None})])

    def test_what_happened_is_kept(self):
        self.plan(('vm1', 'a', 'b'))
        [move] = self.taken()
        self.journal.advance(move, moves.FAILED, self.clock(), detail='why')
        self.assertEqual(
            [(None, moves.PLANNED, ''), (moves.PLANNED, moves.DISPATCHED, ''),
             (moves.DISPATCHED, moves.CHECKING, ''), (moves.CHECKING, moves.FAILED, 'why')],
            [(old, new, '' if new == moves.PLANNED else detail)
             for _at, old, new, _worker, detail in self.journal.events(move.uuid)])

    def test_a_proposed_plan_runs_when_approved_and_expires_when_not(self):
        first = self.plan(('vm1', 'a', 'b'), state=plans.PROPOSED)
        self.assertEqual([], self.take())
        chosen = fixtures.report([('vm1', 'a', 'b')]).moves
        self.journal.approve_plan(first, chosen, 'jane', self.clock())
        self.assertEqual([], self.take())
        self.journal.start_plan(first, chosen, self.clock())
        self.assertEqual(['vm1'], self.take())
        second = self.plan(('vm2', 'a', 'b'), state=plans.PROPOSED, name='other')
        self.clock.go(3601)
        self.assertRaises(exception.PlanNotFound, self.journal.approve_plan, second, chosen,
                          'jane', self.clock())
        self.journal.close_plans(self.clock())
        self.assertEqual(plans.EXPIRED, self.journal.plan(second).state)
