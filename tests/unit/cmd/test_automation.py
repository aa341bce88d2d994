"""Levels, pauses and stops as an operator gives them."""

import contextlib
import datetime
import io
import json
import logging
import pathlib
import types

import fixtures
import sqlalchemy
import testtools
from oslo_db import exception as db_exc

from kronos_client.cli import automation
from kronos_nova import clock
from kronos_nova import exception
from kronos_nova.cmd import login
from kronos_nova.cmd import manage
from kronos_nova.db import engine as db_engine
from kronos_nova.db import journal as db_journal
from kronos_nova.db import move_queries
from kronos_nova.db import server_names
from kronos_nova.db import switches
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from tests.unit import neutral_policies
from tests.unit.db import fixtures as db_fixtures

WIDE = moves.Caps(total=9, per_source=9, per_destination=9)


class OperatorTestCase(testtools.TestCase):
    """An operator at a shell, and a control database."""

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.config = self.directory / 'nova.conf'
        self.configure('aggregates = gpu, db')
        self.patch(login, 'user', lambda: 'jane')
        self.manage('db', 'sync', 'control')
        engine = db_engine.create_engine(f'sqlite:///{self.directory}/kronos.sqlite')
        self.addCleanup(engine.dispose)
        self.database = db_engine.Database(engine)
        self.journal = db_journal.Journal(self.database, 'one')

    def configure(self, *lines):
        named = neutral_policies.write(self.directory)
        self.config.write_text(f'[DEFAULT]\nstate_path = {self.directory}\n[kronos]\n{named}\n'
                               + '\n'.join(lines))

    def manage(self, *words, expected=0):
        """Return the output of the command, of both streams."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            status = manage.main([f'--config-file={self.config}', *words])
        self.assertEqual(expected, status, out.getvalue())
        return out.getvalue()

    def table(self, *words):
        return json.loads(self.manage(*words, '-f', 'json'))

    def run_plan(self, *planned, name='gpu'):
        now = clock.utcnow()
        return self.journal.record_plan(db_fixtures.report(planned, name), plans.EXECUTING, now,
                                        now + datetime.timedelta(hours=1))


class VerboseTest(OperatorTestCase):
    def test_only_debug_logs_the_plugins_that_a_command_loads_and_the_mode_of_a_database(self):
        for name in ('stevedore', 'oslo_db'):
            logger = logging.getLogger(name)
            self.addCleanup(logger.setLevel, logger.level)
            for option, expected in (('--verbose', logging.WARNING), ('--debug', logging.NOTSET)):
                self.manage('plan', 'list', option)
                self.assertEqual(expected, logger.level, (name, option))


class AutomationTest(OperatorTestCase):
    def levels(self):
        return {row['Aggregate']: (row['Level'], row['Set by'])
                for row in self.table('automation', 'show')}

    def test_a_level_is_set_and_shown_with_who_and_why(self):
        row = self.table('automation', 'set', 'auto', '--aggregate', 'gpu', '--reason', 'trial')[0]
        self.assertEqual(('observe', 'auto'), (row['Before'], row['Level']))
        row = self.table('automation', 'show')[0]
        self.assertEqual(('gpu', 'auto', 'trial'),
                         (row['Aggregate'], row['Level'], row['Reason']))
        self.assertTrue(row['Set by'].startswith('jane@'))
        self.assertEqual(datetime.UTC, datetime.datetime.fromisoformat(row['Since']).tzinfo)
        self.assertEqual(('observe', 'nova.conf'), self.levels()['db'])

    def test_a_level_that_is_in_force_keeps_who_set_it_and_why(self):
        self.manage('automation', 'set', 'auto', '--reason', 'trial')
        before = self.table('automation', 'show')
        self.patch(login, 'user', lambda: 'joe')
        self.manage('automation', 'set', 'auto')
        self.assertEqual(before, self.table('automation', 'show'))
        self.manage('automation', 'set', 'auto', '--reason', 'for good')
        self.assertEqual({'for good'}, {row['Reason'] for row in self.table('automation', 'show')})

    def test_a_level_above_the_ceiling_is_refused_with_the_option_to_change(self):
        self.configure('aggregates = gpu', 'max_automation = approve')
        said = self.manage('automation', 'set', 'auto', expected=1)
        self.assertIn('[kronos] max_automation permits no level above approve', said)
        self.assertEqual('observe', self.levels()['gpu'][0])

    def test_repairs_of_rules_have_a_level_of_their_own(self):
        self.configure('aggregates = gpu, db', 'repair_automation = approve')
        repairs = [(row['Aggregate'], row['Level'], row['Rule repairs'], row['Repairs set by'])
                   for row in self.table('automation', 'show')]
        self.assertEqual([('gpu', 'observe', 'approve', 'nova.conf'),
                          ('db', 'observe', 'approve', 'nova.conf')], repairs)
        row = self.table('automation', 'set', 'auto', '--repairs', '--aggregate', 'gpu')[0]
        self.assertEqual(('approve', 'auto', 'observe'),
                         (row['Before'], row['Rule repairs'], row['Level']))
        self.assertTrue(row['Repairs set by'].startswith('jane@'))
        self.assertEqual(['level of rule repairs auto'],
                         [row['What'] for row in self.table('automation', 'history')])
        self.assertIn('gpu: observe; rule repairs: auto;', self.manage('status', expected=4))
        self.manage('automation', 'set', 'off', '--aggregate', 'gpu')
        self.assertEqual('off', self.table('automation', 'show')[0]['Rule repairs'])

    def test_repairs_without_a_level_of_their_own_are_set_by_whoever_set_the_level(self):
        self.assertEqual({'nova.conf'}, {
            row['Repairs set by'] for row in self.table('automation', 'show')})
        self.manage('automation', 'set', 'auto', '--aggregate', 'gpu')
        for row in self.table('automation', 'show'):
            self.assertEqual((row['Set by'], row['Level']),
                             (row['Repairs set by'], row['Rule repairs']))

    def test_a_level_of_repairs_that_nova_conf_lowers_is_set_by_nova_conf(self):
        self.manage('automation', 'set', 'approve')
        self.manage('automation', 'set', 'auto', '--repairs')
        self.configure('aggregates = gpu', 'max_automation = approve')
        [row] = self.table('automation', 'show')
        self.assertEqual(('approve', 'approve', 'nova.conf'),
                         (row['Level'], row['Rule repairs'], row['Repairs set by']))

    def test_an_aggregate_that_is_not_in_scope_is_refused_with_those_that_are(self):
        said = self.manage('automation', 'set', 'auto', '--aggregate', 'gup', expected=1)
        self.assertIn('gpu, db', said)

    def test_the_history_tells_who_did_what(self):
        self.manage('automation', 'set', 'approve')
        self.manage('pause', '--aggregate', 'db', '--reason', 'switch upgrade')
        self.manage('resume')
        self.assertEqual([('db', 'resume'), ('db', 'pause'), ('*', 'level approve')],
                         [(row['Aggregate'], row['What'])
                          for row in self.table('automation', 'history')])


class PauseTest(OperatorTestCase):
    def paused(self):
        return {row['Aggregate']: row['Paused'] for row in self.table('automation', 'show')}

    def test_a_pause_is_shown_until_it_is_ended(self):
        self.manage('pause', '--aggregate', 'db', '--reason', 'switch upgrade')
        self.assertIn('(switch upgrade)', self.paused()['db'])
        self.assertIsNone(self.paused()['gpu'])
        [row] = self.table('resume', '--aggregate', 'db')
        self.assertEqual(('db', 'pause', 'switch upgrade', True), (
            row['Aggregate'], row['What'], row['Reason'], row['Ended']))
        self.assertEqual([], self.table('resume'))

    def test_to_resume_one_aggregate_says_that_the_whole_is_still_paused(self):
        self.manage('pause')
        said = self.manage('resume', '--aggregate', 'db', expected=automation.STILL_PAUSED)
        self.assertIn('False', said)

    def test_two_people_pause_and_each_resumes_what_was_his(self):
        self.manage('pause', '--aggregate', 'db', '--reason', 'switch upgrade')
        self.patch(login, 'user', lambda: 'joe')
        self.manage('stop', '--aggregate', 'db', '--reason', 'strange load')
        self.assertRegex(self.paused()['db'],
                         r'stop by joe@.*\(strange load\); pause by jane@.*\(switch upgrade\)')
        said = self.manage('resume', '-f', 'json', expected=automation.STILL_PAUSED)
        self.assertEqual([('stop', True), ('pause', False)],
                         [(row['What'], row['Ended']) for row in json.loads(said)])
        self.assertIn('(switch upgrade)', self.paused()['db'])
        self.assertIn('still pause by jane', self.table('automation', 'history')[0]['Reason'])
        [row] = self.table('resume', '--all')
        self.assertTrue(row['By'].startswith('jane@'))
        self.assertIsNone(self.paused()['db'])

    def test_a_pause_that_is_said_again_is_as_old_as_it_was(self):
        self.manage('pause', '--reason', 'switch upgrade')
        self.manage('pause', '--reason', 'switch upgrade')
        self.manage('pause', '--reason', 'and the storage')
        self.assertEqual(['switch upgrade', 'and the storage'],
                         [row['Reason'] for row in self.table('resume')])


class StopTest(OperatorTestCase):
    def test_with_nothing_in_progress_all_is_quiet_at_once(self):
        plan = self.run_plan(('vm1', 'a', 'b'))
        said = self.manage('stop', '--reason', 'strange load')
        self.assertIn('Waiting moves given up: 1; in progress: 0.', said)
        self.assertIn('No move is in progress.', said)
        self.assertEqual([moves.ABANDONED], [m.state for m in self.journal.moves(plan)])

    def test_what_does_not_end_in_time_is_named_and_the_exit_code_says_so(self):
        self.run_plan(('vm1', 'a', 'b'))
        server_names.ServerNames(self.database).save({'vm1': 'web-1'}, clock.utcnow())
        [move] = self.journal.dispatch(WIDE, clock.utcnow)
        self.journal.claim(move.uuid, clock.utcnow())
        said = self.manage('stop', '--timeout', '0', expected=automation.NOT_QUIET)
        self.assertIn('Still in progress: web-1 (vm1), a -> b: checking, asked to abort', said)

    def test_a_database_that_is_away_while_it_is_watched_makes_it_no_less_a_stop(self):
        self.run_plan(('vm1', 'a', 'b'))
        [move] = self.journal.dispatch(WIDE, clock.utcnow)
        self.journal.claim(move.uuid, clock.utcnow())
        read, answers = move_queries.moves, iter([True, False])

        def moves_of(*args, **kwargs):
            if next(answers, True):
                return read(*args, **kwargs)
            raise db_exc.DBConnectionError(ValueError('gone away'))
        self.patch(move_queries, 'moves', moves_of)
        self.patch(automation, 'LOOK_SECONDS', 0)
        said = self.manage('stop', '--timeout', '1', expected=automation.NOT_QUIET)
        self.assertIn('gone away. The command asks again.', said)
        self.assertIn('Still in progress: vm1, a -> b: checking', said)

    def test_one_of_which_nothing_can_be_seen_says_so(self):
        def moves_of(*_args, **_kwargs):
            raise db_exc.DBConnectionError(ValueError('gone away'))
        self.patch(move_queries, 'moves', moves_of)
        said = self.manage('stop', '--timeout', '0', expected=automation.NOT_QUIET)
        self.assertIn('Everything is stopped', said)
        self.assertIn('Whether moves are still in progress could not be read', said)

    def test_an_operator_who_may_not_list_moves_has_stopped_them_all_the_same(self):
        def moves_of(*_args, **_kwargs):
            raise exception.RequestRefused(what='Jane', problem='may not list moves', remedy='')
        self.patch(move_queries, 'moves', moves_of)
        said = self.manage('stop', expected=automation.NOT_QUIET)
        self.assertIn('Everything is stopped', said)
        self.assertIn('may not list moves', said)
        self.assertIn('Whether moves are still in progress could not be read', said)

    def test_a_move_whose_end_may_not_be_read_is_still_seen_to_have_ended(self):
        plan = self.run_plan(('vm1', 'a', 'b'))
        [move] = self.journal.dispatch(WIDE, clock.utcnow)
        taken = self.journal.claim(move.uuid, clock.utcnow())

        def show(*_args):
            raise exception.MoveNotFound(move=move.uuid)
        self.patch(db_journal.Journal, 'move', show)
        self.patch(automation, 'time', types.SimpleNamespace(
            monotonic=lambda: 0.0, sleep=lambda _seconds: self.journal.advance(
                taken, moves.ABANDONED, clock.utcnow(), finished_at=clock.utcnow())))
        said = self.manage('stop')
        self.assertEqual([moves.ABANDONED], [each.state for each in self.journal.moves(plan)])
        self.assertIn('vm1, a -> b: has ended; its result could not be read', said)
        self.assertIn('No move is in progress.', said)

    def test_no_reason_keeps_it_from_stopping(self):
        self.manage('stop', '--reason', 'fire \N{FIRE}\n\x1b[2J' + 'x' * 9000)
        [stopped] = self.table('automation', 'history')
        self.assertTrue(stopped['Reason'].startswith(
            'fire \N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}'))
        self.assertLess(len(stopped['Reason']), 400)

    def test_a_database_that_refuses_is_reported_in_a_sentence(self):
        def put(*_args, **_kwargs):
            raise db_exc.DBDataError(sqlalchemy.exc.DataError(
                'INSERT INTO switches VALUES (...)', {'reason': 'secret'}, ValueError('too long')))
        self.patch(switches, 'put', put)
        said = self.manage('stop', expected=1)
        self.assertEqual('A database does not answer, or refuses: too long.', said.strip())

    def test_a_stop_of_one_aggregate_leaves_the_moves_of_others_alone(self):
        self.run_plan(('vm1', 'a', 'b'))
        other = self.run_plan(('vm2', 'a', 'b'), name='db')
        self.manage('stop', '--aggregate', 'gpu')
        self.assertEqual([moves.PLANNED], [move.state for move in self.journal.moves(other)])
