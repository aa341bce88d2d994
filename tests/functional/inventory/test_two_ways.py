"""The same cloud read inside Nova and through its public API."""

import collections
import dataclasses

import fixtures
from nova import context as nova_context
from nova import objects
from nova.virt import fake

from kronos_nova.objects.snapshot import Flavor
from kronos_nova.plugin.inventory import InProcessInventory
from tests.functional import base
from tests.functional.inventory.public import public_inventory


class QemuDriver(fake.MediumFakeDriver):
    """The fake driver under the name that libvirt's hypervisors have."""

    def get_available_resource(self, nodename):
        kind = 'ironic' if nodename == 'metal' else 'QEMU'
        return {**super().get_available_resource(nodename), 'hypervisor_type': kind}


class QemuTestCase(base.NovaTestCase):
    """Four hosts, one of them of bare metal."""

    hosts = ('host1', 'host2', 'host3', 'metal')

    def setUp(self):
        self.useFixture(fixtures.MonkeyPatch('nova.virt.fake.MediumFakeDriver', QemuDriver))
        self.flags(max_limit=2, group='api')  # lists come in pages
        super().setUp()

    def public(self, scopes=None):
        return public_inventory(self).read(scopes)

    def populate(self):
        """A bit of everything that a snapshot has a word for."""
        aggregate = self.api.post_aggregate({'aggregate': {
            'name': 'gpu', 'availability_zone': 'az1'}})
        for host in ('host3', 'metal'):
            self.api.add_host_to_aggregate(aggregate['id'], host)
        group = self.api.post_server_groups({'name': 'db', 'policy': 'anti-affinity',
                                             'rules': {'max_server_per_host': 2}})
        for number, host in enumerate(('host1', 'host1', 'host2', 'metal', 'host2')):
            self.boot(host, name=f'web{number}')
        grouped = self.api.post_server({
            'server': {**self._build_server(networks='none', host='host1'),
                       'metadata': {'kronos:move': 'never'}},
            'os:scheduler_hints': {'group': group['id']}})
        grouped = self._wait_for_state_change(grouped, 'ACTIVE')
        self._stop_server(grouped)
        self.api.post_server_action(grouped['id'], {'lock': None})
        self.api.api_put(f'/servers/{grouped["id"]}/tags', {'tags': ['web', 'db']})
        self.set_image_properties(grouped['id'], os_distro='rhel')
        services = self.api.get_services(binary='nova-compute')
        disabled = next(s for s in services if s['host'] == 'host2')
        self.api.put_service(disabled['id'], {'status': 'disabled', 'disabled_reason': 'RAM'})

    def set_image_properties(self, uuid, **properties):
        """Set the properties that Nova keeps of the image that a server was booted from."""
        instance = objects.Instance.get_by_uuid(nova_context.get_admin_context(), uuid)
        for key, value in properties.items():
            instance.system_metadata[f'image_{key}'] = value
        instance.save()

    def begin_migration(self, uuid, source, destination):
        """Make a record as Nova keeps it of a migration in progress."""
        objects.Migration(
            nova_context.get_admin_context(), instance_uuid=uuid, migration_type='live-migration',
            status='running', source_compute=source, source_node=source, hidden=False,
            dest_compute=destination, cross_cell_move=False,
            project_id='admin', user_id='admin').create()
        instance = objects.Instance.get_by_uuid(nova_context.get_admin_context(), uuid)
        instance.task_state = 'migrating'
        instance.save()


class TwoWaysTest(QemuTestCase):
    def test_both_ways_say_the_same(self):
        self.populate()
        resized = self.boot('host1', name='resized')
        self._resize_server(resized, self._create_flavor(memory_mb=1024, vcpu=2, disk=2))
        moving = self.boot('host1', name='moving')
        self.begin_migration(moving['id'], 'host1', 'host3')
        inside, outside = InProcessInventory().read(), self.public()
        # Nova's API does not show the id of a server's flavor.
        inside = dataclasses.replace(inside, instances=tuple(dataclasses.replace(
            each, flavor=Flavor(name=each.flavor.name)) for each in inside.instances))
        self.assertIn(('rhel', ('db', 'web')), [
            (each.image.properties.get('os_distro'), each.tags) for each in outside.instances])
        for table, key in (('hosts', 'name'), ('instances', 'uuid'), ('aggregates', 'uuid'),
                           ('server_groups', 'uuid'), ('moves_under_way', 'instance_uuid')):
            rows = [{getattr(row, key): dataclasses.asdict(row)
                     for row in getattr(snapshot, table)} for snapshot in (inside, outside)]
            self.assertNotEqual({}, rows[0])
            self.assertEqual(*rows)
        self.assertEqual({'host1', 'host2', 'host3'}, {host.name for host in outside.hosts})
        self.assertEqual(7, len(outside.instances))
        self.check_used(outside, resized['id'])

    def test_both_ways_know_the_same_flavors(self):
        self._create_flavor(name='pinned', memory_mb=1024, vcpu=3, disk=4, ephemeral=2, swap=1500,
                            extra_spec={'hw:cpu_policy': 'dedicated'})
        inside, outside = (sorted(source.read_flavors(), key=lambda each: each.name)
                           for source in (InProcessInventory(), public_inventory(self)))
        self.assertEqual(inside, outside)
        [pinned] = [each for each in inside if each.name == 'pinned']
        self.assertEqual({'PCPU': 3, 'MEMORY_MB': 1024, 'DISK_GB': 4 + 2 + 2}, pinned.resources)

    def check_used(self, snapshot, resized):
        """Check that a resize that waits for confirmation keeps room on the host that it has
        left."""
        listed = collections.defaultdict(collections.Counter)
        for instance in snapshot.instances:
            listed[instance.host].update(instance.resources)
        for move in snapshot.moves_under_way:  # nothing was claimed for it
            listed[move.destination].update(next(
                i.resources for i in snapshot.instances if i.uuid == move.instance_uuid))
        used = {host.name: collections.Counter(host.used) for host in snapshot.hosts}
        old = {migration['source_compute'] for migration in self.api.api_get(
            f'/os-migrations?instance_uuid={resized}').body['migrations']}
        self.assertEqual(old, {host for host in used if used[host] - listed[host]})
