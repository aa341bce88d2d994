"""A server with a NUMA topology is migrated into a cell that is over its limit then."""

import fixtures
from nova.tests.fixtures import libvirt as fakelibvirt

from tests.functional.inventory import test_numa

IN_ONE_CELL = {'hw:numa_nodes': '1', 'hw:mem_page_size': 'small'}


class LimitOfCellTest(test_numa.NumaTestCase):
    hosts = ()

    def setUp(self):
        super().setUp()
        self.flags(initial_cpu_allocation_ratio=1.5)
        # Nova would choose the fuller cell.
        self.flags(packing_host_numa_cells_allocation_strategy=True, cpu_dedicated_set='',
                   group='compute')
        self.useFixture(fixtures.MonkeyPatch(
            'nova.compute.manager.ComputeManager._live_migration_cleanup_flags',
            lambda *args, **kwargs: (True, True)))
        for host in ('a', 'b'):
            self.start_compute(hostname=host, host_info=fakelibvirt.HostInfo(
                cpu_nodes=2, cpu_sockets=1, cpu_cores=2, cpu_threads=1))
        self.flavor = self._create_flavor(vcpu=2, memory_mb=512, extra_spec=IN_ONE_CELL)

    def boot(self, host):
        return self._create_server(flavor_id=self.flavor, host=host, networks='none')

    def used(self, host):
        """Return the number of CPUs that servers use of each cell of a host."""
        cells = test_numa.InProcessInventory().read().hosts
        return [cell.cpus_used for each in cells if each.name == host for cell in each.cells]

    def move(self, server, host, status):
        self.server, self.src, self.dest = server, self.computes['a'], self.computes['b']
        self._live_migrate(server, status, host=host)

    def test_the_server_is_given_the_cell_with_room(self):
        self.boot('b')
        moved = self.boot('a')
        self.assertEqual([2, 0], self.used('b'))
        self.move(moved, 'b', 'completed')
        self.assertEqual('b', self.api.get_server(moved['id'])['OS-EXT-SRV-ATTR:host'])
        self.assertEqual([2, 2], self.used('b'))
