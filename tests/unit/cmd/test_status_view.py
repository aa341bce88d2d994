"""The output of ``kronos-manage status``, and its exit codes."""

import contextlib
import dataclasses
import datetime
import io
import json
import types
from unittest import mock

import sqlalchemy as sa
from oslo_db import exception as db_exc

from kronos_client.cli import watching
from kronos_nova import clock
from kronos_nova.cmd import manage
from kronos_nova.db import cycles
from kronos_nova.db import drains
from kronos_nova.db import maintenances
from kronos_nova.db import models
from kronos_nova.db.journal.queue import ENGINE
from kronos_nova.drain.states import Drain
from kronos_nova.drain.states import Wait
from kronos_nova.objects import maintenance
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from kronos_nova.operations import overview
from tests.unit.cmd import test_automation
from tests.unit.db import fixtures as db_fixtures

WELL, LOOK, MEND = 0, 3, 4


class StatusTest(test_automation.OperatorTestCase):
    def setUp(self):
        super().setUp()
        self.configure('aggregates = gpu', 'evaluation_interval = 300')
        self.cycles = cycles.Cycles(self.database)

    def evaluate(self, outcome=plans.BALANCED, ago=0, **report):
        now = clock.utcnow() - datetime.timedelta(seconds=ago)
        self.cycles.begin('gpu', 'one', now, 1)
        found = plans.AggregateReport(name='gpu', outcome=outcome, mode='spread',
                                      planner='spread', **report)
        self.cycles.end('gpu', now, outcome, False, found.to_json())

    def beat(self, ago=0, role='executor', name='one'):
        now = clock.utcnow() - datetime.timedelta(seconds=ago)
        type(self.journal)(self.database, name).heartbeat(now, role)

    def policy(self, imbalance, detail=''):
        return plans.PolicyReport(
            name='cpu', weight=1.0, threshold=0.1, detail=detail, imbalance_before=imbalance,
            imbalance_after=imbalance, state='no_data' if imbalance is None else 'ok')

    def test_all_is_well_with_a_balanced_aggregate_and_a_worker_that_lives(self):
        self.evaluate(policies=(self.policy(0.05),))
        self.beat()
        said = self.manage('status', expected=WELL)
        self.assertIn('all is well', said)
        self.assertIn('balanced: every policy is at or below its threshold', said)
        self.assertIn('cpu: imbalance 0.050, threshold 0.100\n', said)
        self.assertIn('1 of 1 alive on one (executor)', said)

    def test_what_became_of_a_forecast_is_said(self):
        self.beat()
        for forecast, said in (
                (plans.ForecastReport(state='used', error=.03, present_error=.09, imbalance=.4),
                 'threshold 0.100; forecast: imbalance up to 0.400; off by 0.030 during the last '
                 'day, the present by 0.090\n'),
                (plans.ForecastReport(state='not_used', detail='too little is known'),
                 'threshold 0.100; forecast: not used: too little is known\n')):
            self.evaluate(policies=(dataclasses.replace(self.policy(.05), forecast=forecast),))
            self.assertIn(said, self.manage('status'))

    def test_the_notes_of_a_plan_follow_the_number_of_its_moves(self):
        self.beat()
        self.evaluate(outcome=plans.PLANNED, intended=2, notes=('A first note.', 'A second note.'),
                      moves=db_fixtures.report([('vm1', 'a', 'b'), ('vm2', 'a', 'b')]).moves)
        self.assertIn('planned: 2 moves planned. A first note. A second note.\n',
                      self.manage('status'))
        self.evaluate(outcome=plans.PLANNED, intended=1,
                      moves=db_fixtures.report([('vm1', 'a', 'b')]).moves)
        self.assertIn('planned: 1 move planned\n', self.manage('status'))

    def test_the_failure_domains_of_an_aggregate_are_counted(self):
        self.beat()
        self.evaluate()
        self.assertNotIn('failure domains', self.manage('status'))
        self.evaluate(domains=(('room', 2), ('rack', 4)))
        self.assertIn('    failure domains: 2 of room, 4 of rack\n', self.manage('status'))
        [aggregate] = json.loads(self.manage('status', '-f', 'json'))['aggregates']
        self.assertEqual({'room': 2, 'rack': 4}, aggregate['domains'])

    def test_hosts_that_cannot_be_lost_are_a_notice(self):
        self.beat()
        self.evaluate(losses=(
            plans.LossReport(level='', fits=3, in_order=2, not_in_order=1, judged_at=1.0),
            plans.LossReport(level='rack', fits=1, does_not_fit=1, not_judged=1, judged_at=1.0,
                             worst='r2', why='2 of 3 servers find no place, such as vm1: full')))
        said = self.manage('status')
        self.assertIn("    hosts whose servers can all restart elsewhere: 3 of 3, 2 in Nova's own "
                      'order\n', said)
        self.assertIn('    rack domains whose servers can all restart elsewhere: 1 of 3; 1 not '
                      'judged\n', said)
        self.assertIn('NOTICE: gpu: 1 of 3 domains of level rack cannot be lost with all servers '
                      'restarting on hosts evaluated with it; worst is r2: 2 of 3 servers find no '
                      'place, such as vm1: full.\n', said)
        self.assertNotIn('of 3 hosts cannot', said)

    def test_a_pause_and_who_set_the_level_are_shown(self):
        self.evaluate()
        self.beat()
        self.manage('automation', 'set', 'auto', '--aggregate', 'gpu')
        self.manage('pause', '--reason', 'switch upgrade')
        said = self.manage('status')
        self.assertIn('gpu: auto, set by jane@', said)
        self.assertIn('(switch upgrade)', said)

    def test_why_nothing_was_moved_is_said_in_words(self):
        self.beat()
        stayed = (plans.Skip(reason='locked', instances=('a',)),
                  plans.Skip(reason='threshold', instances=('b', 'c')))
        self.evaluate(plans.NO_MOVE, policies=(self.policy(0.3),), not_moved=stayed)
        said = self.manage('status')
        self.assertIn('no move is permitted and of use; servers that stay: 2 threshold, 1 locked',
                      said)
        self.assertIn('threshold 0.100, above it', said)

    def test_a_plan_in_progress_is_shown_with_its_progress(self):
        self.evaluate(plans.PLANNED)
        self.beat()
        self.run_plan(('vm1', 'a', 'b'), ('vm2', 'a', 'b'))
        [first, _second] = self.journal.dispatch(test_automation.WIDE, clock.utcnow)
        first = self.journal.claim(first.uuid, clock.utcnow())
        self.journal.advance(first, moves.ABANDONED, clock.utcnow(),
                             finished_at=clock.utcnow())
        self.assertIn('1 of 2 moves ended (1 abandoned), 1 in progress', self.manage('status'))

    def test_an_approved_plan_says_what_it_waits_for(self):
        self.configure('aggregates = gpu', 'evaluation_interval = 300', 'automation = approve')
        self.evaluate(plans.PLANNED)
        self.beat()
        now = clock.utcnow()
        uuid = self.journal.record_plan(db_fixtures.report([('vm1', 'a', 'b')]), plans.PROPOSED,
                                        now, now + datetime.timedelta(hours=1))
        self.manage('pause', '--reason', 'new switch')
        paused = r'Kronos is paused: pause by jane@\S+ \(new switch\)'
        self.assertRegex(self.manage('plan', 'approve', uuid), f'It waits: {paused}\n')
        self.assertRegex(self.manage('status', expected=WELL),
                         fr'1 move, approved by jane@\S+, waits: {paused}\n')
        self.assertRegex(self.manage('plan', 'show', uuid), paused)
        self.manage('resume')
        self.assertRegex(self.manage('status', expected=WELL),
                         r'1 move, approved by jane@\S+, to start with the next evaluation\n')
        self.journal.postpone_plan(uuid, 'policy cpu has no data: no sample')
        self.assertIn('waits: policy cpu has no data: no sample\n',
                      self.manage('status', expected=WELL))

    def test_a_plan_that_waits_says_for_what_and_how_long(self):
        self.evaluate(plans.PLANNED)
        self.beat()
        now = clock.utcnow()
        self.journal.record_plan(test_automation.db_fixtures.report([('vm1', 'a', 'b')]),
                                 plans.PROPOSED, now, now + datetime.timedelta(hours=1))
        self.assertIn('1 move, waiting for "plan approve" until',
                      self.manage('status'))

    def test_that_an_aggregate_is_left_alone_for_a_while_is_no_problem(self):
        self.beat()
        self.evaluate(plans.COOLING, policies=(self.policy(0.3),), warnings=('cooling for 7 s',),
                      intended=1)
        self.assertIn('cooling: cooling for 7 s', self.manage('status', expected=WELL))
        self.evaluate(plans.COOLING, policies=(self.policy(0.3),),
                      warnings=('cooling for 7 s', 'a profile is given twice'), intended=1)
        self.assertIn('gpu: a profile is given twice', self.manage('status', expected=LOOK))

    def test_a_maintenance_is_shown_with_how_far_each_host_is(self):
        self.beat()
        self.evaluate()
        maintenances.Maintenances(self.database).begin(maintenance.Maintenance(
            uuid='m', state=maintenance.RUNNING, requested_by='jane',
            requested_at=clock.utcnow(), options=maintenance.MaintenanceOptions(),
            hosts={'a': maintenance.FINISHED, 'b': maintenance.HOOK, 'c': maintenance.WAITING}))
        self.assertIn('Maintenance by jane: running; finished: a, hook: b, waiting: c',
                      self.manage('status', expected=WELL))
        found = json.loads(self.manage('status', '-f', 'json'))
        self.assertEqual('hook', found['maintenance']['hosts']['b'])

    def test_that_hosts_are_drained_is_no_problem(self):
        self.beat()
        self.evaluate(plans.DRAINING, warnings=('a is being drained: 3 servers left',), intended=1)
        self.assertIn('draining: a is being drained: 3 servers left',
                      self.manage('status', expected=WELL))

    def test_a_host_that_is_down_is_a_problem_while_another_host_is_drained(self):
        self.beat()
        self.evaluate(plans.DRAINING, intended=1, warnings=(
            'a is being drained: 3 servers left', 'b is down (enabled) with 2 servers on it'))
        self.assertIn('WARNING: gpu: b is down (enabled) with 2 servers on it',
                      self.manage('status', expected=LOOK))
        self.manage('automation', 'set', 'off')
        self.manage('status', expected=WELL)
        drains.Drains(self.database).request([Drain(
            uuid='d', host='a', aggregate='gpu', state='draining', requested_by='jane',
            requested_at=clock.utcnow(), left=3)])
        self.assertIn('WARNING: gpu: b is down', self.manage('status', expected=LOOK))

    def test_watched_in_a_pipe_it_is_a_page_after_the_other(self):
        self.evaluate()
        self.beat()
        sleep = mock.Mock(side_effect=[None, KeyboardInterrupt])
        with mock.patch.object(watching, 'time', types.SimpleNamespace(sleep=sleep)):
            said = self.manage('status', '--watch')
        self.assertEqual(2, said.count('all is well'))

    def watch(self, *words, looks=2):
        sleep = mock.Mock(side_effect=[None] * (looks - 1) + [KeyboardInterrupt])
        with mock.patch.object(watching, 'time', types.SimpleNamespace(sleep=sleep)):
            return self.manage('status', '--watch', *words)

    def test_watched_by_a_program_it_is_a_document_after_the_other(self):
        self.evaluate()
        self.beat()
        said, found = self.watch('-f', 'json').strip(), []
        while said:
            document, end = json.JSONDecoder().raw_decode(said)
            found.append(document['severity'])
            said = said[end:].strip()
        self.assertEqual([None, None], found)

    def test_watched_it_outlives_a_database_that_is_away_for_a_while(self):
        self.evaluate()
        self.beat()
        read, answers = overview.Observer.read, iter([True, True, False])

        def flaky(observer, last):
            if next(answers, True):
                return read(observer, last)
            raise db_exc.DBConnectionError(ValueError('gone away'))
        self.patch(overview.Observer, 'read', flaky)
        said = self.watch(looks=3)
        self.assertEqual(2, said.count('all is well'))
        self.assertIn('gone away. The command asks again.', said)

    def test_a_program_gets_documents_only(self):
        self.evaluate()
        self.beat()
        read, answers = overview.Observer.read, iter([True, False])

        def flaky(observer, last):
            if next(answers, True):
                return read(observer, last)
            raise db_exc.DBConnectionError(ValueError('gone away'))
        self.patch(overview.Observer, 'read', flaky)
        out, errors = io.StringIO(), io.StringIO()
        sleep = mock.Mock(side_effect=KeyboardInterrupt)
        with (contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors),
              mock.patch.object(watching, 'time', types.SimpleNamespace(sleep=sleep))):
            manage.main([f'--config-file={self.config}', 'status', '--watch', '-f', 'json'])
        self.assertIn('gone away. The command asks again.', errors.getvalue())
        self.assertEqual('', out.getvalue())

    def test_a_pause_and_a_stop_are_notices_with_who_and_since_when(self):
        self.beat()
        self.evaluate()
        self.manage('pause', '--reason', 'new switches')
        said = self.manage('status', expected=WELL)
        self.assertIn('1 notice, see below', said)
        self.assertRegex(said, r'NOTICE: Paused by \S+ \(new switches\): no move is started. '
                               r'\(for \d s\)\n    "resume" ends it.')
        self.manage('stop', '--aggregate', 'gpu')
        self.assertIn('NOTICE: Stopped for aggregate gpu by', self.manage('status'))

    def test_a_plan_that_waits_is_a_notice_and_a_warning_when_it_freezes_what_is_far_off(self):
        def wait(imbalance, ago):
            self.evaluate(policies=(self.policy(imbalance),))
            at = clock.utcnow() - datetime.timedelta(seconds=ago)
            with self.database.writer() as session:
                session.execute(sa.update(models.PlanRow).values(created_at=at))

        self.beat()
        self.journal.record_plan(db_fixtures.report([('vm1', 'a', 'b')]), plans.PROPOSED,
                                 clock.utcnow(), clock.utcnow() + datetime.timedelta(hours=1))
        for imbalance, ago in ((0.05, 1000), (0.15, 1000), (0.5, 10)):
            wait(imbalance, ago)
            self.assertIn('NOTICE: gpu: plan', self.manage('status', expected=WELL))
        wait(0.5, 1000)
        said = self.manage('status', expected=LOOK)
        self.assertIn('WARNING: gpu: plan', said)
        self.assertIn('imbalance 0.500, threshold 0.100', said)

    def test_missing_data_deserves_a_look(self):
        self.beat()
        self.evaluate(plans.NO_DATA, policies=(self.policy(None, 'no sample'),))
        self.assertIn('WARNING: gpu: policy cpu has no data: no sample',
                      self.manage('status', expected=LOOK))

    def test_a_worker_that_is_silent_has_to_be_fixed(self):
        self.evaluate()
        self.beat(ago=600)
        said = self.manage('status', expected=MEND)
        self.assertIn('CRITICAL: No process that carries out moves is alive.', said)
        self.assertIn('nova-conductor', said)

    def test_daemons_need_an_engine_too(self):
        self.configure('aggregates = gpu', 'run_in = daemons')
        self.evaluate()
        self.beat()
        self.assertIn('No kronos-engine', self.manage('status', expected=MEND))
        self.beat(role=ENGINE, name='two')
        self.manage('status', expected=WELL)

    def test_an_engine_next_to_conductors_that_plan_deserves_a_look(self):
        self.evaluate()
        self.beat()
        self.beat(role=ENGINE, name='two', ago=600)
        self.manage('status', expected=WELL)
        self.beat(role=ENGINE, name='three')
        self.assertIn('WARNING: A kronos-engine is alive, and nova-conductor plans too',
                      self.manage('status', expected=LOOK))

    def test_an_aggregate_that_is_not_evaluated_any_more_has_to_be_fixed(self):
        self.beat()
        self.evaluate(ago=1000)
        self.assertIn('gpu is not evaluated any more', self.manage('status', expected=MEND))
        self.manage('automation', 'set', 'off')
        self.manage('status', expected=WELL)

    def test_an_aggregate_whose_level_is_off(self):
        self.beat()
        self.evaluate(outcome=plans.COOLING, warnings=('plan 1 waits for approval',))
        self.manage('automation', 'set', 'off')
        said = self.manage('status')
        self.assertIn('the level is off: nothing is planned', said)
        self.assertNotIn('waits for approval', said)
        self.assertNotIn('next', said)

    def test_an_aggregate_whose_level_is_off_shows_its_drains_until_they_end(self):
        self.beat()
        board = drains.Drains(self.database)
        board.request([Drain(uuid='d', host='a', aggregate='gpu', state='draining',
                             requested_by='jane', requested_at=clock.utcnow(), left=1)])
        self.evaluate(outcome=plans.DRAINING, intended=1, warnings=(
            'a is being drained: 1 servers left', 'b is down (enabled) with 2 servers on it'))
        self.manage('automation', 'set', 'off')
        self.assertIn('draining: a is being drained', self.manage('status', expected=LOOK))
        db_fixtures.bring(board, board.get('d'), 'empty', left=0)
        said = self.manage('status', expected=WELL)
        self.assertIn('the level is off: nothing is planned', said)
        self.assertNotIn('a is being drained', said)
        self.assertNotIn('next', said)

    def test_an_evaluation_whose_process_died_is_not_told_by_the_reason_of_the_one_before(self):
        self.beat()
        self.evaluate(policies=(self.policy(0.05),), ago=100)
        now = clock.utcnow()
        self.cycles.begin('gpu', 'one', now, 1)
        self.cycles.fail(['gpu'], now, 300)
        said = self.manage('status', expected=LOOK)
        self.assertIn('failed: its planning process ended in the middle of it', said)
        self.assertNotIn('every policy is at or below', said)

    def test_an_evaluation_that_fails_while_a_host_is_drained_is_shown_at_any_level(self):
        self.beat()
        drains.Drains(self.database).request([Drain(
            uuid='d', host='a', aggregate='gpu', state='draining', requested_by='jane',
            requested_at=clock.utcnow(), left=1)])
        now = clock.utcnow()
        self.cycles.begin('gpu', 'one', now, 1)
        self.cycles.fail(['gpu'], now, 300)
        self.manage('automation', 'set', 'off')
        self.assertIn('WARNING: gpu: its planning process ended',
                      self.manage('status', expected=LOOK))

    def test_programs_get_json_with_times_that_have_a_zone(self):
        self.evaluate(policies=(self.policy(0.05),))
        self.beat()
        found = json.loads(self.manage('status', '-f', 'json'))
        self.assertEqual((1, None), (found['format'], found['severity']))
        [aggregate] = found['aggregates']
        self.assertEqual(datetime.timedelta(0), datetime.datetime.fromisoformat(
            aggregate['evaluated_at']).utcoffset())
        self.assertEqual(0.05, aggregate['policies'][0]['imbalance'])

    def test_a_database_that_cannot_be_read_is_not_taken_for_a_cloud_without_problems(self):
        self.config.write_text('[DEFAULT]\nstate_path = /nonexistent\n')
        self.manage('status', expected=1)

    def test_drains_are_shown_and_one_that_is_blocked_deserves_a_look(self):
        self.evaluate()
        self.beat()
        board = drains.Drains(self.database)
        board.request([Drain(uuid='d', host='compute7', aggregate='gpu', state='draining',
                             requested_by='jane', requested_at=clock.utcnow(), left=4)])
        self.assertIn('Drain of compute7 by jane: draining, 4 servers left',
                      self.manage('status', expected=WELL))
        db_fixtures.bring(board, board.get('d'), 'blocked', blocked={'vm1': 'no room'})
        self.assertIn('The drain of compute7 is blocked: 4 servers left, 1 blocked.',
                      self.manage('status', expected=LOOK))

    def test_a_drain_that_waits_in_vain_deserves_a_look(self):
        """Its host has left its aggregate, or its aggregate was deleted or has left the scope."""
        self.evaluate(policies=(self.policy(0.05),))
        self.beat()
        board = drains.Drains(self.database)
        board.request([Drain(uuid='d', host='compute7', aggregate='hpc', state='draining',
                             requested_by='jane', requested_at=clock.utcnow())])
        self.manage('status', expected=WELL)
        board.note_unevaluated(board.get('d'), 'Nova does not have any more')
        self.assertIn('WARNING: The drain of compute7 waits for an evaluation of aggregate hpc, '
                      'which Nova does not have any more; "host release compute7" ends the drain.',
                      self.manage('status', expected=LOOK))
        [drain] = json.loads(self.manage('status', '-f', 'json', expected=LOOK))['drains']
        self.assertEqual((board.get('d').waits_for, True),
                         (drain['waits_for'], drain['waits_in_vain']))
        board.note(board.get('d'), ('draining',), wait=Wait(why='moves in progress: one'))
        self.manage('status', expected=WELL)

    def test_a_drain_whose_servers_are_not_counted_yet_says_nothing_of_them(self):
        self.evaluate()
        self.beat()
        drains.Drains(self.database).request([Drain(
            uuid='d', host='compute7', aggregate='gpu', state='blocked', requested_by='jane',
            requested_at=clock.utcnow())])
        self.assertIn('The drain of compute7 is blocked.', self.manage('status', expected=LOOK))
