"""Operations over HTTP are done as by the commands, and refused as by them."""

import datetime
import threading

from kronos_nova import clock
from kronos_nova import exception
from kronos_nova.api import application
from kronos_nova.db import cooldowns
from kronos_nova.db import drains as db_drains
from kronos_nova.db import maintenances as db_maintenances
from kronos_nova.db import switches
from kronos_nova.drain import states as drains
from kronos_nova.objects import maintenance
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from tests.unit.api import base
from tests.unit.cmd import test_host

WIDE = moves.Caps(total=9, per_source=9, per_destination=9)
WHO = 'jane@Default (API)'

FIGURES = {'combined_before': 0.5, 'combined_after': 0.1, 'combined_now': None,
           'waits_for': None}


class ActingTestCase(base.ApiTestCase):
    def do(self, path, method='POST', token=base.OPERATOR, **request):
        return self.ask(path, method=method, token=token, **request)

    def do_not(self, path, expected, method='POST', token=base.OPERATOR, **request):
        return self.refuse(path, expected, method=method, token=token, **request)


class PlanTest(ActingTestCase):
    kronos = 'aggregates = gpu, db\nautomation = approve'

    def setUp(self):
        super().setUp()
        self.uuid = self.plan(('vm1', 'a', 'b'), ('vm2', 'b', 'c', 1), ('vm3', 'a', 'c'))

    def test_one_is_approved_without_some_moves_and_those_that_depend_on_them(self):
        self.assertEqual({'chosen': 1, 'moves': 3, **FIGURES}, self.do(
            f'/v1/plans/{self.uuid}/approve', json={'skip': [1]}))
        plan = self.journal.plan(self.uuid)
        self.assertEqual((plans.APPROVED, WHO, 1), (plan.state, plan.approved_by, plan.move_count))

    def test_one_is_approved_as_it_is(self):
        self.assertEqual({'chosen': 3, 'moves': 3, **FIGURES},
                         self.do(f'/v1/plans/{self.uuid}/approve'))

    def test_one_is_approved_with_nothing_but_a_move_and_what_it_needs(self):
        self.assertEqual(2, self.do(f'/v1/plans/{self.uuid}/approve', json={'only': [2]})['chosen'])

    def test_one_is_rejected_once(self):
        self.do(f'/v1/plans/{self.uuid}/reject', expected=204)
        self.assertEqual(f'rejected by {WHO}', self.journal.plan(self.uuid).ended_because)
        for verb in ('reject', 'approve'):
            error = self.do_not(f'/v1/plans/{self.uuid}/{verb}', 409)
            self.assertEqual('kronos.plan_not_waiting', error['code'])

    def test_what_is_asked_wrongly_changes_nothing(self):
        path = f'/v1/plans/{self.uuid}/approve'
        for body, said in (({'skip': [9]}, 'Move 9'), ({'skip': ['all']}, '$.skip[0]'),
                           ({'skip': [0]}, '$.skip[0]'), ({'sikp': [1]}, 'sikp'), ([], 'object'),
                           ({'skip': [1], 'only': [2]}, 'The selection of moves')):
            self.assertIn(said, self.do_not(path, 400, json=body)['detail'])
        self.do_not(path, 400, data=b'{')
        self.assertIn('114688', self.do_not(path, 413, data=b' ' * 200000)['detail'])
        self.assertEqual(plans.PROPOSED, self.journal.plan(self.uuid).state)

    def test_one_that_there_is_not_is_not_found(self):
        for verb in ('approve', 'reject'):
            self.do_not(f'/v1/plans/none/{verb}', 404)

    def test_a_move_is_ended_unless_it_has(self):
        plan = self.plan(('vm1', 'a', 'b'), name='db', state=plans.EXECUTING)
        [move] = self.journal.moves(plan)
        self.do(f'/v1/moves/{move.uuid}/abort', expected=202)
        asked = self.ask(f'/v1/moves/{move.uuid}')['events'][-1]
        self.assertEqual(('jane@Default (API)', 'planned', 'asked to end it'),
                         (asked['worker'], asked['new_state'], asked['detail']))
        now = clock.utcnow()
        self.journal.abandon(now, now - datetime.timedelta(hours=1))
        self.assertEqual(moves.ABANDONED, self.journal.move(move.uuid).state)
        self.assertEqual('kronos.move_ended',
                         self.do_not(f'/v1/moves/{move.uuid}/abort', 409)['code'])
        self.do_not('/v1/moves/none/abort', 404)

    def test_a_quarantine_is_ended(self):
        cooldowns.Cooldowns(self.database).quarantine('vm1', -1, 'why', clock.utcnow())
        self.do('/v1/quarantine/vm1', method='DELETE', expected=204)
        self.do_not('/v1/quarantine/vm1', 404, method='DELETE')


class AutomationTest(ActingTestCase):
    kronos = 'aggregates = gpu, db\nmax_automation = approve'

    def levels(self):
        return {each['aggregate']: each['level'] for each in self.ask('/v1/automation')['levels']}

    def test_a_level_is_set_by_an_administrator_only(self):
        path, wanted = '/v1/aggregates/gpu/automation', {'level': 'approve', 'reason': 'trial'}
        self.do_not(path, 403, method='PUT', json=wanted)
        self.do(path, method='PUT', token=base.ADMIN, json=wanted)
        self.assertEqual({'gpu': 'approve', 'db': 'observe'}, self.levels())
        [event] = switches.SwitchBoard(self.database).history()
        self.assertEqual((WHO, 'trial'), (event.set_by, event.reason))
        self.do('/v1/aggregates/*/automation', method='PUT', token=base.ADMIN,
                json={'level': 'off'})
        self.assertEqual({'gpu': 'off', 'db': 'off'}, self.levels())

    def test_what_others_read_in_a_terminal_cannot_move_their_cursor(self):
        for reason in ('\x1b[2J', 'one\nline more', '\u202etxet'):
            self.do('/v1/pause', json={'reason': reason})
            [event, *_older] = self.ask('/v1/automation/history')['events']
            self.assertEqual(reason.translate(dict.fromkeys(map(ord, '\x1b\n\u202e'), '\ufffd')),
                             event['reason'])
        self.do_not('/v1/moves/%1b/abort', 400)
        self.do('/v1/pause', json={'reason': 'Wartung für Zürich'})

    def test_a_level_that_there_is_not_or_that_is_not_permitted_is_not_set(self):
        path = '/v1/aggregates/gpu/automation'
        for body, said in (({'level': 'auto'}, 'max_automation'), ({'level': 'on'}, '$.level'),
                           ({}, 'level'), ({'level': 'off', 'reason': 'x' * 1001}, '$.reason')):
            self.assertIn(said, self.do_not(path, 400, method='PUT', token=base.ADMIN,
                                            json=body)['detail'])
        self.do_not('/v1/aggregates/gup/automation', 404, method='PUT', token=base.ADMIN,
                    json={'level': 'off'})
        self.assertEqual({'gpu': 'observe', 'db': 'observe'}, self.levels())

    def test_pauses_and_what_ends_them(self):
        self.do('/v1/pause', json={'aggregate': 'gpu', 'reason': 'switch upgrade'})
        paused = {each['aggregate']: each['paused']
                  for each in self.ask('/v1/automation')['levels']}
        self.assertIn('switch upgrade', paused['gpu'])
        self.assertIsNone(paused['db'])
        found = self.do('/v1/resume')
        self.assertEqual({None}, {each['paused'] for each in found['levels']})
        for verb in ('pause', 'resume', 'stop'):
            self.do_not(f'/v1/{verb}', 404, json={'aggregate': 'gup'})

    def test_a_stop_gives_up_what_waits(self):
        self.plan(('vm1', 'a', 'b'), ('vm2', 'a', 'b'), state=plans.EXECUTING)
        [one] = self.journal.dispatch(moves.Caps(total=1, per_source=1, per_destination=1),
                                      clock.utcnow)
        self.journal.claim(one.uuid, clock.utcnow())
        self.assertEqual({'abandoned': 1, 'under_way': 1}, self.do('/v1/stop'))
        self.assertTrue(self.journal.move(one.uuid).abort_requested)


class DrainTest(test_host.WithRecordedCloud, ActingTestCase):
    kronos = 'aggregates = gpu'

    def setUp(self):
        super().setUp()
        self.drains = db_drains.Drains(self.database)

    def test_where_everything_goes_is_reported_and_nothing_is_changed(self):
        found = self.do('/v1/drains', expected=202, json={'hosts': ['a'], 'check': True})
        [checked] = found['checked']
        self.assertEqual(2, sum(checked.pop('destinations').values()))
        self.assertEqual({'host': 'a', 'servers': 2, 'leaving': 2, 'cold': 0, 'memory_mb': 1024,
                          'blocked': {}, 'names': {}, 'interrupted': {}, 'stopped': {}}, checked)
        self.assertEqual(([], []), (found['drains'], self.drains.in_states(drains.ACTIVE)))

    def test_hosts_are_drained_and_released(self):
        deadline = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
        [found] = self.do('/v1/drains', expected=202, json={
            'hosts': ['a'], 'reason': 'new memory', 'deadline': deadline.isoformat(),
            'with_stopped': True, 'parallel': 2, 'keep_spare': 1, 'unmovable': 'stop'})['drains']
        [kept] = self.drains.in_states(drains.ACTIVE)
        self.assertEqual((WHO, 'new memory', 'gpu', True, 2, 1, deadline), (
            kept.requested_by, kept.reason, kept.aggregate, kept.with_stopped, kept.parallel,
            kept.keep_spare, kept.deadline))
        self.assertEqual((kept.uuid, 'stop', 'stop'),
                         (found['uuid'], found['unmovable'], kept.unmovable))
        self.assertEqual('kronos.drain_pending', self.do_not(
            '/v1/drains', 409, json={'hosts': ['b', 'a']})['code'])
        self.assertEqual(drains.RELEASING,
                         self.do('/v1/hosts/a/release', expected=202)['state'])

    def test_a_host_that_is_not_ours_or_is_down_is_not_drained(self):
        self.do_not('/v1/drains', 404, json={'hosts': ['x']})
        self.cloud.services['a'] = test_host.DOWN
        self.assertEqual('kronos.host_down', self.do_not(
            '/v1/drains', 409, json={'hosts': ['b', 'a']})['code'])
        self.assertEqual([], self.drains.in_states(drains.ACTIVE))

    def test_a_drain_that_leaves_no_host_is_refused_unless_it_is_forced(self):
        everything = {'hosts': ['a', 'b', 'c']}
        self.assertEqual('kronos.drain_refused', self.do_not(
            '/v1/drains', 409, json=everything)['code'])
        self.assertEqual([], self.drains.in_states(drains.ACTIVE))
        self.do('/v1/drains', expected=202, json=everything | {'force': True})
        self.assertEqual(3, len(self.drains.in_states(drains.ACTIVE)))

    def test_what_is_asked_wrongly_is_reported(self):
        for body, said in (({}, 'names no host'), ({'hosts': []}, 'names no host'),
                           ({'domain': 'rack=r9'}, 'domain rack=r9: has no host'),
                           ({'hosts': ['a'], 'parallel': 0}, '$.parallel'),
                           ({'hosts': ['a'], 'deadline': '2026-11-22T18:00:00'}, '$.deadline'),
                           ({'hosts': ['a'], 'deadline': '2020-01-01T00:00:00Z'}, 'has passed')):
            self.assertIn(said, self.do_not('/v1/drains', 400, json=body)['detail'])

    def test_a_third_slow_operation_is_refused_and_delays_no_other(self):
        entered, may_go = threading.Semaphore(0), threading.Event()
        self.addCleanup(may_go.set)

        def read():
            entered.release()
            may_go.wait(30)
            return self.cloud.read()

        self.patch(self, 'read_cloud', read)
        self.url = self.serve(application.make(self.conf, self.services()))
        check = {'hosts': ['a'], 'check': True}
        begun = [threading.Thread(target=self.do, args=('/v1/drains',), kwargs={
            'expected': 202, 'json': check}) for _each in range(application.SLOW_AT_ONCE)]
        for thread in begun:
            thread.start()
            self.assertTrue(entered.acquire(timeout=30))
        error = self.do_not('/v1/drains', 503, json=check)
        self.assertIn('Send the request again', error['detail'])
        self.assertEqual('5', self.answer.headers['Retry-After'])
        self.ask('/v1/status')
        may_go.set()
        for thread in begun:
            thread.join()
        self.do('/v1/drains', expected=202, json=check)

    def test_what_is_refused_or_fails_gives_its_turn_back(self):
        for _each in range(application.SLOW_AT_ONCE + 1):
            self.do_not('/v1/drains', 404, json={'hosts': ['x']})

        def fail():
            raise exception.InventoryError(problem='nova-api is away')

        self.patch(self.cloud, 'read', fail)
        for _each in range(application.SLOW_AT_ONCE + 1):
            error = self.do_not('/v1/drains', 503, json={'hosts': ['a']})
            self.assertNotIn('Send the request again', error['detail'])

    def test_a_host_that_was_not_drained_or_is_being_serviced_is_not_released(self):
        self.do_not('/v1/hosts/a/release', 404)
        self.do('/v1/drains', expected=202, json={'hosts': ['a']})
        db_maintenances.Maintenances(self.database).begin(maintenance.Maintenance(
            uuid='m', state=maintenance.RUNNING, requested_by='jane',
            requested_at=clock.utcnow(), options=maintenance.MaintenanceOptions(),
            hosts={'a': maintenance.HOOK}))
        self.assertEqual('kronos.host_in_service',
                         self.do_not('/v1/hosts/a/release', 409)['code'])
