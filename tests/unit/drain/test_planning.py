"""Emptying hosts because an operator said so: what moves, what blocks, and where things go."""

import dataclasses
import datetime
import itertools

import testtools

from kronos_nova import exception
from kronos_nova.cycle import steps
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.drain import planning
from kronos_nova.drain.states import Drain
from kronos_nova.objects import metrics
from kronos_nova.objects import snapshot
from kronos_nova.objects.dry_run import Verdict
from kronos_nova.planners import evacuate
from kronos_nova.policies import loader
from kronos_nova.policies import windows

NOON = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)
TEXT = """
policies:
- {name: cpu, mode: spread, weight: 1.0, threshold: 0.0, imbalance_query: q, vm_profile_query: p}
"""
POLICIES = loader.parse(TEXT)
UP = snapshot.Service(state='up', status='enabled')


class Silent:
    """A Prometheus that is away."""

    def query(self, query):
        raise exception.MetricsUnreachable(source='prometheus', problem='no connection')


class Loads:
    """A Prometheus that knows how loaded hosts are."""

    def __init__(self, **hosts):
        self.hosts = hosts

    def query(self, query):
        if query.kind == metrics.VM_PROFILE:
            return metrics.Vector(())
        return metrics.Vector(tuple(metrics.Sample({'host': name}, value, 0.0)
                                    for name, value in self.hosts.items()))


class DrainTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.hosts, self.policies = {name: UP for name in 'abc'}, POLICIES
        self.options, self.traits = EngineOptions(aggregates=('gpu',)), {}
        self.servers, self.groups, self.room, self.under_way = [], [], {}, ()

    def server(self, uuid, host='a', vcpus=1, **what):
        self.servers.append(snapshot.Instance(**{
            'uuid': uuid, 'name': uuid, 'display_name': uuid, 'host': host, 'project_id': 'p',
            'status': 'ACTIVE', 'vcpus': vcpus, 'memory_mb': 512, 'disk_gb': 1,
            'resources': {'VCPU': vcpus}, **what}))

    def cloud(self):
        return snapshot.Snapshot(
            taken_at='2026-11-20T12:00:00Z', instances=tuple(self.servers),
            hosts=tuple(snapshot.Host(
                name=name, uuid=name, service=service, traits=self.traits.get(name), inventory={
                    'VCPU': snapshot.ResourceInventory(total=self.room.get(name, 8))})
                for name, service in self.hosts.items()),
            aggregates=(snapshot.Aggregate(name='gpu', uuid='g', hosts=tuple(self.hosts)),),
            server_groups=tuple(self.groups), moves_under_way=self.under_way)

    def plan(self, *hosts, source=None, failures=None, refused='', refused_hosts=None, **what):
        drains = [Drain(uuid=host, host=host, aggregate='gpu', state='draining',
                        requested_by='jane', requested_at=NOON, **what) for host in hosts or 'a']
        return planning.plan(
            self.cloud(), self.policies, self.options,
            PlannerPorts(source=source or Silent(), clock=lambda: 0.0, now=0.0,
                         dry_run=lambda *_move: Verdict(refused=refused)),
            'gpu', drains, failures, refused_hosts=refused_hosts)

    @staticmethod
    def moved(found):
        return {move.instance_uuid: move.destination for move in found.report.moves}

    def test_everything_that_runs_leaves_though_prometheus_is_away(self):
        for number in range(4):
            self.server(f'vm{number}')
        self.server('other', host='b')
        found = self.plan()
        self.assertEqual({'vm0', 'vm1', 'vm2', 'vm3'}, {*self.moved(found)})
        self.assertEqual(({'a': 4}, {}), (found.left, found.blocked))

    def test_a_paused_server_leaves_live(self):
        self.server('vm1', status='PAUSED')
        self.server('other', host='b')
        found = self.plan()
        self.assertEqual(({'vm1'}, {}, {}), ({*self.moved(found)}, found.blocked, found.kinds))

    def test_the_planner_is_given_the_cloud_as_it_is_and_what_is_asked_for(self):
        self.server('on')
        self.server('off', status='SHUTOFF')
        self.hosts['c'] = snapshot.Service(state='up', status='disabled')
        given, plan_cycle = [], steps.plan_cycle
        self.patch(steps, 'plan_cycle',
                   lambda *args: given.append(args) or plan_cycle(*args))
        found = self.plan(with_stopped=True, avoid=('d',))
        self.assertEqual(({'on': 'b', 'off': 'b'}, {'off': 'cold'}),
                         (self.moved(found), found.kinds))
        [(cloud, _policies, options, *_others, request)] = given
        self.assertEqual(self.cloud(), cloud)
        self.assertEqual((EngineOptions().spread_planner, 'evacuate'),
                         (options.spread_planner, found.report.planner))
        self.assertEqual(planning.DrainRequest(
            sources=frozenset('a'), include_stopped=frozenset('a'), avoid=frozenset('d')),
            request)

    def test_a_plan_that_fails_is_not_said_to_find_no_room(self):
        def fail(*_args):
            raise RuntimeError('something is wrong')
        self.server('vm')
        self.patch(steps.Line, 'plan', fail)
        found = self.plan()
        self.assertEqual({'a': {'vm': 'could not be planned: RuntimeError: something is wrong'}},
                         found.blocked)

    def test_what_is_allocated_tells_where_to_if_nothing_else_does(self):
        self.server('vm')
        for number in range(3):
            self.server(f'b{number}', host='b')
        self.assertEqual({'vm': 'c'}, self.moved(self.plan()))

    def test_the_load_that_is_measured_goes_first(self):
        self.server('vm')
        for number in range(2):
            self.server(f'b{number}', host='b')
        self.assertEqual({'vm': 'b'}, self.moved(self.plan(source=Loads(a=0.5, b=0.1, c=0.9))))

    def test_other_hosts_are_not_relieved_with_it(self):
        self.policies = loader.parse("""
policies:
- {name: cpu, mode: relieve, weight: 1.0, high: 0.8, target: 0.6, imbalance_query: q,
   vm_profile_query: p}
""")
        self.server('vm')
        for number in range(2):
            self.server(f'b{number}', host='b')
        self.assertEqual({'vm': 'c'}, self.moved(self.plan(
            source=Loads(a=0.1, b=0.9, c=0.0))))

    def test_a_lock_and_what_a_tenant_wants_are_not_in_the_way(self):
        self.server('locked', locked=True)
        self.server('shy', metadata={'kronos:move': 'never'})
        self.assertEqual({'locked', 'shy'}, {*self.moved(self.plan())})

    def test_a_flavor_that_may_not_be_moved_stays_and_is_named(self):
        self.server('pinned', flavor_extra_specs={'kronos:move': 'never'})
        [(host, blocked)] = self.plan().blocked.items()
        self.assertEqual(('a', ['pinned']), (host, [*blocked]))
        self.assertIn('its flavor (kronos:move)', blocked['pinned'])

    def test_stopped_servers_are_migrated_cold_where_that_is_wanted(self):
        self.server('off', status='SHUTOFF')
        self.server('on')
        self.assertIn('--with-stopped', self.plan().blocked['a']['off'])
        found = self.plan(with_stopped=True)
        self.assertEqual(({'off', 'on'}, {'off': 'cold'}), ({*self.moved(found)}, found.kinds))

    def test_every_server_that_stays_has_its_reason(self):
        self.hosts.pop('c')
        self.room['b'] = 3
        self.server('suspended', status='SUSPENDED')
        self.server('busy', task_state='rebuilding')
        self.server('large', vcpus=4)
        self.server('twin1')
        self.server('twin2', host='b')
        self.groups.append(snapshot.ServerGroup(
            uuid='g', name='g', policy='anti-affinity', members=('twin1', 'twin2')))
        found = self.plan()
        self.assertEqual({}, self.moved(found))
        said = found.blocked['a']
        self.assertEqual({'suspended', 'busy', 'large', 'twin1'}, {*said})
        for uuid, word in (('suspended', 'SUSPENDED'), ('busy', 'rebuilding'), ('large', 'room'),
                           ('twin1', 'group')):
            self.assertIn(word, said[uuid])

    def test_a_server_that_nova_does_not_migrate_live_stays_with_novas_reason(self):
        sev = snapshot.Movability(can='cold', why='the memory is encrypted')
        self.server('sev', live=sev)
        self.server('plain')
        self.server('off', status='SHUTOFF', live=sev)
        found = self.plan(with_stopped=True)
        self.assertEqual({'plain', 'off'}, self.moved(found).keys())
        self.assertEqual({'sev': 'Nova does not migrate it live: the memory is encrypted'},
                         found.blocked['a'])
        self.assertEqual([('off', 'cold'), ('sev', 'cold')], [
            (each.instance_uuid, each.can) for each in found.report.immovable])

    def test_what_other_hosts_lack_is_named(self):
        self.server('gpu', requires=snapshot.Requirements(traits=('CUSTOM_GPU',)))
        self.traits = {'a': ('CUSTOM_GPU',), 'b': (), 'c': ()}
        found = self.plan()
        self.assertEqual({'gpu'}, found.blocked['a'].keys())
        self.assertRegex(found.blocked['a']['gpu'],
                         'no other host can hold it: [bc] lacks the trait CUSTOM_GPU')
        self.traits['b'] = ('CUSTOM_GPU',)
        self.assertEqual({'gpu': 'b'}, self.moved(self.plan()))

    def unmovable(self):
        """Servers that Nova does not migrate live, for every reason to leave them."""
        sev = snapshot.Movability(can='cold', why='the memory is encrypted')
        fpga = snapshot.Movability(can='no', why='an accelerator')
        for uuid, what in (('sev', {'live': sev}), ('fpga', {'live': fpga}), ('plain', {}),
                           ('locked', {'live': sev, 'locked': True}),
                           ('paused', {'live': sev, 'status': 'PAUSED'})):
            self.server(uuid, **what)

    def test_servers_that_nova_does_not_migrate_live_are_migrated_cold_where_that_is_wanted(self):
        self.unmovable()
        found = self.plan(unmovable='cold')
        self.assertEqual({'plain', 'sev'}, self.moved(found).keys())
        self.assertEqual({'sev': 'restart'}, found.kinds)
        self.assertEqual({'a': {'sev': 'the memory is encrypted'}}, found.interrupted)
        self.assertEqual({'fpga', 'locked', 'paused'}, found.blocked['a'].keys())
        self.assertIn('it is locked', found.blocked['a']['locked'])
        self.assertEqual({}, found.to_stop)

    def test_they_are_stopped_where_that_is_wanted(self):
        self.unmovable()
        found = self.plan(unmovable='stop')
        self.assertEqual(({'plain'}, {}), (self.moved(found).keys(), found.kinds))
        self.assertEqual({'sev': 'the memory is encrypted', 'fpga': 'an accelerator'},
                         found.to_stop['a'])
        self.assertEqual({'locked', 'paused'}, found.blocked['a'].keys())

    def rule(self, *rows):
        rules = ''.join(f'- {{name: {name}, servers: {servers}, {relation}}}\n'
                        for name, servers, relation in rows)
        self.policies = loader.parse(f'{TEXT}rules:\n{rules}')

    def test_rules_say_of_servers_what_the_command_says_of_all(self):
        self.unmovable()
        self.rule(('keep', '{uuid: [sev]}', 'unmovable: leave'))
        found = self.plan(unmovable='stop')
        self.assertEqual({'fpga'}, found.to_stop['a'].keys())
        self.assertIn('the memory is encrypted; rule keep leaves it', found.blocked['a']['sev'])
        self.rule(('halt', '{name: "[sf]*", project: p}', 'unmovable: stop'),
                  ('cold', '{uuid: [sev, paused, locked]}', 'unmovable: cold'))
        found = self.plan()
        self.assertEqual(({'plain', 'sev'}, {'sev': 'restart'}),
                         (self.moved(found).keys(), found.kinds))
        self.assertEqual({'a': {'fpga': 'an accelerator (rule halt)'}}, found.to_stop)
        self.assertEqual({'a': {'sev': 'the memory is encrypted (rule cold)'}}, found.interrupted)
        self.assertEqual({'locked', 'paused'}, found.blocked['a'].keys())

    def test_owners_keep_no_server_from_being_interrupted(self):
        self.unmovable()
        self.rule(('keep', '{name: sev}', 'unmovable: leave'))
        self.assertEqual({'sev', 'fpga'}, self.plan(unmovable='stop').to_stop['a'].keys())

    def test_what_a_rule_does_not_let_move_is_not_interrupted(self):
        """Neither when it is never moved, nor outside the windows in which it is."""
        for relation in ('never_move: true', 'move_only: "*; 0 3 1 1 *; 60"'):
            for wanted in ('cold', 'stop'):
                self.servers = []
                self.unmovable()
                self.rule(('still', '{uuid: [sev]}', relation))
                found = self.plan(unmovable=wanted)
                self.assertNotIn('sev', {*self.moved(found), *found.to_stop.get('a', ())})
                self.assertIn('it is not interrupted, because rule still',
                              found.blocked['a']['sev'])

    def test_they_stay_by_default_and_outside_the_maintenance_windows(self):
        self.unmovable()
        self.assertEqual(({'plain'}, {}), (self.moved(self.plan()).keys(), self.plan().to_stop))
        self.options = EngineOptions(aggregates=('gpu',), windows=windows.parse(
            ['gpu; 0 3 1 1 *; 60']))
        for wanted in ('cold', 'stop'):
            found = self.plan(unmovable=wanted)
            self.assertEqual(({'plain'}, {}), (self.moved(found).keys(), found.to_stop))
            self.assertIn('in a maintenance window only', found.blocked['a']['sev'])

    def test_a_host_is_empty_with_the_servers_that_its_drain_has_stopped(self):
        self.server('off', status='SHUTOFF')
        self.server('again', status='ACTIVE', live=snapshot.Movability(can='no', why='FPGA'))
        stopped = {'off': 'stopped', 'again': 'stopped'}
        found = self.plan(unmovable='stop', with_stopped=True, stopped=stopped)
        self.assertEqual((1, {}, {'again': 'FPGA'}),
                         (found.left['a'], self.moved(found), found.to_stop['a']))

    def test_a_server_that_nova_is_at_work_on_is_blocked_with_what_nova_does(self):
        self.server('stuck', status='RESIZE', task_state='resize_prep')
        self.server('rescued', status='RESCUE')
        self.server('broken', status='ERROR', task_state='resize_migrating')
        self.assertEqual(
            {'stuck': 'Nova is at work on it (resize_prep)',
             'rescued': 'it is RESCUE, and only what is ACTIVE, PAUSED or SHUTOFF is moved',
             'broken': 'it is ERROR, and only what is ACTIVE, PAUSED or SHUTOFF is moved'},
            self.plan().blocked['a'])

    def test_a_server_that_is_on_its_way_is_left_and_not_blocked(self):
        self.server('leaves', status='MIGRATING', task_state='migrating')
        self.under_way = (snapshot.MoveUnderWay(
            instance_uuid='leaves', source='a', destination='b'),)
        plan = self.plan()
        self.assertEqual(({'a': 1}, {}), (plan.left, plan.blocked))

    def test_several_hosts_are_emptied_into_the_others_only(self):
        for host in 'ab':
            for number in range(3):
                self.server(f'{host}{number}', host=host)
        found = self.plan('a', 'b')
        self.assertEqual({'c'}, {*self.moved(found).values()})
        self.assertEqual({'a': 3, 'b': 3}, found.left)
        self.room['c'] = 4
        found = self.plan('a', 'b')
        self.assertEqual(2, sum(len(servers) for servers in found.blocked.values()))

    def test_servers_of_other_hosts_give_way_where_a_large_one_finds_no_room(self):
        self.room = {'b': 4, 'c': 4}
        self.server('large', vcpus=4)
        for host in 'bc':
            self.server(f'small-{host}', host=host)
        found = self.plan()
        (first, by_small), (last, by_large) = self.moved(found).items()
        self.assertEqual(('large', {'b', 'c'}), (last, {by_small, by_large}))
        self.assertEqual(({}, {'a': 1}), (found.blocked, found.left))
        self.assertEqual((2,), tuple(move.order for move in found.report.moves if move.depends_on))
        self.assertIn('makes room on', found.report.moves[0].reason)
        self.assertTrue(found.report.moves[0].only_makes_room)
        self.assertFalse(found.report.moves[-1].only_makes_room)

    def test_a_server_in_quarantine_does_not_give_way(self):
        self.room = {'b': 4, 'c': 4}
        self.server('large', vcpus=4)
        for host in 'bc':
            self.server(f'small-{host}', host=host)
        found = planning.plan(
            self.cloud(), self.policies, EngineOptions(aggregates=('gpu',)),
            PlannerPorts(source=Silent(), clock=lambda: 0.0, now=0.0), 'gpu',
            [Drain(uuid='a', host='a', aggregate='gpu', state='draining', requested_by='jane',
                   requested_at=NOON)],
            quarantines={'small-b': 60.0, 'small-c': 60.0})
        self.assertEqual({}, self.moved(found))
        self.assertIn('if all servers that may be moved left it', found.blocked['a']['large'])

    def test_that_a_server_cannot_leave_is_proven_by_what_it_needs(self):
        self.room = {'b': 3, 'c': 2}
        self.server('large', vcpus=4)
        why = self.plan().blocked['a']['large']
        self.assertEqual(
            'no other host has room for it: it needs 4 VCPU, and none of 2 hosts would have more '
            'than 3 free if all servers that may be moved left it', why)

    def test_that_not_all_can_leave_is_proven_by_what_they_need_together(self):
        self.room = {'b': 3, 'c': 2}
        for number in range(3):
            self.server(f'vm{number}', vcpus=2)
        [why] = self.plan().blocked['a'].values()
        self.assertEqual('no other host has room for it: the 3 servers that need a place need '
                         '6 VCPU together, and the 2 hosts that may take them have 5 free', why)

    def test_a_place_that_was_not_found_may_be_there(self):
        self.patch(evacuate, 'BUDGET', dataclasses.replace(evacuate.BUDGET, ends=0))
        self.room = {'b': 4, 'c': 4}
        self.server('large', vcpus=4)
        for host in 'bc':
            self.server(f'small-{host}', host=host)
        self.assertEqual('no way was found to place it within the work of one plan; there may be '
                         'one', self.plan().blocked['a']['large'])

    def test_servers_that_are_not_planned_in_time_are_said_so(self):
        for number in range(3):
            self.server(f'vm{number}')
        seconds = itertools.count(0.0, 5.0)
        found = planning.plan(
            self.cloud(), self.policies, self.options,
            PlannerPorts(source=Silent(), clock=lambda: next(seconds), now=0.0), 'gpu',
            [Drain(uuid='a', host='a', aggregate='gpu', state='draining', requested_by='jane',
                   requested_at=NOON)])
        self.assertEqual({'no move of it was found within the work of one plan; there may be one'},
                         {*found.blocked['a'].values()})

    def test_hosts_to_be_emptied_later_are_used_only_if_nothing_else_is_possible(self):
        self.room['c'] = 2
        for number in range(4):
            self.server(f'vm{number}')
        first = self.moved(self.plan(avoid=('b',)))
        self.assertEqual(['c', 'c'], [*first.values()])
        self.servers = [dataclasses.replace(server, host=first.get(server.uuid, 'a'))
                        for server in self.servers]
        self.assertEqual(['b', 'b'], [*self.moved(self.plan(avoid=('b',))).values()])

    def test_a_host_that_was_disabled_for_another_reason_is_neither_emptied_nor_filled(self):
        self.hosts['b'] = snapshot.Service(state='up', status='disabled')
        self.server('vm')
        self.server('other', host='b')
        self.assertEqual({'vm': 'c'}, self.moved(self.plan()))

    def test_room_for_the_loss_of_a_host_is_kept_where_that_is_wanted(self):
        for host in 'abc':
            for number in range(3):
                self.server(f'{host}{number}', host=host)
        self.assertEqual({}, self.plan(keep_spare=0).blocked)
        self.assertEqual(1, len(self.plan(keep_spare=1).blocked['a']))

    def test_what_failed_again_and_again_waits_for_a_person(self):
        self.server('vm')
        said = self.plan(failures={'vm': ['no route', 'no route to b']}).blocked['a']['vm']
        self.assertEqual('moving it failed 2 times: no route to b', said)
        self.assertEqual({'vm'}, {*self.moved(self.plan(failures={'vm': ['no route']}))})

    def test_a_server_does_not_go_where_a_move_was_refused_lately(self):
        self.server('vm')
        self.server('other', host='b')
        refused = {'vm': {'c': 'no CPU model'}}
        self.assertEqual({'vm': 'c'}, self.moved(self.plan()))
        self.assertEqual({'vm': 'b'}, self.moved(self.plan(refused_hosts=refused)))

    def test_what_the_scheduler_refuses_everywhere_stays(self):
        self.server('vm')
        found = self.plan(refused='NUMATopologyFilter')
        self.assertEqual(({}, ['vm']), (self.moved(found), [*found.blocked['a']]))

    def test_a_host_that_is_down_cannot_be_emptied(self):
        self.hosts['a'] = snapshot.Service(state='down', status='enabled')
        self.server('vm')
        self.assertIn('down', self.plan().blocked['a']['vm'])

    def test_a_host_that_is_not_looked_after_is_refused_with_what_is(self):
        self.assertEqual('gpu', planning.in_scope(self.cloud(), ['web', 'gpu'], 'a'))
        for host, scopes, said in (('z', ['gpu'], 'compute service list'),
                                   ('a', ['web'], 'include_unassigned_hosts select: web')):
            error = self.assertRaises(exception.ConfigurationError, planning.in_scope, self.cloud(),
                                      scopes, host)
            self.assertIn(said, str(error))
