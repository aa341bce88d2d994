"""The same cloud read inside Nova and through its public API."""

import dataclasses

import fixtures
import openstack
from keystoneauth1 import session
from keystoneauth1 import token_endpoint
from nova.virt import fake
from openstack.config import cloud_region

from kronos_nova.inventory.openstack import OpenStackInventory
from kronos_nova.plugin.inventory import InProcessInventory
from tests.functional import base

ADMIN = {'X-Auth-User': 'admin', 'X-Auth-Project-Id': 'admin', 'X-Roles': 'reader,member,admin'}


class QemuDriver(fake.MediumFakeDriver):
    """The fake driver under the name that libvirt's hypervisors have."""

    def get_available_resource(self, nodename):
        kind = 'ironic' if nodename == 'metal' else 'QEMU'
        return {**super().get_available_resource(nodename), 'hypervisor_type': kind}


class TwoWaysTest(base.NovaTestCase):
    hosts = ('host1', 'host2', 'host3', 'metal')

    def setUp(self):
        self.useFixture(fixtures.MonkeyPatch('nova.virt.fake.MediumFakeDriver', QemuDriver))
        self.flags(max_limit=2, group='api')  # lists come in pages
        super().setUp()

    def public(self):
        nova = self.api.base_url
        plain = session.Session(token_endpoint.Token(nova, 'admin'), additional_headers=ADMIN)
        region = cloud_region.from_session(
            plain, compute_endpoint_override=nova,
            placement_endpoint_override=self.placement_fixture.endpoint)
        return OpenStackInventory(openstack.connection.Connection(config=region)).read()

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
        services = self.api.get_services(binary='nova-compute')
        disabled = next(s for s in services if s['host'] == 'host2')
        self.api.put_service(disabled['id'], {'status': 'disabled', 'disabled_reason': 'RAM'})

    def test_both_ways_say_the_same(self):
        self.populate()
        inside, outside = InProcessInventory().read(), self.public()
        for table, key in (('hosts', 'name'), ('instances', 'uuid'), ('aggregates', 'uuid'),
                           ('server_groups', 'uuid')):
            rows = [{getattr(row, key): dataclasses.asdict(row)
                     for row in getattr(snapshot, table)} for snapshot in (inside, outside)]
            self.assertNotEqual({}, rows[0])
            self.assertEqual(*rows)
        self.assertEqual({'host1', 'host2', 'host3'}, {host.name for host in outside.hosts})
        self.assertEqual(5, len(outside.instances))
