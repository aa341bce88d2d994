"""Reading the cloud, and no more than needed: Nova's tables by columns, placement by generation."""

import collections
import dataclasses
import datetime

import fixtures
import sqlalchemy as sa
from nova import context as nova_context
from nova import objects
from nova import servicegroup
from nova import utils as nova_utils
from nova.api.openstack import common
from nova.db.api import api as api_db
from nova.db.main import api as main_db
from nova.scheduler import utils as scheduler_utils

from kronos_nova import clock
from kronos_nova import exception
from kronos_nova.cooldown.planning_history import PastMove
from kronos_nova.inventory import providers
from kronos_nova.objects.snapshot import UNASSIGNED
from kronos_nova.objects.snapshot import MoveUnderWay
from kronos_nova.plugin import cells
from kronos_nova.plugin import history
from kronos_nova.plugin import nova_records
from kronos_nova.plugin import nova_tables
from kronos_nova.plugin.compute_api import service_of
from kronos_nova.plugin.inventory import InProcessInventory
from tests.functional.inventory import test_two_ways
from tests.functional.inventory.public import public_inventory


class ColumnsTest(test_two_ways.QemuTestCase):
    def snapshots_of(self, *scopes):
        """The same part of the cloud, read both ways."""
        return InProcessInventory().read(scopes), self.public(scopes)

    def test_only_the_hosts_of_the_aggregates_in_scope_are_read(self):
        self.populate()
        self.placement_fixture.requests.clear()
        for snapshot in self.snapshots_of('gpu'):
            self.assertEqual(['host3'], [host.name for host in snapshot.hosts])
            self.assertEqual((), snapshot.instances)
        asked = {path.split('/')[2] for _method, path, _body, _status
                 in self.placement_fixture.requests if path.startswith('/resource_providers/')}
        self.assertEqual({self.uuid_of('host3')}, asked)
        for snapshot in self.snapshots_of(UNASSIGNED):
            self.assertEqual(['host1', 'host2'], sorted(host.name for host in snapshot.hosts))
            self.assertEqual(5, len(snapshot.instances))
            self.assertEqual(['db'], [group.name for group in snapshot.server_groups])
            self.assertEqual([('gpu', ())], [(a.name, a.hosts) for a in snapshot.aggregates])

    def test_the_other_ends_of_moves_that_are_planned_are_read_too(self):
        """Such as of a plan of an aggregate that a host has left since."""
        self.populate()
        server = self.boot('host1')
        for destination, expected in (('host3', {'host1', 'host3'}), ('host2', {'host3'})):
            moves = [MoveUnderWay(instance_uuid=server['id'], source='host1',
                                  destination=destination)]
            for way in (InProcessInventory(), public_inventory(self)):
                found = way.read(['gpu'], moves).with_moves_under_way(moves)
                hosts = {host.name: host for host in found.hosts}
                self.assertEqual(expected, hosts.keys())
                needed = self.held_by(server['id'])['host1'] if 'host1' in hosts else {}
                self.assertEqual(needed, hosts['host3'].used)

    def test_names_that_instances_elsewhere_have_too_are_known_both_ways(self):
        self.populate()
        for host in ('host3', 'host1'):
            self.boot(host, name='twin')
        self.boot('host3', name='alone')
        self.boot('host3', name='Web0')  # a database may not know capitals
        for way in (InProcessInventory(), public_inventory(self)):
            here = {each.display_name for each in way.read(['gpu']).instances}
            self.assertEqual({'twin', 'alone', 'Web0'}, here)
            self.assertEqual({'twin'}, way.names_elsewhere('display_name', here))
            way.read()
            self.assertEqual(set(), way.names_elsewhere('display_name', here))

    def test_names_of_domains_are_compared_where_they_are_not_made_of_a_number(self):
        self.flags(instance_name_template='%(display_name)s')
        for host in ('host3', 'host1'):
            self.boot(host, name='twin')
        self.api.add_host_to_aggregate(
            self.api.post_aggregate({'aggregate': {'name': 'gpu'}})['id'], 'host3')
        for way in (InProcessInventory(), public_inventory(self)):
            way.read(['gpu'])
            self.assertEqual({'twin'}, way.names_elsewhere('name', {'twin'}))

    def test_columns_say_what_novas_own_objects_say(self):
        self.populate()
        [tagged] = [each.uuid for each in InProcessInventory().read().instances if each.tags]
        self.set_image_properties(tagged, licence='acme')
        snapshot = InProcessInventory().read()
        context = cells.admin_context()
        with nova_context.target_cell(context, cells.mappings(context)[0]) as cell:
            found = objects.InstanceList.get_by_filters(
                cell, {'deleted': False},
                expected_attrs=['flavor', 'metadata', 'system_metadata', 'tags'])
            nodes = {node.host: node.uuid for node in objects.ComputeNodeList.get_all(cell)}
            services = objects.ServiceList.get_by_binary(cell, 'nova-compute',
                                                         include_disabled=True)
        self.assertEqual(
            {each.uuid: (each.name, each.display_name, each.host, each.project_id,
                         common.status_from_state(each.vm_state, each.task_state),
                         each.task_state, each.locked, each.flavor.vcpus, each.flavor.memory_mb,
                         each.flavor.root_gb + each.flavor.ephemeral_gb, each.flavor.extra_specs,
                         {key: value for key, value in each.metadata.items()
                          if key.startswith('kronos:')})
             for each in found if each.host != 'metal'},
            {each.uuid: (each.name, each.display_name, each.host, each.project_id, each.status,
                         each.task_state, each.locked, each.vcpus, each.memory_mb, each.disk_gb,
                         each.flavor_extra_specs, each.metadata) for each in snapshot.instances})
        self.assertEqual(
            {each.uuid: (each.flavor.name, each.flavor.flavorid, each.image_ref or '',
                         {key: value for key, value in nova_utils.get_image_from_system_metadata(
                             each.system_metadata)['properties'].items()
                          if key.startswith(('os_', 'hw_', 'licence'))},
                         tuple(sorted(tag.tag for tag in each.tags)))
             for each in found if each.host != 'metal'},
            {each.uuid: (each.flavor.name, each.flavor.id, each.image.id, {
                key: value for key, value in each.image.properties.items()
                if key.startswith(('os_', 'hw_', 'licence'))}, each.tags)
             for each in snapshot.instances})
        self.assertIn({'os_distro': 'rhel', 'licence': 'acme'}, [
            {key: value for key, value in each.image.properties.items()
             if key in ('os_distro', 'licence')} for each in snapshot.instances])
        self.assertEqual({host.name: (nodes[host.name], host.service) for host in snapshot.hosts},
                         {service.host: (nodes[service.host],
                                         service_of(servicegroup.API(), service))
                          for service in services if service.host != 'metal'})
        self.assertEqual(
            {each.uuid: (each.name, each.availability_zone, each.metadata)
             for each in objects.AggregateList.get_all(context)},
            {each.uuid: (each.name, each.availability_zone, each.metadata)
             for each in snapshot.aggregates})
        self.assertEqual(
            {each.uuid: (each.name, each.policy, tuple(each.members),
                         {name: int(value) for name, value in each.rules.items()})
             for each in objects.InstanceGroupList.get_all(context)},
            {each.uuid: (each.name, each.policy, each.members, each.rules)
             for each in snapshot.server_groups})

    def test_the_image_of_an_instance_is_read_again_when_the_instance_has_changed(self):
        """Nova names no image of a server whose root disk is in a volume, not even when it is
        rebuilt from another."""
        server = self.boot('host1')
        self.set_image_properties(server['id'], os_distro='rhel')
        read, asked = nova_tables._image_properties, []
        self.useFixture(fixtures.MonkeyPatch(
            'kronos_nova.plugin.nova_tables._image_properties',
            lambda session, uuids: asked.append(list(uuids)) or read(session, uuids)))
        inventory = InProcessInventory()
        distros = [inventory.read().instances[0].image.properties['os_distro'] for _ in range(2)]
        self.assertEqual((['rhel'] * 2, [[server['id']]]), (distros, asked))
        self.set_image_properties(server['id'], os_distro='debian')
        [rebuilt] = inventory.read().instances
        self.assertEqual('debian', rebuilt.image.properties['os_distro'])

    def test_the_failure_domains_of_hosts_are_those_of_their_aggregates(self):
        aggregate = self.api.post_aggregate({'aggregate': {'name': 'rack3'}})
        self.api.add_host_to_aggregate(aggregate['id'], 'host2')
        self.api.post_aggregate_action(aggregate['id'], {'set_metadata': {
            'metadata': {'rack': 'r3'}}})
        for way in (InProcessInventory(domain_keys=['rack']),
                    public_inventory(self, domain_keys=['rack'])):
            self.assertEqual({'host1': {}, 'host2': {'rack': 'r3'}, 'host3': {}},
                             {host.name: host.domains for host in way.read().hosts})

    def test_columns_say_what_novas_own_migrations_say(self):
        server = self.boot('host1')
        self.migrate(server, 'host2')
        self._wait_for_migration_status(server, ['completed'])
        since = clock.utcnow() - datetime.timedelta(hours=1)
        with self.cell() as cell:
            [found] = objects.MigrationList.get_by_filters(cell, {
                'migration_type': 'live-migration', 'status': 'completed',
                'changes-since': since})
        self.assertEqual(
            [PastMove(instance_uuid=server['id'], source='host1', destination='host2',
                      ended_at=found.updated_at.timestamp())], list(history.past_moves(since)))
        self.assertEqual([], list(history.past_moves(since + datetime.timedelta(hours=2))))

    def test_columns_ask_for_what_novas_own_objects_ask_for(self):
        servers = [self.boot('host1'), self.boot('host1'), self.boot('host2'), self.boot('host2')]
        self.remake(servers[1], image_hw_cpu_policy='dedicated')
        self.remake(servers[2], flavor={'resources:CUSTOM_GPU': '1', 'hw:mem_page_size': '2048'})
        self._stop_server(servers[3])
        self.begin_migration(servers[3]['id'], 'host2', 'host3')
        with self.cell() as cell:
            found = {each.uuid: each for each in objects.InstanceList.get_by_filters(
                cell, {'deleted': False}, expected_attrs=['flavor', 'system_metadata'])}
            nodes = {each.uuid: each.host for each in objects.ComputeNodeList.get_all(cell)}
        read = nova_records.CellRecords(self.placement_client).read()
        self.assertEqual(nodes, read.hosts)
        self.assertEqual({uuid: self.asked_for(each) for uuid, each in found.items()},
                         {uuid: each.asks_for for uuid, each in read.instances.items()})
        self.assertEqual({'PCPU': 1, 'MEMORY_MB': 512, 'DISK_GB': 1},
                         read.instances[servers[1]['id']].asks_for)
        self.assertEqual({uuid: (each.host, each.vm_state, each.task_state, each.project_id,
                                 each.user_id) for uuid, each in found.items()},
                         {uuid: (each.host, each.vm_state, each.task_state, each.project_id,
                                 each.user_id) for uuid, each in read.instances.items()})
        self.assertEqual({'host1', 'host2'}, {nodes[each.root] for each in read.instances.values()})

    def remake(self, server, flavor=None, **system_metadata):
        """As if it had been made of another flavor or image."""
        with self.cell() as cell:
            instance = objects.Instance.get_by_uuid(
                cell, server['id'], expected_attrs=['flavor', 'system_metadata'])
            instance.system_metadata.update(system_metadata)
            instance.flavor.extra_specs = {**instance.flavor.extra_specs, **(flavor or {})}
            instance.save()

    @staticmethod
    def asked_for(instance):
        return scheduler_utils.ResourceRequest.from_request_spec(objects.RequestSpec(
            flavor=instance.flavor, image=instance.image_meta, is_bfv=not instance.image_ref,
            requested_resources=[], request_level_params=objects.RequestLevelParams(),
        )).merged_resources()

    def cell(self):
        context = cells.admin_context()
        return nova_context.target_cell(context, cells.mappings(context)[0])

    def test_names_are_made_by_the_template_that_operators_chose(self):
        server = self.boot('host1', name='web')
        for template, expected in (('vm-%(uuid)s', f'vm-{server["id"]}'), ('%(hostname)s', 'web'),
                                   ('%(nothing)s', server['id'])):
            self.flags(instance_name_template=template)
            [instance] = InProcessInventory().read().instances
            self.assertEqual(expected, instance.name)

    def test_no_user_data_is_asked_for(self):
        statements = []
        server = self.api.post_server({'server': {
            **self._build_server(networks='none', host='host1'), 'user_data': 'c2VjcmV0'}})
        self._wait_for_state_change(server, 'ACTIVE')
        engine = main_db.get_engine(context=self.cell_context())
        sa.event.listen(engine, 'before_cursor_execute',
                        lambda *args: statements.append(args[2]))
        [instance] = InProcessInventory().read().instances
        self.assertLess(3, len(statements))
        for column in ('user_data', 'key_data', 'launched_on'):
            self.assertEqual([], [each for each in statements if column in each])

    def cell_context(self):
        context = cells.admin_context()
        nova_context.set_target_cell(context, cells.mappings(context)[0])
        return context

    def test_what_a_database_refuses_is_reported_in_one_line(self):
        log = self.useFixture(fixtures.FakeLogger('kronos_nova.plugin'))
        for engine, table in ((main_db.get_engine(context=self.cell_context()), 'instance_extra'),
                              (api_db.get_engine(), 'aggregate_hosts')):
            with engine.begin() as connection:
                connection.execute(sa.text(f'ALTER TABLE {table} RENAME TO mislaid_{table}'))
            error = self.assertRaises(exception.InventoryError, InProcessInventory().read)
            self.assertNotIn('\n', str(error))
        self.assertIn('its records cannot be read: ', log.output)
        self.assertNotIn('[SQL', log.output)

    def test_metadata_is_heeded_by_the_next_reading(self):
        server = self.boot('host1')
        inventory = InProcessInventory()
        inventory.read()
        self.api.api_post(f'/servers/{server["id"]}/metadata', {
            'metadata': {'kronos:move': 'never', 'owner': 'me'}})
        [instance] = inventory.read().instances
        self.assertEqual({'kronos:move': 'never'}, instance.metadata)


class ProviderCacheTest(test_two_ways.QemuTestCase):
    """The cache of providers, against a real placement."""

    hosts = ('host1', 'host2')

    def setUp(self):
        super().setUp()
        self.inventory = InProcessInventory()
        self.servers = [self.boot(host) for host in self.hosts]

    def read(self, asked):
        """Read the snapshot with requests for ``asked`` single providers, and compare it with that
        of an inventory without a cache."""
        self.placement_fixture.requests.clear()
        found = self.inventory.read()
        single = {path.split('/')[2] for _method, path, _body, _status
                  in self.placement_fixture.requests if path.startswith('/resource_providers/')}
        self.assertEqual(asked, len(single), single)
        fresh = InProcessInventory().read()
        self.assertEqual(dataclasses.replace(fresh, taken_at=found.taken_at), found)
        return found

    def test_what_has_not_changed_is_not_asked_for_again(self):
        self.read(2)
        self.read(0)

    def test_a_new_instance_changes_its_host_alone(self):
        self.read(2)
        self.boot('host1')
        self.read(1)

    def test_a_deleted_instance_is_seen_although_its_provider_keeps_its_generation(self):
        self.read(2)
        before = self.placement_client.providers()
        self._delete_server(self.servers[0])
        self.assertEqual(before, self.placement_client.providers())
        found = self.read(1)
        self.assertEqual([0, 1], sorted(host.used.get('VCPU', 0) for host in found.hosts))

    def test_a_live_migration_is_seen_at_both_ends(self):
        self.read(2)
        self.migrate(self.servers[0], 'host2')
        self.server_on(self.servers[0], 'host2')
        [migration] = self.api.api_get(
            f'/os-migrations?instance_uuid={self.servers[0]["id"]}').body['migrations']
        self.assert_holds(migration['uuid'], {})
        self.read(2)

    def test_a_live_migration_in_progress_is_seen_as_if_it_had_completed(self):
        self.stub_out('nova.compute.manager.ComputeManager._do_live_migration',
                      lambda *args, **kwargs: None)
        self.migrate(self.servers[0], 'host2')
        self._wait_for_migration_status(self.servers[0], ['queued'])
        for way in (self.inventory, public_inventory(self)):
            found = way.read()
            self.assertEqual([1, 2], [host.used['VCPU'] for host in sorted(
                found.hosts, key=lambda host: host.name)])
            after = found.after_moves()
            self.assertEqual(((), {'host1': 0, 'host2': 2}), (
                after.moves_under_way, {host.name: host.used['VCPU'] for host in after.hosts}))
            self.assertEqual({'host2': 2}, collections.Counter(
                each.host for each in after.instances if each.resources['VCPU'] == 1))

    def test_all_is_read_again_now_and_then(self):
        self.inventory._providers = providers.ProviderCache(read_all_every=3)
        for asked in (2, 0, 0, 2, 0):
            self.read(asked)

    def test_a_provider_that_is_deleted_while_all_are_read_takes_its_host_alone(self):
        self._delete_server(self.servers[1])
        gone = self.uuid_of('host2')

        def delete(_method, path, _body):
            if path.startswith(f'/resource_providers/{gone}/'):
                self.placement_fixture.before = lambda *asked: None
                self.placement.delete(f'/resource_providers/{gone}')

        self.placement_fixture.before = delete
        log = self.useFixture(fixtures.FakeLogger())
        found = self.inventory.read()
        self.assertEqual(['host1'], [host.name for host in found.hosts])
        self.assertIn(f'placement has no resource provider for the hypervisor {gone}', log.output)

    def test_a_deleted_allocation_hides_room_until_all_is_read_and_never_makes_any(self):
        self.inventory._providers = providers.ProviderCache(read_all_every=2)
        self.read(2)
        # An operator's mistake: the instance runs on without an allocation.
        self.placement.delete(f'/allocations/{self.servers[0]["id"]}')
        stale = {host.name: host.used for host in self.inventory.read().hosts}
        true = {host.name: host.used for host in InProcessInventory().read().hosts}
        self.assertEqual({}, true['host1'])
        self.assertLess(0, stale['host1']['VCPU'])
        self.assertEqual(true, {host.name: host.used for host in self.inventory.read().hosts})
