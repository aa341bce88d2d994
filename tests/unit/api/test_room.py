"""Room over the API: what fits, what restarts, and what would make room."""

import dataclasses
import datetime
import time
import types

import fixtures
import numpy as np

from kronos_nova import clock
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.db import evaluations
from kronos_nova.db import holds
from kronos_nova.db.load_stats import LoadStatsStore
from kronos_nova.load import LoadStats
from kronos_nova.load import load_statistics
from kronos_nova.objects import hold
from kronos_nova.objects import metrics
from kronos_nova.objects import plan as plans
from kronos_nova.objects import snapshot
from kronos_nova.objects.shape import Shape
from tests.unit.api import base
from tests.unit.db import test_holds
from tests.unit.room import clouds

POLICIES = """
policies:
- name: cpu
  mode: spread
  weight: 1.0
  imbalance_query: a
  vm_profile_query: b
  threshold: 0.05
"""


class RoomTestCase(base.ApiTestCase):
    def setUp(self):
        super().setUp()
        self.found = clouds.cloud(
            [clouds.host('a'), clouds.host('b')],
            [clouds.server('small', 'a', 2, 2048), clouds.server('large', 'b', 7, 4096)])

    def read_cloud(self):
        return self.found

    def read_flavors(self):
        return (Shape(id='2', name='m1.large', vcpus=8, memory_mb=4096),
                Shape(id='1', name='m1.small', vcpus=1, memory_mb=1024))


class RoomTest(RoomTestCase):
    def test_slots_of_all_flavors(self):
        found = self.ask('/v1/capacity?loss=true')
        self.assertEqual([('m1.large', 0, None), ('m1.small', 7, None)],
                         [(each['flavor'], each['now'], each['after_loss'])
                          for each in found['slots']])
        self.assertEqual(['a', 'b'], found['not_restarting'])
        small = found['slots'][1]
        self.assertEqual(({'a': 6, 'b': 1}, 'VCPU'), (small['hosts'], small['short']))

    def test_hosts_that_cannot_be_read_are_not_left_out(self):
        self.found = dataclasses.replace(self.found, unread={
            'web': '2 of its hosts could not be read and are left out: cell one does not answer',
        }, aggregates=(snapshot.Aggregate(name='gpu', uuid='gpu', hosts=('a', 'b')),))
        for path in ('/v1/capacity', '/v1/failover', '/v1/what-if'):
            self.refuse(path, 503)
        self.ask('/v1/capacity?aggregate=gpu')

    def test_slots_of_an_aggregate_say_in_how_many_days_it_is_full(self):
        self.found = dataclasses.replace(self.found, aggregates=(
            snapshot.Aggregate(name='gpu', uuid='gpu', hosts=('a', 'b')),))
        kept, now = evaluations.Evaluations(self.database), clock.utcnow()
        for day in range(10):
            kept.save(plans.AggregateReport(
                name='gpu', outcome=plans.BALANCED, mode='spread', planner='spread', slots=(
                    plans.SlotReport(flavor='m1.small', now=27 - 2 * day),)), [],
                now - datetime.timedelta(days=9 - day))

        def full_in(query):
            return {each['flavor']: each['full_in_days'] and round(each['full_in_days'], 3)
                    for each in self.ask(f'/v1/capacity?{query}')['slots']}

        self.assertEqual({'m1.large': None, 'm1.small': 4.5}, full_in('aggregate=gpu'))
        for other in ('', 'aggregate=gpu&boot=1:m1.small', 'aggregate=gpu&project=p'):
            self.assertEqual({'m1.large': None, 'm1.small': None}, full_in(other))

    def test_slots_of_one_aggregate_that_does_not_exist(self):
        self.ask('/v1/capacity?aggregate=nope', expected=404)

    def test_a_host_whose_servers_do_not_restart_is_named_with_why(self):
        found = self.ask('/v1/failover?hosts=b')
        [host] = found['hosts']
        self.assertEqual(('b', 'does_not_fit', 1, False),
                         (host['host'], host['verdict'], host['servers'], host['in_novas_order']))
        self.assertEqual({'large': 'large'}, host['names'])
        self.assertIn('it needs 7 VCPU', host['left']['large'])
        self.ask('/v1/failover?hosts=nope', expected=404)

    def test_a_migration_in_progress_counts_as_completed(self):
        """During the migration, the small server has allocations on both hosts."""
        used = {'a': {'VCPU': 2, 'MEMORY_MB': 2048}, 'b': {'VCPU': 0, 'MEMORY_MB': 0},
                'c': {'VCPU': 7, 'MEMORY_MB': 4096}}
        cloud = clouds.cloud(
            [clouds.host(name, used=amounts) for name, amounts in used.items()],
            [clouds.server('small', 'a', 2, 2048), clouds.server('large', 'c', 7, 4096)])
        self.found = cloud.with_moves_under_way([snapshot.MoveUnderWay(
            instance_uuid='small', source='a', destination='b')])
        self.assertEqual(['fits'] * 2, [
            each['verdict'] for each in self.ask('/v1/failover')['hosts']])
        found = self.ask('/v1/capacity?loss=true')
        self.assertEqual([], found['not_restarting'])
        self.assertEqual({'a': 8, 'b': 6, 'c': 1}, found['slots'][1]['hosts'])

    def test_the_moves_that_make_room(self):
        found = self.ask('/v1/room?flavor=6:1024&count=2')
        self.assertEqual(([], {'a': 1}, False), (
            found['moves'], found['hosts'], not found['missing']))
        self.ask('/v1/room?flavor=m1.huge', expected=400)
        self.ask('/v1/room?flavor=1:1&count=0', expected=400)

    def test_the_moves_after_which_most_servers_fit(self):
        self.found = clouds.cloud(
            [clouds.host('a'), clouds.host('b')],
            [clouds.server('small', 'a', 2, 2048), clouds.server('other', 'b', 2, 4096)])
        found = self.ask('/v1/fragments?flavor=8:1024&moves=5')
        self.assertEqual((0, 1, 1.0, 4 / 12), (
            found['before'], found['after'], found['rate_before'], found['rate_after']))
        [move] = found['moves']
        self.assertEqual(('small', 'a', 'b'),
                         (move['instance_name'], move['source'], move['destination']))
        [slots] = self.ask('/v1/capacity?flavors=8:1024&moves=5')['slots']
        self.assertEqual((0, 1), (slots['now'], slots['after_moves']))
        [slots] = self.ask('/v1/capacity?flavors=8:1024')['slots']
        self.assertIsNone(slots['after_moves'])
        self.ask('/v1/capacity?flavors=8:1024&moves=0', expected=400)
        self.ask('/v1/fragments?flavor=m1.huge', expected=400)
        self.ask('/v1/fragments?flavor=1:1&moves=0', expected=400)

    def test_room_for_a_flavor_after_a_move(self):
        self.found = clouds.cloud(
            [clouds.host('a'), clouds.host('b')],
            [clouds.server('small', 'a', 2, 2048), clouds.server('other', 'b', 2, 4096)])
        found = self.ask('/v1/room?flavor=m1.large')
        [move] = found['moves']
        self.assertEqual(('small', 'a', 'b'),
                         (move['instance_name'], move['source'], move['destination']))
        self.assertEqual(({'a': 1}, 2048, []),
                         (found['hosts'], found['memory_mb'], found['missing']))


class LoadTestCase(RoomTestCase):
    """A cloud with load."""

    kronos = 'aggregates = gpu'

    def setUp(self):
        super().setUp()
        self.found = clouds.cloud(
            [clouds.host('a'), clouds.host('b'), clouds.host('c')],
            [clouds.server('small', 'a', 1), clouds.server('other', 'b', 1)],
            aggregates=(snapshot.Aggregate(name='gpu', uuid='gpu', hosts=('a', 'b', 'c')),))
        path = self.folder / 'policies.yaml'
        path.write_text(POLICIES)
        self.conf.set_override('policies_file', str(path), 'kronos')
        self.values = {'imbalance': {'a': .4, 'b': .3, 'c': .1},
                       'vm_profile': {'small': .3, 'other': .2}}

    def planner_ports(self):
        return PlannerPorts(source=self, clock=lambda: 0.0, now=1e9)

    def query(self, query):
        label = 'host' if query.kind == 'imbalance' else 'uuid'
        return metrics.Vector(tuple(metrics.Sample({label: name}, value, 1e9)
                                    for name, value in self.values[query.kind].items()))


class WhatIfTest(LoadTestCase):
    """The load of the cloud as it would be."""

    def changed(self, found):
        return {each['host']: each['changed'] and round(each['changed'], 6)
                for each in found['loads'] if each['host']}

    def test_the_load_after_a_loss(self):
        found = self.ask('/v1/what-if?lose=a')
        [restart] = found['restarts']
        self.assertEqual(('small', 'a'), (restart['instance_name'], restart['source']))
        host = restart['destination']
        self.assertEqual({'a': None, 'b': .3, 'c': .1} | {host: {'b': .6, 'c': .4}[host]},
                         self.changed(found))
        [imbalance] = [each for each in found['loads'] if each['host'] is None]
        self.assertEqual(('gpu', 'cpu'), (imbalance['aggregate'], imbalance['policy']))

    def test_what_would_be_moved_onto_a_new_host(self):
        self.values['imbalance'] = {'a': .4, 'b': .4, 'c': .4}
        self.values['vm_profile'] = {'small': .2, 'other': .2}
        found = self.ask('/v1/what-if?add=1:like=a&aggregate=gpu')
        self.assertEqual({'a': .4, 'b': .4, 'c': .4, 'a+1': .2}, self.changed(found))
        self.assertEqual([], found['restarts'])
        self.values['imbalance'] = {'a': .5, 'b': .3, 'c': .3}
        found = self.ask('/v1/what-if?add=1:like=b&aggregate=gpu')
        self.assertEqual([('small', 'a', 'b+1')], [
            (each['instance_name'], each['source'], each['destination'])
            for each in found['moves']])

    def test_the_plan_goes_by_what_is_known_of_loads(self):
        """An evaluation plans by the load that servers are likely to have."""
        self.values = {'imbalance': {'a': .6, 'b': .3, 'c': .3},
                       'vm_profile': {'small': .15, 'other': .2}}
        self.assertEqual(['small'], [each['instance_name'] for each in self.ask(
            '/v1/what-if?add=1:like=c&aggregate=gpu')['moves']])
        # Small is idle most of the time, and its load does not last.
        day = load_statistics.DAY
        LoadStatsStore(self.database).save('gpu', {'cpu': LoadStats(
            1e9 - 60, ('small', 'other'), np.array([[day, .0, .01, .0, .0],
                                                    [day, .2, .0, .2, .0]]))}, clock.utcnow())
        self.assertEqual([], self.ask('/v1/what-if?add=1:like=c&aggregate=gpu')['moves'])
        self.assertEqual([], self.ask('/v1/what-if?add=1:like=c')['moves'])

    def test_a_policy_without_data_is_named(self):
        self.values['imbalance'] = {}
        found = self.ask('/v1/what-if?lose=a')
        self.assertIn('aggregate gpu, policy cpu', found['problems'][0])

    def test_an_aggregate_of_the_configuration_that_does_not_exist_is_named(self):
        self.conf.set_override('aggregates', ['gpu', 'gone'], 'kronos')
        found = self.ask('/v1/what-if?lose=a')
        [problem] = found['problems']
        self.assertIn('aggregate gone: there is no aggregate of that name', problem)
        self.assertEqual({'gpu'}, {each['aggregate'] for each in found['loads']})

    def test_what_cannot_be_answered_is_refused(self):
        self.ask('/v1/what-if?lose=nope', expected=404)
        self.ask('/v1/what-if?aggregate=nope', expected=404)
        self.conf.set_override('policies_file', str(self.folder / 'none.yaml'), 'kronos')
        self.assertIn('none.yaml', self.refuse('/v1/what-if', 400)['detail'])

    def test_nothing_is_said_of_room_while_the_rules_of_operators_are_not_known(self):
        self.conf.set_override('policies_file', str(self.folder / 'none.yaml'), 'kronos')
        for path in ('/v1/capacity', '/v1/failover', '/v1/what-if'):
            self.assertIn('its rules are therefore not known', self.refuse(path, 400)['detail'])


class LossRuleTest(RoomTestCase):
    """Room that makes it worse which hosts may be lost."""

    kronos = 'aggregates = gpu\nfailover_hosts = 1'

    def setUp(self):
        super().setUp()
        self.found = clouds.covered()

    def planner_ports(self):
        return PlannerPorts(source=None, clock=time.monotonic, now=1e9)

    def make(self, expected=202, **more):
        return self.ask('/v1/rooms', 'POST', base.OPERATOR, expected,
                        json={'flavor': 'm1.large', **more})

    def test_is_made_with_force_only(self):
        [error] = self.make(400)['errors']
        self.assertIn('c could not be lost any more', error['detail'])
        self.assertEqual([], self.ask('/v1/rooms')['rooms'])
        made = self.make(force=True)['hold']
        self.assertTrue(holds.Holds(self.database).get(made['uuid']).is_forced)

    def test_servers_may_restart_on_hosts_of_other_aggregates(self):
        self.found = dataclasses.replace(
            self.found, hosts=(*self.found.hosts, clouds.host('outside', 12)))
        self.assertEqual('proposed', self.make()['hold']['state'])

    def test_without_the_option_is_made(self):
        self.conf.set_override('failover_hosts', 0, 'kronos')
        self.assertEqual('proposed', self.make()['hold']['state'])


class ReleaseTest(RoomTestCase):
    """The allocations of room are given back only once the room is released."""

    def room_allocations(self):
        return types.SimpleNamespace(give_back=lambda consumers: self.given_back.append(
            (consumers, self.holds.get('r1').state)))

    def test_room_is_released_although_evaluations_change_its_state_often(self):
        self.holds, self.given_back = holds.Holds(self.database), []
        self.holds.request(test_holds.wish('r1', clock.utcnow(), state=hold.HELD,
                                           consumers={'c1': 'a'}))
        real, races = holds.Holds.enter, [False] * 20

        def enter(store, found, new, **values):
            return races.pop() if races else real(store, found, new, **values)
        self.useFixture(fixtures.MonkeyPatch('kronos_nova.db.holds.Holds.enter', enter))
        found = self.ask('/v1/rooms/r1/release', 'POST', base.OPERATOR)
        self.assertEqual('released', found['state'])
        self.assertEqual([({'c1': 'a'}, 'released')], self.given_back)


class BoundsTest(RoomTestCase):
    """No question takes all memory, or ends as a fault of Kronos."""

    def test_sizes_that_no_server_has_are_refused(self):
        for size in ('9' * 60, '1' + '0' * 9):
            for flavor in (f'{size}:1', f'1:{size}', f'1:1:{size}'):
                for path in ('room?flavor=', 'fragments?flavor=', 'capacity?flavors=',
                             'capacity?boot=1:'):
                    self.refuse(f'/v1/{path}{flavor}', 400)

    def test_ratios_that_are_no_figures_are_refused(self):
        for ratio in ('9' * 400, '0', '0.' + '0' * 500 + '1'):
            self.refuse(f'/v1/capacity?ratio=VCPU={ratio}', 400)

    def test_many_hosts_and_servers_are_refused_whatever_their_parts(self):
        for what in ('add=9999:like=a', 'boot=9999:1:1'):
            error = self.refuse(f'/v1/capacity?flavors=1:1&{what}&{what}', 400)
            self.assertIn('10000', error['detail'])
            self.refuse(f'/v1/capacity?{"&".join([what] * 101)}', 400)

    def test_without_any_host_nothing_fits(self):
        lost = 'lose=a&lose=b'
        self.assertEqual({0}, {each['now'] for each in self.ask(
            f'/v1/capacity?loss=true&{lost}')['slots']})
        self.assertEqual((0, 0), tuple(self.ask(f'/v1/fragments?flavor=1:1&{lost}')[name]
                                       for name in ('before', 'after')))
        self.assertEqual({}, self.ask(f'/v1/room?flavor=1:1&{lost}')['hosts'])
        self.assertEqual({'1:1': 2}, self.ask(f'/v1/failover?{lost}&boot=2:1:1')['outcome'][
            'not_booted'])
        self.assertEqual([], self.ask(f'/v1/failover?{lost}')['hosts'])
