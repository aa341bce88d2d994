"""Hosts that share the folder of the instances: moves, and what goes wrong with them."""

from kronos_nova.objects import move as moves
from tests.e2e.box.processes import wait_for
from tests.e2e.executor import base as executor_base
from tests.e2e.hypervisors import faulty


class SharedFolderTest(faulty.EndsOfQemu, faulty.FaultyTestCase):
    storage = 'shared'

    def test_a_guest_is_moved_there_and_back(self):
        [uuid] = self.boot(1, 'compute1', memory_mb=32, dirty_mb_s=1)
        self.assert_well_done(self.carry_out([faulty.planned(uuid)]))
        self.assert_runs_on(uuid, 'compute2')
        self.assert_well_done(self.carry_out([
            executor_base.planned(uuid, 'compute2', 'compute1', 1)]))
        self.assert_runs_on(uuid)
        self.assertEqual({0}, self.copied_disks(uuid))

    def copied_disks(self, uuid):
        """Bytes of each migration as libvirt reported them to Nova."""
        return {row['disk_processed'] or 0 for row in self.cloud.database.query(
            'nova_cell1', 'SELECT disk_processed FROM migrations WHERE instance_uuid = %s', uuid)}

    def test_the_disk_is_full(self):
        [uuid] = self.boot(1, 'compute1')
        with self.full_storage():
            [move] = self.carry_out([faulty.planned(uuid)])
        self.assert_failed(move, 'No space left on device', 'PreFlightError')
        self.assert_runs_on(uuid)

    def test_the_disk_is_full_in_the_middle_of_a_copy(self):
        """A move that copies no disk needs none, and goes on."""
        [uuid] = self.boot(1, 'compute1', memory_mb=64)
        move = self.move(uuid)
        with self.full_storage():
            self.assertEqual(moves.COMPLETED, self.ended(move).state)
            wait_for(lambda: self.cloud.client.host(uuid) == 'compute2', 60, 'it is not there')
        self.assert_runs_on(uuid, 'compute2')
