"""A hypervisor reserves the whole host in placement while a server is on it, as Ironic does.

The server holds more than its host has room for, from its boot to its end, and the host has room
for no other server until the hypervisor says so.
"""

from nova import context

from tests.functional.mixed import fakes_drivers
from tests.functional.regressions import base


class ReservedHostTest(base.RegressionTestCase):
    def setUp(self):
        self.reserves = False
        real = fakes_drivers.Steered.update_provider_tree

        def update(driver, provider_tree, nodename, allocations=None):
            real(driver, provider_tree, nodename, allocations)
            if self.reserves and nodename == 'host1':
                inventory = provider_tree.data(nodename).inventory
                provider_tree.update_inventory(nodename, {
                    name: values | {'reserved': values['total']}
                    for name, values in inventory.items()})

        self.stub_out('tests.functional.mixed.fakes_drivers.Steered.update_provider_tree', update)
        super().setUp()
        self.server = self.boot_server()
        self.reserves = True
        self.audit()

    def audit(self):
        self.computes['host1'].manager.update_available_resource(context.get_admin_context())

    def hosts_with_room(self):
        """Return the names of the hosts that placement offers."""
        summaries = self.placement.get(
            '/allocation_candidates?resources=VCPU:1,MEMORY_MB:512', version='1.38',
        ).body['provider_summaries']
        return {each['name'] for each in self._get_all_providers() if each['uuid'] in summaries}

    def test_what_the_server_holds_is_no_finding(self):
        self.assertEqual({'host2'}, self.hosts_with_room())
        self.reconcile()
        self.restart_source()
        self.reconcile()
        self.assert_holds_alone(self.server, 'host1')
        self.assertEqual({'host2'}, self.hosts_with_room())

    def test_a_deleted_server_makes_no_room_before_the_hypervisor_does(self):
        self._delete_server(self.server)
        self.restart_source()
        self.assertEqual({'host2'}, self.hosts_with_room())
        self.reserves = False
        self.audit()
        self.assertEqual({'host1', 'host2'}, self.hosts_with_room())

    def test_the_server_can_leave(self):
        self.assert_holds_alone(self.server, *self.live_migration(self.server)[0])
