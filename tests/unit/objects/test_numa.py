"""NUMA cells of flavors whose extra specs were not validated."""

import tracemalloc

import ddt
import testtools

from kronos_nova.objects import numa
from kronos_nova.objects.shape import Shape

HUGE = '1000000'
MOST_BYTES = 1 << 20
"""Bytes that a look at a flavor of four VCPUs may take: well above what a plain one takes, well
below what a million of numbers do."""


@ddt.ddt
class HostileFlavorTest(testtools.TestCase):
    """Nova checks extra specs for callers of newer microversions only."""

    @ddt.data({'hw:numa_nodes': HUGE}, {'hw:numa_nodes': HUGE, 'hw:numa_cpus.0': '0-3'},
              {'hw:numa_nodes': '0'}, {'hw:numa_nodes': '5'},
              {'hw:numa_nodes': '1', 'hw:numa_cpus.0': f'0-{HUGE}', 'hw:numa_mem.0': '8192'},
              {'hw:numa_nodes': '1', 'hw:numa_cpus.0': '4-7', 'hw:numa_mem.0': '8192'},
              {'hw:numa_nodes': '1', 'hw:numa_cpus.0': '0-3,9', 'hw:numa_mem.0': '8192'})
    def test_cells_that_nova_refuses_are_none(self, extra_specs):
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        self.assertEqual((), numa.of_flavor(4, 8192, extra_specs))
        self.assertLess(tracemalloc.get_traced_memory()[1], MOST_BYTES)

    @ddt.data({'hw:cpu_policy': 'dedicated'}, {'hw:mem_page_size': 'large'})
    def test_more_cpus_than_any_host_has_are_not_counted_one_by_one(self, extra_specs):
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        shape = Shape(name='wide', vcpus=int(HUGE), memory_mb=8192, extra_specs=extra_specs)
        self.assertEqual(int(HUGE), sum(
            shape.resources.get(name, 0) for name in ('VCPU', 'PCPU')))
        self.assertLess(tracemalloc.get_traced_memory()[1], MOST_BYTES)

    @ddt.data({'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': f'0-{HUGE}'},
              {'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': f'^1-{HUGE}'})
    def test_a_mask_is_no_longer_than_the_cpus(self, extra_specs):
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        [cell] = numa.of_flavor(4, 8192, extra_specs)
        self.assertIn(cell.cpus, (1, 4))
        self.assertLess(tracemalloc.get_traced_memory()[1], MOST_BYTES)

    @ddt.data({'hw:numa_nodes': '²'}, {'hw:mem_page_size': '²'}, {'resources:CUSTOM_X': '²'},
              {'hw:mem_page_size': '9' * 5000}, {'hw:numa_nodes': '9' * 5000},
              {'resources:CUSTOM_X': '9' * 5000},
              {'hw:numa_nodes': '1', 'hw:numa_cpus.0': '0-3', 'hw:numa_mem.0': '²'})
    def test_what_is_no_number_is_not_read_as_one(self, extra_specs):
        shape = Shape(name='odd', vcpus=4, memory_mb=8192, extra_specs=extra_specs)
        self.assertEqual({'VCPU': 4, 'MEMORY_MB': 8192}, dict(shape.resources))
