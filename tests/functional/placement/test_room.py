"""Room for servers on hosts whose disks are in a pool that the hosts share."""

from oslo_utils import uuidutils

from kronos_nova.objects.shape import Shape
from kronos_nova.placement import room_allocations
from kronos_nova.placement.room_allocations import RoomAllocations
from tests.functional.placement import base

SMALL = Shape(name='small', vcpus=1, memory_mb=512, disk_gb=10)
OWN = {'VCPU': 1, 'MEMORY_MB': 512}


class RoomOnSharedPoolTest(base.PlacementTestCase):
    def setUp(self):
        super().setUp()
        aggregate = uuidutils.generate_uuid()
        self.pools = [self.provider({'DISK_GB': 20}, aggregates=[aggregate],
                                    traits=['MISC_SHARES_VIA_AGGREGATE']) for _ in range(2)]
        self.hosts = [self.provider({'VCPU': 8, 'MEMORY_MB': 8192}, aggregates=[aggregate])
                      for _ in range(2)]

    def allocate(self, *hosts):
        consumers = {uuidutils.generate_uuid(): host for host in hosts}
        RoomAllocations(self.client).allocate(SMALL, consumers)
        return consumers

    def test_the_disk_of_the_room_is_held_in_the_pool(self):
        for uuid, host in self.allocate(self.hosts[0]).items():
            held = self.held(uuid)
            self.assertEqual(OWN, held.pop(host))
            self.assertEqual([{'DISK_GB': 10}], [*held.values()])

    def test_the_rooms_of_several_hosts_do_not_fill_one_pool_twice(self):
        self.allocate(*self.hosts, *self.hosts)
        self.assertEqual([{'DISK_GB': 20}] * 2, [self.usage(pool) for pool in self.pools])

    def test_where_the_pools_are_full_nothing_is_held(self):
        self.assertRaises(room_allocations.NoCandidate, self.allocate, *self.hosts, *self.hosts,
                          self.hosts[0])
        self.assertEqual([{'DISK_GB': 0}] * 2, [self.usage(pool) for pool in self.pools])
