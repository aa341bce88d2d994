"""The decisions of a cycle, on a cloud of three hosts of which one has all the load."""

import collections
import dataclasses
import itertools
from unittest import mock

import testtools

from kronos_client.contract import reasons
from kronos_nova import exception
from kronos_nova.cooldown import PastMove
from kronos_nova.cooldown import PlanningHistory
from kronos_nova.cycle import solve
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.move_limits import MoveLimits
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.cycle.restraint import Restraint
from kronos_nova.cycle.steps import plan_cycle
from kronos_nova.cycle.steps import still_valid
from kronos_nova.load.belief import BeliefRules
from kronos_nova.objects import snapshot as objects
from kronos_nova.objects.dry_run import AGREED
from kronos_nova.objects.dry_run import Verdict
from kronos_nova.objects.dry_run import not_asked
from kronos_nova.objects.metrics import Sample
from kronos_nova.objects.metrics import Vector
from kronos_nova.policies import Policy
from kronos_nova.policies import PolicySet
from kronos_nova.policies import windows
from kronos_nova.policies.rules import OperatorRule

NOW = 1_800_000_000.0
POLICY = {'name': 'cpu', 'mode': 'spread', 'weight': 1.0, 'threshold': 0.1,
          'imbalance_query': 'host_cpu', 'vm_profile_query': 'vm_cpu', 'host_label': 'host'}
ROOM = {'VCPU': objects.ResourceInventory(total=16)}


class Recorded:
    """Answers by kind, and counts how often it was asked."""

    def __init__(self, **answers):
        self.answers, self.asked = answers, 0

    def query(self, query):
        self.asked += 1
        label = ('uuid' if query.kind in ('vm_profile', 'dirty_rate', 'used_memory')
                 else 'host')
        return Vector(tuple(Sample({label: name}, value, NOW)
                            for name, value in self.answers[query.kind].items()))


class SlowClock:
    """Each look at it takes ``tick`` seconds."""

    def __init__(self, tick=0.001):
        self.now, self.tick = 0.0, tick

    def __call__(self):
        self.now += self.tick
        return self.now


def host(name, **service):
    return objects.Host(name=name, uuid=name, inventory=ROOM, service=objects.Service(
        **{'state': 'up', 'status': 'enabled', **service}))


def instance(uuid, on, **values):
    return objects.Instance(**{
        'uuid': uuid, 'name': f'instance-{uuid}', 'display_name': 'web', 'host': on,
        'project_id': 'p1', 'status': 'ACTIVE', 'vcpus': 1, 'memory_mb': 1024, 'disk_gb': 0,
        'resources': {'VCPU': 1}, **values})


class PipelineTestCase(testtools.TestCase):
    planners = 'greedy', 'ffd'

    def setUp(self):
        super().setUp()
        self.policy = dict(POLICY)
        self.hosts = {name: host(name) for name in ('h0', 'h1', 'h2')}
        self.instances = {name: instance(name, 'h0') for name in ('a', 'b', 'c', 'd')}
        self.source = Recorded(imbalance={'h0': 0.8, 'h1': 0.0, 'h2': 0.0},
                               vm_profile=dict.fromkeys('abcd', 0.2))
        self.options = EngineOptions(aggregates=('agg',), include_unassigned_hosts=False,
                                     spread_planner=self.planners[0], pack_planner=self.planners[1])
        self.dry_run = lambda *_asked: AGREED
        self.groups = ()
        self.rules = ()
        self.far = None
        self.moving = ()
        self.clock = lambda: 0.0

    def snapshot(self):
        return self.read().with_moves_under_way(self.moving)

    def read(self):
        far = [self.far] if self.far else []
        return objects.Snapshot(
            taken_at='', hosts=(*self.hosts.values(), *(host(each.host) for each in far)),
            instances=(*self.instances.values(), *far), server_groups=self.groups,
            moves_under_way=tuple(objects.MoveUnderWay(
                instance_uuid=each.uuid, source=each.host, destination=destination)
                for each in far for destination in ('h1',)),
            aggregates=(objects.Aggregate(name='agg', uuid='agg', hosts=tuple(self.hosts)),))

    def plan(self, history=None, **options):
        ports = PlannerPorts(source=self.source, clock=self.clock, now=NOW,
                             dry_run=self.dry_run)
        report, = plan_cycle(
            self.snapshot(), PolicySet(policies=(Policy(**self.policy),), rules=self.rules),
            dataclasses.replace(self.options, **options), ports, history).aggregates
        return report

    def change(self, uuid, **values):
        self.instances[uuid] = dataclasses.replace(self.instances[uuid], **values)

    def stayed(self, report):
        return {skip.reason: skip.instances for skip in report.not_moved}


class PipelineTest(PipelineTestCase):
    def test_load_is_spread_and_every_move_says_why(self):
        report = self.plan()
        self.assertEqual('planned', report.outcome)
        self.assertEqual([('a', 'h1'), ('b', 'h2')],
                         [(move.instance_uuid, move.destination) for move in report.moves])
        self.assertIn('cpu 0.800 to 0.600', report.moves[0].reason)
        self.assertIn('1024 MiB', report.moves[0].reason)
        self.assertEqual({'no_gain': ('c', 'd')}, self.stayed(report))

    def test_a_server_stays_whose_move_is_not_needed_to_reach_the_threshold(self):
        """The move of server b would lower the imbalance further."""
        self.policy = {**self.policy, 'threshold': 0.65}
        report = self.plan(restraint=Restraint(1.0))
        self.assertEqual(1, len(report.moves))
        self.assertEqual(3, len(self.stayed(report)['no_gain']))
        self.assertIn('every imbalance is low enough without it',
                      reasons.WHY_SERVERS_STAY['no_gain'])

    def test_what_leaves_a_disabled_host_leaves_the_room_that_a_rule_needs(self):
        """Server x may go to h2, which is the least loaded host, or to h3. Server v has to leave
        h1, and may go to h2 only. Each host has room for one of them."""
        room = {'VCPU': objects.ResourceInventory(total=4)}
        self.hosts = {name: dataclasses.replace(host(name, status=status), inventory=room)
                      for name, status in (('h0', 'disabled'), ('h1', 'enabled'),
                                           ('h2', 'enabled'), ('h3', 'enabled'))}
        self.instances = {uuid: instance(uuid, on, resources={'VCPU': 4})
                          for uuid, on in (('x', 'h0'), ('v', 'h1'))}
        self.source = Recorded(imbalance={'h0': 0.4, 'h1': 0.4, 'h2': 0.0, 'h3': 0.05},
                               vm_profile={'x': 0.4, 'v': 0.4})
        self.rules = (OperatorRule(name='r', servers={'uuid': ['v']},
                                   must_not_run_on={'hosts': ['h1', 'h3']}),)
        for amount in (0.0, 1.0):
            moves = self.plan(evacuate_disabled_hosts=True, restraint=Restraint(amount)).moves
            self.assertEqual([('x', 'h3', 'evacuate'), ('v', 'h2', 'affinity')], [
                (move.instance_uuid, move.destination, move.phase) for move in moves])

    def test_a_rule_takes_no_room_that_is_needed_to_empty_a_disabled_host(self):
        """Server x may go to h2 only, and so may server v, which has to leave h1."""
        room = {'VCPU': objects.ResourceInventory(total=4)}
        self.hosts = {name: dataclasses.replace(host(name, status=status), inventory=room)
                      for name, status in (('h0', 'disabled'), ('h1', 'enabled'),
                                           ('h2', 'enabled'))}
        self.instances = {uuid: instance(uuid, on, resources={'VCPU': 4})
                          for uuid, on in (('x', 'h0'), ('v', 'h1'))}
        self.rules = (OperatorRule(name='r', servers={'uuid': ['v']},
                                   must_not_run_on={'hosts': ['h1']}),
                      OperatorRule(name='s', servers={'uuid': ['x']},
                                   must_not_run_on={'hosts': ['h1']}))
        moves = self.plan(evacuate_disabled_hosts=True).moves
        self.assertEqual([('x', 'h2')], [(move.instance_uuid, move.destination)
                                         for move in moves])

    def test_each_query_is_asked_once(self):
        self.plan()
        self.assertEqual(2, self.source.asked)

    def test_a_cooling_aggregate_is_left_alone(self):
        report = self.plan(PlanningHistory(aggregates={'agg': 30}))
        self.assertEqual(('cooling', ()), (report.outcome, report.moves))
        self.assertIn('cooling for 30 s', report.warnings[0])

    def test_an_instance_is_moved_so_often_a_week(self):
        for cap, expected in ((0, ['a', 'b']), (3, ['b', 'c'])):
            report = self.plan(PlanningHistory(instances_moved={'a': 3, 'b': 2}),
                               move_limits=MoveLimits(per_instance_and_week=cap))
            self.assertEqual(expected, [move.instance_uuid for move in report.moves])
        report = self.plan(PlanningHistory(instances_moved_today={'a': 1}),
                           move_limits=MoveLimits(per_instance_and_day=1))
        self.assertEqual(['b', 'c'], [move.instance_uuid for move in report.moves])
        report = self.plan(PlanningHistory(instances_moved=dict.fromkeys('abcd', 3)),
                           move_limits=MoveLimits(per_instance_and_week=3))
        self.assertEqual({'cap': ('a', 'b', 'c', 'd')}, self.stayed(report))

    def test_what_waits_for_a_plan_is_not_said_to_cool(self):
        report = self.plan(PlanningHistory(aggregates={'agg': 30},
                                           under_way={'agg': 'plan 1 waits for approval'}))
        self.assertEqual(('cooling', ('plan 1 waits for approval',)),
                         (report.outcome, report.warnings))

    def test_a_balanced_aggregate_is_balanced_even_while_it_cools(self):
        self.source.answers['imbalance'] = {'h0': 0.2, 'h1': 0.2, 'h2': 0.15}
        self.assertEqual('balanced', self.plan(PlanningHistory(aggregates={'agg': 30})).outcome)

    def test_instances_stay_for_the_reason_that_weighs_most(self):
        self.change('a', locked=True, status='SHUTOFF')
        self.change('b', task_state='migrating')
        self.change('c', metadata={'kronos:move': 'never'})
        report = self.plan(PlanningHistory(quarantines={'c': 9, 'd': -1}, instances={'d': 5}))
        self.assertEqual({'not_active': ('a',), 'busy': ('b',), 'excluded': ('c',),
                          'quarantine': ('d',)}, self.stayed(report))
        self.assertEqual('no_move', report.outcome)

    def test_projects_stay_whatever_an_instance_says(self):
        self.change('a', metadata={'kronos:move': 'always'},
                    flavor_extra_specs={'kronos:move': 'always'})
        report = self.plan(opt_out=dataclasses.replace(
            self.options.opt_out, never_projects=frozenset(['p1'])))
        self.assertEqual({'excluded': ('a', 'b', 'c', 'd')}, self.stayed(report))

    def test_only_evacuate_leaves_a_disabled_host_and_no_other(self):
        self.change('a', metadata={'kronos:move': 'only-evacuate'})
        self.assertNotIn('a', {move.instance_uuid for move in self.plan().moves})
        self.hosts['h0'] = host('h0', status='disabled')
        self.policy['threshold'] = 0.2
        moves = self.plan(evacuate_disabled_hosts=True).moves
        self.assertEqual([('evacuate', uuid) for uuid in 'abcd'],
                         [(move.phase, move.instance_uuid) for move in moves])

    def test_a_disabled_host_that_cannot_be_emptied_is_warned_of_before(self):
        self.hosts['h0'] = host('h0', status='disabled')
        self.policy['threshold'] = 0.2
        self.change('b', task_state='resize_prep')
        report = self.plan(evacuate_disabled_hosts=True)
        self.assertIn('h0 cannot be emptied: 1 of 4 instances is blocked, such as b: '
                      'it is left alone (busy)',
                      report.warnings)
        self.assertEqual((), report.hosts_emptied)

    def test_it_is_warned_of_even_where_nothing_else_is_to_be_done(self):
        self.hosts['h2'] = host('h2', status='disabled')
        self.instances = {'a': instance('a', 'h2', task_state='resize_prep')}
        self.source.answers['imbalance'] = {'h0': 0.1, 'h1': 0.1, 'h2': 0.1}
        report = self.plan(evacuate_disabled_hosts=True)
        self.assertEqual('balanced', report.outcome)
        self.assertIn('h2 cannot be emptied: 1 of 1', report.warnings[0])

    def test_an_evacuation_that_would_spoil_a_policy_is_made_all_the_same(self):
        self.hosts['h0'] = host('h0', status='disabled')
        report = self.plan(evacuate_disabled_hosts=True)
        self.assertEqual([('a', 'h1'), ('b', 'h2'), ('c', 'h1'), ('d', 'h2')],
                         [(move.instance_uuid, move.destination) for move in report.moves])
        self.assertEqual(('h0',), report.hosts_emptied)

    def test_a_host_to_which_a_server_is_migrating_does_not_become_empty(self):
        self.hosts['h1'] = host('h1', status='disabled')
        self.instances = {'a': instance('a', 'h1')}
        self.assertEqual(('h1',), self.plan(evacuate_disabled_hosts=True).hosts_emptied)
        self.source.answers['imbalance']['elsewhere'] = 0.0
        self.far = instance('far', 'elsewhere')
        report = self.plan(evacuate_disabled_hosts=True)
        self.assertEqual((1, ()), (len(report.moves), report.hosts_emptied))

    def with_a_server_of_unknown_load(self, **values):
        """Server u migrates from h3 to h1, and the metrics do not have its load."""
        self.hosts['h3'] = host('h3')
        self.source.answers['imbalance']['h3'] = 0.1
        self.instances['u'] = instance('u', 'h3', **values)
        self.moving = (objects.MoveUnderWay(instance_uuid='u', source='h3', destination='h1'),)

    def test_no_server_goes_by_load_to_where_one_of_unknown_load_is_migrating(self):
        self.with_a_server_of_unknown_load()
        report = self.plan()
        self.assertEqual({('h0', 'h2')},
                         {(move.source, move.destination) for move in report.moves})
        self.assertIn('a server whose load is not known is migrating from or to 2 hosts, such as '
                      'h1: balancing leaves them out until it has moved', report.warnings)

    def test_no_server_leaves_by_load_where_one_of_unknown_load_is_leaving(self):
        del self.source.answers['vm_profile']['a']
        self.moving = (objects.MoveUnderWay(instance_uuid='a', source='h0', destination='h1'),)
        self.assertEqual((), self.plan().moves)

    def test_a_migrating_server_that_does_not_run_has_no_load(self):
        self.with_a_server_of_unknown_load(status='SHUTOFF')
        report = self.plan()
        self.assertIn('h1', {move.destination for move in report.moves})
        self.assertEqual((), report.warnings)

    def test_a_disabled_host_is_emptied_onto_one_where_a_server_of_unknown_load_arrives(self):
        self.with_a_server_of_unknown_load()
        self.hosts |= {name: host(name, status='disabled') for name in ('h0', 'h2', 'h3')}
        report = self.plan(evacuate_disabled_hosts=True)
        self.assertEqual({'h1'}, {move.destination for move in report.moves})
        self.assertEqual(('h0',), report.hosts_emptied)

    def test_no_server_goes_by_load_to_where_an_unknown_one_arrives_from_elsewhere(self):
        for profile, status, expected in (({}, 'ACTIVE', {'h2'}), ({}, 'SHUTOFF', {'h1', 'h2'}),
                                          ({'far': 0.1}, 'ACTIVE', {'h1', 'h2'})):
            self.source.answers['vm_profile'] = {**dict.fromkeys('abcd', 0.2), **profile}
            self.source.answers['imbalance']['elsewhere'] = 0.0
            self.far = instance('far', 'elsewhere', status=status)
            self.assertEqual(expected, {move.destination for move in self.plan().moves},
                             (profile, status))

    def test_a_plan_that_is_cut_begins_with_the_largest_server_of_a_disabled_host(self):
        self.hosts['h0'] = host('h0', status='disabled')
        self.policy['threshold'] = 0.25
        self.change('c', memory_mb=4096)
        report = self.plan(evacuate_disabled_hosts=True, budget=1)
        self.assertEqual(['c'], [move.instance_uuid for move in report.moves])

    def test_an_evacuation_that_needs_more_than_the_budget_says_so(self):
        self.hosts['h0'] = host('h0', status='disabled')
        self.policy['threshold'] = 0.2
        report = self.plan(evacuate_disabled_hosts=True, budget=3)
        self.assertEqual((3, {'budget': ('d',)}), (len(report.moves), self.stayed(report)))

    def with_room_for_a_only_if_b_and_c_give_way(self):
        self.hosts = {name: host(name) for name in ('h0', 'h1', 'h2', 'h3')}
        self.hosts['h0'] = host('h0', status='disabled')
        self.instances = {
            uuid: instance(uuid, on, resources={'VCPU': vcpus}, locked=uuid in 'def')
            for uuid, on, vcpus in (('a', 'h0', 8), ('b', 'h1', 4), ('c', 'h1', 4), ('d', 'h1', 8),
                                    ('e', 'h2', 12), ('f', 'h3', 12))}
        self.source.answers = {'imbalance': dict.fromkeys(self.hosts, 0.3),
                               'vm_profile': dict.fromkeys(self.instances, 0.1)}

    def test_a_server_that_waits_for_the_budget_is_not_said_to_lack_room(self):
        self.with_room_for_a_only_if_b_and_c_give_way()
        report = self.plan(evacuate_disabled_hosts=True)
        self.assertEqual((3, ('h0',)), (len(report.moves), report.hosts_emptied))
        for budget in (1, 2):
            report = self.plan(evacuate_disabled_hosts=True, budget=budget)
            self.assertEqual((), report.moves)
            self.assertEqual(('a',), self.stayed(report)['budget'])
            [warning] = report.warnings
            self.assertIn('h0 is not emptied: 1 of 1 instances is blocked, such as a: other '
                          'servers have to make room first, and the plan may have too few moves '
                          'for that (max_migrations_per_cycle)', warning)

    def test_a_host_is_only_said_to_be_impossible_to_empty_where_that_is_proven(self):
        self.with_room_for_a_only_if_b_and_c_give_way()
        cooling = PlanningHistory(aggregates={'agg': 30})
        report = self.plan(cooling, evacuate_disabled_hosts=True)
        self.assertIn('h0 is not emptied: 1 of 1', report.warnings[1])
        self.hosts = {name: host(name, status='disabled') for name in self.hosts}
        report = self.plan(cooling, evacuate_disabled_hosts=True)
        self.assertIn('h0 cannot be emptied: 1 of 1', report.warnings[1])

    def test_what_is_proven_for_two_hosts_together_is_not_said_of_one_of_them(self):
        """One of a and b has room on h3. So each of h0 and h1 can be emptied, but not both."""
        self.hosts = {name: host(name, status='disabled' if name in ('h0', 'h1') else 'enabled')
                      for name in ('h0', 'h1', 'h3')}
        self.instances = {
            uuid: instance(uuid, on, resources={'VCPU': 8}, locked=uuid == 'c')
            for uuid, on in (('a', 'h0'), ('b', 'h1'), ('c', 'h3'))}
        self.source.answers = {'imbalance': dict.fromkeys(self.hosts, 0.3),
                               'vm_profile': dict.fromkeys(self.instances, 0.1)}
        report = self.plan(evacuate_disabled_hosts=True)
        self.assertEqual(('h0',), report.hosts_emptied)
        self.assertIn('h1 is not emptied, because not all servers of h0 and h1 can leave: 1 of 1 '
                      'instances is blocked, such as b: ', report.warnings[0])

    def test_room_that_a_later_phase_uses_is_no_reason_for_a_server_to_stay(self):
        """The reserve keeps d on h1. Server a then relieves h2, and takes the last room of h0."""
        self.policy |= {'mode': 'relieve', 'high': 0.6, 'target': 0.4}
        del self.policy['threshold']
        self.hosts['h1'] = host('h1', status='disabled')
        for uuid, on, vcpus in (('a', 'h2', 6), ('b', 'h2', 16), ('c', 'h0', 6), ('d', 'h1', 6)):
            self.change(uuid, host=on, resources={'VCPU': vcpus})
        self.source.answers = {'imbalance': {'h0': 0.0, 'h1': 0.1, 'h2': 0.7},
                               'vm_profile': {'a': 0.4, 'b': 0.3, 'c': 0.0, 'd': 0.1}}
        report = self.plan(reserve_hosts=1, evacuate_disabled_hosts=True)
        self.assertEqual([('a', 'h0')], [(m.instance_uuid, m.destination) for m in report.moves])
        self.assertEqual(('d',), self.stayed(report)['reserve'])
        self.assertIn('h1 is not emptied: 1 of 1 instances is blocked, such as d: the hosts in '
                      'use would keep less than the room of 1 host free', report.warnings)

    def plans_of_aggregates_that_share_h1(self):
        ports = PlannerPorts(source=self.source, clock=self.clock, now=NOW)
        return plan_cycle(
            dataclasses.replace(self.snapshot(), aggregates=tuple(
                objects.Aggregate(name=name, uuid=name, hosts=hosts)
                for name, hosts in (('one', ('h0', 'h1')), ('two', ('h1', 'h2'))))),
            PolicySet(policies=(Policy(**self.policy),), rules=self.rules),
            dataclasses.replace(self.options, aggregates=('one', 'two')), ports).aggregates

    def test_servers_that_an_earlier_plan_brings_are_no_measured_load_of_their_host(self):
        one, two = self.plans_of_aggregates_that_share_h1()
        self.assertEqual(['h1', 'h1'], [move.destination for move in one.moves])
        self.assertEqual(('no_move', (), ()), (two.outcome, two.unbelieved, two.warnings))
        self.assertAlmostEqual(0.4, two.combined_before)

    def test_a_member_does_not_go_where_another_has_not_left_yet(self):
        """The plan of the first aggregate moves a off h1, and that of the second moves b or c to
        h1. Nova may begin the second move before the first has ended."""
        self.source.answers['imbalance'] = {'h0': 0.0, 'h1': 0.2, 'h2': 0.6}
        self.policy['max_migrations_per_cycle'] = 1
        self.policy['threshold'] = 0.0
        self.source.answers['vm_profile'] |= {'a': 0.1}
        for uuid, on in (('a', 'h1'), ('b', 'h2'), ('c', 'h2'), ('d', 'h2')):
            self.change(uuid, host=on)
        self.groups = (objects.ServerGroup(uuid='g', name='db', policy='anti-affinity',
                                           members=('a', 'b', 'c')),)
        self.assert_d_alone_goes_to_h1()
        self.groups, apart = (), {'name': 'apart', 'servers': {'uuid': ['a', 'b', 'c']}}
        self.rules = (OperatorRule(**apart, keep_apart='host'),)
        self.assert_d_alone_goes_to_h1()

    def assert_d_alone_goes_to_h1(self):
        one, two = self.plans_of_aggregates_that_share_h1()
        self.assertEqual([('a', 'h0')], [(m.instance_uuid, m.destination) for m in one.moves])
        self.assertEqual([('d', 'h1')], [(m.instance_uuid, m.destination) for m in two.moves])

    def test_other_servers_of_the_host_keep_their_loads(self):
        self.source.answers['imbalance'] = {'h0': 0.8, 'h1': 0.4, 'h2': 0.0}
        self.change('c', host='h1')
        self.change('d', host='h1')
        one, two = self.plans_of_aggregates_that_share_h1()
        self.assertEqual(['h1'], [move.destination for move in one.moves])
        self.assertEqual(['h1'], [move.source for move in two.moves[:1]])
        self.assertAlmostEqual(0.6, two.combined_before)
        self.assertAlmostEqual(0.2, two.moves[0].combined_after)

    def test_a_group_that_cannot_be_repaired_is_warned_of(self):
        self.hosts = {'h0': host('h0'), 'h1': host('h1', state='down')}
        self.source.answers['imbalance'] = {'h0': 0.8, 'h1': 0.0}
        self.groups = (objects.ServerGroup(uuid='g', name='db', policy='anti-affinity',
                                           members=('a', 'b')),)
        report = self.plan(enforce_hard_affinity=True)
        self.assertEqual('no_move', report.outcome)
        self.assertEqual(1, report.broken_groups)
        self.assertIn('server group db stays broken: 1 of its members would have to move',
                      report.warnings)

    def apart_and_full(self):
        """a and b should be apart. Neither has room elsewhere until c has gone to h2."""
        self.instances = {uuid: instance(uuid, on, resources={'VCPU': vcpus})
                          for uuid, on, vcpus in (('a', 'h0', 8), ('b', 'h0', 8), ('c', 'h1', 6),
                                                  ('d', 'h1', 6), ('e', 'h2', 10))}
        self.source.answers = {'imbalance': dict.fromkeys(self.hosts, 0.4),
                               'vm_profile': dict.fromkeys(self.instances, 0.1)}
        self.policy['threshold'] = 0.5
        self.groups = (objects.ServerGroup(uuid='g', name='db', policy='anti-affinity',
                                           members=('a', 'b')),)

    def test_members_of_a_group_that_no_plan_within_the_budget_repairs_say_what_is_full(self):
        self.apart_and_full()
        report = self.plan(enforce_hard_affinity=True)
        self.assertEqual([('h1', 'h2'), ('h0', 'h1')],
                         [(move.source, move.destination) for move in report.moves])
        self.policy['max_migrations_per_cycle'] = 1
        report = self.plan(enforce_hard_affinity=True)
        self.assertEqual((), report.moves)
        self.assertEqual(('a', 'b'), self.stayed(report)['capacity'])

    def test_servers_left_where_a_rule_forbids_them_say_that_the_limits_are_too_small(self):
        self.source.answers = {'imbalance': dict.fromkeys(self.hosts, 0.4),
                               'vm_profile': dict.fromkeys(self.instances, 0.1)}
        self.policy['threshold'] = 0.5
        self.rules = (OperatorRule(name='off', servers={'uuid': ['a', 'b']},
                                   must_not_run_on={'hosts': 'h0'}),)
        report = self.plan(repair_rules='all', max_rule_repairs_per_cycle=1)
        self.assertEqual(['a'], [move.instance_uuid for move in report.moves])
        self.assertEqual({'unrepaired': ('b',), 'no_gain': ('c', 'd')}, self.stayed(report))

    def test_a_server_that_may_not_be_moved_is_warned_of_where_it_violates_a_rule(self):
        self.source.answers = {'imbalance': dict.fromkeys(self.hosts, 0.4),
                               'vm_profile': dict.fromkeys(self.instances, 0.1)}
        self.policy['threshold'] = 0.5
        self.rules = (OperatorRule(name='off', servers={'uuid': ['a']},
                                   must_not_run_on={'hosts': 'h0'}),)
        self.change('a', metadata={'kronos:move': 'never'})
        report = self.plan(repair_rules='all')
        self.assertEqual((), report.moves)
        self.assertEqual('balanced', report.outcome)
        self.assertIn('rule off stays violated: one server is on a host that it forbids, such as a '
                      'on h0', report.warnings)

    def test_a_soft_group_forbids_or_costs(self):
        self.hosts.pop('h2')
        self.source.answers['imbalance'] = {'h0': 0.8, 'h1': 0.0}
        self.groups = (objects.ServerGroup(uuid='g', name='db', policy='soft-affinity',
                                           members=('a', 'b', 'c', 'd')),)
        self.assertEqual({'group': ('a', 'b', 'c', 'd')}, self.stayed(self.plan()))
        for cost, moves in ((0.0, 2), (0.35, 2), (0.45, 0)):  # each gains 0.4
            self.assertEqual(moves, len(self.plan(soft_group_cost=cost).moves))

    def test_servers_on_a_disabled_host_that_is_down_are_reported(self):
        self.hosts['h0'] = host('h0', state='down', status='disabled')
        [warning] = [each for each in self.plan().warnings if each.startswith('h0')]
        self.assertRegex(warning, r'h0 is down \(disabled\) with \d+ servers on it')

    def test_instances_of_a_host_that_is_down_are_not_considered(self):
        self.hosts['h0'] = host('h0', state='down')
        self.source.answers['imbalance'] = {'h1': 0.5, 'h2': 0.0}
        report = self.plan(evacuate_disabled_hosts=True)
        self.assertEqual(((), ()), (report.moves, report.not_moved))

    def test_an_imbalance_must_last(self):
        waiting = self.plan(PlanningHistory(imbalanced={'agg': 1}), stabilization_cycles=3)
        self.assertEqual('cooling', waiting.outcome)
        self.assertIn('2 of 3 cycles', waiting.warnings[0])
        planned = self.plan(PlanningHistory(imbalanced={'agg': 2}), stabilization_cycles=3)
        self.assertEqual('planned', planned.outcome)

    def test_evacuation_does_not_wait_for_an_imbalance_to_last(self):
        self.hosts['h2'] = host('h2', status='disabled')
        self.change('d', host='h2')
        report = self.plan(stabilization_cycles=3, evacuate_disabled_hosts=True)
        self.assertEqual(['evacuate'], [move.phase for move in report.moves])

    def test_nothing_is_planned_outside_a_window(self):
        report = self.plan(windows=windows.parse(['agg; 0 0 29 2 *; 1']))
        self.assertEqual('cooling', report.outcome)
        self.assertIn('opens at 2028-02-29T00:00:00+00:00', report.warnings[0])

    def test_an_instance_is_not_sent_back_to_where_it_came_from(self):
        moves = tuple(PastMove(instance_uuid='a', source=name, destination='h0', ended_at=NOW - 60)
                      for name in ('h1', 'h2'))
        planned = self.plan(PlanningHistory(moves=moves), no_return_window=100)
        self.assertNotIn('a', {move.instance_uuid for move in planned.moves})
        forgotten = self.plan(PlanningHistory(moves=moves), no_return_window=50)
        self.assertIn('a', {move.instance_uuid for move in forgotten.moves})

    def pin(self, *uuids):
        """Give instances a flavor that others do not have."""
        for uuid in uuids:
            self.change(uuid, flavor_extra_specs={'hw:cpu_policy': 'dedicated'})

    def test_what_nova_refuses_is_planned_otherwise(self):
        self.pin('a', 'b')
        asked = []

        def dry_run(move, instance, destination, before):
            self.assertEqual((move.instance_uuid, move.destination),
                             (instance.uuid, destination.name))
            asked.append((move.instance_uuid, move.destination))
            return Verdict('NUMATopologyFilter') if move.instance_uuid in 'ab' else AGREED
        self.dry_run = dry_run
        report = self.plan()
        self.assertEqual({'c', 'd'}, {move.instance_uuid for move in report.moves})
        self.assertEqual(len(set(asked)), len(asked))

    def test_what_is_in_the_plan_stays_when_more_is_refused_later(self):
        """The project may have one move. Once it has it nothing more of it is planned, whatever is
        refused of others in later rounds."""
        self.change('a', project_id='rich')
        self.change('b', project_id='rich')
        self.dry_run = lambda move, instance, destination, before: (
            Verdict('NUMATopologyFilter') if instance.uuid == 'c' else AGREED)
        report = self.plan(move_limits=MoveLimits(per_project=1))
        of = [self.instances[move.instance_uuid].project_id for move in report.moves]
        self.assertEqual(1, of.count('rich'))

    def test_a_move_that_waits_for_another_is_asked_about_as_well(self):
        """Moves of members of one server group wait for each other."""
        self.groups = (objects.ServerGroup(
            uuid='g', name='db', policy='anti-affinity', members=tuple('abcd'),
            rules={'max_server_per_host': 4}),)
        asked = []

        def dry_run(move, instance, destination, before):
            asked.append(instance.uuid)
            return Verdict(without='the moon')
        self.dry_run = dry_run
        first, second = self.plan().moves
        self.assertEqual(((), (1,)), (first.depends_on, second.depends_on))
        self.assertEqual([first.instance_uuid, second.instance_uuid], asked)
        self.assertIn('asked for beforehand without the moon', second.reason)

    def test_where_nova_refuses_everything_nothing_is_planned(self):
        self.dry_run = lambda *asked: Verdict('NoValidHost')
        report = self.plan()
        self.assertEqual(('no_move', {'refused': ('a', 'b', 'c', 'd')}),
                         (report.outcome, self.stayed(report)))

    def test_a_kind_that_many_hosts_are_refused_rests_and_the_others_are_moved(self):
        self.pin('a', 'b')
        self.hosts = {name: host(name) for name in ('h0', *(f'h{n}' for n in range(1, 9)))}
        self.source.answers['imbalance'] = dict.fromkeys(self.hosts, 0.0) | {'h0': 0.8}
        asked = collections.Counter()

        def dry_run(move, instance, destination, before):
            asked[move.instance_uuid] += 1
            return Verdict(f'no NUMA on {destination.name}') if instance.uuid in 'ab' else AGREED
        self.dry_run = dry_run
        report = self.plan()
        self.assertEqual({'c', 'd'}, {move.instance_uuid for move in report.moves})
        self.assertEqual(3, asked['a'] + asked['b'])
        self.assertLessEqual(sum(asked.values()), 6)
        self.assertEqual([('a', 3), ('b', 3)], [(refusal.instance_uuid, len(refusal.hosts))
                                                for refusal in report.refusals])
        self.assertIn('no NUMA on', report.refusals[0].reason)
        self.assertEqual({'refused': ('a', 'b')}, self.stayed(report))

    def test_the_rest_of_the_plan_stays_when_instances_of_the_hottest_host_are_pinned(self):
        """Three pinned ones and six others on the hottest of 40 hosts: as good as if the pinned
        ones had been left alone from the start."""
        names = [f'h{number:02}' for number in range(40)]
        self.hosts = {name: host(name) for name in names}
        uuids = [*(f'pinned{n}' for n in range(3)), *(f'vm{n}' for n in range(6))]
        self.instances = {uuid: instance(uuid, 'h00') for uuid in uuids}
        self.pin(*uuids[:3])
        self.source.answers['imbalance'] = dict.fromkeys(names, 0.1) | {'h00': 0.9}
        self.source.answers['vm_profile'] = {
            uuid: 0.15 if uuid.startswith('pinned') else 0.07 for uuid in uuids}
        self.policy |= {'max_migrations_per_cycle': 20}
        asked = collections.Counter()

        def dry_run(move, instance, destination, before):
            asked[instance.uuid] += 1
            return Verdict('NUMA') if instance.uuid.startswith('pinned') else AGREED
        for planner_name in ('greedy', 'spread'):
            asked.clear()
            self.dry_run = dry_run
            report = self.plan(spread_planner=planner_name)
            self.assertEqual(6, len(report.moves))
            self.assertLessEqual(sum(count for uuid, count in asked.items()
                                     if uuid.startswith('pinned')), 3, asked)
            self.assertLess(sum(asked.values()), 20)
            self.dry_run = lambda *about: AGREED
            for number in range(3):
                self.change(f'pinned{number}', locked=True)
            self.assertAlmostEqual(self.plan(spread_planner=planner_name).combined_after,
                                   report.combined_after)
            for number in range(3):
                self.change(f'pinned{number}', locked=False)

    def test_what_is_left_of_a_plan_has_a_new_order_and_new_figures(self):
        def dry_run(move, instance, destination, before):
            return Verdict('NUMA') if instance.uuid == 'a' else AGREED
        self.dry_run = dry_run
        for planner_name in ('greedy', 'spread'):
            report = self.plan(spread_planner=planner_name)
            self.assertEqual('planned', report.outcome)
            self.assertNotIn('a', {move.instance_uuid for move in report.moves})
            self.assertEqual(list(range(1, len(report.moves) + 1)),
                             [move.order for move in report.moves])
            self.assertAlmostEqual(report.combined_after, report.moves[-1].combined_after)

    def test_an_instance_in_progress_from_another_aggregate_counts_where_it_goes(self):
        self.source.answers['vm_profile']['far'] = 0.3
        self.source.answers['imbalance']['h2'] = 0.3
        self.far = instance('far', 'elsewhere')
        self.assertAlmostEqual(0.5, self.plan().policies[0].imbalance_before)

    def test_with_an_impossible_load_of_an_instance_in_progress_its_destination_is_unknown(self):
        self.source.answers['imbalance']['h2'] = 0.3
        self.far = instance('far', 'elsewhere')
        for load in float('inf'), -0.5, 7.0:
            self.source.answers['vm_profile']['far'] = load
            report = self.plan()
            self.assertAlmostEqual(0.5, report.policies[0].imbalance_before)
            self.assertEqual({'h2'}, {move.destination for move in report.moves})

    def test_an_instance_in_progress_counts_with_the_series_of_its_host(self):
        self.source.answers['imbalance']['h2'] = 0.3
        self.far = instance('far', 'elsewhere')
        query = self.source.query

        def with_former_host(asked):
            found = query(asked)
            if asked.kind != 'vm_profile':
                return found
            return Vector((*found.samples, *(
                Sample({'uuid': 'far', 'host': on}, load, NOW)
                for on, load in (('h2', 0.1), ('elsewhere', 0.3)))))

        self.source.query = with_former_host
        self.assertAlmostEqual(0.5, self.plan().policies[0].imbalance_before)

    def test_who_does_not_answer_is_not_asked_again_and_the_plan_says_so(self):
        asked = []

        def dry_run(*about):
            asked.append(about)
            return Verdict(unasked='timed out', is_silent=True)
        self.dry_run = dry_run
        report = self.plan()
        self.assertEqual(1, len(asked))
        self.assertTrue(all('not asked for beforehand' in move.reason for move in report.moves))
        self.assertEqual(('2 of 2 moves were not checked beforehand: timed out. Nova checks each '
                          'move when it begins.',), report.notes)

    def test_an_error_about_one_server_leaves_the_checks_of_the_others(self):
        asked = []

        def dry_run(move, instance, destination, before):
            asked.append(instance.uuid)
            return Verdict(unasked='KeyError') if instance.uuid == 'a' else AGREED
        self.dry_run = dry_run
        report = self.plan()
        self.assertEqual({'a': 1, 'b': 1}, collections.Counter(asked))
        self.assertEqual({'a': True, 'b': False}, {
            move.instance_uuid: 'not asked for beforehand' in move.reason for move in report.moves})

    def test_search_order_and_questions_share_one_deadline(self):
        """Every question takes 4 s, and every answer is no: the third one ends after the limit."""
        for number, uuid in enumerate('abcd'):
            self.change(uuid, flavor_extra_specs={'quota:cpu_shares': str(number)})
        self.clock, asked = SlowClock(), []

        def dry_run(move, instance, destination, before):
            asked.append((instance.uuid, destination.name))
            self.clock.now += 4.0
            return Verdict('no NUMA')
        self.dry_run = dry_run
        report = self.plan(planning_time_limit=10.0)
        self.assertEqual(3, len(asked))
        self.assertLess(self.clock.now, 10.0 + 4.0)
        for move in report.moves:
            self.assertNotIn((move.instance_uuid, move.destination), asked)
            self.assertIn('planning_time_limit was over', move.reason)

    def test_a_search_in_which_time_flies_ends_at_the_deadline(self):
        """It looks at the clock a few times more to end what it has begun."""
        self.clock = SlowClock(tick=0.1)
        self.plan(planning_time_limit=10.0)
        self.assertLess(self.clock.now, 10.0 + 3.0)

    def test_a_search_that_the_deadline_stops_is_reported(self):
        self.clock = SlowClock(tick=6.0)
        report = self.plan(planning_time_limit=10.0)
        self.assertIn('The search was stopped by planning_time_limit (10 s); the plan is the best '
                      'found by then.', report.warnings)

    def test_a_search_that_ends_in_time_is_not_reported_as_stopped(self):
        self.assertNotIn('planning_time_limit', ' '.join(self.plan().warnings))

    def test_questions_without_time_do_not_count_as_a_stopped_search(self):
        """Each move says that it was not asked about."""
        self.clock = SlowClock()

        def dry_run(move, instance, destination, before):
            self.clock.now += 10.0
            return AGREED
        self.dry_run = dry_run
        report = self.plan(planning_time_limit=10.0)
        self.assertIn('planning_time_limit was over', report.moves[-1].reason)
        self.assertEqual((), report.warnings)

    def test_a_replay_which_asks_nobody_does_not_say_that_the_time_to_ask_was_over(self):
        self.clock, self.dry_run = SlowClock(tick=2.0), not_asked
        for uuid in self.instances:
            self.change(uuid, project_id='rich')
        report = self.plan(planning_time_limit=10.0, move_limits=MoveLimits(per_project=1))
        move, = report.moves
        self.assertNotIn('not asked', move.reason)

    def test_a_plan_that_has_too_many_moves_at_the_deadline_has_fewer_then(self):
        """Its other moves are asked about all the same."""
        self.clock = SlowClock(tick=2.0)
        for uuid in self.instances:
            self.change(uuid, project_id='rich')
        report = self.plan(planning_time_limit=10.0, move_limits=MoveLimits(per_project=1))
        self.assertEqual('planned', report.outcome)
        move, = report.moves
        self.assertNotIn('not asked', move.reason)

    def plan_late(self, dry_run, seconds=1.0):
        """Plan with a search of 30 s, whose limit is 10 s. Each question takes some seconds."""
        self.clock, asked = SlowClock(), []
        run = solve.run

        def too_long(*given):
            found = run(*given)
            self.clock.now += 30.0
            return found

        def timed(move, instance, destination, before):
            asked.append(instance.uuid)
            self.clock.now += seconds
            return dry_run(move)
        self.dry_run = timed
        with mock.patch.object(solve, 'run', side_effect=too_long) as searched:
            report = self.plan(planning_time_limit=10.0)
        self.assertEqual(1, searched.call_count)
        return report, asked

    def test_a_search_that_ends_late_leaves_time_for_questions(self):
        report, asked = self.plan_late(lambda move: AGREED)
        self.assertEqual(['a', 'b'], asked)
        self.assertEqual(2, len(report.moves))
        self.assertNotIn('not asked', ' '.join(move.reason for move in report.moves))
        self.assertEqual((), report.notes)

    def test_questions_after_a_late_search_end_too(self):
        """Together they take 4 s, and the time of the last one."""
        report, asked = self.plan_late(lambda move: AGREED, seconds=5.0)
        self.assertEqual(['a'], asked)
        self.assertEqual([False, True], [
            'not asked for beforehand: planning_time_limit was over' in move.reason
            for move in report.moves])
        self.assertEqual(('1 of 2 moves was not checked beforehand: planning_time_limit was over. '
                          'Nova checks each move when it begins.',), report.notes)

    def test_what_is_refused_after_a_late_search_leaves_the_plan(self):
        """The move of the same kind that was not asked about before is asked about then."""
        report, asked = self.plan_late(lambda move: AGREED if move.order > 1 else Verdict('NUMA'))
        self.assertEqual(['a', 'b'], asked)
        self.assertEqual(['b'], [move.instance_uuid for move in report.moves])

    def test_what_has_no_profile_stays(self):
        self.source.answers['vm_profile'] = {'d': 0.2}
        report = self.plan(belief=BeliefRules(least_known=0.0))
        self.assertEqual({'no_profile': ('a', 'b', 'c')}, self.stayed(report))

    def test_a_host_of_which_most_servers_have_no_profile_is_not_believed(self):
        self.source.answers['vm_profile'] = {'d': 0.2}
        report = self.plan()
        self.assertEqual((), report.moves)
        host, = report.unbelieved
        self.assertEqual(('score', True), (host.what, host.is_failing))
        self.assertIn(f'{host.host}: monitoring knows', ' '.join(report.warnings))

    def test_a_missing_profile_may_be_estimated(self):
        self.source.answers['vm_profile'] = {}
        self.change('a', vcpus=5)
        for fallback, weight in (('flavor_vcpu_ratio', 0.5), ('host_average', 0.2)):
            self.policy['vm_profile_fallback'] = fallback
            moves = {move.instance_uuid: move for move in self.plan(budget=1).moves}
            after = max(0.8 - weight, weight) if 'a' in moves else None
            if fallback == 'flavor_vcpu_ratio':
                self.assertAlmostEqual(0.5, after)
            else:
                self.assertAlmostEqual(0.6, moves['a'].combined_after)

    def test_a_profile_that_cannot_be_is_not_estimated_but_left_alone(self):
        self.policy['vm_profile_fallback'] = 'host_average'
        self.source.answers['vm_profile'] = {'a': -0.2, 'b': 1.5, 'c': float('inf'), 'd': 0.2}
        report = self.plan()
        self.assertEqual(['d'], [move.instance_uuid for move in report.moves])
        self.assertEqual({'no_profile': ('a', 'b', 'c')}, self.stayed(report))
        self.assertIn('the profile of 3 instances is out of range', report.warnings[0])

    def test_a_profile_by_vcpu_of_the_instance_is_no_data(self):
        self.source.answers['vm_profile'] = {'a': 0.9, 'b': 0.8, 'c': 0.7, 'd': 0.9}
        report = self.plan()
        self.assertEqual('no_data', report.outcome)
        self.assertIn('not in fractions of the host', report.policies[0].detail)

    def test_instances_are_found_by_any_of_their_names(self):
        for kind, names in (('name', [f'instance-{uuid}' for uuid in 'abcd']),
                            ('display_name', ['web-a', 'web-b', 'web-c', 'web-d'])):
            for uuid, name in zip('abcd', names, strict=True):
                self.change(uuid, **{kind: name})
            self.policy['vm_profile_label_type'] = kind
            self.source.answers['vm_profile'] = dict.fromkeys(names, 0.2)
            self.assertEqual('planned', self.plan().outcome)

    def test_a_name_that_several_servers_have_is_not_used(self):
        self.policy['vm_profile_label_type'] = 'display_name'
        self.source.answers['vm_profile'] = {'web': 0.2}
        self.assertEqual({'no_profile': ('a', 'b', 'c', 'd')}, self.stayed(self.plan()))

    def test_an_instance_weighs_less_on_a_bigger_host(self):
        self.policy['host_capacity_query'] = 'host_cores'
        self.source.answers['host_capacity'] = {'h0': 10, 'h1': 40, 'h2': 10}
        self.source.answers['vm_profile'] = dict.fromkeys('abcd', 2.0)  # cores in use
        report = self.plan(budget=2)
        # 0.2 less on h0 each time, 0.05 more on h1, 0.2 more on h2.
        self.assertEqual(['h1', 'h2'], [move.destination for move in report.moves])
        self.assertAlmostEqual(0.4 - 0.05, report.combined_after)

    def test_packing_asks_for_room_by_score_and_by_capacity(self):
        self.policy |= {'mode': 'pack', 'capacity_query': 'full', 'capacity_threshold': 0.5}
        self.instances['e'] = instance('e', 'h1')
        self.source.answers |= {
            'imbalance': {'h0': 0.8, 'h1': 0.1, 'h2': 0.0},
            'capacity': {'h0': 0.1, 'h1': 0.1, 'h2': 0.0},
            'vm_profile': dict.fromkeys('abcde', 0.1)}
        self.assertIn('threshold', self.stayed(self.plan(pack_planner='ffd')))
        self.source.answers['imbalance']['h0'] = 0.3
        self.assertEqual(('h1',), self.plan().hosts_emptied)
        self.source.answers['capacity']['h0'] = 0.45
        self.assertNotIn('h1', self.plan().hosts_emptied)

    def test_a_policy_that_packs_is_never_above_its_threshold(self):
        self.policy |= {'mode': 'pack', 'capacity_query': 'full', 'capacity_threshold': 0.9,
                        'threshold': 0.1}
        self.source.answers |= {'imbalance': {'h0': 0.5, 'h1': 0.1, 'h2': 0.0},
                                'capacity': {'h0': 0.5, 'h1': 0.1, 'h2': 0.0}}
        [policy] = self.plan().policies
        self.assertEqual((0.5, 1.0, False), (
            policy.imbalance_before, policy.threshold, policy.is_above_threshold))

    def fuller_than_the_ceiling(self):
        """Let the servers of h1 and h2 fit on h0 by the policy, and above the overload ceiling."""
        self.policy |= {'mode': 'pack', 'capacity_query': 'full', 'capacity_threshold': 0.99}
        self.instances |= {'e': instance('e', 'h1'), 'f': instance('f', 'h2')}
        self.source.answers |= {
            'imbalance': {'h0': 0.945, 'h1': 0.02, 'h2': 0.01},
            'capacity': {'h0': 0.945, 'h1': 0.02, 'h2': 0.01},
            'vm_profile': {**dict.fromkeys('abcd', 0.2), 'e': 0.02, 'f': 0.01}}

    def test_a_packed_plan_that_was_approved_is_held_to_what_it_was_planned_by(self):
        self.fuller_than_the_ceiling()
        report = self.plan()
        self.assertEqual({'e': 'h0', 'f': 'h0'}, {
            move.instance_uuid: move.destination for move in report.moves})
        found = still_valid(
            self.snapshot(), PolicySet(policies=(Policy(**self.policy),)), self.options,
            PlannerPorts(source=self.source, clock=self.clock, now=NOW), PlanningHistory(), report)
        self.assertEqual({}, found.wrong)

    def wrong(self, report, history, **limits):
        """Return the moves of an approved plan that may not be made any more."""
        return still_valid(
            self.snapshot(), PolicySet(policies=(Policy(**self.policy),)),
            dataclasses.replace(self.options, move_limits=MoveLimits(**limits)),
            PlannerPorts(source=self.source, clock=self.clock, now=NOW), history, report).wrong

    def test_an_approved_plan_is_held_to_the_limits_of_moves(self):
        report, moved = self.plan(), PlanningHistory(projects_moved={'p1': 2})
        self.assertEqual({}, self.wrong(report, moved, per_project_and_day=4))
        found = self.wrong(report, moved, per_project_and_day=3)
        self.assertEqual([2], [*found])
        self.assertIn('limit', found[2])
        first = report.moves[0].instance_uuid
        self.assertEqual([1], [*self.wrong(
            report, PlanningHistory(instances_moved_today={first: 1}), per_instance_and_day=1)])

    def test_a_move_that_is_not_made_counts_towards_no_limit(self):
        report = self.plan()
        self.change(report.moves[0].instance_uuid, host='h1')
        self.assertEqual([1], [*self.wrong(report, PlanningHistory(), per_project=1)])

    def test_what_is_left_of_a_packed_plan_is_too(self):
        self.fuller_than_the_ceiling()
        self.clock = SlowClock(tick=2.0)
        report = self.plan(planning_time_limit=10.0, move_limits=MoveLimits(per_project=1))
        self.assertEqual(['f'], [move.instance_uuid for move in report.moves])

    def test_a_larger_budget_frees_as_many_hosts_where_a_project_may_have_few_moves(self):
        self.policy |= {'mode': 'pack', 'capacity_query': 'full', 'capacity_threshold': 0.99}
        self.instances = {name: instance(name, f'h{n // 3}', memory_mb=1024 * (1 + n % 3))
                          for n, name in enumerate('abcdefghi')}
        for name in 'cfi':
            self.change(name, project_id='p2')
        loads = dict.fromkeys(('h0', 'h1', 'h2'), 0.15)
        self.source.answers |= {'imbalance': loads, 'capacity': loads,
                                'vm_profile': dict.fromkeys('abcdefghi', 0.05)}
        for planner, budget in itertools.product(('pack', 'ffd'), range(3, 8)):
            for limits in (MoveLimits(per_project=2), MoveLimits(per_project_and_day=3)):
                report = self.plan(pack_planner=planner, budget=budget, move_limits=limits)
                self.assertEqual((1, 3), (len(report.hosts_emptied), len(report.moves)))

    def test_room_is_kept_in_reserve_on_hosts_of_unknown_load_too(self):
        """The load of h2 is not known. h1 and h2 have 19 of 32 VCPU free, and 16 have to stay
        free."""
        self.hosts['h0'] = host('h0', status='disabled')
        self.instances |= {'e': instance('e', 'h1', resources={'VCPU': 9}),
                           'f': instance('f', 'h2', resources={'VCPU': 4})}
        self.source.answers['imbalance'] = {'h0': 0.8, 'h1': 0.1}
        self.source.answers['vm_profile']['e'] = 0.1
        report = self.plan(evacuate_disabled_hosts=True, reserve_hosts=1, min_coverage=0.1)
        self.assertEqual((3, 1), (len(report.moves), len(self.stayed(report)['reserve'])))

    def test_a_server_that_a_repair_moves_is_not_moved_again_by_packing(self):
        """The repair alone would move a to h1, which packing empties."""
        self.policy |= {'mode': 'pack', 'capacity_query': 'full', 'capacity_threshold': 0.99}
        self.instances |= {'e': instance('e', 'h1'), 'f': instance('f', 'h2', memory_mb=99_999)}
        self.groups = (objects.ServerGroup(uuid='g', name='db', policy='anti-affinity',
                                           members=('a', 'b')),)
        loads = {'h0': 0.2, 'h1': 0.05, 'h2': 0.05}
        self.source.answers |= {'imbalance': loads, 'capacity': loads,
                                'vm_profile': dict.fromkeys('abcdef', 0.05)}
        report = self.plan(pack_planner='pack', enforce_hard_affinity=True)
        moved = [move.instance_uuid for move in report.moves]
        self.assertEqual((len(set(moved)), ('h1',)), (len(moved), report.hosts_emptied))

    def test_packing_without_knowing_how_full_hosts_are_is_no_data(self):
        self.policy |= {'mode': 'pack', 'capacity_query': 'full', 'capacity_threshold': 0.5}
        self.source.answers['capacity'] = {'h0': 0.1}
        self.assertEqual('no_data', self.plan().outcome)

    def test_samples_that_are_too_old_are_none(self):
        self.assertEqual('planned', self.plan(max_sample_age=10).outcome)
        ports = PlannerPorts(source=self.source, clock=lambda: 0.0, now=NOW + 11)
        report, = plan_cycle(self.snapshot(), PolicySet(policies=(Policy(**self.policy),)),
                             dataclasses.replace(self.options, max_sample_age=10),
                             ports).aggregates
        self.assertEqual('no_data', report.outcome)
        self.assertIn('3 of them only an old one', report.policies[0].detail)
        self.assertEqual((0.0, None), (report.policies[0].coverage, report.policies[0].sample_age))
        report, = plan_cycle(self.snapshot(), PolicySet(policies=(Policy(**self.policy),)),
                             dataclasses.replace(self.options, max_sample_age=20),
                             ports).aggregates
        self.assertEqual((1.0, 11.0), (report.policies[0].coverage, report.policies[0].sample_age))

    def test_samples_from_the_future_are_planned_by_and_said(self):
        ports = PlannerPorts(source=self.source, clock=lambda: 0.0, now=NOW - 3600)
        report, = plan_cycle(self.snapshot(), PolicySet(policies=(Policy(**self.policy),)),
                             dataclasses.replace(self.options, max_sample_age=300),
                             ports).aggregates
        self.assertEqual('planned', report.outcome)
        self.assertIn('samples from the future', ''.join(report.warnings))
        self.assertIsNone(report.policies[0].sample_age)  # it is not known

    def test_the_age_of_a_sample_is_never_negative(self):
        """Prometheus answers later than the evaluation began, and its clock may be ahead."""
        ports = PlannerPorts(source=self.source, clock=lambda: 0.0, now=NOW - 2)
        for options in (self.options, dataclasses.replace(self.options, max_sample_age=300)):
            report, = plan_cycle(self.snapshot(), PolicySet(policies=(Policy(**self.policy),)),
                                 options, ports).aggregates
            self.assertEqual(0.0, report.policies[0].sample_age)

    def test_with_less_coverage_asked_for_hosts_without_a_sample_are_left_out(self):
        del self.source.answers['imbalance']['h1']
        without = self.plan()
        self.assertEqual('no_data', without.outcome)
        self.assertAlmostEqual(2 / 3, without.policies[0].coverage)
        report = self.plan(min_coverage=0.6)
        self.assertAlmostEqual(2 / 3, report.policies[0].coverage)
        self.assertEqual({'h2'}, {move.destination for move in report.moves})
        self.assertIn('cpu: no sample for h1: left out of the plan', report.warnings)

    def test_an_aggregate_that_does_not_exist(self):
        error = self.assertRaises(exception.ConfigurationError, self.plan, aggregates=('gpu',))
        self.assertIn('there is no aggregate of that name', str(error))


class DefaultPlannersTest(PipelineTest):
    """The same with the default planners."""

    planners = 'spread', 'pack'


class SharedStorageTest(testtools.TestCase):
    """Two aggregates, each with a host that has disks of its own and one that is allocated them
    from storage which both share."""

    def setUp(self):
        super().setUp()
        disks = {'DISK_GB': objects.ResourceInventory(total=20)}
        hosts = [dataclasses.replace(host(name), used={}, inventory={**ROOM, **(
            disks if name.endswith('0') else {})}) for name in ('a0', 'a1', 'b0', 'b1')]
        instances = [instance(f'{name}{number}', f'{name}0',
                              resources={'VCPU': 1, 'DISK_GB': 10})
                     for name in 'ab' for number in range(2)]
        self.snapshot = objects.Snapshot(
            taken_at='', hosts=tuple(hosts), instances=tuple(instances),
            aggregates=tuple(objects.Aggregate(name=name, uuid=name, hosts=(f'{name}0', f'{name}1'))
                             for name in 'ab'),
            shared_providers=(objects.SharedProvider(
                uuid='nfs', hosts=('a1', 'b1'), used={},
                inventory={'DISK_GB': objects.ResourceInventory(total=10)}),))

    def moves(self, snapshot):
        """Return how many the plan of each aggregate has."""
        source = Recorded(imbalance={'a0': 0.4, 'a1': 0.0, 'b0': 0.4, 'b1': 0.0},
                          vm_profile={each.uuid: 0.2 for each in snapshot.instances})
        reports = plan_cycle(
            snapshot, PolicySet(policies=(Policy(**POLICY),)),
            EngineOptions(include_unassigned_hosts=False),
            PlannerPorts(source=source, clock=lambda: 0.0, now=NOW)).aggregates
        return [len(report.moves) for report in reports]

    def test_room_that_the_plan_of_one_aggregate_takes_is_not_there_for_the_next(self):
        self.assertEqual([1, 0], self.moves(self.snapshot))

    def test_room_that_an_open_plan_takes_is_not_there_either(self):
        move = objects.MoveUnderWay(instance_uuid='b0', source='b0', destination='b1')
        self.assertEqual([0, 0], self.moves(self.snapshot.with_moves_under_way([move])))


class SharedHostTest(testtools.TestCase):
    """Two aggregates that share host h1. In aggregate one, host h0 is disabled, and host h4 has no
    room. In aggregate two, host h2 has all the load."""

    def setUp(self):
        super().setUp()
        self.hosts = {name: host(name) for name in ('h0', 'h1', 'h2', 'h3', 'h4')}
        self.hosts['h0'] = host('h0', status='disabled')
        self.hosts['h4'] = dataclasses.replace(
            self.hosts['h4'], inventory={'VCPU': objects.ResourceInventory(total=1)})
        self.imbalance = {'h0': 0.4, 'h1': 0.0, 'h2': 0.8, 'h3': 0.0, 'h4': 0.0}
        self.profile = dict.fromkeys('abcdef', 0.2)

    def destinations(self):
        """Return {aggregate: destinations of its moves}."""
        instances = tuple(instance(uuid, on, resources={'VCPU': 2}) for uuid, on in (
            ('a', 'h0'), ('b', 'h0'), ('c', 'h2'), ('d', 'h2'), ('e', 'h2'), ('f', 'h2')))
        reports = plan_cycle(
            objects.Snapshot(
                taken_at='', hosts=tuple(self.hosts.values()), instances=instances,
                aggregates=(objects.Aggregate(name='one', uuid='1', hosts=('h0', 'h1', 'h4')),
                            objects.Aggregate(name='two', uuid='2', hosts=('h1', 'h2', 'h3')))),
            PolicySet(policies=(Policy(**POLICY),)),
            EngineOptions(include_unassigned_hosts=False, evacuate_disabled_hosts=True),
            PlannerPorts(source=Recorded(imbalance=self.imbalance, vm_profile=self.profile),
                         clock=lambda: 0.0, now=NOW)).aggregates
        return {report.name: sorted({move.destination for move in report.moves})
                for report in reports}

    def test_no_server_goes_by_load_to_where_a_disabled_host_of_known_load_is_emptied(self):
        self.assertEqual({'one': ['h1'], 'two': ['h3']}, self.destinations())

    def test_nor_to_where_a_disabled_host_of_an_aggregate_without_data_is_emptied(self):
        del self.imbalance['h4']
        self.assertEqual({'one': ['h1'], 'two': ['h3']}, self.destinations())
