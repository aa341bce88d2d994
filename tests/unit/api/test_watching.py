"""Operations of the page: the user, the hosts of an aggregate, the history of its imbalance."""

import datetime

from kronos_nova import clock
from kronos_nova.api import routes
from kronos_nova.db import evaluations
from kronos_nova.objects import host_load
from kronos_nova.objects import plan as plans
from kronos_nova.services import evaluations as service
from tests.unit.api import base

FOR_READERS = {each.name for each in routes.OPERATIONS if each.audience == 'reader'}


class AccessTest(base.ApiTestCase):
    def test_it_tells_who_that_is_and_until_when(self):
        found = self.ask('/v1/access')
        self.assertEqual(('jane', 'ops', False, ['kronos_reader']), tuple(
            found[name] for name in ('user', 'project', 'is_system', 'roles')))
        expires_at = datetime.datetime.fromisoformat(found['expires_at'])
        self.assertGreater(expires_at, datetime.datetime.now(datetime.UTC))

    def test_what_it_may_is_what_the_policy_permits(self):
        may = {token: {*self.ask('/v1/access', token=token)['may']}
               for token in (base.READER, base.OPERATOR, base.ADMIN, base.SYSTEM_READER)}
        everything = {each.name for each in routes.OPERATIONS}
        self.assertEqual(FOR_READERS, may[base.READER])
        self.assertEqual(may[base.READER], may[base.SYSTEM_READER])
        self.assertEqual(everything - {'automation:set'}, may[base.OPERATOR])
        self.assertEqual(everything, may[base.ADMIN])
        self.assertTrue(self.ask('/v1/access', token=base.SYSTEM_READER)['is_system'])


class WatchingTest(base.ApiTestCase):
    def setUp(self):
        super().setUp()
        self.kept = evaluations.Evaluations(self.database)

    def measure(self, imbalance, at=None, name='gpu'):
        report = plans.AggregateReport(
            name=name, outcome=plans.NO_MOVE, mode='spread', planner='spread', policies=(
                plans.PolicyReport(name='cpu', state='ok', weight=1.0, threshold=0.1,
                                   imbalance_before=imbalance, imbalance_after=imbalance),),
            not_moved=(plans.Skip(reason='locked', instances=('vm1', 'vm2')),))
        loads = [host_load.HostLoad(name='a', state='up', servers=2, servers_after=1,
                                    scores={'cpu': (0.75, 0.5), 'memory': (0.5, 0.5)},
                                    domains={'rack': 'r1'}),
                 host_load.HostLoad(name='b', state='disabled', servers=0, servers_after=1,
                                    scores={'cpu': (0.25, 0.5)})]
        self.kept.save(report, loads, at or clock.utcnow())
        self.evaluate(name, plans.NO_MOVE, policies=report.policies, not_moved=report.not_moved)

    def test_the_hosts_of_the_last_evaluation(self):
        self.measure(0.5)
        found = self.ask('/v1/aggregates/gpu/evaluation')
        self.assertEqual(['cpu', 'memory'], found['scored_by'])
        self.assertEqual([
            {'name': 'a', 'state': 'up', 'domains': {'rack': 'r1'}, 'servers': 2,
             'servers_after': 1, 'scores': [0.75, 0.5], 'scores_after': [0.5, 0.5]},
            {'name': 'b', 'state': 'disabled', 'domains': {}, 'servers': 0, 'servers_after': 1,
             'scores': [0.25, None], 'scores_after': [0.5, None]}], found['hosts'])
        self.assertEqual([
            {'reason': 'locked', 'count': 2,
             'means': 'locked by its owner or an administrator'}], found['not_moved'])
        self.assertEqual((plans.NO_MOVE, 0.5), (
            found['outcome'], found['policies'][0]['imbalance_before']))

    def test_servers_that_nova_does_not_migrate_live_are_counted_by_novas_reason(self):
        self.evaluate('gpu', plans.NO_MOVE, immovable=tuple(
            plans.Immovable(instance_uuid=f'vm{number}', can=can, why=why)
            for number, (can, why) in enumerate((
                ('no', 'accelerator'), ('cold', 'SEV'), ('cold', 'SEV')))))
        self.assertEqual([{'can': 'cold', 'why': 'SEV', 'count': 2},
                          {'can': 'no', 'why': 'accelerator', 'count': 1}],
                         self.ask('/v1/aggregates/gpu/evaluation')['immovable'])
        self.assertEqual(3, self.ask('/v1/aggregates/gpu')['immovable'])

    def test_of_what_was_never_evaluated_nothing_is_reported(self):
        found = self.ask('/v1/aggregates/gpu/evaluation')
        self.assertEqual((None, None, [], 'not evaluated yet'), tuple(
            found[name] for name in ('evaluated_at', 'outcome', 'hosts', 'reason')))
        self.assertEqual([], self.ask('/v1/aggregates/gpu/history')['points'])

    def test_how_the_imbalance_went(self):
        now = clock.utcnow()
        for hours, value in ((30, 0.9), (2, 0.5), (1, 0.2)):
            self.measure(value, now - datetime.timedelta(hours=hours))
        found = self.ask('/v1/aggregates/gpu/history')
        self.assertEqual((['cpu'], [0.1]), (found['policies'], found['thresholds']))
        self.assertEqual([[0.5], [0.2]], [point['imbalances'] for point in found['points']])
        self.assertEqual(3, len(self.ask('/v1/aggregates/gpu/history?hours=48')['points']))
        self.refuse('/v1/aggregates/gpu/history?hours=0', 400)
        since, until = (f'{now - datetime.timedelta(hours=hours):%Y-%m-%dT%H:%M:%SZ}'
                        for hours in (40, 1.5))
        found = self.ask(f'/v1/aggregates/gpu/history?since={since}&until={until}')
        self.assertEqual([[0.9], [0.5]], [point['imbalances'] for point in found['points']])
        self.assertEqual(found['points'][0]['at'], found['oldest'])

    def test_a_long_history_is_thinned(self):
        now = clock.utcnow()
        for minute in range(service.MOST_POINTS + 10):
            self.kept.save(plans.AggregateReport(
                name='gpu', outcome='balanced', mode='spread', planner='spread', policies=(
                    plans.PolicyReport(name='cpu', state='ok', weight=1.0, threshold=0.1,
                                       imbalance_before=0.1, imbalance_after=0.1),)),
                [], now - datetime.timedelta(minutes=minute))
        self.assertLessEqual(len(self.ask('/v1/aggregates/gpu/history')['points']),
                             service.MOST_POINTS)

    def test_an_aggregate_that_is_none_of_ours(self):
        for path in ('evaluation', 'history'):
            self.refuse(f'/v1/aggregates/nothing/{path}', 404)
