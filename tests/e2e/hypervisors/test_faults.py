"""Faults in the middle of a copy: guests run exactly once or are cleanly stopped."""

from kronos_nova.objects import move as moves
from tests.e2e.box.processes import wait_for
from tests.e2e.hypervisors import faulty


class HypervisorFaultsTest(faulty.EndsOfQemu, faulty.FaultyTestCase):
    """QEMU and libvirt end, in the middle of a copy."""

    def test_libvirt_is_restarted_at_the_source(self):
        [uuid] = self.boot(1, 'compute1', memory_mb=64)
        move = self.move(uuid)
        self.restart_libvirtd(self.source)
        self.assert_failed(self.ended(move), 'runs on at compute1')
        self.assert_runs_on(uuid)

    def test_libvirt_is_restarted_at_the_destination(self):
        [uuid] = self.boot(1, 'compute1', memory_mb=64)
        move = self.move(uuid)
        self.restart_libvirtd(self.destination)
        self.assert_failed(self.ended(move), 'runs on at compute1')
        self.assert_runs_on(uuid)


class HostFaultsTest(faulty.FaultyTestCase):
    """The link is cut; memory and disk of the destination are used up."""

    def test_the_link_is_cut_and_comes_back(self):
        [uuid] = self.boot(1, 'compute1', memory_mb=64)
        move = self.move(uuid)
        self.cut_link(self.destination)
        ended = self.ended(move)
        self.plug_in(self.destination)
        self.assert_failed(ended, 'runs on at compute1')
        self.assert_runs_on(uuid)
        # And the next move takes it there.
        self.assert_well_done(self.carry_out([faulty.planned(uuid)]))

    def test_the_destination_has_no_memory_left(self):
        [uuid] = self.boot(1, 'compute1')
        with self.without_memory(self.destination):
            [move] = self.carry_out([faulty.planned(uuid)])
        # In words that depend on what QEMU allocates at the limit.
        self.assert_failed(move, 'allocate')
        self.assert_runs_on(uuid)

    def test_the_disk_of_the_destination_is_full(self):
        [uuid] = self.boot(1, 'compute1')
        with self.without_disk(self.destination):
            [move] = self.carry_out([faulty.planned(uuid)])
        self.assert_failed(move, 'No space left on device')
        self.assert_runs_on(uuid)


class RestlessGuestTest(faulty.FaultyTestCase):
    """A guest that writes to its memory faster than that is copied."""

    executor = {'max_retries': 0, 'migration_timeout': 60}

    def test_an_operator_aborts_it(self):
        [uuid] = self.boot(1, 'compute1', **faulty.RESTLESS)
        move = self.move(uuid)
        self.cloud.manage('move', 'abort', move.uuid)
        self.assertEqual(moves.ABANDONED, self.ended(move).state)
        self.assert_runs_on(uuid)

    def test_it_is_aborted_in_time_and_left_alone(self):
        [uuid] = self.boot(1, 'compute1', **faulty.RESTLESS)
        self.assert_failed(self.ended(self.move(uuid)), 'aborted', 'MigrationTimeout')
        self.assert_runs_on(uuid)

    def test_an_operator_completes_it_by_force(self):
        [uuid] = self.boot(1, 'compute1', **faulty.RESTLESS)
        move = self.move(uuid)
        self.force(uuid)
        self.assertEqual(moves.COMPLETED, self.ended(move).state)
        self.assert_runs_on(uuid, 'compute2')

    def test_qemu_ends_at_the_destination_while_it_is_completed_by_force(self):
        [uuid] = self.boot(1, 'compute1', **faulty.RESTLESS)
        move = self.move(uuid)
        self.force(uuid)
        wait_for(lambda: 'paused' in self.source.virsh('domstate', uuid), 20, 'it is not paused')
        self.kill_qemu(self.destination, uuid)
        self.assert_failed(self.ended(move), 'runs on at compute1')
        self.assert_runs_on(uuid)


class PostCopyTest(faulty.FaultyTestCase):
    """Clouds whose Nova may let the guest run at the destination before its memory is there."""

    nova_conf = {**faulty.FaultyTestCase.nova_conf, 'libvirt': {
        'live_migration_bandwidth': faulty.BANDWIDTH_MIB, 'live_migration_permit_post_copy': True}}

    def test_an_operator_completes_it_by_force(self):
        [uuid] = self.boot(1, 'compute1', **faulty.RESTLESS)
        move = self.move(uuid)
        self.force(uuid)
        wait_for(lambda: self.migration_status(uuid) == 'running (post-copy)', 30,
                 'its memory is not fetched after it', interval=0.05)
        self.assertEqual(moves.COMPLETED, self.ended(move).state)
        self.assert_runs_on(uuid, 'compute2')
