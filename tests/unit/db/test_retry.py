"""Transactions that are run again."""

import dataclasses
import datetime

import sqlalchemy as sa
import testtools
from oslo_db import exception as db_exc

from kronos_nova import exception
from kronos_nova.db import cooldowns
from kronos_nova.db import cycles as db_cycles
from kronos_nova.db import drains as db_drains
from kronos_nova.db import holds as db_holds
from kronos_nova.db import journal
from kronos_nova.db import maintenances as db_maintenances
from kronos_nova.db import stopping
from kronos_nova.db import switches
from kronos_nova.db import tasks as db_tasks
from kronos_nova.db.retry import retried
from kronos_nova.drain import states as drains
from kronos_nova.objects import automation
from kronos_nova.objects import hold
from kronos_nova.objects import maintenance as m
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from kronos_nova.objects import task as tasks
from tests.unit.db import fixtures
from tests.unit.db import test_holds


class RetriedTest(testtools.TestCase):
    def runs(self, error):
        """Return how often a transaction is run that fails once."""
        runs = []

        @retried
        def transaction():
            runs.append(1)
            if len(runs) == 1:
                raise error

        transaction()
        return len(runs)

    def test_what_lost_against_another_is_run_again(self):
        self.assertEqual(2, self.runs(db_exc.DBDeadlock()))

    def test_a_savepoint_that_went_with_a_deadlock_is_a_deadlock(self):
        error = db_exc.DBError(Exception(1305, 'SAVEPOINT sa_savepoint_1 does not exist'))
        error.cause = db_exc.DBDeadlock()
        self.assertEqual(2, self.runs(error))

    def test_any_other_error_is_raised(self):
        self.assertRaises(db_exc.DBError, self.runs, db_exc.DBError(Exception('no such column')))


class LostAnswerTest(testtools.TestCase):
    """The connection ends after a commit and before the answer to it: what is run again is there
    already, and is not another's."""

    def setUp(self):
        super().setUp()
        self.database = self.useFixture(fixtures.ControlDatabase()).database
        self.now = fixtures.Clock()()
        self.commits = 0
        sa.event.listen(self.database._write, 'after_commit', self.lose_the_first)

    def lose_the_first(self, _session):
        self.commits += 1
        if self.commits == 1:
            raise db_exc.DBConnectionError

    def test_a_plan(self):
        plan = journal.Journal(self.database, 'one')
        uuid = plan.record_plan(fixtures.report([('vm1', 'a', 'b')]), plans.EXECUTING, self.now,
                                self.now)
        self.assertEqual([uuid], [record.uuid for record in plan.plans()])
        self.assertEqual(1, len(plan.moves()))
        self.assertEqual(2, self.commits)

    def cooling(self):
        return [cooldowns.Cooldown(cooldowns.AGGREGATE, ['gpu'],
                                   self.now + datetime.timedelta(seconds=60)),
                cooldowns.Cooldown(cooldowns.INSTANCE, ['vm1'],
                                   self.now + datetime.timedelta(seconds=9))]

    def assert_cooling(self):
        """The cooldowns of :meth:`cooling` began, and each was counted once."""
        found = cooldowns.Cooldowns(self.database)
        self.assertEqual({'gpu': 60.0}, found.cooling(self.now)[cooldowns.AGGREGATE])
        self.assertEqual({'vm1': 9.0}, found.cooling(self.now)[cooldowns.INSTANCE])
        self.assertEqual({'vm1': 1}, found.times())

    def test_a_plan_with_its_cooldowns(self):
        plan = journal.Journal(self.database, 'one')
        plan.record_plan(fixtures.report([('vm1', 'a', 'b')]), plans.EXECUTING, self.now,
                         self.now, cooldowns=self.cooling())
        self.assert_cooling()

    def test_the_start_of_an_approved_plan_with_its_cooldowns(self):
        found, uuid = self.waiting()
        moving = self.chosen(found, uuid)
        found.approve_plan(uuid, moving, 'ann', self.now)
        self.commits = 0
        found.start_plan(uuid, moving, self.now, cooldowns=self.cooling())
        self.assert_cooling()

    def test_a_plan_that_is_refused_begins_no_cooldown(self):
        self.waiting()
        found = journal.Journal(self.database, 'one')
        self.assertRaises(
            exception.PlanPending, found.record_plan, fixtures.report([('vm1', 'a', 'b')]),
            plans.EXECUTING, self.now, self.now, cooldowns=self.cooling())
        self.assertEqual({}, cooldowns.Cooldowns(self.database).cooling(
            self.now)[cooldowns.AGGREGATE])

    def test_the_cooldown_at_the_end_of_a_plan(self):
        found, move = self.accepted()
        taken = found.advance(move, moves.FAILED, self.now, finished_at=self.now)
        found.settle(taken.uuid, self.now)
        self.commits = 0
        found.close_plans(self.now, datetime.timedelta(seconds=60))
        self.assertEqual([plans.DONE], [plan.state for plan in found.plans()])
        self.assertEqual({'gpu': 60.0}, cooldowns.Cooldowns(self.database).cooling(
            self.now)[cooldowns.AGGREGATE])

    def test_the_release_of_a_quarantine(self):
        self.commits = 1    # this one is not lost
        found = cooldowns.Cooldowns(self.database)
        found.quarantine('vm1', -1, 'it failed', self.now)
        self.commits = 0
        found.release('vm1')
        self.assertEqual({}, found.quarantined(self.now))
        self.assertRaises(exception.QuarantineNotFound, found.release, 'vm1')

    def pause(self, reason, who='ann'):
        return automation.Switch(kind=automation.PAUSE, aggregate='gpu', value='pause',
                                 set_at=self.now, set_by=who, reason=reason)

    def test_the_end_of_pauses(self):
        self.commits = 1    # none of these is lost
        board = switches.SwitchBoard(self.database)
        board.set(self.pause('disks'))
        board.set(self.pause('power'))
        self.commits = 0
        self.assertEqual(['disks', 'power'], [
            each.reason for each in board.resume(self.pause('done'))])
        self.assertEqual([], board.resume(self.pause('done')))
        self.assertEqual(3, len(board.history()))

    def test_a_stop(self):
        found, uuid = self.waiting()
        found.approve_plan(uuid, self.chosen(found, uuid), 'ann', self.now)
        found.record_plan(fixtures.report([('vm3', 'a', 'b'), ('vm4', 'a', 'b')], 'other'),
                          plans.EXECUTING, self.now, self.now)
        self.commits = 0
        result = stopping.Stopping(self.database, 'one').stop(
            dataclasses.replace(self.pause('fire'), aggregate=automation.EVERY))
        self.assertEqual(stopping.Stopped(abandoned=3, under_way=0), result)

    def test_moves_of_a_worker_that_has_died(self):
        _found, move = self.accepted()
        other = journal.Journal(self.database, 'two')
        self.commits = 0
        [adopted] = other.adopt(self.now, {'one': self.now})
        self.assertEqual((move.uuid, 'two'), (adopted.uuid, adopted.owner))
        self.assertEqual([], other.adopt(self.now, {'one': self.now}))

    def waiting(self):
        """Return a journal, and the uuid of a plan in it that waits for approval."""
        self.commits = 1    # this one is not lost
        found = journal.Journal(self.database, 'one')
        uuid = found.record_plan(
            fixtures.report([('vm1', 'a', 'b'), ('vm2', 'a', 'b')]), plans.PROPOSED, self.now,
            self.now + datetime.timedelta(hours=1))
        return found, uuid

    def chosen(self, found, uuid):
        return plans.AggregateReport.from_json(found.plan(uuid).report).moves[:1]

    def test_an_approval(self):
        found, uuid = self.waiting()
        self.commits = 0
        found.approve_plan(uuid, self.chosen(found, uuid), 'ann', self.now)
        approved = found.plan(uuid)
        self.assertEqual((plans.APPROVED, 'ann', 'move 2: left out by ann'),
                         (approved.state, approved.approved_by, approved.ended_because))
        later = self.now + datetime.timedelta(seconds=1)
        self.assertRaises(exception.PlanNotWaiting, found.approve_plan, uuid, [], 'ann', later)
        self.assertRaises(exception.PlanNotWaiting, found.approve_plan, uuid, [], 'ben', self.now)

    def test_a_rejection(self):
        found, uuid = self.waiting()
        self.commits = 0
        found.reject_plan(uuid, 'ann', self.now)
        self.assertEqual(plans.REJECTED, found.plan(uuid).state)
        self.assertRaises(exception.PlanNotWaiting, found.reject_plan, uuid, 'ben', self.now)

    def test_the_start_of_an_approved_plan(self):
        found, uuid = self.waiting()
        moving = self.chosen(found, uuid)
        found.approve_plan(uuid, moving, 'ann', self.now)
        self.commits = 0
        found.start_plan(uuid, moving, self.now)
        self.assertEqual(plans.EXECUTING, found.plan(uuid).state)
        self.assertEqual(1, len(found.moves()))
        later = self.now + datetime.timedelta(seconds=1)
        self.assertRaises(exception.PlanNotWaiting, found.start_plan, uuid, moving, later)

    def test_the_end_of_an_approved_plan_without_moves(self):
        found, uuid = self.waiting()
        found.approve_plan(uuid, self.chosen(found, uuid), 'ann', self.now)
        self.commits = 0
        found.start_plan(uuid, [], self.now, left_out={1: 'it is gone'})
        self.assertEqual(plans.VOID, found.plan(uuid).state)

    def test_a_maintenance(self):
        maintenances = db_maintenances.Maintenances(self.database)
        wanted = m.Maintenance(
            uuid='m', state=m.RUNNING, requested_by='ann', requested_at=self.now,
            options=m.MaintenanceOptions(), hosts={'a': m.WAITING})
        maintenances.begin(wanted)
        self.assertEqual('m', maintenances.open().uuid)
        self.assertRaises(exception.MaintenancePending, maintenances.begin,
                          dataclasses.replace(wanted, uuid='other'))

    def test_a_state_of_room(self):
        self.commits = 1    # this one is not lost
        holds = db_holds.Holds(self.database)
        wanted = test_holds.wish('r1', self.now)
        holds.request(wanted)
        self.commits = 0
        self.assertTrue(holds.enter(wanted, hold.HELD, hosts={'a': 2}, consumers={'c': 'a'},
                                    expires_at=self.now))
        self.assertEqual({'c': 'a'}, holds.get('r1').consumers)
        later = self.now + datetime.timedelta(seconds=1)
        self.assertFalse(holds.enter(wanted, hold.HELD, hosts={'a': 2}, consumers={'c': 'a'},
                                     expires_at=later))
        self.assertFalse(holds.enter(wanted, hold.HELD))

    def test_a_task(self):
        self.commits = 1    # this one is not lost
        known = db_tasks.Tasks(self.database, 'one', lambda: self.now)
        known.announce('key', 'vm1')
        self.commits = 0
        self.assertTrue(known.begin('key', 'migration'))
        self.commits = 0
        self.assertTrue(known.hand_over('migration'))
        self.assertEqual(frozenset({'migration'}), known.in_progress())

    def test_an_announcement_is_not_run_again_and_does_not_stay(self):
        """Its caller continues without the task, and never ends it."""
        known = db_tasks.Tasks(self.database, 'one', lambda: self.now)
        self.assertRaises(db_exc.DBConnectionError, known.announce, 'key', 'vm1')
        self.assertEqual(frozenset({'vm1'}), known.instances())
        known.announce('other', 'vm2')
        known.beat()
        self.assertEqual(frozenset({'vm2'}), known.instances())

    def test_a_request_that_could_not_be_recorded(self):
        known = db_tasks.Tasks(self.database, 'one', lambda: self.now)
        known.record_later('vm1')
        self.assertEqual(frozenset(), known.instances())
        known.beat()
        self.assertEqual(2, self.commits)
        [found] = known.dead(self.now, self.now)
        self.assertEqual(('vm1', tasks.EXPIRED, self.now),
                         (found.instance_uuid, found.state, found.beat_at))
        known.end(found.migration_uuid)
        known.beat()
        self.assertEqual(frozenset(), known.instances())

    def test_a_task_that_was_taken_away_does_not_continue(self):
        self.commits = 1    # none of these is lost
        known = db_tasks.Tasks(self.database, 'one', lambda: self.now)
        known.announce('key', 'vm1')
        known.begin('key', 'migration')
        later = self.now + datetime.timedelta(seconds=1)
        [found] = known.dead(later, later)
        db_tasks.Tasks(self.database, 'two', lambda: self.now).lose(found)
        self.assertFalse(known.hand_over('migration'))

    def test_an_evaluation(self):
        cycles = db_cycles.Cycles(self.database)
        self.assertTrue(cycles.begin('gpu', 'one', self.now, 300))
        self.assertFalse(cycles.begin('gpu', 'two', self.now, 300))
        later = self.now + datetime.timedelta(seconds=300)
        self.commits = 0
        self.assertTrue(cycles.begin('gpu', 'one', later, 300))
        self.assertFalse(cycles.begin('gpu', 'two', later, 300))

    def test_a_drain(self):
        db_drains.Drains(self.database).request([drains.Drain(
            uuid='d', host='a', aggregate='gpu', state=drains.REQUESTED, requested_by='me',
            requested_at=self.now)])
        self.assertEqual(2, self.commits)

    def accepted(self):
        """Return the journal of a worker, and a move that it has accepted."""
        self.commits = 1    # none of these is lost
        found = journal.Journal(self.database, 'one')
        found.record_plan(fixtures.report([('vm1', 'a', 'b')]), plans.EXECUTING, self.now,
                          self.now)
        [move] = found.dispatch(moves.Caps(total=1, per_source=1, per_destination=1),
                                lambda: self.now)
        return found, found.claim(move.uuid, self.now)

    def test_a_move_that_begins_is_not_that_of_another_worker(self):
        found, move = self.accepted()
        self.commits = 0
        begun = found.begin(move, self.now, lambda _session, _plan: None, requested_at=self.now)
        self.assertEqual((moves.MIGRATING, self.now), (begun.state, begun.requested_at))
        self.assertEqual(begun, found.move(move.uuid))
        self.assertEqual(1, len([each for each in found.events(move.uuid)
                                 if each[2] == moves.MIGRATING]))

    def test_a_move_that_another_worker_has_taken_is_lost(self):
        found, move = self.accepted()
        other = journal.Journal(self.database, 'two')
        other.adopt(self.now, {'one': self.now})
        other.begin(other.move(move.uuid), self.now, lambda _session, _plan: None)
        self.assertRaises(exception.MoveLost, found.begin, move, self.now,
                          lambda _session, _plan: None)


class SameRowTest(testtools.TestCase):
    """Another worker inserts the row first: the transaction is run again, and finds it."""

    def setUp(self):
        super().setUp()
        self.database = self.useFixture(fixtures.ControlDatabase()).database
        self.cooldowns = cooldowns.Cooldowns(self.database)
        self.now = fixtures.Clock()()
        self.flushes = 0
        sa.event.listen(self.database._write, 'before_flush', self.refuse_the_first)

    def refuse_the_first(self, *_args):
        self.flushes += 1
        if self.flushes == 1:
            raise db_exc.DBDuplicateEntry

    def test_a_quarantine(self):
        self.cooldowns.quarantine('vm1', -1, 'it failed', self.now)
        self.assertEqual({'vm1': -1}, self.cooldowns.quarantined(self.now))

    def test_a_cooldown(self):
        journal.Journal(self.database, 'one').record_plan(
            fixtures.report([('vm1', 'a', 'b')]), plans.EXECUTING, self.now, self.now,
            cooldowns=[cooldowns.Cooldown(cooldowns.INSTANCE, ['vm1'],
                                          self.now + datetime.timedelta(seconds=9))])
        self.assertEqual({'vm1': 9.0}, self.cooldowns.cooling(self.now)[cooldowns.INSTANCE])
