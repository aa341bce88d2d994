"""PCI devices as they are read of Nova, and where servers with devices fit."""

from nova.tests.fixtures import libvirt as fakelibvirt
from nova.tests.functional.libvirt import base as libvirt_base
from oslo_serialization import jsonutils

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.plugin.inventory import InProcessInventory
from kronos_nova.room import failover
from kronos_nova.room.slots import SlotCounter
from tests.functional import base

IDS = {'vendor_id': fakelibvirt.PCI_VEND_ID, 'product_id': fakelibvirt.PCI_PROD_ID}


class DevicesTest(base.KronosServices, libvirt_base.ServersTestBase):
    """Three hosts: a has two devices, b has one, c has none."""

    managers = {'nova-conductor': 'kronos_nova.plugin.managers.Conductor',
                'nova-compute': 'kronos_nova.plugin.managers.Compute'}
    microversion = 'latest'
    ADMIN_API = True
    ADDITIONAL_FILTERS = ['NUMATopologyFilter', 'PciPassthroughFilter']

    def setUp(self):
        super().setUp()
        self.flags(group='pci', device_spec=[jsonutils.dumps(IDS)], alias=[
            jsonutils.dumps({**IDS, 'name': 'nic'}),
            jsonutils.dumps({'vendor_id': 'ffff', 'product_id': 'ffff', 'name': 'none'})])
        for host, count in (('a', 2), ('b', 1), ('c', 0)):
            self.start_compute(hostname=host, pci_info=fakelibvirt.HostPCIDevicesInfo(
                num_pci=count, numa_node=0))
        self.flavor = self._create_flavor(vcpu=1, memory_mb=512, disk=1, extra_spec={
            'pci_passthrough:alias': 'nic:1', 'hw:pci_numa_affinity_policy': 'preferred'})

    def boot(self, host):
        return self._create_server(host=host, flavor_id=self.flavor, networks='none')['id']

    def pools(self):
        """Return {(host, alias): (devices, those in use, NUMA cell)}."""
        return {(host.name, pool.alias): (pool.total, pool.used, pool.cell)
                for host in self.read().hosts for pool in host.pools}

    def read(self):
        self.inventory = InProcessInventory()
        return self.inventory.read()

    def test_pools_are_read_with_what_is_used_of_them(self):
        server = self.boot('a')
        pools = self.pools()

        self.assertEqual((2, 1, 0), pools['a', 'nic'])
        self.assertEqual((1, 0, 0), pools['b', 'nic'])
        self.assertEqual((0, 0, None), pools['c', 'nic'])
        self.assertEqual({(0, 0, None)}, {pools[host, 'none'] for host in 'abc'})
        [found] = [each for each in self.read().instances if each.uuid == server]
        self.assertEqual([('nic', 1, 'preferred')], [
            (each.alias, each.count, each.policy) for each in found.devices])

    def test_slots_of_a_flavor_are_limited_by_its_devices(self):
        self.boot('a')
        snapshot = self.read()
        [shape] = [each for each in self.inventory.read_flavors() if each.id == self.flavor]
        slots = SlotCounter(snapshot, ConstraintRules(), [shape]).slots(0)

        self.assertEqual(({'a': 1, 'b': 1, 'c': 0}, 2, 'device nic'),
                         (slots.by_host, slots.total, slots.short))

    def test_servers_of_a_lost_host_need_devices_elsewhere(self):
        for _each in range(2):
            self.boot('a')
        judge = failover.failover_of(self.read(), ConstraintRules())
        found = judge.judge([judge.index('a')])

        self.assertEqual(failover.DOES_NOT, found.verdict)
        self.assertIn('2 device nic together, and 2 hosts have 1 free', ' '.join(
            found.left.values()))

    def test_what_is_not_known_is_not_counted(self):
        """Hosts may have any number of devices of an alias that is not known."""
        self.flags(group='pci', alias=[])
        snapshot = self.read()
        self.assertEqual({None}, {host.pools for host in snapshot.hosts})
        [shape] = [each for each in self.inventory.read_flavors() if each.id == self.flavor]
        self.assertEqual((), shape.devices)
