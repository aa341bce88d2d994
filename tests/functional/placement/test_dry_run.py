"""Dry runs by placement for destinations whose disks are in a pool."""

from oslo_utils import uuidutils

from kronos_nova.objects.plan import PlannedMove
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Instance
from kronos_nova.objects.snapshot import Service
from kronos_nova.placement.dry_run import PlacementDryRun
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
