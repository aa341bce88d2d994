"""A ``live_migratable`` PCI device whose ``device_spec`` names a physical network too.

Nova keeps such devices out of placement, so nova-compute alone knows whether one is free.
"""

import nova.conf
from nova import context
from nova import objects
from oslo_serialization import jsonutils

from tests.functional.mixed import kinds
from tests.functional.regressions import base


class DeviceOnNetwork(kinds.Pci):
    """A device on a physical network, asked for by an alias of a flavor."""

    def configure(self, test):
        super().configure(test)
        (spec,) = nova.conf.CONF.pci.device_spec
        test.flags(group='pci', report_in_placement=False, device_spec=[
            jsonutils.dumps(jsonutils.loads(spec) | {'physical_network': 'physnet1'})])
        test.flags(group='filter_scheduler', pci_in_placement=False)

    def held(self, host, disk):
        return kinds.LocalDisk.held(self, host, disk)


class DeviceOnNetworkTest(base.RegressionTestCase):
    kind = DeviceOnNetwork()

    def devices(self):
        """Return {host: number of devices of servers}."""
        return {host: len([device for device in objects.PciDeviceList.get_by_compute_node(
            context.get_admin_context(), self.computes[host].manager.rt.compute_nodes[host].id)
            if device.instance_uuid]) for host in self.hosts}

    def test_the_server_moves_with_its_device(self):
        server = self.boot_server()
        self.assertEqual({'host1': 1, 'host2': 0}, self.devices())
        self.assert_holds_alone(server, *self.live_migration(server)[0])
        self.assertEqual({'host1': 0, 'host2': 1}, self.devices())

    def test_a_migration_that_is_rolled_back_frees_the_device_of_the_destination(self):
        # Nova's fake hypervisor has it clean up nothing, libvirt does.
        self.stub_out('nova.compute.manager.ComputeManager._live_migration_cleanup_flags',
                      lambda *_args, **_kwargs: (True, True))
        server = self.boot_server()
        self.assert_holds_alone(server, *self.live_migration_that_is_rolled_back(server)[0])
        self._wait_for_assert(
            lambda: self.assertEqual({'host1': 1, 'host2': 0}, self.devices()))

    def test_no_server_moves_where_no_device_is_free(self):
        server = self.boot_server()
        for _device in range(3):
            self._create_server(networks='none', flavor_id=self.flavors[1], host='host2')
        self.migrate(server)
        self._wait_for_migration_status(server, ['error'])
        self.server_on(server, 'host1')
        self.assertEqual({'host1': 1, 'host2': 3}, self.devices())
        self.assert_holds(server['id'], self.kind.held('host1', 1))
