"""Usage of Nova's resource tracker as an amount of a claim, and back."""

import types

import testtools
from nova import objects

from kronos_nova.plugin import claim_usage


def cells():
    return objects.InstanceNUMATopology(cells=[objects.InstanceNUMACell(
        id=0, cpuset=set(), pcpuset={0, 1}, memory=512, pagesize=None, cpu_pinning_raw={'0': 4},
        cpu_policy='dedicated', cpu_thread_policy=None, cpuset_reserved=None)])


class AmountTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        objects.register_all()

    def test_swap_counts_as_disk_in_whole_gib(self):
        amount = claim_usage.to_amount(
            {'vcpus': 2, 'memory_mb': 512, 'root_gb': 10, 'ephemeral_gb': 5, 'swap': 2047}, [])
        self.assertEqual((2, 512, 16), (amount.vcpus, amount.memory_mb, amount.disk_gb))

    def test_an_instance_without_vcpus_and_disk_has_none_of_them(self):
        amount = claim_usage.to_amount({'memory_mb': 512}, [])
        self.assertEqual((0, 0, (), None), (
            amount.vcpus, amount.disk_gb, amount.pci, amount.numa_topology))

    def test_devices_are_named_by_their_addresses_in_order(self):
        devices = [types.SimpleNamespace(address=address)
                   for address in ('0000:82:00.1', '0000:81:00.1', '0000:82:00.1')]
        self.assertEqual(('0000:81:00.1', '0000:82:00.1'),
                         claim_usage.to_amount({'memory_mb': 1}, devices).pci)

    def test_a_topology_is_the_same_after_there_and_back(self):
        amount = claim_usage.to_amount({'memory_mb': 512, 'numa_topology': cells()}, [])
        usage = claim_usage.to_usage(amount)
        cell, = usage['numa_topology'].cells
        self.assertEqual(({0, 1}, 512, {0: 4}), (cell.pcpuset, cell.memory, cell.cpu_pinning))
        self.assertEqual(amount, claim_usage.to_amount(usage, []))

    def test_the_text_of_a_topology_does_not_depend_on_which_fields_changed(self):
        changed, unchanged = cells(), cells()
        unchanged.obj_reset_changes(recursive=True)
        self.assertEqual(*(claim_usage.to_amount({'memory_mb': 512, 'numa_topology': each}, [])
                           for each in (changed, unchanged)))
        self.assertEqual({'cells'}, changed.obj_what_changed())

    def test_a_node_that_has_not_reported_yet_has_no_figures(self):
        self.assertEqual((None, 512, None),
                         claim_usage.used(objects.ComputeNode(memory_mb_used=512)))

    def test_without_a_pci_tracker_there_are_no_devices(self):
        self.assertEqual([], claim_usage.devices_of(None, 'i'))


class WayBackTest(testtools.TestCase):
    """A resize on one host counts with the new flavor until it is reverted."""

    def is_way_back(self, source, target, flavor=2):
        migration = types.SimpleNamespace(
            source_compute=source, source_node=source, dest_compute=target, dest_node=target,
            old_instance_type_id=1)
        return claim_usage.is_way_back(migration, {'instance_type_id': flavor}, 'a', 'a')

    def test_the_source_counts_what_the_instance_had(self):
        self.assertTrue(self.is_way_back('a', 'b'))

    def test_the_destination_counts_what_the_instance_will_have(self):
        self.assertFalse(self.is_way_back('b', 'a'))

    def test_on_one_host_the_flavor_of_the_instance_decides(self):
        self.assertEqual([False, True],
                         [self.is_way_back('a', 'a', flavor) for flavor in (1, 2)])
