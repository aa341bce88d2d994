"""Dry runs by placement for pools of disks, and for amounts on several providers of a host."""

from oslo_utils import uuidutils

from kronos_nova.objects.plan import PlannedMove
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Instance
from kronos_nova.objects.snapshot import Service
from kronos_nova.placement.allocations import AllocationSet
from kronos_nova.placement.allocations import off
from kronos_nova.placement.allocations import on
from kronos_nova.placement.dry_run import PlacementDryRun
from kronos_nova.placement.ownership import totals
from tests.functional.placement import base

MOVE = PlannedMove(order=1, phase='spread', instance_uuid='vm', source='a', destination='b',
                   memory_mb=512, combined_after=0.0, reason='')


class PoolDryRunTest(base.PlacementTestCase):
    """The server has its disk on its host; the destination has none of its own."""

    def setUp(self):
        super().setUp()
        aggregate = uuidutils.generate_uuid()
        self.provider({'DISK_GB': 20}, aggregates=[aggregate],
                      traits=['MISC_SHARES_VIA_AGGREGATE'])
        root = self.provider({'VCPU': 8, 'MEMORY_MB': 8192}, aggregates=[aggregate])
        self.destination = Host(name='b', uuid=root, inventory={},
                                service=Service(state='up', status='enabled'))

    def refused(self, disk_gb):
        return PlacementDryRun(self.client)(MOVE, Instance(
            uuid='vm', name='vm', display_name='vm', host='a', project_id='p', status='ACTIVE',
            vcpus=1, memory_mb=512, disk_gb=disk_gb,
            resources={'VCPU': 1, 'MEMORY_MB': 512, 'DISK_GB': disk_gb}), self.destination).refused

    def test_the_pool_of_the_destination_counts(self):
        self.assertEqual('', self.refused(disk_gb=20))

    def test_a_pool_that_is_full_is_no_room(self):
        self.assertIn('no candidate', self.refused(disk_gb=21))


class DryRunTestCase(base.PlacementTestCase):
    def refused(self, root, allocations, shared=()):
        """Return why the server with ``allocations`` may not move to the host ``root``.

        :param shared: uuids of the providers that are no host's own
        """
        held = self.consumer(allocations)
        self.client.post(AllocationSet.from_consumers(held))
        own, pools = off(allocations, shared), on(allocations, shared)
        return PlacementDryRun(self.client)(MOVE, Instance(
            uuid=held.uuid, name='vm', display_name='vm', host='a', project_id='p',
            status='ACTIVE', vcpus=1, memory_mb=512, disk_gb=20, resources=totals(own),
            shared_resources=totals(pools)), Host(
                name='b', uuid=root, inventory={},
                service=Service(state='up', status='enabled'))).refused


class LeftPoolDryRunTest(DryRunTestCase):
    """The server has its disk in a pool, which the destination does not use."""

    def setUp(self):
        super().setUp()
        aggregate = uuidutils.generate_uuid()
        self.pool = self.provider({'DISK_GB': 100}, aggregates=[aggregate],
                                  traits=['MISC_SHARES_VIA_AGGREGATE'])
        self.near = self.provider({'VCPU': 8}, aggregates=[aggregate])
        source = self.provider({'VCPU': 8}, aggregates=[aggregate])
        self.allocations = {source: {'VCPU': 1}, self.pool: {'DISK_GB': 20}}

    def test_its_disk_has_to_fit_on_the_host(self):
        self.assertEqual('', self.refused(self.host(disk_gb=20), self.allocations, {self.pool}))
        self.assertIn('no candidate for 1 VCPU, 20 DISK_GB', self.refused(
            self.host(disk_gb=19), self.allocations, {self.pool}))

    def test_its_disk_stays_where_the_destination_uses_the_pool(self):
        self.assertEqual('', self.refused(self.near, self.allocations, {self.pool}))


class SeveralProvidersDryRunTest(DryRunTestCase):
    """The server has two ports, each with bandwidth of a network device of its own."""

    def cards(self, *kbits):
        root = self.provider({'VCPU': 8})
        return root, [self.provider({'NET_BW_EGR_KILOBIT_PER_SEC': total}, parent=root)
                      for total in kbits]

    def refused_on(self, *kbits):
        source, cards = self.cards(1000, 1000)
        return self.refused(self.cards(*kbits)[0], {
            source: {'VCPU': 1}, **{card: {'NET_BW_EGR_KILOBIT_PER_SEC': 800} for card in cards}})

    def test_no_device_needs_the_bandwidth_of_both(self):
        self.assertEqual('', self.refused_on(1000, 1000))
        self.assertEqual('', self.refused_on(1600))

    def test_each_port_needs_its_own(self):
        self.assertIn('no candidate', self.refused_on(1000, 700))
