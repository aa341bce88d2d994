"""The servers of a host, in-process and by the public API."""

from oslo_utils.fixture import uuidsentinel

from kronos_nova.executor.openstack_hosts import OpenStackHostApi
from kronos_nova.plugin import host_api
from tests.functional import base
from tests.functional.inventory.public import public_connection


class UnsettledTest(base.NovaTestCase):
    def test_what_was_migrated_cold_has_its_source_until_it_is_confirmed(self):
        server = self.boot('host1')
        self._migrate_server(server)
        self._wait_for_state_change(server, 'VERIFY_RESIZE')
        both = [host_api.InProcessHostApi(), OpenStackHostApi(public_connection(self))]
        for api in both:
            [here], [there] = api.servers_on('host1'), api.servers_on('host2')
            self.assertEqual((server['id'], 'VERIFY_RESIZE', True),
                             (here.uuid, here.status, here.is_unsettled))
            self.assertEqual((server['id'], False), (there.uuid, there.is_unsettled))
        self.api.post_server_action(server['id'], {'confirmResize': None})
        self._wait_for_state_change(server, 'ACTIVE')
        for api in both:
            self.assertEqual(([], 1), (api.servers_on('host1'), len(api.servers_on('host2'))))


class StoppingTest(base.NovaTestCase):
    def test_a_server_is_stopped_and_started_both_ways(self):
        server = self.boot('host1')
        for api in (host_api.InProcessHostApi(), OpenStackHostApi(public_connection(self))):
            api.stop(server['id'])
            self._wait_for_state_change(server, 'SHUTOFF')
            api.stop(server['id'])  # it is off already, which is no error
            [found] = api.servers_on('host1')
            self.assertEqual((server['id'], 'SHUTOFF', False),
                             (found.uuid, found.status, found.is_locked))
            self.assertEqual(found, api.server(server['id']))
            self.assertIsNone(api.server(uuidsentinel.gone))
            api.start(server['id'])
            self._wait_for_state_change(server, 'ACTIVE')
            api.start(server['id'])
        self.api.post_server_action(server['id'], {'lock': None})
        for api in (host_api.InProcessHostApi(), OpenStackHostApi(public_connection(self))):
            self.assertTrue(api.servers_on('host1')[0].is_locked)

    def test_a_server_that_was_deleted_is_neither_stopped_nor_started(self):
        server = self.boot('host1')
        self._delete_server(server)
        for api in (host_api.InProcessHostApi(), OpenStackHostApi(public_connection(self))):
            api.stop(server['id'])
            api.start(server['id'])


class RemovedHostTest(base.NovaTestCase):
    def test_a_host_that_was_removed_is_neither_disabled_nor_enabled(self):
        self.computes['host2'].stop()
        [service] = self.api.get_services(host='host2', binary='nova-compute')
        self.api.api_delete(f'/os-services/{service["id"]}')
        for api in (host_api.InProcessHostApi(), OpenStackHostApi(public_connection(self))):
            api.disable('host2', 'kronos drain')
            api.enable('host2')
            self.assertIsNone(api.service('host2'))
