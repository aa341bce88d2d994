"""The hypervisor of the cloud in a box: KVM where it works, not where it only seems to."""

import pathlib

import fixtures
import testtools

from tests.e2e.box.hypervisors import kvm

BEATS, SILENT, REFUSED = (('sh', '-c', script) for script in (
    'echo beat 1 50; exec sleep 60', 'exec sleep 60', 'exit 1'))


class VirtTypeTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.device = self.folder / 'kvm'
        self.device.touch()

    def chosen(self, qemu):
        return kvm.virt_type(self.folder, qemu, self.device, seconds=0.5)

    def test_a_guest_that_is_heard(self):
        self.assertEqual('kvm', self.chosen(BEATS))

    def test_a_guest_that_hangs(self):
        self.assertEqual('qemu', self.chosen(SILENT))

    def test_a_guest_that_does_not_start(self):
        self.assertEqual('qemu', self.chosen(REFUSED))

    def test_a_machine_without_kvm(self):
        self.device.unlink()
        self.assertEqual('qemu', self.chosen(BEATS))

    def test_it_is_asked_once_until_the_machine_is_started_again(self):
        self.assertEqual(['kvm', 'kvm'], [self.chosen(BEATS), self.chosen(SILENT)])
        (self.folder / 'virt-type').write_text('another-boot kvm')
        self.assertEqual('qemu', self.chosen(SILENT))
