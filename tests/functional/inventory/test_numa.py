"""NUMA cells as they are read of Nova, and where a server moves by them."""

import numpy as np
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.tests.functional.api import client as api_client
from nova.tests.functional.libvirt import base as libvirt_base

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.model import State
from kronos_nova.plugin.inventory import InProcessInventory
from kronos_nova.room import whole
from tests.functional import base

PINNED = {'hw:cpu_policy': 'dedicated'}


class NumaTestCase(base.KronosServices, libvirt_base.LibvirtMigrationMixin,
                   libvirt_base.ServersTestBase):
    """Hosts of two cells, each with four CPUs to pin."""

    hosts = ('a', 'b', 'c')

    managers = {'nova-conductor': 'kronos_nova.plugin.managers.Conductor',
                'nova-compute': 'kronos_nova.plugin.managers.Compute'}
    microversion = 'latest'
    ADMIN_API = True
    ADDITIONAL_FILTERS = ['NUMATopologyFilter']

    def setUp(self):
        super().setUp()
        self.flags(cpu_dedicated_set='0-7', group='compute')
        for host in self.hosts:
            self.start_compute(hostname=host, host_info=fakelibvirt.HostInfo(
                cpu_nodes=2, cpu_sockets=1, cpu_cores=4, cpu_threads=1))

    def pinned(self):
        """Return {host: CPUs of each of its cells that are pinned}."""
        return {host.name: [cell.pinned_used for cell in host.cells]
                for host in InProcessInventory().read().hosts}


class NumaTest(NumaTestCase):
    def setUp(self):
        super().setUp()
        self.flavors = {
            count: self._create_flavor(vcpu=count, memory_mb=512, disk=1, extra_spec=PINNED)
            for count in (2, 3, 4)}
        self.wide = self._create_flavor(vcpu=4, memory_mb=512, disk=1,
                                        extra_spec={**PINNED, 'hw:numa_nodes': '2'})

    def boot(self, host, flavor):
        return self._create_server(host=host, flavor_id=flavor, networks='none')['id']

    def now(self):
        return State(whole.model_of(InProcessInventory().read(), ConstraintRules()))

    def may_go(self, uuid, host):
        state = self.now()
        return bool(state.delta((np.array([state.problem.vms.index(uuid)]),
                                 np.array([state.problem.hosts.index(host)]))).feasible[0])

    def instance(self, uuid):
        (found,) = [each for each in InProcessInventory().read().instances if each.uuid == uuid]
        return found

    def migrate(self, uuid, host):
        self.server = self.api.get_server(uuid)
        self.src = self.computes[self.server['OS-EXT-SRV-ATTR:host']]
        self.dest = self.computes[host]
        self.api.post_server_action(uuid, {'os-migrateLive': {
            'host': host, 'block_migration': 'auto'}})
        self._wait_for_migration_status(self.server, ['completed'])

    def test_cells_are_read_with_what_is_used_of_them(self):
        small, wide = self.boot('a', self.flavors[3]), self.boot('b', self.wide)

        self.assertEqual({'a': [3, 0], 'b': [2, 2], 'c': [0, 0]}, self.pinned())
        self.assertEqual((0,), self.instance(small).on_cells)
        self.assertEqual((0, 1), self.instance(wide).on_cells)
        self.assertEqual([(2, True, 256)] * 2, [
            (part.cpus, part.pinned, part.memory_mb) for part in self.instance(wide).cells])

    def test_a_server_moves_where_a_cell_has_room(self):
        moved = self.boot('a', self.flavors[2])
        for _each in range(2):
            self.boot('b', self.flavors[3])
        self.boot('c', self.flavors[3])

        self.assertEqual([3, 3], self.pinned()['b'])
        self.assertFalse(self.may_go(moved, 'b'))  # though two CPUs are free
        self.assertRaises(api_client.OpenStackApiException, self.migrate, moved, 'b')
        self.assertTrue(self.may_go(moved, 'c'))
        foretold = self.now()
        vm, host = foretold.problem.vms.index(moved), foretold.problem.hosts.index('c')
        foretold.move(vm, host)
        self.migrate(moved, 'c')

        self.assertEqual([3, 2], self.pinned()['c'])
        self.assertEqual([place.cell for place in foretold.cells.places[vm]],
                         list(self.instance(moved).on_cells))
        self.assertEqual([3.0, 2.0], foretold.cells.used.pinned[host].tolist())
