"""Rows that no right Kronos writes are found, and put right when that is asked for."""

import datetime
import pathlib

import fixtures as fixture_library
import sqlalchemy as sa
import testtools

from kronos_nova import exception
from kronos_nova.db import check
from kronos_nova.db import drains as db_drains
from kronos_nova.db import engine as db_engine
from kronos_nova.db import journal as db_journal
from kronos_nova.db import migrate
from kronos_nova.db import models
from kronos_nova.drain import states as drains
from kronos_nova.objects import maintenance
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from kronos_nova.objects import transitions
from tests.unit.db import fixtures

WIDE = moves.Caps(total=9, per_source=9, per_destination=9)
DAY = datetime.timedelta(days=1)


class CheckTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.database = self.useFixture(fixtures.ControlDatabase()).database
        self.now = self.database.utcnow()
        self.journal = db_journal.Journal(self.database, 'one')

    def found(self, fix=False):
        """{(table, problem): (rows, whether they were fixed)}"""
        return {(each.table, each.problem): (each.rows, each.is_fixed)
                for each in check.examine(self.database, ['gpu'], fix)}

    def assertFixed(self, table, problem, rows=1):
        """Find one fault, without a change; fix it; find nothing any more."""
        self.assertEqual({(table, problem): (rows, False)}, self.found())
        self.assertEqual({(table, problem): (rows, False)}, self.found())
        self.assertEqual({(table, problem): (rows, True)}, self.found(fix=True))
        self.assertEqual({}, self.found())

    def update(self, model, **values):
        with self.database.writer() as session:
            session.execute(sa.update(model).values(**values))

    def delete(self, model, **wanted):
        with self.database.writer() as session:
            session.execute(sa.delete(model).filter_by(**wanted))

    def run_plan(self, *planned):
        return self.journal.record_plan(fixtures.report(planned), plans.EXECUTING, self.now,
                                        self.now + DAY)

    def begin(self, state=moves.CHECKING):
        """A move that this worker has begun."""
        self.journal.heartbeat(self.now)
        self.run_plan(('vm1', 'a', 'b'))
        [move] = self.journal.dispatch(WIDE, lambda: self.now)
        self.journal.claim(move.uuid, self.now)
        self.update(models.MoveRow, state=state)
        return move

    def states(self):
        return [move.state for move in self.journal.moves()]


class CheckTest(CheckTestCase):
    def test_nothing_is_wrong_with_what_kronos_writes(self):
        self.begin()
        db_drains.Drains(self.database).request([self.drain('a'), self.drain('b')])
        self.assertEqual({}, self.found())

    def test_every_state_of_a_plan_is_known(self):
        self.run_plan(('vm1', 'a', 'b'))
        self.delete(models.MoveRow)
        for state in transitions.PLAN_TRANSITIONS:
            self.update(models.PlanRow, state=state)
            self.assertEqual({}, self.found(), state)

    def test_times_in_the_future(self):
        self.update_quarantine(self.now + DAY)
        self.assertFixed('quarantines', 'a time in the future')

    def update_quarantine(self, created_at):
        with self.database.writer() as session:
            session.add(models.QuarantineRow(
                instance_uuid='vm', reason='', created_at=created_at, until=created_at + DAY))

    def test_a_move_that_waits_for_a_plan_that_has_ended(self):
        self.run_plan(('vm1', 'a', 'b'), ('vm2', 'a', 'b'))
        self.update(models.PlanRow, state=plans.DONE)
        self.assertFixed('moves', 'not begun, and its plan has ended', rows=2)
        self.assertEqual([moves.ABANDONED] * 2, self.states())

    def test_a_move_whose_plan_is_gone(self):
        self.run_plan(('vm1', 'a', 'b'))
        self.delete(models.PlanRow)
        self.assertFixed('moves', 'not begun, and its plan has ended')

    def test_a_move_in_progress_that_no_process_will_end(self):
        move = self.begin(moves.MIGRATING)
        self.update(models.PlanRow, state=plans.VOID)
        self.assertEqual({}, self.found())
        self.delete(models.WorkerRow)
        self.assertFixed('moves', 'in progress, and no process will end it')
        ended = self.journal.move(move.uuid)
        self.assertEqual(moves.FAILED, ended.state)
        self.assertIsNotNone(ended.settled_at)

    def test_a_move_of_an_aggregate_that_kronos_does_not_look_after_any_more(self):
        self.begin(moves.MIGRATING)
        self.delete(models.WorkerRow)
        self.assertEqual({}, self.found())
        self.update(models.MoveRow, aggregate='old')
        self.assertFixed('moves', 'in progress, and no process will end it')

    def test_states_that_no_one_knows(self):
        self.run_plan(('vm1', 'a', 'b'))
        self.update(models.MoveRow, state='lost')
        self.assertFixed('moves', 'an unknown state')
        self.update(models.PlanRow, state='lost')
        self.assertFixed('plans', 'an unknown state')

    def test_dependencies_that_cannot_be_read(self):
        self.run_plan(('vm1', 'a', 'b'))
        self.update(models.MoveRow, depends_on='[1')
        self.assertFixed('moves', 'unreadable dependencies')
        self.assertEqual([moves.ABANDONED], self.states())

    def test_leases_and_locks_that_are_missing(self):
        self.delete(models.LeaseRow, name='retention')
        self.assertFixed('leases', 'a row is missing: no process does that work')
        self.delete(models.SerializationLockRow)
        self.assertFixed('gates', 'a row is missing: two processes may start plans or moves at '
                                  'the same time', rows=3)

    def test_a_lease_without_an_end(self):
        self.update(models.LeaseRow, holder='one')
        self.assertFixed('leases', 'a holder without an end', rows=3)

    def test_a_level_that_no_one_knows(self):
        with self.database.writer() as session:
            session.add(models.SwitchRow(kind='level', aggregate='gpu', value='warp',
                                         set_at=self.now, set_by='jane', reason=''))
        self.assertFixed('switches', 'an unknown kind or value')

    def drain(self, host, **what):
        return drains.Drain(**{
            'uuid': f'drain of {host}', 'host': host, 'aggregate': 'gpu',
            'state': drains.REQUESTED, 'requested_by': 'jane', 'requested_at': self.now, **what})

    def test_two_drains_of_a_host(self):
        board = db_drains.Drains(self.database)
        board.request([self.drain('a'), self.drain('b', requested_at=self.now - DAY)])
        self.update(models.DrainRow, host='a')
        self.assertFixed('drains', 'a second drain of a host')
        self.assertEqual(['drain of a'], [each.uuid for each in board.in_states(drains.ACTIVE)])

    def test_a_drain_whose_lists_cannot_be_read(self):
        db_drains.Drains(self.database).request([self.drain('a')])
        self.update(models.DrainRow, blocked='[]', avoid='')
        self.assertFixed('drains', 'unreadable lists')

    def test_a_drain_in_a_state_that_no_one_knows_is_left_to_an_operator(self):
        db_drains.Drains(self.database).request([self.drain('a')])
        self.update(models.DrainRow, state='lost')
        self.assertEqual({('drains', 'an unknown state'): (1, False)}, self.found(fix=True))

    def test_two_maintenances_at_once(self):
        with self.database.writer() as session:
            for number in range(2):
                session.add(models.MaintenanceRow(
                    uuid=f'{number}', state=maintenance.RUNNING, requested_by='jane',
                    requested_at=self.now - number * DAY, hosts='[]', options='{}'))
        self.assertFixed('maintenances', 'a second one that is not done')

    def test_a_record_of_the_revision_that_is_lost(self):
        for statement in ('DELETE FROM alembic_version', 'DROP TABLE alembic_version'):
            with self.database.engine.begin() as connection:
                connection.exec_driver_sql(statement)
            self.assertFixed('alembic_version', 'the record of the revision is lost')

    def test_a_database_that_is_not_there_is_not_made(self):
        path = pathlib.Path(self.useFixture(fixture_library.TempDir()).path, 'kronos.sqlite')
        database = db_engine.Database(db_engine.create_engine(f'sqlite:///{path}'))
        self.assertRaises(exception.DatabaseVersionError, check.examine, database, ['gpu'])
        self.assertFalse(path.exists())

    def test_a_revision_that_this_code_does_not_know_is_refused(self):
        with self.database.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
        self.assertRaises(exception.DatabaseVersionError, check.examine, self.database, ['gpu'])
        self.assertEqual('9999', migrate.current(self.database.engine, migrate.CONTROL))
