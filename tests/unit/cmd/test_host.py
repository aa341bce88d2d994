"""``kronos-manage host``: its reports of hosts, and its exit codes."""

import contextlib
import dataclasses
import io
import json
import types

import sqlalchemy as sa
from oslo_db import exception as db_exc

from kronos_client.cli import columns
from kronos_client.cli import hosts as host
from kronos_nova import clock
from kronos_nova import exception
from kronos_nova.cmd import cloud
from kronos_nova.cmd import manage
from kronos_nova.cooldown.planning_history import PastTry
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.db import cooldowns
from kronos_nova.db import models
from kronos_nova.db.drains import Drains
from kronos_nova.db.maintenances import Maintenances
from kronos_nova.drain import states as drains
from kronos_nova.executor.hosts import ServerOnHost
from kronos_nova.objects import maintenance
from kronos_nova.objects import metrics
from kronos_nova.objects import move as moves
from kronos_nova.objects import snapshot
from kronos_nova.objects.shape import Shape
from tests.unit import neutral_policies
from tests.unit.cmd import test_automation
from tests.unit.db import fixtures as db_fixtures

UP = snapshot.Service(state='up', status='enabled')
DOWN = snapshot.Service(state='down', status='disabled')


class RecordedCloud:
    """Hosts with room for two servers each; also their HostApi, and metrics, which are silent."""

    def __init__(self):
        self.placed = {'web1': 'a', 'web2': 'a', 'db1': 'b'}
        self.status = dict.fromkeys(self.placed, 'ACTIVE')
        self.services = dict.fromkeys('abc', UP)
        self.domains = {'a': {'room': 'x', 'rack': 'r1'}, 'b': {'room': 'x', 'rack': 'r2'},
                        'c': {'room': 'y', 'rack': 'r1'}}
        self.room = 2
        self.live = {}
        self.under_way = ()
        self.vcpus = {}

    def read(self):
        return snapshot.Snapshot(
            taken_at='2026-11-22T08:00:00Z',
            hosts=tuple(snapshot.Host(
                name=name, uuid=name, service=service, domains=self.domains.get(name, {}),
                inventory={'VCPU': snapshot.ResourceInventory(total=self.room)},
                used={'VCPU': sum(self.vcpus.get(server, 1)
                                  for server, on in self.placed.items() if on == name)})
                for name, service in self.services.items()),
            aggregates=(snapshot.Aggregate(name='gpu', uuid='gpu', hosts=(*self.services,)),),
            instances=tuple(snapshot.Instance(
                uuid=name, name=name, display_name=name, host=on, project_id='p',
                status=self.status[name], vcpus=self.vcpus.get(name, 1), memory_mb=512, disk_gb=1,
                resources={'VCPU': self.vcpus.get(name, 1)},
                live=self.live.get(name, snapshot.MOVES_LIVE))
                for name, on in self.placed.items()),
            moves_under_way=tuple(snapshot.MoveUnderWay(
                instance_uuid=name, source=self.placed[name], destination='c')
                for name in self.under_way))

    def query(self, _query):
        return metrics.Vector(())

    def service(self, name):
        return self.services.get(name)

    def servers_on(self, name):
        return [ServerOnHost(uuid=server, name=server, status=self.status[server], task_state=None)
                for server, on in self.placed.items() if on == name]


class WithRecordedCloud:
    """Before a test case of what reads the cloud and asks whether a host can be emptied."""

    def setUp(self):
        self.cloud = RecordedCloud()
        super().setUp()

    def read_cloud(self):
        return self.cloud.read()

    def read_flavors(self):
        return (Shape(id='1', name='m1.small', vcpus=1, memory_mb=2048),)

    def host_api(self):
        return self.cloud

    def planner_ports(self):
        return PlannerPorts(source=self.cloud, clock=lambda: 0.0, now=1e9)


class HostTestCase(WithRecordedCloud, test_automation.OperatorTestCase):
    def setUp(self):
        super().setUp()
        self.configure('aggregates = gpu')
        self.patch(cloud, 'open_cloud', lambda _app: cloud.Cloud(
            self.read_cloud, self.read_flavors, self.cloud, lambda: None))
        self.patch(cloud, 'planner_ports', lambda _conf, _dry_run: self.planner_ports())
        self.patch(host, 'LOOK_SECONDS', 0.0)
        self.drains = Drains(self.database)

    def drain(self, name='a', **what):
        made = drains.Drain(**{
            'uuid': f'drain of {name}', 'host': name, 'aggregate': 'gpu',
            'state': drains.DRAINING, 'requested_by': 'jane', 'requested_at': clock.utcnow(),
            **what})
        self.drains.request([made])
        return made


class CheckTest(HostTestCase):
    def test_where_everything_goes_is_said_and_nothing_is_changed(self):
        said = self.manage('host', 'drain', 'a', '--check')
        self.assertIn('a: 2 servers, 2 can leave, 1.0 GiB', said)
        self.assertIn('Everything can leave.', said)
        self.assertIn('Expected: about ', said)
        self.assertEqual([], self.drains.in_states(drains.ACTIVE))

    def test_a_server_that_migrates_already_is_counted(self):
        self.cloud.under_way = ('web1',)
        said = self.manage('host', 'drain', 'a', '--check')
        self.assertIn('a: 2 servers, 1 can leave, 1 migrates already, 0.5 GiB', said)
        self.assertIn('Everything can leave.', said)

    def test_what_blocks_is_named_with_its_reason(self):
        self.cloud.status['web1'] = 'SHUTOFF'
        said = self.manage('host', 'drain', 'a', '--check', expected=host.BLOCKED)
        self.assertIn('blocked: web1 (web1): it is stopped; "--with-stopped" migrates it cold',
                      said)
        said = self.manage('host', 'drain', 'a', '--check', '--with-stopped')
        self.assertIn('2 can leave (1 cold)', said)

    def test_hosts_that_cannot_be_empty_at_once(self):
        self.assertIn('Everything can leave.', self.manage('host', 'drain', 'a', '--check'))
        said = self.manage('host', 'drain', 'a', 'b', '--check', expected=host.BLOCKED)
        self.assertIn('Not everything can leave together.', said)
        self.assertIn('no other host has room for it', said)

    def test_the_hosts_of_a_failure_domain(self):
        self.cloud.room = 5
        said = self.manage('host', 'drain', '--domain', 'rack=r1', '--check')
        self.assertIn('a: 2 servers', said)
        self.assertIn('c: 0 servers', said)
        self.assertNotIn('b: ', said)
        said = self.manage('host', 'drain', '--domain', 'room=x, rack=r1', '--check')
        self.assertNotIn('c: ', said)
        self.assertIn('domain rack=r9: has no host. Write a domain as LEVEL=NAME', self.manage(
            'host', 'drain', '--domain', 'rack=r9', '--check', expected=1))
        self.assertIn('names no host', self.manage('host', 'drain', '--check', expected=1))

    def lose_sight_of(self, host):
        """The cell of a host does not answer: neither the host nor its servers are read."""
        read = self.cloud.read
        self.cloud.read = lambda: (found := read()) and dataclasses.replace(
            found, hosts=tuple(each for each in found.hosts if each.name != host),
            instances=tuple(each for each in found.instances if each.host != host),
            unread={'gpu': 'cell one does not answer'})

    def test_a_host_that_cannot_be_read_is_not_said_to_be_unknown(self):
        self.lose_sight_of('a')
        self.assertIn('Nova could not be read: aggregate gpu: cell one does not answer',
                      self.manage('host', 'drain', 'a', '--check', expected=1))
        self.assertIn('b: 1 server,', self.manage('host', 'drain', 'b', '--check'))

    def test_hosts_of_a_failure_domain_that_cannot_be_read_are_not_left_out(self):
        self.lose_sight_of('a')
        self.assertIn('cell one does not answer', self.manage(
            'host', 'drain', '--domain', 'rack=r1', '--check', expected=1))

    def test_nothing_is_drained_by_policies_that_cannot_be_read(self):
        """They have the rules of operators: what must not move is not known without them."""
        self.configure('aggregates = gpu')
        neutral_policies.write(self.directory, 'rules: [{name: a, servers: {name: a')
        for words in (('host', 'drain', 'a', '--check'), ('host', 'drain', 'a'),
                      ('host', 'drain', 'a', '--force'), ('maintenance', 'run', 'a', 'b')):
            said = self.manage(*words, expected=1)
            self.assertIn('its rules are therefore not known', said)
            self.assertIn('neutral-policies.yaml: is not YAML', said)
            self.assertIn('kronos-test-config checks the file', said)
        self.assertEqual([], self.drains.in_states(drains.ACTIVE))

    def test_all_hosts_of_an_aggregate_are_not_drained(self):
        said = self.manage('host', 'drain', 'a', 'b', 'c', expected=host.BLOCKED)
        self.assertIn('blocked: db1 (db1): every other host of the aggregate is being emptied, '
                      'disabled or down', said)
        self.assertIn('Aggregate gpu would have no host left that takes servers. Nothing was '
                      'changed; "host drain --force" drains nevertheless.', said)
        self.assertEqual([], self.drains.in_states(drains.ACTIVE))

    def test_the_last_host_that_takes_servers_is_not_drained(self):
        self.drain('b')
        self.cloud.services['c'] = dataclasses.replace(UP, status='disabled')
        self.assertIn('would have no host left',
                      self.manage('host', 'drain', 'a', expected=host.BLOCKED))

    def test_a_host_that_nothing_can_leave_is_drained_with_force_only(self):
        self.cloud.status |= dict.fromkeys(('web1', 'web2'), 'SHUTOFF')
        said = self.manage('host', 'drain', 'a', expected=host.BLOCKED)
        self.assertIn('No server can leave a. Nothing was changed', said)
        self.assertEqual([], self.drains.in_states(drains.ACTIVE))
        self.manage('host', 'drain', 'a', '--force')
        self.assertEqual(drains.REQUESTED, self.drains.latest('a').state)

    def test_a_drain_after_which_another_host_could_not_be_lost_needs_force(self):
        self.configure('aggregates = gpu\nfailover_hosts = 1')
        for check in ((), ('--check',)):
            said = self.manage('host', 'drain', 'a', *check, expected=host.BLOCKED)
            self.assertIn('After this drain, the servers of b could not all restart elsewhere if '
                          'it failed; the same holds for 1 more ([kronos] failover_hosts, '
                          'failover_domains).', said)
        self.assertEqual([], self.drains.in_states(drains.ACTIVE))
        self.manage('host', 'drain', 'a', '--force')
        self.assertEqual(drains.REQUESTED, self.drains.latest('a').state)

    def test_a_drain_after_which_no_fewer_hosts_could_be_lost_is_begun(self):
        self.configure('aggregates = gpu\nfailover_hosts = 1')
        del self.cloud.placed['web2']
        self.manage('host', 'drain', 'a')

    def test_a_check_has_the_exit_code_of_a_drain_that_is_refused(self):
        self.cloud.placed.clear()
        said = self.manage('host', 'drain', 'a', 'b', 'c', '--check', expected=host.BLOCKED)
        self.assertIn('Aggregate gpu would have no host left that takes servers.', said)
        self.assertNotIn('Everything can leave', said)
        self.manage('host', 'drain', 'a', 'b', 'c', '--check', '--force')

    def test_servers_in_quarantine_do_not_give_way(self):
        self.cloud.placed = {'web1': 'a', 'web2': 'b', 'db1': 'c'}
        self.cloud.vcpus = {'web1': 2}
        self.assertIn('Everything can leave.', self.manage('host', 'drain', 'a', '--check'))
        known = cooldowns.Cooldowns(self.database)
        for server in ('web2', 'db1'):
            known.quarantine(server, -1, 'its migration failed', clock.utcnow())
        self.assertIn('blocked: web1', self.manage('host', 'drain', 'a', '--check',
                                                   expected=host.BLOCKED))

    def test_a_host_that_is_drained_already_is_refused_for_that(self):
        self.drain('a')
        self.cloud.under_way = ('web1', 'web2')
        said = self.manage('host', 'drain', 'a', expected=1)
        self.assertIn('Host a is being drained or released already.', said)

    def test_a_host_whose_servers_are_on_their_way_elsewhere_is_drained(self):
        self.cloud.under_way = ('web1', 'web2')
        self.manage('host', 'drain', 'a')
        self.assertEqual(drains.REQUESTED, self.drains.latest('a').state)

    def test_a_host_whose_servers_are_all_to_be_stopped_is_drained(self):
        self.cloud.live = dict.fromkeys(('web1', 'web2'), snapshot.Movability(
            can=snapshot.IMMOVABLE, why='it has a device of its host'))
        self.manage('host', 'drain', 'a', expected=host.BLOCKED)
        self.manage('host', 'drain', 'a', '--unmovable', 'stop')
        self.assertEqual(drains.REQUESTED, self.drains.latest('a').state)

    def test_of_two_drains_at_once_the_second_leaves_the_last_host(self):
        self.cloud.placed.clear()
        request = Drains.request

        def after_another(known, *args, **kwargs):
            self.patch(Drains, 'request', request)
            self.drain('b')
            self.drain('c')
            return request(known, *args, **kwargs)
        self.patch(Drains, 'request', after_another)
        self.assertIn('would have no host left',
                      self.manage('host', 'drain', 'a', expected=host.BLOCKED))
        self.assertIsNone(self.drains.latest('a'))

    def test_a_host_that_is_down(self):
        self.cloud.services['a'] = DOWN
        said = self.manage('host', 'drain', 'a', expected=host.DOWN)
        self.assertIn('nova-compute on a is down, so that no server can be migrated', said)
        self.assertEqual([], self.drains.in_states(drains.ACTIVE))

    def test_a_host_that_is_down_and_has_nothing_on_it(self):
        self.cloud.services['c'] = DOWN
        self.manage('host', 'drain', 'c', '--check', expected=host.EMPTY)
        self.manage('host', 'drain', 'c', expected=host.EMPTY)
        self.assertEqual(drains.REQUESTED, self.drains.latest('c').state)

    def test_a_host_that_is_not_there_or_not_ours(self):
        self.assertIn('Host x: Nova has no nova-compute',
                      self.manage('host', 'drain', 'x', '--check', expected=1))
        self.configure('aggregates = db')
        self.assertIn('is in no aggregate in scope',
                      self.manage('host', 'drain', 'a', '--check', expected=1))


class DrainTest(HostTestCase):
    def test_a_refusal_is_shown_even_if_the_servers_cannot_be_shown(self):
        self.cloud.status.update(web1='SHUTOFF', web2='SHUTOFF')
        read, reads = self.cloud.read, iter([True])

        def read_once():
            if next(reads, False):
                return read()
            raise exception.InventoryError(what='Nova', problem='does not answer')
        self.cloud.read = read_once
        said = self.manage('host', 'drain', 'a', expected=host.BLOCKED)
        self.assertIn('"host drain --force"', said)

    def test_a_failure_domain_is_drained(self):
        self.cloud.room = 5
        self.manage('host', 'drain', 'b', '--domain', 'room=y')
        self.assertEqual(['b', 'c'], sorted(
            each.host for each in self.drains.in_states(drains.ACTIVE)))

    def test_the_wish_is_written_down(self):
        said = self.manage('host', 'drain', 'a', '--reason', 'new disks', '--parallel', '3',
                           '--deadline', '90')
        [drain] = self.drains.in_states(drains.ACTIVE)
        self.assertIn(f'Draining until {columns.local(drain.deadline)};', said)
        self.assertEqual(('a', 'gpu', drains.REQUESTED, 'new disks', 3),
                         (drain.host, drain.aggregate, drain.state, drain.reason, drain.parallel))
        self.assertTrue(drain.requested_by.startswith('jane@'))
        self.assertLess(drain.requested_at, drain.deadline)
        self.assertIn('a', self.manage('host', 'drain', 'a', expected=1))

    def test_it_is_waited_for(self):
        looks = iter([2, 1, 0, 0])

        def servers_on(name):
            count = next(looks, None)
            if count is None:  # A worker has seen it too.
                db_fixtures.bring(self.drains, self.drains.latest('a'), drains.EMPTY)
            return self.cloud.__class__.servers_on(self.cloud, name)[:count or 0]
        self.cloud.servers_on = servers_on
        said = self.manage('host', 'drain', 'a', '--wait')
        self.assertIn('a: 2 servers', said)
        self.assertIn('a: 1 server (', said)
        self.assertIn('a: empty', said)

    def test_one_that_is_released_before_it_was_closed_has_emptied_nothing(self):
        def servers_on(_name):  # A worker, to which the deadline has passed.
            db_fixtures.bring(self.drains, self.drains.latest('c'), drains.RELEASED)
            return []
        self.cloud.servers_on = servers_on
        self.manage('host', 'drain', 'c', '--wait', '--deadline', '1', expected=host.NOT_YET)

    def test_a_drain_whose_record_was_deleted_during_the_wait_has_ended(self):
        def servers_on(_name):  # An operator released the host, and the retention has passed.
            with self.database.writer() as session:
                session.execute(sa.delete(models.DrainRow))
            return []
        self.cloud.servers_on = servers_on
        self.manage('host', 'drain', 'c', '--wait', expected=host.NOT_YET)

    def wait(self, *looks):
        """Wait for the drain of a, with a function done at each look."""
        left = iter(looks)
        service = self.cloud.service

        def look(name):
            next(left, lambda: None)()
            return service(name)
        self.cloud.service = look
        return self.manage('host', 'status', 'a', '--wait', expected=host.BLOCKED)

    def to(self, state):
        return lambda: db_fixtures.bring(self.drains, self.drains.latest('a'), state)

    def is_down(self):
        self.cloud.services['a'] = DOWN

    def goes_on(self):
        self.cloud.services['a'] = UP
        self.to(drains.DRAINING)()

    def test_what_is_blocked_or_down_for_a_moment_is_waited_for(self):
        self.drain()
        now = [0.0]
        self.patch(host, 'time', types.SimpleNamespace(
            monotonic=lambda: now[0], sleep=lambda _s: now.__setitem__(0, now[0] + 10)))
        self.patch(host, 'PATIENCE_SECONDS', 30)
        self.wait(lambda: None, self.to(drains.BLOCKED), self.is_down, self.goes_on,
                  self.to(drains.BLOCKED))
        self.assertEqual(60.0, now[0])

    def manage_apart(self, *words):
        """Return the exit code of a command, its stdout, and its stderr."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = manage.main([f'--config-file={self.config}', *words])
        return code, out.getvalue(), err.getvalue()

    def to_empty(self, name):
        return lambda: db_fixtures.bring(self.drains, self.drains.latest(name), drains.EMPTY)

    def clear(self, *names):
        self.cloud.placed = {
            server: on for server, on in self.cloud.placed.items() if on not in names}

    def test_servers_of_a_released_host_are_not_shown_as_blocked(self):
        found = self.drain('a')
        self.drains.note(found, drains.ACTIVE, blocked={'web1': 'no other host has room for it'})
        self.assertIn('web1 (web1) ACTIVE: no other host has room for it',
                      self.manage('host', 'status', 'a', expected=host.NOT_YET))
        self.drains.end(found, drains.ACTIVE, drains.RELEASED, clock.utcnow(), 'jane')
        self.assertIn('web1 (web1) ACTIVE\n',
                      self.manage('host', 'status', 'a', expected=host.NOT_YET))

    def test_the_others_go_on_while_the_cell_of_one_does_not_answer(self):
        service, looks = self.cloud.service, iter(range(9))

        def read(name):
            if name == 'a' and (look := next(looks)) < 4:
                if look == 2:
                    self.clear('b')
                    self.to_empty('b')()
                raise exception.NovaClientError(instance=name, reason=f'no answer ({look})')
            if name == 'a':
                self.clear('a')
                self.to_empty('a')()
            return service(name)
        self.drain('a')
        self.drain('b')
        self.cloud.service = read
        code, out, err = self.manage_apart('host', 'status', 'a', 'b', '--wait')
        self.assertEqual(host.EMPTY, code, err)
        self.assertIn('b: 1 server', out)
        self.assertIn('b: empty', out)
        self.assertEqual(1, err.count('a could not be read: '), err)
        self.assertIn('no answer (0)', err)

    def removed_during_the_wait(self):
        """A function that reads services, while Nova forgets host a and then host b is emptied."""
        service, looks = self.cloud.service, iter(range(99))

        def read(name):
            look = next(looks)
            if look == 2:
                del self.cloud.services['a']
            if look == 4:
                self.clear('b')
                self.to_empty('b')()
            return service(name)
        return read

    def check_removed_during_the_wait(self, *words):
        self.cloud.service = self.removed_during_the_wait()
        code, out, err = self.manage_apart('host', *words, 'a', 'b', '--wait')
        self.assertEqual(1, code, err)
        self.assertEqual(1, err.count('a could not be read: Host a: Nova has no nova-compute'))
        self.assertIn('b: empty', out)

    def test_a_host_that_is_removed_does_not_end_the_wait_for_others(self):
        self.drain('a')
        self.drain('b')
        self.check_removed_during_the_wait('status')

    def test_a_host_that_is_removed_does_not_end_the_wait_of_a_drain(self):
        self.check_removed_during_the_wait('drain', '--force')

    def test_what_is_blocked_from_the_first_look_on_is_not_waited_for(self):
        self.drain()
        self.to(drains.BLOCKED)()
        self.assertIn('drain of jane: blocked', self.wait())


class StatusTest(HostTestCase):
    def test_each_state_has_its_code(self):
        self.manage('host', 'status', 'c', expected=host.EMPTY)
        self.manage('host', 'status', 'a', expected=host.NOT_YET)
        drain = self.drain()
        db_fixtures.bring(self.drains, drain, drains.BLOCKED,
                           blocked={'web1': 'its server group permits no other host'})
        said = self.manage('host', 'status', 'a', 'c', expected=host.BLOCKED)
        self.assertIn('web1 (web1) ACTIVE: its server group permits no other host', said)
        self.assertIn('drain of jane: blocked, 1 blocked', said)
        self.cloud.services['a'] = DOWN
        self.manage('host', 'status', 'a', expected=host.DOWN)
        self.assertIn('Host x', self.manage('host', 'status', 'x', expected=1))

    def test_a_host_that_nova_has_no_more_hides_no_other(self):
        for name in 'abc':
            self.drain(name)
        del self.cloud.services['b']
        said = self.manage('host', 'status', expected=host.NOT_YET)
        self.assertIn('b could not be read: Host b: Nova has no nova-compute of that name. "host '
                      'release b" ends its drain.', said)
        self.assertIn('a: 2 servers', said)
        self.assertIn('c: empty', said)
        self.assertNotIn('No host is drained', self.manage('host', 'status', 'b', expected=1))
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            manage.main([f'--config-file={self.config}', 'host', 'status', '-f', 'json'])
        self.assertEqual(['a', 'c'], [each['host'] for each in json.loads(out.getvalue())])
        self.assertIn('b could not be read', err.getvalue())

    def test_programs_get_all_of_it(self):
        self.drain(reason='new disks')
        [found] = json.loads(self.manage('host', 'status', 'a', '-f', 'json', expected=3))
        self.assertEqual((3, 'up', ['web1', 'web2'], 'new disks'), (
            found['code'], found['service']['state'],
            [server['uuid'] for server in found['servers']], found['drain']['reason']))
        self.assertTrue(found['drain']['requested_at'].endswith('Z'))

    def test_a_host_without_servers_is_not_empty_before_it_is_closed(self):
        drain = self.drain('c', state=drains.REQUESTED)
        self.manage('host', 'status', 'c', expected=host.NOT_YET)
        db_fixtures.bring(self.drains, drain, drains.EMPTY)
        self.manage('host', 'status', 'c', expected=host.EMPTY)

    def test_what_is_waited_for_is_one_document_for_programs(self):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            manage.main([f'--config-file={self.config}', 'host', 'status', 'a', '--wait',
                         '-f', 'json'])
        [found] = json.loads(out.getvalue())
        self.assertEqual('a', found['host'])
        self.assertIn('a: 2 servers', err.getvalue())

    def test_what_a_tenant_wrote_into_a_name_does_not_reach_the_terminal(self):
        read, servers_on = self.cloud.read, self.cloud.servers_on

        def renamed(found):
            return dataclasses.replace(found, display_name=f'{found.uuid} \x1b[2J\u202e')

        self.cloud.read = lambda: dataclasses.replace(
            read(), instances=tuple(map(renamed, read().instances)))
        self.cloud.servers_on = lambda name: [
            dataclasses.replace(each, name=f'{each.name} \x1b[2J\u202e')
            for each in servers_on(name)]
        self.cloud.live = {'web1': snapshot.Movability(
            can=snapshot.IMMOVABLE, why='it has a device')}
        for words, code in ((('host', 'status', 'a'), host.NOT_YET),
                            (('host', 'drain', 'a', '--check'), host.BLOCKED),
                            (('failover', '--lose', 'b', '--lose', 'c'), 4)):
            said = self.manage(*words, expected=code)
            self.assertIn('\N{REPLACEMENT CHARACTER}[2J', said)
            self.assertEqual(set(), {*'\x1b\u202e'} & {*said}, words)

    def test_a_host_that_keeps_what_a_tenant_has_not_confirmed_is_not_empty(self):
        unsettled = ServerOnHost(uuid='web1', name='web', status='VERIFY_RESIZE', is_unsettled=True)
        self.cloud.servers_on = lambda _name: [unsettled]
        said = self.manage('host', 'status', 'c', expected=host.NOT_YET)
        self.assertIn('VERIFY_RESIZE: it was migrated or resized off the host', said)
        db_fixtures.bring(self.drains, self.drain('c'), drains.EMPTY)
        self.manage('host', 'status', 'c', '--wait', expected=host.BLOCKED)

    def test_a_host_without_a_drain_is_not_waited_for(self):
        self.manage('host', 'status', 'a', '--wait', expected=host.NOT_YET)


class ReleaseTest(HostTestCase):
    def test_a_worker_does_it(self):
        drain = self.drain()
        known = self.drains.get

        def get(uuid):  # A worker, between two looks.
            self.drains.enter(drain, (drains.RELEASING,), drains.RELEASED)
            return known(uuid)
        self.patch(Drains, 'get', lambda _self, uuid: get(uuid))
        self.assertIn('a: released', self.manage('host', 'release', 'a'))

    def test_a_host_that_stays_disabled_is_named_with_the_reason(self):
        drain = self.drain()
        self.patch(Drains, 'get', lambda _self, uuid: dataclasses.replace(
            drain, state=drains.RELEASED))
        self.assertIn('a: released, and enabled', self.manage('host', 'release', 'a'))
        self.cloud.services['a'] = dataclasses.replace(UP, status='disabled',
                                                       disabled_reason='fan')
        self.assertIn('a: released; nova-compute stays disabled: fan',
                      self.manage('host', 'release', 'a'))

    def test_a_refusal_names_the_hosts_whose_release_was_requested_before(self):
        self.drain()
        self.drain('b')
        said = self.manage('host', 'release', 'a', 'typo', 'b', expected=1)
        self.assertIn('a: the release is requested', said)
        self.assertIn('typo', said)
        self.assertEqual([drains.RELEASING, drains.DRAINING],
                         [self.drains.latest(name).state for name in 'ab'])

    def test_a_release_whose_result_may_not_be_read_is_requested_all_the_same(self):
        self.drain()
        self.drain('b')

        def get(*_args):
            raise exception.RequestRefused(what='Jane', problem='may not show drains', remedy='')
        self.patch(Drains, 'get', get)
        said = self.manage('host', 'release', 'a', 'b', expected=host.NOT_YET)
        for name in 'ab':
            self.assertIn(f'{name}: the release is requested; its result could not be read: Jane: '
                          'may not show drains', said)
            self.assertEqual(drains.RELEASING, self.drains.latest(name).state)

    def test_no_worker_releases_the_hosts(self):
        self.drain()
        self.drain('b')
        self.patch(host, 'RELEASE_SECONDS', 0)
        said = self.manage('host', 'release', 'a', 'b', expected=host.NOT_YET)
        self.assertIn('no worker has released the host yet', said)
        self.assertEqual([drains.RELEASING] * 2, [
            self.drains.latest(name).state for name in 'ab'])

    def test_what_was_asked_for_is_not_undone_by_a_database_that_is_away_for_a_while(self):
        drain, answers = self.drain(), iter([False])

        def get(_self, uuid):
            if not next(answers, True):
                raise db_exc.DBConnectionError
            return dataclasses.replace(drain, uuid=uuid, state=drains.RELEASED)
        self.patch(Drains, 'get', get)
        self.assertIn('a: released', self.manage('host', 'release', 'a'))

    def test_all_are_asked_for_before_the_first_is_waited_for(self):
        asked = []
        self.drain()
        self.drain('b')
        self.patch(Drains, 'get', lambda _self, uuid: asked.append(
            [self.drains.latest(name).state for name in 'ab']) or dataclasses.replace(
                self.drains.latest('a'), uuid=uuid, state=drains.RELEASED))
        self.manage('host', 'release', 'a', 'b')
        self.assertEqual([drains.RELEASING] * 2, asked[0])

    def test_a_host_that_is_being_serviced_is_not_released(self):
        self.drain()
        Maintenances(self.database).begin(maintenance.Maintenance(
            uuid='m', state=maintenance.RUNNING, requested_by='jane',
            requested_at=clock.utcnow(), options=maintenance.MaintenanceOptions(),
            hosts={'a': maintenance.HOOK}))
        said = self.manage('host', 'release', 'a', expected=1)
        self.assertIn('is being serviced in a maintenance', said)

    def test_what_is_not_drained_cannot_be_released(self):
        self.assertIn('a', self.manage('host', 'release', 'a', expected=1))


class EstimateTest(HostTestCase):
    def test_it_depends_on_past_moves_and_on_how_many_may_run(self):
        # Where nothing is known a move takes ten seconds and what 512 MiB need.
        slow = self.manage('host', 'drain', 'a', '--check', '--parallel', '1')
        fast = self.manage('host', 'drain', 'a', '--check', '--parallel', '2')
        self.assertIn('Expected: about 35 s', slow)
        self.assertIn('Expected: about 23 s', fast)
        self.patch(type(self.journal), 'tries', lambda _self, since: 20 * [PastTry(
            instance_uuid='web1', source='a', destination='b', memory_mb=512, seconds=60.0,
            failed=False)])
        said = self.manage('host', 'drain', 'a', '--check', '--parallel', '1')
        self.assertRegex(said, 'Expected: about [12] min')
        self.assertEqual([], self.journal.moves(states=(moves.PLANNED,)))
