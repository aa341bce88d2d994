"""Plans, moves and quarantines as an operator sees and steers them."""

import contextlib
import dataclasses
import datetime
import io
import json
import pathlib
import uuid

import fixtures
import testtools

from kronos_nova import clock
from kronos_nova.cmd import database
from kronos_nova.cmd import manage
from kronos_nova.db import cooldowns
from kronos_nova.db import engine as db_engine
from kronos_nova.db import journal as db_journal
from kronos_nova.db import models
from kronos_nova.db import move_queries
from kronos_nova.db import server_names
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from tests.unit.db import fixtures as db_fixtures

WIDE = moves.Caps(total=9, per_source=9, per_destination=9)


class PlansTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.config = directory / 'nova.conf'
        self.config.write_text(
            f'[DEFAULT]\nstate_path = {directory}\n[kronos]\nautomation = approve\n')
        self.manage('db', 'sync', 'control')
        engine = db_engine.create_engine(f'sqlite:///{directory}/kronos.sqlite')
        self.addCleanup(engine.dispose)
        self.database = db_engine.Database(engine)
        self.journal = db_journal.Journal(self.database, 'one')

    def manage(self, *words, expected=0):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            status = manage.main([f'--config-file={self.config}', *words])
        self.assertEqual(expected, status)
        return out.getvalue()

    def table(self, *words):
        return json.loads(self.manage(*words, '-f', 'json'))

    def propose(self, *planned):
        now = clock.utcnow()
        return self.journal.record_plan(db_fixtures.report(planned), plans.PROPOSED, now,
                                        now + datetime.timedelta(hours=1))

    def start(self, uuid):
        """As the conductor does with what was approved."""
        [record] = self.journal.approved_plans()
        moves = plans.AggregateReport.from_json(record.report).moves
        self.journal.start_plan(uuid, moves, clock.utcnow())

    def test_a_plan_is_shown_and_approved_without_some_of_its_moves(self):
        uuid = self.propose(('vm1', 'a', 'b'), ('vm2', 'b', 'a', 1), ('vm3', 'c', 'd'))
        [row] = self.table('plan', 'list')
        self.assertEqual((uuid, 'proposed', 3), (row['UUID'], row['State'], row['Moves']))
        self.assertEqual(3, len(self.table('plan', 'show', uuid)['moves']))
        self.assertIn('vm1 a -> b: spreads', self.manage('plan', 'show', uuid, '--verbose'))
        said = self.manage('plan', 'approve', uuid, '--skip', '1')
        self.assertIn('1 of 3', said)
        self.assertIn('Kronos checks how much they gain alone', said)
        self.start(uuid)
        [row] = self.table('move', 'list')
        self.assertEqual(('vm3', 'planned'), (row['Instance'], row['State']))

    def test_a_plan_that_waits_is_void_at_once_when_the_level_permits_none(self):
        self.config.write_text(f'{self.config.read_text()}aggregates = gpu\n')
        for level, where in (('observe', ['--aggregate', 'gpu']), ('off', []), ('observe', [])):
            uuid = self.propose(('vm1', 'a', 'b'))
            self.manage('automation', 'set', level, *where)
            found = self.journal.plan(uuid)
            self.assertEqual(plans.VOID, found.state, level)
            self.assertIn(f'the level is {level}: ', found.ended_because)
            self.manage('automation', 'set', 'approve', *where)

    def test_a_plan_that_waits_stays_while_it_is_paused(self):
        uuid = self.propose(('vm1', 'a', 'b'))
        self.manage('pause')
        self.assertEqual(plans.PROPOSED, self.journal.plan(uuid).state)

    def test_a_plan_says_why_this_move_and_not_the_next(self):
        def instead(combined_after):
            other = plans.NextBest(instance_uuid='vm9', destination='c', memory_mb=2048,
                                   combined_after=combined_after)
            [move] = db_fixtures.report([('vm1', 'a', 'b')]).moves
            report = dataclasses.replace(db_fixtures.report([]), moves=(
                dataclasses.replace(move, combined_after=0.1, next_best=other),))
            now = clock.utcnow()
            uuid = self.journal.record_plan(report, plans.PROPOSED, now,
                                            now + datetime.timedelta(hours=1))
            server_names.ServerNames(self.database).save({'vm9': 'web'}, now)
            said = self.manage('plan', 'show', uuid, '--verbose')
            self.journal.reject_plan(uuid, 'jane', now)
            return said

        said = instead(0.3)
        self.assertIn('next best: web (vm9) to c, combined imbalance 0.300 instead of 0.100, '
                      '2048 MiB', said)
        self.assertNotIn('better alone', said)
        self.assertIn('better alone', instead(0.05))
        self.assertIn('next best: none that is permitted',
                      self.manage('plan', 'show', self.propose(('vm1', 'a', 'b')), '--verbose'))

    def test_a_stop_of_less_than_a_millisecond_is_not_none(self):
        [move] = db_fixtures.report([('vm1', 'a', 'b')]).moves
        report = dataclasses.replace(db_fixtures.report([]), moves=(dataclasses.replace(
            move, expected_seconds=20.0, expected_downtime=0.0002),))
        now = clock.utcnow()
        uuid = self.journal.record_plan(report, plans.PROPOSED, now,
                                        now + datetime.timedelta(hours=1))
        self.assertIn('takes 20 s, of which the server is stopped for less than 1 ms',
                      self.manage('plan', 'show', uuid, '--verbose'))

    def test_a_plan_says_what_was_predicted(self):
        [move] = db_fixtures.report([('vm1', 'a', 'b')]).moves
        report = dataclasses.replace(db_fixtures.report([]), moves=(dataclasses.replace(
            move, begins_after=75.0, expected_seconds=20.2, expected_downtime=0.12,
            project_id='p1', caused_by='vm7', benefits=('p2', 'p3')),))
        now = clock.utcnow()
        uuid = self.journal.record_plan(report, plans.PROPOSED, now,
                                        now + datetime.timedelta(hours=1))
        self.assertIn('expected: begins after 1 min 15 s, takes 20 s, of which the server is '
                      'stopped for 120 ms', self.manage('plan', 'show', uuid, '--verbose'))
        self.assertIn('a server of project p1 moves, and a is relieved for p2, p3; server vm7 has '
                      'the largest load there', self.manage('plan', 'show', uuid, '--verbose'))
        self.assertIn('p1: 1 server moved, relieved by 0 moves of others',
                      self.manage('plan', 'show', uuid))
        self.assertEqual([('p1', 1, 0), ('p2', 0, 1), ('p3', 0, 1)], [
            tuple(each.values()) for each in self.table('plan', 'show', uuid)['projects']])
        self.assertEqual(20.2, self.table('plan', 'show', uuid)['moves'][0]['expected_seconds'])

    def test_a_plan_whose_report_is_not_kept_any_more_is_reported_to_be_over(self):
        number = self.propose(('vm1', 'a', 'b'))
        self.manage('plan', 'reject', number)
        with self.database.writer() as session:
            session.get(models.PlanRow, number).report = None
        err = io.StringIO()
        with contextlib.redirect_stderr(err):
            status = manage.main([f'--config-file={self.config}', 'plan', 'approve', number])
        self.assertEqual(1, status)
        self.assertIn('does not wait for approval: its state is rejected since', err.getvalue())

    def test_an_approved_plan_can_be_rejected_until_it_starts(self):
        for is_proposed in (True, False):
            uuid = self.propose(('vm1', 'a', 'b'))
            if is_proposed:
                self.assertIn('has no moves to end yet: its state is proposed. "plan reject" ends',
                              self.manage('move', 'abort', '--plan', uuid, expected=1))
            self.manage('plan', 'approve', uuid)
            self.assertIn('has no moves to end yet: its state is approved. "plan reject" ends',
                          self.manage('move', 'abort', '--plan', uuid, expected=1))
            self.assertIn('is rejected', self.manage('plan', 'reject', uuid))
            self.assertEqual('rejected', self.table('plan', 'show', uuid)['state'])
            self.assertEqual([], self.journal.approved_plans())
        uuid = self.propose(('vm1', 'a', 'b'))
        self.manage('plan', 'approve', uuid)
        self.start(uuid)
        err = io.StringIO()
        with contextlib.redirect_stderr(err):
            status = manage.main([f'--config-file={self.config}', 'plan', 'reject', uuid])
        self.assertEqual(1, status)
        self.assertIn(f'its state is executing. "move abort --plan {uuid}" ends its moves.',
                      err.getvalue())
        self.assertIn('The end of 1 move is requested',
                      self.manage('move', 'abort', '--plan', uuid))

    def test_what_an_operator_left_out_is_reported_and_what_comes_of_the_rest_is_not_known(self):
        uuid = self.propose(('vm1', 'a', 'b'), ('vm2', 'b', 'a'))
        self.manage('plan', 'approve', uuid, '--skip', '1')
        shown = self.table('plan', 'show', uuid)
        self.assertIn('move 1: left out by ', shown['left_out'])
        self.start(uuid)
        self.assertIn('move 1: left out by ', self.table('plan', 'show', uuid)['left_out'])
        [row] = self.table('plan', 'list')
        self.assertIsNone(row['Imbalance after'])

    def test_who_rejected_a_plan_is_reported(self):
        uuid = self.propose(('vm1', 'a', 'b'))
        self.manage('plan', 'reject', uuid)
        self.assertIn('rejected by ', self.table('plan', 'show', uuid)['left_out'])

    def test_a_rejected_plan_cannot_be_approved(self):
        uuid = self.propose(('vm1', 'a', 'b'))
        self.manage('plan', 'reject', uuid)
        self.manage('plan', 'approve', uuid, expected=1)
        self.assertEqual([], self.table('move', 'list'))

    def test_a_move_is_followed_and_aborted(self):
        uuid = self.propose(('vm1', 'a', 'b'), ('vm2', 'a', 'b'))
        self.manage('plan', 'approve', uuid)
        self.start(uuid)
        [first, second] = self.journal.dispatch(WIDE, clock.utcnow)
        self.manage('move', 'abort', first.uuid)
        self.assertTrue(self.journal.move(first.uuid).abort_requested)
        self.manage('move', 'abort', '--plan', second.plan_uuid)
        self.assertTrue(self.journal.move(second.uuid).abort_requested)
        events = self.table('move', 'show', first.uuid)['events']
        self.assertIn('planned -> dispatched by one', events)
        self.assertIn(f'dispatched -> dispatched by {database.operator()}: asked to end it', events)
        self.manage('move', 'abort', 'no-such-move', expected=1)

    def test_a_move_that_ends_meanwhile_does_not_keep_the_others_in_progress(self):
        plan = self.propose(('vm1', 'a', 'b'), ('vm2', 'a', 'b'))
        self.manage('plan', 'approve', plan)
        self.start(plan)
        self.journal.dispatch(WIDE, clock.utcnow)
        read = move_queries.moves

        def ending(*arguments, **given):
            found = read(*arguments, **given)
            now = clock.utcnow()
            self.journal.advance(self.journal.claim(found[0].uuid, now), moves.FAILED, now,
                                 finished_at=now)
            return found

        self.patch(move_queries, 'moves', ending)
        said = self.manage('move', 'abort', '--plan', plan)
        self.assertIn('The end of 1 move is requested; 1 had ended before.', said)
        self.assertEqual([False, True], [each.abort_requested for each in self.journal.moves(plan)])

    def test_moves_are_watched_until_they_have_ended(self):
        plan = self.propose(('vm1', 'a', 'b'))
        self.manage('plan', 'approve', plan)
        self.start(plan)
        uuid = self.journal.moves()[0].uuid
        self.journal.request_abort(uuid, 'jane', clock.utcnow())
        self.journal.abandon(clock.utcnow(), clock.utcnow())
        shown = self.manage('move', 'list', '--watch', '--all')
        self.assertIn('abandoned', shown)
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            manage.main([f'--config-file={self.config}', 'move', 'list', '--watch', '--all', '-f',
                         'json'])
        self.assertEqual(['abandoned'], [row['State'] for row in json.loads(out.getvalue())])

    def test_watched_in_a_pipe_nothing_is_cut(self):
        plan = self.propose((str(uuid.uuid4()), 'a-host-with-a-long-name', 'another-of-the-kind'))
        self.manage('plan', 'approve', plan)
        self.start(plan)
        [move] = self.journal.moves()
        self.journal.request_abort(move.uuid, 'jane', clock.utcnow())
        self.journal.abandon(clock.utcnow(), clock.utcnow())
        shown = self.manage('move', 'list', '--watch', '--plan', plan).partition('UUID')[0]
        self.assertIn(move.instance_uuid, shown)
        self.assertIn('a-host-with-a-long-name', shown)

    def test_a_quarantine_is_seen_and_ended(self):
        cooldowns.Cooldowns(self.database).quarantine('vm1', -1, 'it failed', clock.utcnow())
        [row] = self.table('quarantine', 'list')
        self.assertEqual(('vm1', 'released by hand', 'it failed'),
                         (row['Instance'], row['Until'], row['Reason']))
        self.manage('quarantine', 'remove', 'vm1')
        self.assertEqual([], self.table('quarantine', 'list'))
        self.manage('quarantine', 'remove', 'vm1', expected=1)

    def test_a_move_that_is_not_in_the_plan_cannot_be_left_out(self):
        uuid = self.propose(('vm1', 'a', 'b'))
        for option in ('--skip', '--only'):
            self.manage('plan', 'approve', uuid, option, '7', expected=1)
        self.assertEqual(plans.PROPOSED, self.journal.plan(uuid).state)

    def test_a_level_that_permits_no_plan(self):
        uuid = self.propose(('vm1', 'a', 'b'))
        self.config.write_text(self.config.read_text().replace('approve', 'observe'))
        self.manage('plan', 'approve', uuid, expected=1)
        self.assertEqual(plans.PROPOSED, self.journal.plan(uuid).state)

    def test_not_every_move_can_be_left_out(self):
        uuid = self.propose(('vm1', 'a', 'b'), ('vm2', 'b', 'a', 1))
        self.manage('plan', 'approve', uuid, '--skip', '1', expected=1)
        self.assertEqual(plans.PROPOSED, self.journal.plan(uuid).state)
