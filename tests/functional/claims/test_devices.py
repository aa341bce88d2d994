"""PCI devices and NUMA cells in claims."""

import json
import sqlite3

import fixtures
from nova import objects
from nova.virt import fake
from oslo_serialization import jsonutils

from tests.functional.claims import base

VENDOR, PRODUCT = '8086', '1528'
ADDRESSES = ('0000:81:00.0', '0000:82:00.0', '0000:83:00.0')


def with_devices(driver, nodename):
    resources = super(fake.MediumFakeDriver, driver).get_available_resource(nodename)
    resources['pci_passthrough_devices'] = jsonutils.dumps([
        {'address': address, 'vendor_id': VENDOR, 'product_id': PRODUCT, 'status': 'available',
         'dev_type': 'type-PCI', 'parent_addr': None, 'numa_node': 0, 'label': 'label'}
        for address in ADDRESSES])
    return resources


class DevicesTestCase(base.ClaimsTestCase):
    compute_driver = 'fake.SameHostColdMigrateDriver'
    hosts = ('host1',)

    def setUp(self):
        match = {'vendor_id': VENDOR, 'product_id': PRODUCT}
        self.flags(group='pci', device_spec=[json.dumps(match)], alias=[
            json.dumps({**match, 'name': 'nic', 'device_type': 'type-PCI'})])
        self.useFixture(fixtures.MonkeyPatch(
            'nova.virt.fake.MediumFakeDriver.get_available_resource', with_devices))
        super().setUp()
        self.flags(allow_resize_to_same_host=True)
        self.one, self.two = (
            self._create_flavor(extra_spec={'pci_passthrough:alias': f'nic:{number}'}, disk=1)
            for number in (1, 2))


class DevicesTest(DevicesTestCase):
    def devices(self):
        """{resize_target: addresses} of the one server."""
        with sqlite3.connect(f'{self.state}/claim.sqlite') as connection:
            return {target: json.loads(pci) for target, pci in connection.execute(
                'SELECT resize_target, pci FROM claims')}

    def held(self):
        tracker = self.tracker('host1').pci_tracker
        return sorted(device.address for devices in (*tracker.claims.values(),
                                                     *tracker.allocations.values())
                      for device in devices)

    def test_a_claim_names_the_devices_and_a_resize_here_both_sides(self):
        server = self.boot('host1', flavor_id=self.one)
        self.assertEqual({0: self.held()}, self.devices())
        self.assertEqual(1, len(self.held()))

        self._resize_server(server, self.two)

        sides = self.devices()
        self.assertEqual([1, 2], [len(sides[target]) for target in (0, 1)])
        self.assertEqual(self.held(), sorted(sides[0] + sides[1]))
        self.assertSurvivesRestart()
        self.assertEqual(sides, self.devices())

        self._confirm_resize(self.api.get_server(server['id']))
        self.audit()
        self.assertEqual({0: sides[1]}, self.devices())
        self.assertEqual(self.held(), sides[1])
        self._delete_server(server)
        self.assertEqual({}, self.devices())


class DevicesInPlacementTest(DevicesTestCase):
    def setUp(self):
        self.flags(report_in_placement=True, group='pci')
        self.flags(pci_in_placement=True, group='filter_scheduler')
        super().setUp()

    def held_devices(self, consumer):
        return sum(amount for held in self.held_by(consumer).values()
                   for name, amount in held.items() if name.startswith('CUSTOM_PCI_'))

    def test_a_resize_here_that_waits_to_be_confirmed_survives_a_restart(self):
        server = self.boot('host1', flavor_id=self.one)
        self._resize_server(server, self.two)
        migration = self.api.api_get(
            f'/os-migrations?instance_uuid={server["id"]}').body['migrations'][0]['uuid']

        self.restart('host1')

        self.assertEqual((2, 1), (self.held_devices(server['id']), self.held_devices(migration)))
        self._confirm_resize(self.api.get_server(server['id']))
        self.assertEqual((2, 0), (self.held_devices(server['id']), self.held_devices(migration)))
        self.restart('host1')
        self.assertEqual(2, self.held_devices(server['id']))


def with_cells(driver, nodename):
    resources = super(fake.MediumFakeDriver, driver).get_available_resource(nodename)
    cells = [objects.NUMACell(
        id=number, cpuset={2 * number, 2 * number + 1}, pcpuset={2 * number, 2 * number + 1},
        memory=4096, cpu_usage=0, memory_usage=0, pinned_cpus=set(), socket=number,
        siblings=[{2 * number}, {2 * number + 1}],
        mempages=[objects.NUMAPagesTopology(size_kb=4, total=1048576, used=0)])
        for number in range(2)]
    resources['numa_topology'] = objects.NUMATopology(cells=cells)._to_json()
    return resources


class CellsTest(base.ClaimsTestCase):
    hosts = ('host1',)

    def setUp(self):
        self.useFixture(fixtures.MonkeyPatch(
            'nova.virt.fake.MediumFakeDriver.get_available_resource', with_cells))
        super().setUp()

    def cells(self, tracker=None):
        """[(vCPUs, MiB)] used of each NUMA cell of the host."""
        node = (tracker or self.tracker('host1')).compute_nodes['host1']
        topology = objects.NUMATopology.obj_from_db_obj(node.numa_topology)
        return [(cell.cpu_usage, cell.memory_usage) for cell in topology.cells]

    def test_what_is_used_of_each_cell_is_known_at_once_after_a_restart(self):
        flavor = self._create_flavor(vcpu=2, memory_mb=1024, disk=1,
                                     extra_spec={'hw:numa_nodes': '1'})
        one, two = (self.boot('host1', flavor_id=flavor) for _ in range(2))
        self.assertEqual([(2, 1024)] * 2, self.cells())

        tracker, calls = self.reborn('host1')
        self.assertNotIn('InstanceList.get_by_host_and_node', calls)
        self.assertEqual([(2, 1024)] * 2, self.cells(tracker))

        self.restart('host1')
        self._delete_server(one)
        self._delete_server(two)
        self.assertEqual([(0, 0)] * 2, self.cells())
        self.audit()
        self.assertEqual([(0, 0)] * 2, self.cells())
