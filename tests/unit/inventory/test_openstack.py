"""Reading a cloud through its public API, over real HTTP."""

import datetime
import socket

import ddt
import fixtures
import openstack
import testtools
from oslo_config import cfg

from kronos_nova import clock
from kronos_nova import conf as kronos_conf
from kronos_nova import exception
from kronos_nova.inventory.connection import connect
from kronos_nova.inventory.openstack import OpenStackInventory
from kronos_nova.objects.shape import Shape
from kronos_nova.objects.snapshot import Cpu
from kronos_nova.objects.snapshot import Flavor
from kronos_nova.objects.snapshot import Image
from kronos_nova.objects.snapshot import ResourceInventory
from kronos_nova.objects.snapshot import Service
from tests.unit.inventory.fakes_public_api import Cloud
from tests.unit.inventory.fakes_public_api import migration


@ddt.ddt
class OpenStackInventoryTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = Cloud()
        self.url = self.useFixture(self.cloud.fixture()).url

    def read(self):
        return self.source().read()

    def source(self, **rest):
        conf = cfg.ConfigOpts()
        kronos_conf.register_opts(conf)
        conf(['--config-dir', self.config_dir()], project='kronos')
        now = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)
        return OpenStackInventory(connect(conf), clock=lambda: now, **rest)

    def config_dir(self):
        folder = self.useFixture(fixtures.TempDir()).path
        with open(f'{folder}/nova.conf', 'w') as file:
            file.write('[kronos_nova]\nauth_type = admin_token\ntoken = t\n'
                       f'endpoint = {self.url}\n'
                       f'endpoint_override = {self.url}/compute/v2.1\n'
                       f'placement_endpoint_override = {self.url}/placement\n')
        return folder

    def refused(self):
        return str(self.assertRaises(exception.InventoryError, self.read))

    def test_hosts_with_their_services_and_bare_metal_left_out(self):
        snapshot = self.read()
        self.assertEqual('2026-11-20T12:00:00Z', snapshot.taken_at)
        self.assertEqual(
            {'cmp1': Service(state='up', status='enabled'),
             'cmp2': Service(state='up', status='disabled', disabled_reason='RAM'),
             'cmp3': Service(state='down', status='enabled', forced_down=True)},
            {host.name: host.service for host in snapshot.hosts})

    def test_a_host_has_the_inventory_of_its_whole_tree(self):
        host = next(host for host in self.read().hosts if host.name == 'cmp1')
        self.assertEqual(ResourceInventory(total=2, min_unit=1, max_unit=2, step_size=1),
                         host.inventory['VGPU'])
        self.assertEqual(
            ResourceInventory(total=32768, reserved=512, min_unit=1, max_unit=32768, step_size=1),
            host.inventory['MEMORY_MB'])
        # (16 - 2) * 4 of the root and 4 * 1 of its NUMA node.
        self.assertEqual((20, 2), (host.inventory['VCPU'].total, host.inventory['VCPU'].reserved))
        self.assertAlmostEqual(60.0, host.inventory['VCPU'].capacity)

    def test_a_host_has_the_traits_of_its_whole_tree_and_the_processors_that_nova_shows(self):
        hosts = {host.name: host for host in self.read().hosts}
        self.assertEqual(('CUSTOM_LICENCE', 'HW_CPU_X86_AVX2', 'HW_NUMA_ROOT'),
                         hosts['cmp1'].traits)
        self.assertEqual((), hosts['cmp2'].traits)
        self.assertEqual(Cpu(arch='x86_64', model='Haswell', features=('aes', 'sse')),
                         hosts['cmp1'].cpu)
        self.assertEqual(8002001, hosts['cmp1'].hypervisor_version)

    @ddt.data({'cpu_info': ''}, {'cpu_info': {'arch': 'x86_64'}}, {'cpu_info': None},
              {'cpu_info': [], 'hypervisor_version': None})
    def test_processors_that_are_not_described_are_not_known(self, changes):
        self.cloud.hypervisors[0] |= changes
        host = next(host for host in self.read().hosts if host.name == 'cmp1')
        self.assertIsNone(host.cpu)
        self.assertEqual(changes.get('hypervisor_version', 8002001), host.hypervisor_version)

    @ddt.data({'cpu_info': {'arch': 'x86_64', 'model': 'a' * 300}}, {'hypervisor_version': 'new'},
              {'cpu_info': {'arch': 'x86_64', 'model': 'm', 'features': [['aes']]}})
    def test_a_description_that_is_none_is_refused(self, changes):
        self.cloud.hypervisors[0] |= changes
        self.assertIn('does not have the form that its API version promises', self.refused())

    def test_servers_of_every_page_and_project_on_these_hosts(self):
        instances = {instance.uuid[-1]: instance for instance in self.read().instances}
        self.assertEqual(['1', '2', '3'], sorted(instances))
        self.assertEqual({'MEMORY_MB': 2048, 'VCPU': 2}, instances['1'].resources)
        self.assertEqual(15, instances['1'].disk_gb)
        self.assertEqual({'hw:cpu_policy': 'shared'}, instances['1'].flavor_extra_specs)
        self.assertTrue(instances['2'].locked)
        self.assertEqual('migrating', instances['3'].task_state)
        self.assertEqual({}, instances['3'].resources)
        self.assertIn('1', [query.get('all_tenants') for path, query, _ in self.cloud.asked
                            if path.endswith('/servers/detail')])

    def test_what_rules_select_servers_by(self):
        self.cloud.servers[0] |= {'tags': ['web', 'db'], 'image': {
            'id': 'im1', 'links': [], 'properties': {'os_distro': 'rhel'}}}
        instances = {instance.uuid[-1]: instance for instance in self.read().instances}
        self.assertEqual(
            (Flavor(name='m1'), Image(id='im1', properties={'os_distro': 'rhel'}), ('db', 'web')),
            (instances['1'].flavor, instances['1'].image, instances['1'].tags))
        self.assertEqual((Image(id=''), ()), (instances['2'].image, instances['2'].tags))
        self.assertEqual({'compute 2.98'}, {version for path, _query, version in self.cloud.asked
                                            if path.endswith('/servers/detail')})

    def test_flavors_of_all_projects_with_what_they_ask_placement_for(self):
        [found] = self.source().read_flavors()
        self.assertEqual(
            Shape(id='42', name='m1.medium', vcpus=2, memory_mb=4096, disk_gb=26,
                  extra_specs={'hw:cpu_policy': 'dedicated'}), found)
        self.assertEqual({'PCPU': 2, 'MEMORY_MB': 4096, 'DISK_GB': 26}, found.resources)
        self.assertEqual(['None'], [query['is_public'] for path, query, _version in self.cloud.asked
                                    if path.endswith('/flavors/detail')])

    def test_an_older_nova_is_asked_for_no_properties_of_images(self):
        self.useFixture(fixtures.MockPatchObject(openstack.utils, 'supports_microversion',
                                                 return_value=False))
        self.read()
        self.assertEqual({'compute 2.73'}, {version for path, _query, version in self.cloud.asked
                                            if path.endswith('/servers/detail')})

    def test_hosts_have_the_failure_domains_that_their_aggregates_state(self):
        self.cloud.aggregates[0]['metadata'] |= {'rack': 'r3', 'room': 'a'}
        hosts = self.source(domain_keys=['room', 'rack']).read().hosts
        self.assertEqual({'cmp1': {'room': 'a', 'rack': 'r3'}, 'cmp2': {}, 'cmp3': {}},
                         {host.name: host.domains for host in hosts})

    def test_a_server_that_is_deleted_softly_is_on_its_host(self):
        self.cloud.servers[0]['status'] = 'SOFT_DELETED'
        found = {each.uuid[-1]: each.status for each in self.read().instances}
        self.assertEqual('SOFT_DELETED', found['1'])

    def test_a_server_that_is_listed_twice_is_one(self):
        self.cloud.servers.append({**self.cloud.servers[0], 'OS-EXT-SRV-ATTR:host': 'cmp2'})
        found = [(each.uuid[-1], each.host) for each in self.read().instances]
        self.assertEqual([('1', 'cmp1'), ('2', 'cmp1'), ('3', 'cmp2')], sorted(found))

    def test_one_consumer_gets_what_one_provider_of_the_tree_has(self):
        root = self.cloud.hypervisors[0]['id']
        self.cloud.inventories[root]['VCPU'].update(min_unit=2, max_unit=16, step_size=6)
        self.cloud.inventories['numa0']['VCPU'].update(min_unit=1, max_unit=4, step_size=4)
        vcpu = next(h for h in self.read().hosts if h.name == 'cmp1').inventory['VCPU']
        self.assertEqual((1, 16, 2), (vcpu.min_unit, vcpu.max_unit, vcpu.step_size))

    def test_what_is_used_is_what_everybody_holds_on_the_tree(self):
        root = self.cloud.hypervisors[0]['id']
        self.cloud.allocations[root]['a migration'] = {'resources': {'VCPU': 3, 'MEMORY_MB': 512}}
        self.cloud.allocations['numa0']['deleted softly'] = {'resources': {'VCPU': 1}}
        hosts = {host.name: host for host in self.read().hosts}
        self.assertEqual({'MEMORY_MB': 2560, 'VCPU': 6}, hosts['cmp1'].used)
        self.assertEqual({}, hosts['cmp2'].used)

    def test_a_provider_that_hosts_share(self):
        uuid = self.cloud.servers[0]['id']
        self.cloud.allocations['shared-disk'] = {uuid: {'resources': {'DISK_GB': 15}},
                                                 'another': {'resources': {'DISK_GB': 5}}}
        snapshot = self.read()
        shared, = snapshot.shared_providers
        self.assertEqual((('cmp1', 'cmp2'), {'DISK_GB': 20}), (shared.hosts, shared.used))
        self.assertEqual(990, shared.inventory['DISK_GB'].capacity)
        instance = next(each for each in snapshot.instances if each.uuid == uuid)
        self.assertEqual(({'MEMORY_MB': 2048, 'VCPU': 2}, {'DISK_GB': 15}),
                         (instance.resources, instance.shared_resources))

    def busy_servers(self):
        """Three servers that are marked as migrating."""
        for server in self.cloud.servers[:3]:
            server['OS-EXT-STS:task_state'] = 'migrating'
        return self.cloud.servers[:3]

    def test_a_migration_that_no_one_acts_on_is_not_counted(self):
        uuid = self.cloud.servers[0]['id']
        self.cloud.migrations = [migration(1, uuid, 'cmp1', 'cmp2')]
        self.assertEqual((), self.read().moves_under_way)

    def test_all_migrations_in_progress_are_read(self):
        first, second, third = (server['id'] for server in self.busy_servers())
        self.cloud.migrations = [
            migration(1, first, 'cmp1', 'cmp2', 'running (post-copy)'),
            migration(2, second, 'cmp1', 'cmp2', 'completed'),
            migration(3, third, 'cmp1', 'cmp2', 'post-migrating'),  # it has arrived on cmp2
            migration(4, second, 'cmp1', None, 'queued'),
            migration(5, second, 'cmp1', 'cmp3', 'queued')]
        snapshot = self.read()
        self.assertEqual({(first, 'cmp1', 'cmp2'), (second, 'cmp1', 'cmp3')},
                         {(move.instance_uuid, move.source, move.destination)
                          for move in snapshot.moves_under_way})
        hosts = {host.name: host for host in snapshot.hosts}
        # Its allocation is on the source still, so that it will be on the destination too.
        self.assertEqual({'MEMORY_MB': 2048, 'VCPU': 2}, hosts['cmp2'].used)

    def test_a_migration_that_holds_its_room_is_not_counted_twice(self):
        uuid = self.busy_servers()[0]['id']
        source, destination = (h['id'] for h in self.cloud.hypervisors[:2])
        held = {'resources': {'MEMORY_MB': 2048, 'VCPU': 2}}
        self.cloud.allocations = {source: {'a migration': held}, destination: {uuid: held}}
        self.cloud.migrations = [migration(1, uuid, 'cmp1', 'cmp2')]
        snapshot = self.read()
        self.assertEqual([uuid], [move.instance_uuid for move in snapshot.moves_under_way])
        self.assertEqual([{'MEMORY_MB': 2048, 'VCPU': 2}] * 2,
                         [host.used for host in snapshot.hosts[:2]])

    def test_many_migrations_come_in_pages(self):
        first, second, third = (server['id'] for server in self.busy_servers())
        self.cloud.migrations = [migration(number, uuid, host, 'cmp3') for number, uuid, host in (
            (1, first, 'cmp1'), (2, second, 'cmp1'), (3, third, 'cmp2'))]
        self.assertEqual(3, len(self.read().moves_under_way))

    def test_server_groups_of_both_spellings(self):
        groups = {group.uuid: group for group in self.read().server_groups}
        self.assertEqual(('anti-affinity', {'max_server_per_host': 2}),
                         (groups['g1'].policy, groups['g1'].rules))
        self.assertEqual('affinity', groups['g2'].policy)
        self.assertEqual('soft-affinity', groups['g3'].policy)

    @ddt.data('/servers/detail', '/os-hypervisors/detail', '/os-server-groups')
    def test_a_list_that_does_not_end_is_refused(self, path):
        body = self.cloud._body

        def first_page(asked, query):
            return body(asked, query | {'offset': '0', 'marker': ''}
                        if asked.endswith(path) else query)
        self.cloud._body = first_page
        problem = self.refused()
        self.assertIn(path, problem)
        self.assertIn('does not end', problem)

    def test_an_aggregate_names_only_the_hosts_that_are_there(self):
        aggregate, = self.read().aggregates
        self.assertEqual((('cmp1',), 'az1'), (aggregate.hosts, aggregate.availability_zone))

    def test_no_version_that_asks_every_host_for_its_uptime(self):
        self.read()
        asked = {version for path, _, version in self.cloud.asked if 'hypervisors' in path}
        self.assertEqual({'compute 2.73'}, asked)

    def test_a_cell_that_is_down_is_reported_by_its_hosts(self):
        self.cloud.services[0] = {'host': 'cmp1', 'binary': 'nova-compute', 'status': 'UNKNOWN'}
        self.assertIn('the cell of the hosts cmp1 is down', self.refused())

    def test_a_cell_that_is_down_is_reported_by_its_servers(self):
        self.cloud.servers[1] = {'id': 'lost', 'status': 'UNKNOWN', 'tenant_id': 'p1'}
        self.assertIn('lost', self.refused())

    def test_a_user_who_may_not_see_hosts(self):
        for server in self.cloud.servers:
            del server['OS-EXT-SRV-ATTR:host']
        self.assertIn('admin role', self.refused())

    def test_a_host_that_is_registered_after_the_services_were_read_is_left_out(self):
        del self.cloud.services[0]
        self.assertIn('cmp1', self.refused())  # It has servers, so that its service must be there.
        self.cloud.servers = [each for each in self.cloud.servers
                              if each['OS-EXT-SRV-ATTR:host'] != 'cmp1']
        self.assertEqual(['cmp2', 'cmp3'], [host.name for host in self.read().hosts])

    def test_a_hypervisor_that_placement_does_not_know(self):
        del self.cloud.providers[1]
        log = self.useFixture(fixtures.FakeLogger())
        found = self.read()
        self.assertEqual(['cmp1', 'cmp3'], [host.name for host in found.hosts])
        self.assertNotIn('cmp2', {instance.host for instance in found.instances})
        self.assertIn('has no resource provider', log.output)

    @ddt.data('/compute/v2.1/os-services', '/compute/v2.1/servers/detail', '/placement/'
              'resource_providers', '/placement/resource_providers/numa0/allocations')
    def test_one_part_refused_is_the_whole_refused(self, path):
        self.cloud.refuse[path] = (403, {'forbidden': {'code': 403, 'message': 'Policy says no'}})
        said = self.refused()
        self.assertIn('admin role', said)
        self.assertIn(path.rpartition('/')[2], said)

    @ddt.data((500, b'{}'), (200, b'<html>'), (200, b'{}'), (200, b'[]'), (404, b'{}'))
    @ddt.unpack
    def test_answers_that_are_none(self, status, body):
        self.cloud.refuse['/compute/v2.1/os-aggregates'] = (status, body)
        self.refused()

    @ddt.data((500, b'{}'), (200, b'<html>'), (200, b'{}'), (200, b'[]'), (404, b'{}'),
              (200, b'{"aggregates": [1], "migrations": [1]}'))
    @ddt.unpack
    def test_answers_that_are_none_to_other_questions(self, status, body):
        """An inventory that cannot be read, and no other error: that is an outage."""
        for path in ('/compute/v2.1/os-aggregates', '/compute/v2.1/os-migrations'):
            self.cloud.refuse[path] = (status, body)
        source = self.source()
        self.assertRaises(exception.InventoryError, source.aggregate_hosts)
        self.assertRaises(exception.InventoryError, source.past_moves, clock.utcnow())

    def test_a_port_without_a_server(self):
        with socket.socket() as unused:
            unused.bind(('127.0.0.1', 0))
            self.url = f'http://127.0.0.1:{unused.getsockname()[1]}'
            self.assertIn(self.url, self.refused())

    def test_without_credentials_the_options_are_named(self):
        conf = cfg.ConfigOpts()
        kronos_conf.register_opts(conf)
        conf([], project='kronos', default_config_files=[])
        error = self.assertRaises(exception.ConfigurationError, connect, conf)
        self.assertIn('auth_url', str(error))
