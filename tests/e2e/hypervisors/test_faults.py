"""What goes wrong in the middle of a copy: guests run exactly once or are cleanly stopped."""


from tests.e2e.hypervisors import faulty


class HypervisorFaultsTest(faulty.FaultyTestCase):
    """QEMU and libvirt end, in the middle of a copy."""

    def test_qemu_ends_at_the_source(self):
        [uuid] = self.boot(1, 'compute1', memory_mb=64)
        move = self.move(uuid)
        self.kill_qemu(self.source, uuid)
        self.assert_failed(self.ended(move), 'has ended at compute1')
        self.assert_stopped(uuid)

    def test_qemu_ends_at_the_destination(self):
        [uuid] = self.boot(1, 'compute1', memory_mb=64)
        move = self.move(uuid)
        self.kill_qemu(self.destination, uuid)
        self.assert_failed(self.ended(move), 'runs on at compute1')
        self.assert_runs_on(uuid)

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
        self.assert_failed(move, 'annot allocate memory')
        self.assert_runs_on(uuid)

    def test_the_disk_of_the_destination_is_full(self):
        [uuid] = self.boot(1, 'compute1')
        with self.without_disk(self.destination):
            [move] = self.carry_out([faulty.planned(uuid)])
        self.assert_failed(move, 'No space left on device')
        self.assert_runs_on(uuid)
