"""Operations that read: the facts of the control database, with names and times that have zones."""

import dataclasses
import datetime

from kronos_nova import clock
from kronos_nova.db import cooldowns as db_cooldowns
from kronos_nova.db import drains as db_drains
from kronos_nova.db import evaluations
from kronos_nova.db import maintenances as db_maintenances
from kronos_nova.db import models
from kronos_nova.db import refusals
from kronos_nova.db import scores
from kronos_nova.db import server_names
from kronos_nova.db import switches
from kronos_nova.drain import states as drains
from kronos_nova.objects import automation
from kronos_nova.objects import host_load
from kronos_nova.objects import maintenance
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from tests.unit.api import base
from tests.unit.db import fixtures as db_fixtures

WIDE = moves.Caps(total=9, per_source=9, per_destination=9)


class AggregatesTest(base.ApiTestCase):
    def test_an_aggregate_tells_how_it_is_and_why(self):
        self.evaluate(policies=(plans.PolicyReport(
            name='cpu', weight=1.0, threshold=0.2, imbalance_before=0.4, imbalance_after=0.4,
            state='ok'),), host_scores=(plans.HostScore('a', 'cpu', 0.95, 0.95),
                                        plans.HostScore('b', 'cpu', 0.55, 0.55)))
        plan = self.plan(('vm1', 'a', 'b'))
        found = {each['name']: each for each in self.ask('/v1/aggregates')['aggregates']}
        gpu = self.ask('/v1/aggregates/gpu')
        self.assertEqual(found['gpu'] | {'next_at': gpu['next_at']}, gpu)
        self.assertEqual(('balanced', 'observe', 2, 1, plan), (
            gpu['outcome'], gpu['level'], gpu['hosts'], gpu['hot_hosts'], gpu['plan']['uuid']))
        self.assertEqual(35.0, gpu['health'])     # 40 for the imbalance, 25 for the hot host
        self.assertEqual((0.4, 0.2), (gpu['policies'][0]['imbalance'],
                                      gpu['policies'][0]['threshold']))
        self.assertEqual(datetime.timedelta(0), datetime.datetime.fromisoformat(
            gpu['evaluated_at']).utcoffset())
        self.assertEqual('not evaluated yet', found['db']['reason'])
        self.assertEqual([None] * 4, [found['db'][figure] for figure in (
            'health', 'hosts', 'hot_hosts', 'immovable')])

    def test_one_that_kronos_does_not_look_after_is_not_found(self):
        for name in ('gup', '*'):
            self.assertEqual('kronos.not_in_scope',
                             self.refuse(f'/v1/aggregates/{name}', 404)['code'])

    def test_problems_are_those_of_the_command(self):
        found = self.ask('/v1/status')
        self.assertEqual('critical', found['severity'])
        self.assertIn('carries out moves', found['problems'][0]['what'])

    def test_hosts_come_a_page_at_a_time(self):
        scores.Scores(self.database).replace('spread', {'cpu': 1.0}, {
            f'host{number}': {'cpu': number / 10} for number in range(5)}, clock.utcnow())
        first = self.ask('/v1/hosts?limit=3')
        self.assertEqual(['host0', 'host1', 'host2'], [each['name'] for each in first['hosts']])
        rest = self.ask(f'/v1/hosts?limit=3&marker={first["next"]}')
        self.assertEqual((['host3', 'host4'], None),
                         ([each['name'] for each in rest['hosts']], rest['next']))
        self.assertEqual(0.3, rest['hosts'][0]['scores'][0]['value'])
        self.assertEqual((None, None, []), tuple(
            rest['hosts'][0][name] for name in ('state', 'servers', 'aggregates')))


class NamesTest(base.ApiTestCase):
    """Hosts and servers by a part of their names."""

    def setUp(self):
        super().setUp()
        known = evaluations.Evaluations(self.database)
        for name, hosts in (('gpu', ('gpu-1', 'both')), ('db', ('DB-1', 'both')),
                            ('gone', ('gone-1',))):
            known.save(plans.AggregateReport(
                name=name, outcome=plans.BALANCED, mode='spread', planner='spread'),
                [host_load.HostLoad(name=host, state='disabled', servers=3, servers_after=2,
                                    scores={}, domains={'rack': name})
                 for host in hosts], clock.utcnow())
        server_names.ServerNames(self.database).save(
            {'1': 'web-1', '2': 'Web-2', '3': 'db_1', '4': 'db%1', '5': 'web-1'}, clock.utcnow())

    def hosts(self, conditions=''):
        return [each['name'] for each in self.ask(f'/v1/hosts?{conditions}')['hosts']]

    def servers(self, conditions=''):
        return [each['uuid'] for each in self.ask(f'/v1/servers?{conditions}')['servers']]

    def test_hosts_without_a_score_are_there_and_those_out_of_scope_are_not(self):
        self.assertEqual(['DB-1', 'both', 'gpu-1'], self.hosts())
        self.assertEqual(['DB-1'], self.hosts('name=db'))
        self.assertEqual({'name': 'both', 'aggregates': ['db', 'gpu'], 'state': 'disabled',
                          'servers': 3, 'scores': [], 'domains': {'rack': 'gpu'}},
                         self.ask('/v1/hosts/both'))
        self.assertEqual('kronos.host_not_found', self.refuse('/v1/hosts/gone-1', 404)['code'])

    def test_a_host_is_shown_without_reading_those_of_other_aggregates(self):
        parsed, from_json = [], host_load.from_json

        def parse(text):
            parsed.append(text)
            return from_json(text)
        self.patch(host_load, 'from_json', parse)
        self.assertEqual(['gpu'], self.ask('/v1/hosts/gpu-1')['aggregates'])
        self.assertEqual(1, len(parsed))

    def test_servers_are_found_whatever_their_case_and_no_character_stands_for_others(self):
        self.assertEqual({'1', '2', '5'}, {*self.servers('name=WEB')})
        self.assertEqual(['3'], self.servers('name=_'))
        self.assertEqual(['4'], self.servers('name=%25'))

    def test_servers_come_a_page_at_a_time(self):
        whole = self.servers()
        self.assertEqual(5, len({*whole}))
        for limit in (1, 2, 5):
            found, marker = [], ''
            while marker is not None:
                page = self.ask(f'/v1/servers?limit={limit}&marker={marker}' if marker else
                                f'/v1/servers?limit={limit}')
                found += [each['uuid'] for each in page['servers']]
                marker = page['next']
            self.assertEqual(whole, found)
        self.assertEqual('kronos.server_not_found',
                         self.refuse('/v1/servers?marker=none', 404)['code'])


class CloudTest(base.ApiTestCase):
    kronos = 'aggregates = gpu, db\n[kronos_nova]\nregion_name = Vienna'

    def test_its_name_is_that_of_the_page_or_of_the_region(self):
        self.assertEqual('Vienna', self.ask('/v1/status')['cloud'])
        self.conf.set_override('cloud_name', 'production', 'kronos_api')
        self.assertEqual('production', self.ask('/v1/status')['cloud'])

    def test_without_either_it_has_none(self):
        self.conf.set_override('region_name', None, 'kronos_nova')
        self.assertIsNone(self.ask('/v1/status')['cloud'])

    def test_what_is_stopped_is_reported_with_who_since_when_and_why(self):
        at = clock.utcnow().replace(microsecond=0)
        switches.SwitchBoard(self.database).set(automation.Switch(
            kind=automation.PAUSE, value='stop', aggregate='gpu', set_by='jane', set_at=at,
            reason='smoke'))
        [pause] = self.ask('/v1/status')['pauses']
        self.assertEqual(('gpu', 'stop', 'jane', 'smoke', at), (
            *(pause[name] for name in ('aggregate', 'value', 'set_by', 'reason')),
            datetime.datetime.fromisoformat(pause['set_at'])))


class PlansTest(base.ApiTestCase):
    def setUp(self):
        super().setUp()
        self.now = clock.utcnow()

    def pages(self, path, key, limit):
        """Everything, read a page at a time."""
        found, marker = [], ''
        while marker is not None:
            page = self.ask(f'{path}limit={limit}{f"&marker={marker}" if marker else ""}')
            found += page[key]
            marker = page['next']
        return found

    def test_plans_come_a_page_at_a_time_the_newest_first(self):
        for number in range(7):
            # Two of each time: a marker has to tell them apart.
            self.plan((f'vm{number}', 'a', 'b'), state=plans.OBSERVED, name=f'aggregate{number}',
                      at=self.now + datetime.timedelta(seconds=number // 2))
        whole = [each['uuid'] for each in self.ask('/v1/plans')['plans']]
        self.assertEqual(7, len({*whole}))
        for limit in (1, 2, 3, 7):
            self.assertEqual(whole, [each['uuid'] for each in self.pages(
                '/v1/plans?', 'plans', limit)])

    def test_moves_come_a_page_at_a_time_in_the_order_of_their_plan(self):
        for name in ('gpu', 'db'):
            self.plan(*((f'vm{name}{number}', 'a', 'b') for number in range(4)), name=name,
                      state=plans.EXECUTING, at=self.now)
        whole = self.ask('/v1/moves')['moves']
        self.assertEqual([1, 2, 3, 4] * 2, [each['ordinal'] for each in whole])
        for limit in (1, 3, 8):
            self.assertEqual([each['uuid'] for each in whole], [each['uuid'] for each in self.pages(
                '/v1/moves?', 'moves', limit)])

    def test_a_full_last_page_names_no_next_page(self):
        for number in range(2):
            self.plan((f'vm{number}', 'a', 'b'), name=f'aggregate{number}', state=plans.EXECUTING)
        for kind in ('plans', 'moves'):
            first = self.ask(f'/v1/{kind}?limit=1')
            self.assertEqual(1, len(first[kind]))
            last = self.ask(f'/v1/{kind}?limit=1&marker={first["next"]}')
            self.assertEqual((1, None), (len(last[kind]), last['next']))

    def test_a_state_that_does_not_exist_is_refused(self):
        for path in ('/v1/plans?state=finished', '/v1/moves?state=planned&state=done'):
            self.assertIn('state', self.refuse(path, 400)['detail'])

    def test_they_are_chosen_by_what_they_are(self):
        plan = self.plan(('vm1', 'a', 'b'), ('vm2', 'a', 'b'), state=plans.EXECUTING)
        self.plan(('vm3', 'a', 'b'), name='db')
        self.assertEqual([plan], [each['uuid'] for each in self.ask(
            '/v1/plans?aggregate=gpu&state=executing')['plans']])
        self.assertEqual([], self.ask('/v1/plans?aggregate=gpu&state=done')['plans'])
        for condition, count in (('since=2020-01-01T00:00:00Z', 2),
                                 ('until=2020-01-01T00:00:00Z', 0),
                                 ('since=2099-01-01T00:00:00Z', 0)):
            self.assertEqual(count, len(self.ask(f'/v1/plans?{condition}')['plans']), condition)
        self.assertEqual(2, len(self.ask(f'/v1/moves?plan={plan}&state=planned')['moves']))
        self.assertEqual(['vm2'], [each['instance_uuid'] for each in self.ask(
            '/v1/moves?instance=vm2')['moves']])

    def test_a_marker_that_there_is_not_is_reported(self):
        self.refuse('/v1/plans?marker=nothing', 404)
        self.refuse('/v1/moves?marker=nothing', 404)

    def test_times_outside_the_calendar(self):
        self.plan(('vm1', 'a', 'b'))
        for time in ('0001-01-01T00:00:00%2B23:00', '9999-12-31T23:59:59-23:00'):
            for path in ('/v1/moves?since=', '/v1/moves?until=',
                         '/v1/servers/vm1/explanation?at='):
                self.refuse(f'{path}{time}', 400)

    def test_times_at_the_ends_of_the_calendar(self):
        self.plan(('vm1', 'a', 'b'), state=plans.EXECUTING)
        with self.database.writer() as session:
            for row in session.query(models.MoveRow):
                row.state, row.finished_at = moves.COMPLETED, self.now
        for path in ('/v1/report?', '/v1/moves?', '/v1/plans?', '/v1/aggregates/gpu/history?'):
            self.refuse(f'{path}since=2026-01-01T00:00:00', 400)    # without a zone
            for first in ('0001-01-01T00:00:00Z', '9999-12-31T23:59:59Z'):
                self.ask(f'{path}since={first}')
                self.ask(f'{path}until={first}')
            self.ask(f'{path}since=0001-01-01T00:00:00Z&until=9999-12-31T23:59:59Z')

    def test_a_plan_tells_every_move_and_why(self):
        uuid = self.plan(('vm1', 'a', 'b'), ('vm2', 'b', 'c', 1))
        found = self.ask(f'/v1/plans/{uuid}')
        first, second = found['report']['moves']
        self.assertEqual(('name-of-vm1', 'spreads', [1]),
                         (first['instance_name'], first['reason'], second['depends_on']))
        self.assertEqual('proposed', found['state'])

    def test_a_plan_whose_report_is_not_kept_is_shown_without(self):
        uuid = self.plan(('vm1', 'a', 'b'))
        with self.database.writer() as session:
            session.delete(session.get(models.ReportRow, uuid))
        self.assertIsNone(self.ask(f'/v1/plans/{uuid}')['report'])

    def test_a_move_tells_what_happened_to_it(self):
        plan = self.plan(('vm1', 'a', 'b'), state=plans.EXECUTING)
        [move] = self.journal.moves(plan)
        self.journal.dispatch(WIDE, clock.utcnow)
        found = self.ask(f'/v1/moves/{move.uuid}')
        self.assertEqual(('name-of-vm1', 'dispatched', [None, 'planned']), (
            found['instance_name'], found['state'],
            [event['old_state'] for event in found['events']]))

    def test_what_there_is_not_is_not_found(self):
        self.assertEqual('kronos.plan_not_found', self.refuse('/v1/plans/none', 404)['code'])
        self.assertEqual('kronos.move_not_found', self.refuse('/v1/moves/none', 404)['code'])
        self.assertEqual('kronos.drain_not_found', self.refuse('/v1/drains/none', 404)['code'])


class ExplanationTest(base.ApiTestCase):
    def know_servers(self, *servers):
        """Have Kronos know servers of one name."""
        server_names.ServerNames(self.database).save(dict.fromkeys(servers, 'web'), clock.utcnow())

    def explain(self, server='vm1'):
        return self.ask(f'/v1/servers/{server}/explanation')

    def test_one_that_stayed_tells_why(self):
        self.evaluate(outcome=plans.NO_MOVE, not_moved=(
            plans.Skip(reason='capacity', instances=('vm1', 'vm2')),
            plans.Skip(reason='locked', instances=('vm3',))))
        found = self.explain()
        self.assertEqual(('capacity', 'gpu', None),
                         (found['stays_because'], found['stays_in'], found['planned']))

    def test_one_of_an_aggregate_in_which_nothing_moves_tells_that(self):
        names = server_names.ServerNames(self.database)
        names.save({'vm7': 'web', 'vm8': 'mail'}, clock.utcnow(), {'vm7': 'gpu'})
        self.evaluate(outcome=plans.BALANCED)
        found = self.explain('vm7')
        self.assertEqual(
            ('balanced', 'gpu', 'every policy is at or below its threshold, and nothing is to be '
             'repaired'), (found['stays_because'], found['stays_in'], found['stays_means']))
        self.assertIsNone(self.explain('vm8')['stays_because'])
        self.evaluate(outcome=plans.PLANNED)
        self.assertIsNone(self.explain('vm7')['stays_because'])

    def test_an_aggregate_that_is_planned_no_more_explains_nothing(self):
        server_names.ServerNames(self.database).save(
            {'vm7': 'web'}, clock.utcnow(), {'vm7': 'former'})
        self.evaluate(name='former', outcome=plans.NO_MOVE, not_moved=(
            plans.Skip(reason='capacity', instances=('vm1',)),))
        for server in ('vm1', 'vm7'):
            found = self.explain(server)
            self.assertEqual((None, None), (found['stays_because'], found['stays_in']), server)

    def test_one_that_is_to_be_moved_tells_where_to_and_why(self):
        plan = self.plan(('vm1', 'a', 'b'))
        found = self.explain()
        self.assertEqual((plan, 'b', 'spreads', 'name-of-vm1'), (
            found['planned_in'], found['planned']['destination'], found['planned']['reason'],
            found['instance_name']))

    def test_a_move_of_the_past_tells_why_and_what_was_the_next_best(self):
        other = plans.NextBest(instance_uuid='vm9', destination='c', memory_mb=2048,
                               combined_after=0.3)
        report = db_fixtures.report([('vm1', 'a', 'b')])
        report = dataclasses.replace(report, moves=(
            dataclasses.replace(report.moves[0], next_best=other),))
        began = clock.utcnow()
        server_names.ServerNames(self.database).save({'vm9': 'web9'}, began)
        self.journal.record_plan(report, plans.EXECUTING, began, began)
        [move] = self.journal.dispatch(WIDE, clock.utcnow)
        move = self.journal.claim(move.uuid, began)
        self.journal.advance(move, moves.MIGRATING, began, requested_at=began)
        [move] = self.explain()['moves']
        self.assertEqual((0.5, 0.1, 'spreads', 'vm9', 'web9'), (
            move['plan_imbalance_before'], move['plan_imbalance_after'], move['reason'],
            move['next_best']['instance_uuid'], move['next_best']['instance_name']))
        path = '/v1/servers/vm1/explanation?at='
        self.assertEqual([], self.ask(f'{path}2020-01-01T00:00:00Z')['moves'])
        later = (began + datetime.timedelta(seconds=1)).isoformat().replace('+00:00', 'Z')
        self.assertEqual([move], self.ask(f'{path}{later}')['moves'])

    def test_one_that_nova_does_not_migrate_live_has_novas_reason(self):
        self.evaluate(outcome=plans.NO_MOVE, immovable=(
            plans.Immovable(instance_uuid='vm1', can='cold', why='the memory is encrypted'),))
        self.know_servers('vm1', 'vm2')
        found = self.explain()
        self.assertEqual(('cold', 'the memory is encrypted', None), (
            found['movable'], found['immovable_because'], found['stays_because']))
        other = self.explain('vm2')
        self.assertEqual(('live', ''), (other['movable'], other['immovable_because']))

    def test_one_that_is_left_alone_tells_until_when(self):
        now = clock.utcnow()
        cooldowns = db_cooldowns.Cooldowns(self.database)
        cooldowns.quarantine('vm1', 600, 'MigrationFailed: why', now)
        db_fixtures.cool(self.database, db_cooldowns.INSTANCE, ['vm1'],
                         now + datetime.timedelta(seconds=300))
        refusals.Refusals(self.database).rest(
            [plans.Refusal(instance_uuid='vm1', hosts=('b', 'c'), reason='no NUMA room')], 600, now)
        found = self.explain()
        self.assertEqual(('MigrationFailed: why', 'no NUMA room', ['b', 'c']), (
            found['quarantined_because'], found['refused_because'], found['refused_hosts']))
        self.assertTrue(290 < found['cooling_seconds'] <= 300)

    def test_a_server_that_is_not_known_is_not_found(self):
        error = self.refuse('/v1/servers/who/explanation', 404)
        self.assertIn('knows no server who', error['detail'])

    def test_a_server_is_explained_by_its_name_unless_several_have_it(self):
        self.plan(('vm1', 'a', 'b'))
        self.assertEqual('vm1', self.explain('name-of-vm1')['instance_uuid'])
        self.know_servers('vm1', 'vm2')
        error = self.refuse('/v1/servers/web/explanation', 409)
        self.assertIn('vm1, vm2', error['detail'])


class OperationsTest(base.ApiTestCase):
    def test_drains_are_shown_until_they_are_released(self):
        known = db_drains.Drains(self.database)
        for number, state in enumerate((drains.DRAINING, drains.RELEASED)):
            known.request([drains.Drain(
                uuid=f'drain{number}', host=f'host{number}', aggregate='gpu', state=state,
                requested_by='jane', requested_at=clock.utcnow(), left=3,
                blocked={'vm1': 'no host has room'})])
        [found] = self.ask('/v1/drains')['drains']
        self.assertEqual(found, self.ask('/v1/drains/drain0'))
        self.assertEqual(({'vm1': 'no host has room'}, 3), (found['blocked'], found['left']))
        self.assertEqual(2, len(self.ask('/v1/drains?all=true')['drains']))

    def test_a_maintenance_shows_its_hosts_in_order(self):
        self.refuse('/v1/maintenance', 404)
        db_maintenances.Maintenances(self.database).begin(maintenance.Maintenance(
            uuid='m', state='running', requested_by='jane', requested_at=clock.utcnow(),
            options=maintenance.MaintenanceOptions(), hosts={'b': 'hook', 'a': 'waiting'}))
        found = self.ask('/v1/maintenance')
        self.assertEqual([('b', 'hook'), ('a', 'waiting')],
                         [(each['host'], each['state']) for each in found['hosts']])
        self.assertFalse(found['is_run'])

    def test_who_is_in_quarantine_and_why(self):
        db_cooldowns.Cooldowns(self.database).quarantine('vm1', -1, 'why', clock.utcnow())
        [found] = self.ask('/v1/quarantine')['servers']
        self.assertEqual(('vm1', None, 'why'),
                         (found['instance_uuid'], found['until'], found['reason']))

    def test_levels_tell_who_set_them(self):
        switches.SwitchBoard(self.database).set(automation.Switch(
            kind=automation.LEVEL, aggregate='gpu', value='off', set_by='jane',
            set_at=clock.utcnow(), reason='month end'))
        found = self.ask('/v1/automation')
        self.assertEqual([('gpu', 'off', 'jane', 'month end'), ('db', 'observe', None, '')], [
            (each['aggregate'], each['level'], each['set_by'], each['reason'])
            for each in found['levels']])
        [event] = self.ask('/v1/automation/history')['events']
        self.assertEqual(('gpu', 'off'), (event['aggregate'], event['value']))
