"""``kronos-manage host``: what an operator is told of hosts, and by which exit code."""

import json

from oslo_utils import timeutils

from kronos_nova.cmd import cloud
from kronos_nova.cmd import host
from kronos_nova.db.drains import Drains
from kronos_nova.db.maintenances import Maintenances
from kronos_nova.engine.planner import PlannerPorts
from kronos_nova.executor.hosts import ServerOnHost
from kronos_nova.objects import drain as drains
from kronos_nova.objects import maintenance
from kronos_nova.objects import metrics
from kronos_nova.objects import move as moves
from kronos_nova.objects import snapshot
from tests.unit.cmd import test_automation

UP = snapshot.Service(state='up', status='enabled')
DOWN = snapshot.Service(state='down', status='disabled')


class RecordedCloud:
    """Hosts with room for two servers each; also their HostApi, and metrics, which are silent."""

    def __init__(self):
        self.placed = {'web1': 'a', 'web2': 'a', 'db1': 'b'}
        self.status = dict.fromkeys(self.placed, 'ACTIVE')
        self.services = dict.fromkeys('abc', UP)
        self.room = 2

    def read(self):
        return snapshot.Snapshot(
            taken_at='2026-11-22T08:00:00Z',
            hosts=tuple(snapshot.Host(
                name=name, uuid=name, service=service,
                inventory={'VCPU': snapshot.ResourceInventory(total=self.room)},
                used={'VCPU': [*self.placed.values()].count(name)})
                for name, service in self.services.items()),
            aggregates=(snapshot.Aggregate(name='gpu', uuid='gpu', hosts=(*self.services,)),),
            instances=tuple(snapshot.Instance(
                uuid=name, name=name, display_name=name, host=on, project_id='p',
                status=self.status[name], vcpus=1, memory_mb=512, disk_gb=1, resources={'VCPU': 1})
                for name, on in self.placed.items()))

    def query(self, _query):
        return metrics.Vector(())

    def service(self, name):
        return self.services.get(name)

    def servers_on(self, name):
        return [ServerOnHost(uuid=server, name=server, status=self.status[server], task_state=None)
                for server, on in self.placed.items() if on == name]


class HostTestCase(test_automation.OperatorTestCase):
    def setUp(self):
        super().setUp()
        self.configure('aggregates = gpu')
        self.cloud = RecordedCloud()
        self.patch(cloud, 'open_cloud', lambda _app: cloud.Cloud(self.cloud.read, self.cloud))
        self.patch(cloud, 'ports', lambda _conf: PlannerPorts(
            source=self.cloud, clock=lambda: 0.0, now=1e9))
        self.patch(host, 'LOOK_SECONDS', 0.0)
        self.drains = Drains(self.database)

    def drain(self, name='a', **what):
        made = drains.Drain(**{
            'uuid': f'drain of {name}', 'host': name, 'aggregate': 'gpu',
            'state': drains.DRAINING, 'requested_by': 'jane', 'requested_at': timeutils.utcnow(),
            **what})
        self.drains.request([made])
        return made


class CheckTest(HostTestCase):
    def test_where_everything_goes_is_said_and_nothing_is_changed(self):
        said = self.manage('host', 'drain', 'a', '--check')
        self.assertIn('a: 2 servers, 2 can leave, 1.0 GiB', said)
        self.assertIn('Everything can leave.', said)
        self.assertIn('How long it takes cannot be told: no move has completed yet.', said)
        self.assertEqual([], self.drains.in_states(drains.ACTIVE))

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

    def test_a_host_that_is_down(self):
        self.cloud.services['a'] = DOWN
        said = self.manage('host', 'drain', 'a', expected=host.DOWN)
        self.assertIn('a: nova-compute is down. Nothing can be migrated off it', said)
        self.assertEqual([], self.drains.in_states(drains.ACTIVE))

    def test_a_host_that_is_not_there_or_not_ours(self):
        self.assertIn('Host x: Nova has no nova-compute',
                      self.manage('host', 'drain', 'x', '--check', expected=1))
        self.configure('aggregates = db')
        self.assertIn('it is in no aggregate that Kronos looks after',
                      self.manage('host', 'drain', 'a', '--check', expected=1))


class DrainTest(HostTestCase):
    def test_the_wish_is_written_down(self):
        self.assertIn('Draining;', self.manage('host', 'drain', 'a', '--reason', 'new disks',
                                               '--parallel', '3', '--deadline', '90'))
        [drain] = self.drains.in_states(drains.ACTIVE)
        self.assertEqual(('a', 'gpu', drains.REQUESTED, 'new disks', 3),
                         (drain.host, drain.aggregate, drain.state, drain.reason, drain.parallel))
        self.assertTrue(drain.requested_by.startswith('jane@'))
        self.assertLess(drain.requested_at, drain.deadline)
        self.assertIn('a', self.manage('host', 'drain', 'a', expected=1))

    def test_it_is_waited_for(self):
        looks = iter([2, 1, 0, 0])

        def servers_on(name):
            count = next(looks, 0)
            return self.cloud.__class__.servers_on(self.cloud, name)[:count]
        self.cloud.servers_on = servers_on
        said = self.manage('host', 'drain', 'a', '--wait')
        self.assertIn('a: 2 servers', said)
        self.assertIn('a: 1 server (', said)
        self.assertIn('a: empty', said)


class StatusTest(HostTestCase):
    def test_each_state_has_its_code(self):
        self.manage('host', 'status', 'c', expected=host.EMPTY)
        self.manage('host', 'status', 'a', expected=host.NOT_YET)
        drain = self.drain()
        self.drains.change(drain, drains.ACTIVE, state=drains.BLOCKED,
                           blocked={'web1': 'its server group permits no other host'})
        said = self.manage('host', 'status', 'a', 'c', expected=host.BLOCKED)
        self.assertIn('web1 (web1) ACTIVE: its server group permits no other host', said)
        self.assertIn('drain of jane: blocked, 1 blocked', said)
        self.cloud.services['a'] = DOWN
        self.manage('host', 'status', 'a', expected=host.DOWN)
        self.assertIn('Host x', self.manage('host', 'status', 'x', expected=1))

    def test_programs_get_all_of_it(self):
        self.drain(reason='new disks')
        [found] = json.loads(self.manage('host', 'status', 'a', '-f', 'json', expected=3))
        self.assertEqual((3, 'up', ['web1', 'web2'], 'new disks'), (
            found['code'], found['service']['state'],
            [server['uuid'] for server in found['servers']], found['drain']['reason']))
        self.assertTrue(found['drain']['requested_at'].endswith('+00:00'))

    def test_what_nobody_drains_is_not_waited_for(self):
        self.manage('host', 'status', 'a', '--wait', expected=host.NOT_YET)


class ReleaseTest(HostTestCase):
    def test_a_worker_does_it(self):
        drain = self.drain()
        known = self.drains.get

        def get(uuid):  # A worker, between two looks.
            self.drains.change(drain, (drains.RELEASING,), state=drains.RELEASED)
            return known(uuid)
        self.patch(Drains, 'get', lambda _self, uuid: get(uuid))
        self.assertIn('a: released', self.manage('host', 'release', 'a'))

    def test_nobody_does_it(self):
        self.drain()
        self.patch(host.release, '__defaults__', (0,))
        said = self.manage('host', 'release', 'a', expected=host.NOT_YET)
        self.assertIn('no worker has released it yet', said)
        self.assertEqual(drains.RELEASING, self.drains.latest('a').state)

    def test_a_host_that_is_being_serviced_is_not_released(self):
        self.drain()
        Maintenances(self.database).begin(maintenance.Maintenance(
            uuid='m', state=maintenance.RUNNING, requested_by='jane',
            requested_at=timeutils.utcnow(), options=maintenance.Options(),
            hosts={'a': maintenance.HOOK}))
        said = self.manage('host', 'release', 'a', expected=1)
        self.assertIn('is being serviced by a maintenance', said)

    def test_what_is_not_drained_cannot_be_released(self):
        self.assertIn('a', self.manage('host', 'release', 'a', expected=1))


class EstimateTest(HostTestCase):
    def test_it_goes_by_moves_of_the_past_and_by_how_many_may_run(self):
        self.patch(type(self.journal), 'durations', lambda _self: [(512, 60.0)])
        said = self.manage('host', 'drain', 'a', '--check', '--parallel', '1')
        slow = self.manage('host', 'drain', 'a', '--check', '--parallel', '2')
        self.assertIn('Expected: about 2 min', said)
        self.assertIn('Expected: about 1 min', slow)
        self.assertEqual([], self.journal.moves(states=(moves.PLANNED,)))
