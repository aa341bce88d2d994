"""The filter and the weigher of nova-scheduler, by what the manager has read."""

import dataclasses
import datetime
import threading
import types
from unittest import mock

import fixtures
import testtools
from nova import objects
from nova.scheduler import manager as nova_manager
from nova.scheduler import weights
from oslo_config import fixture as config_fixture
from oslo_db import exception as db_exc

from kronos_nova.db import journal
from kronos_nova.objects.hold import Hold
from kronos_nova.objects.shape import Shape
from kronos_nova.plugin import held_room
from kronos_nova.plugin import reserved_resources
from kronos_nova.plugin import scheduler
from kronos_nova.policies import requests
from tests.unit.db import fixtures as db_fixtures
from tests.unit.policies.test_rules import rules

NOW = datetime.datetime(2026, 7, 1)
ONE, TWO, GROUP = (f'{number}' * 8 + '-0000-4000-8000-000000000000' for number in (1, 2, 3))
"""Uuids of two servers and of their group."""


def spec(memory_mb=1024, **more):
    return objects.RequestSpec(**{
        'instance_uuid': ONE, 'project_id': 'p', 'force_hosts': None, 'numa_topology': None,
        'requested_destination': None, 'instance_group': None, 'image': None,
        'availability_zone': None, 'ignore_hosts': None, 'is_bfv': False,
        'flavor': objects.Flavor(name='m1', vcpus=1, memory_mb=memory_mb, root_gb=1,
                                 ephemeral_gb=0, swap=0, extra_specs={}), **more})


def host(name='a', free_mb=4096):
    return types.SimpleNamespace(
        host=name, nodename=name, numa_topology=None, total_usable_ram_mb=8192, free_ram_mb=free_mb,
        ram_allocation_ratio=1.0, total_usable_disk_gb=100, free_disk_mb=50 * 1024,
        disk_allocation_ratio=1.0, vcpus_total=8, vcpus_used=2, cpu_allocation_ratio=1.0,
        instances={}, stats={})


def libvirt_host(shared=8, pinned=(), used=2):
    """Return a host as libvirt reports it, with NUMA cells and CPUs 8 to 11 for pinned servers."""
    found = host()
    found.numa_topology = objects.NUMATopology(cells=[objects.NUMACell(
        id=0, cpuset=set(range(shared)), pcpuset={8, 9, 10, 11}, pinned_cpus=set(pinned),
        cpu_usage=0, memory=8192, memory_usage=0, siblings=[], mempages=[])])
    found.vcpus_total, found.vcpus_used = shared, used
    return found


def hold(count=1, memory_mb=2048, project_id='', used=()):
    return Hold(uuid='h', aggregate='agg', count=count, state='held', requested_by='jane',
                requested_at=NOW, expires_at=NOW, hold_seconds=60, project_id=project_id,
                shape=Shape(name='m1', vcpus=1, memory_mb=memory_mb), hosts={'a': count},
                used=dict.fromkeys(used, 'a'))


class SchedulerTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        objects.register_all()
        self.log = self.useFixture(fixtures.FakeLogger())


class ScoreTest(SchedulerTestCase):
    def setUp(self):
        super().setUp()
        self.view = scheduler.LastRead()

    def test_an_unknown_host_is_as_good_as_the_others_on_average(self):
        self.view.update({'a': ('spread', 0.2), 'b': ('spread', 0.6)}, (), ())
        self.assertAlmostEqual(0.4, self.view.score('c'))
        self.assertEqual(0.6, self.view.score('b'))

    def test_where_hosts_are_packed_the_loaded_one_is_wanted(self):
        self.view.update({'a': ('pack', 0.2), 'b': ('pack', 0.6)}, (), ())
        self.assertLess(self.view.score('b'), self.view.score('a'))

    def test_without_any_score_all_hosts_are_equal(self):
        self.assertEqual(0.0, self.view.score('a'))

    def test_what_is_forgotten_is_not_used_any_more(self):
        self.view.update({'a': ('spread', 0.2)}, ['a'], [hold()])
        self.view.forget()
        self.assertEqual(({}, frozenset()), (self.view.scores, self.view.emptied))
        self.assertTrue(self.view.held.leaves_room(host(free_mb=0), spec()))


class HeldRoomTest(SchedulerTestCase):
    def leaves_room(self, *holds, free_mb=4096, **request):
        return held_room.HeldRoom(holds).leaves_room(host(free_mb=free_mb), spec(**request))

    def test_a_server_may_use_what_is_left_beside_the_held_room(self):
        self.assertTrue(self.leaves_room(hold(project_id='other'), free_mb=3072))
        self.assertFalse(self.leaves_room(hold(project_id='other'), free_mb=3071))

    def test_a_server_that_the_room_is_for_takes_its_place(self):
        self.assertTrue(self.leaves_room(hold(project_id='p'), free_mb=2048))

    def test_the_rest_of_a_hold_stays_when_one_of_its_servers_comes(self):
        self.assertTrue(self.leaves_room(hold(count=2), free_mb=3072))
        self.assertFalse(self.leaves_room(hold(count=2), free_mb=3071))

    def test_room_that_its_servers_use_already_is_not_kept_twice(self):
        self.assertTrue(self.leaves_room(hold(project_id='other', used=['s1']), free_mb=1024))

    def test_room_on_another_host_does_not_matter(self):
        self.assertTrue(held_room.HeldRoom([hold(project_id='other')]).leaves_room(
            host('b', free_mb=0), spec()))

    def overcommitted(self, **changes):
        """Return a host with 512 MiB, 10 GiB and 2 CPUs reserved. Placement has 7680 * 1.5 MiB,
        90 * 2 GiB and 6 * 4 VCPUs, of which one server uses 1024 MiB, 5 GiB and one VCPU."""
        conf = self.useFixture(config_fixture.Config(reserved_resources.CONF)).config
        conf(reserved_host_memory_mb=512, reserved_host_disk_mb=10 * 1024, reserved_host_cpus=2)
        found = host(free_mb=8192 - 512 - 1024)
        reserved_resources.mark(found.stats)
        found.ram_allocation_ratio, found.disk_allocation_ratio = 1.5, 2.0
        found.cpu_allocation_ratio, found.vcpus_used = 4.0, 2 + 1
        found.free_disk_mb = (100 - 10 - 5) * 1024
        return found

    def test_room_is_what_placement_has_on_hosts_with_reserved_resources(self):
        """A server of 1024 MiB, 1 GiB and one VCPU is started beside the held room."""
        free = {'MEMORY_MB': 7680 * 1.5 - 2048, 'DISK_GB': 90 * 2 - 6, 'VCPU': 6 * 4 - 2}
        for name, amount in free.items():
            for more, fits in ((0, True), (1, False)):
                shape = Shape(name='m1', **{'vcpus': 0, 'memory_mb': 0, 'disk_gb': 0} | {
                    {'MEMORY_MB': 'memory_mb', 'DISK_GB': 'disk_gb', 'VCPU': 'vcpus'}[name]:
                    int(amount) + more})
                kept = held_room.HeldRoom([dataclasses.replace(
                    hold(project_id='other'), shape=shape)])
                self.assertEqual(fits, kept.leaves_room(self.overcommitted(), spec()), name)

    def test_vcpus_are_kept_on_hosts_with_numa_cells_too(self):
        """libvirt reports NUMA cells on every host."""
        kept = held_room.HeldRoom([hold(project_id='other')])
        self.assertTrue(kept.leaves_room(libvirt_host(used=6), spec()))
        self.assertFalse(kept.leaves_room(libvirt_host(used=7), spec()))

    def test_pinned_servers_use_none_of_the_shared_processors(self):
        """Nova counts all VCPUs of servers, but of a host only the shared processors."""
        kept = held_room.HeldRoom([hold(project_id='other')])
        self.assertTrue(kept.leaves_room(libvirt_host(pinned={8, 9}, used=8), spec()))
        self.assertFalse(kept.leaves_room(libvirt_host(pinned={8, 9}, used=9), spec()))

    def test_pinned_servers_use_shared_processors_where_none_are_dedicated(self):
        kept = held_room.HeldRoom([hold(project_id='other')])
        found = libvirt_host(pinned={0, 1}, used=7)
        found.numa_topology.cells[0].pcpuset = found.numa_topology.cells[0].cpuset
        self.assertFalse(kept.leaves_room(found, spec()))


class FilterTest(SchedulerTestCase):
    def setUp(self):
        super().setUp()
        self.view = scheduler.LastRead()
        self.patch(scheduler, 'VIEW', self.view)
        self.filter = scheduler.KronosFilter()

    def test_a_host_that_is_emptied_takes_no_server(self):
        self.view.update({}, ['a'], ())
        self.assertEqual([False, True], [self.filter.host_passes(host(name), spec())
                                         for name in ('a', 'b')])

    def test_a_request_that_names_the_host_is_let_in(self):
        self.view.update({}, ['a'], [hold(project_id='other')])
        for more in ({'force_hosts': ['a']},
                     {'requested_destination': objects.Destination(host='a')}):
            self.assertTrue(self.filter.host_passes(host(free_mb=0), spec(**more)), more)
        self.assertFalse(self.filter.host_passes(
            host(free_mb=0), spec(requested_destination=objects.Destination(host='b'))))

    def test_held_room_that_cannot_be_judged_keeps_no_server_out(self):
        self.view.update({}, (), [hold(project_id='other')])
        broken = host()
        del broken.free_ram_mb
        self.assertTrue(self.filter.host_passes(broken, spec()))
        self.assertIn('Host a is accepted for a new server, although KronosFilter could not '
                      'check', self.log.output)


class WeigherTest(SchedulerTestCase):
    def setUp(self):
        super().setUp()
        self.view = scheduler.LastRead()
        self.patch(scheduler, 'VIEW', self.view)
        self.conf = self.useFixture(config_fixture.Config(scheduler.CONF))

    def best(self):
        hosts = [host('a'), host('b')]
        return weights.HostWeightHandler().get_weighed_objects(
            [scheduler.KronosWeigher()], hosts, spec())[0].obj.host

    def test_a_negative_multiplier_prefers_load(self):
        self.view.update({'a': ('spread', 0.6), 'b': ('spread', 0.2)}, (), ())
        self.assertEqual('b', self.best())
        self.conf.config(group='kronos_scheduler', weight_multiplier=-1.0)
        self.assertEqual('a', self.best())

    def test_a_preferred_host_is_preferred_with_any_multiplier(self):
        self.view.rules = requests.RequestRules(rules(
            '- {name: new, servers: {flavor: m1}, should_run_on: {hosts: b}, cost: 1}'))
        for multiplier in (1.0, -1.0):
            self.conf.config(group='kronos_scheduler', weight_multiplier=multiplier)
            self.assertEqual('b', self.best(), multiplier)


class EndTest(SchedulerTestCase):
    def setUp(self):
        super().setUp()
        self.database = self.useFixture(db_fixtures.ControlDatabase()).database
        self.patch(scheduler, '_database', lambda: self.database)
        self.patch(nova_manager.SchedulerManager, 'graceful_shutdown', mock.Mock())
        self.manager = scheduler.KronosSchedulerManager.__new__(scheduler.KronosSchedulerManager)
        self.manager._shutdown_in_progress = threading.Event()
        self.manager.host_manager = types.SimpleNamespace(enabled_filters=[])

    def reports(self):
        since = self.database.utcnow() - datetime.timedelta(hours=1)
        return journal.Journal(self.database, 'test').workers(since)

    def test_the_report_of_a_process_that_ends_is_deleted_and_not_made_again(self):
        for end in (self.manager.set_shutdown_in_progress, self.manager.graceful_shutdown):
            self.manager._kronos_is_leaving = False
            self.assertEqual([], [*self.manager._report()])
            self.assertEqual(1, len(self.reports()))
            end()
            self.assertEqual([], [*self.manager._report()])
            self.assertEqual([], self.reports())

    def test_a_report_in_progress_when_the_process_ends_is_deleted(self):
        say = journal.Journal.heartbeat
        end = threading.Thread(target=self.manager.set_shutdown_in_progress)

        def say_late(*arguments):
            end.start()
            end.join(0.3)
            say(*arguments)
        self.patch(journal.Journal, 'heartbeat', say_late)
        self.assertEqual([], [*self.manager._report()])
        end.join()
        self.assertEqual([], self.reports())

    def test_nova_ends_although_the_database_does_not_answer(self):
        self.patch(journal.Journal, 'retire', mock.Mock(
            side_effect=db_exc.DBConnectionError('gone')))
        self.manager.set_shutdown_in_progress()
        self.assertIn('its report cannot be deleted', self.log.output)


class RequestedServerTest(SchedulerTestCase):
    def test_its_own_host_is_none_of_the_others_of_its_group(self):
        group = objects.InstanceGroup(uuid=GROUP, name='db', hosts=['a', 'b'], members=[ONE, TWO])
        hosts = [host('a'), host('b')]
        hosts[0].instances, hosts[1].instances = {ONE: None}, {TWO: None}
        found = scheduler.requested_server(spec(instance_group=group), hosts)
        self.assertEqual(((GROUP, 'db'), ('b',)), (found.groups, found.others))

    def test_a_host_with_another_member_stays_one_of_the_others(self):
        group = objects.InstanceGroup(uuid=GROUP, name='db', hosts=['a'], members=[ONE, TWO])
        shared = host('a')
        shared.instances = {ONE: None, TWO: None}
        self.assertEqual(('a',), scheduler.requested_server(
            spec(instance_group=group), [shared]).others)

    def test_a_server_without_group_image_and_zone_has_the_defaults(self):
        found = scheduler.requested_server(spec())
        self.assertEqual(((), (), {}, 'm1', 'p'), (
            found.groups, found.others, found.image, found.flavor, found.project))
