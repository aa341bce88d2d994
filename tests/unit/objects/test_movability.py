"""Ways in which Nova can move a server, by what the server has and by the age of Nova's
services."""

import ddt
import testtools

from kronos_nova.objects import movability
from kronos_nova.objects.movability import Devices
from kronos_nova.objects.movability import Where
from kronos_nova.objects.snapshot import COLD
from kronos_nova.objects.snapshot import IMMOVABLE
from kronos_nova.objects.snapshot import MOVES_LIVE
from kronos_nova.objects.snapshot import Movability

TPM = {'hw:tpm_version': '2.0'}
HOST_TPM = TPM | {'hw:tpm_secret_security': 'host'}
NEW, OLD = Where(oldest_service=74), Where(oldest_service=39)


@ddt.ddt
class MovabilityTest(testtools.TestCase):
    @ddt.data(
        (IMMOVABLE, movability.IN_A_FLAVOR, {'extra_specs': {'accel:device_profile': 'fpga'}}),
        (IMMOVABLE, movability.AT_A_PORT,
         {'devices': Devices(port_types=frozenset({'accelerator-direct'}))}),
        (IMMOVABLE, movability.NEVER_LAUNCHED, {'has_launched': False}),
        (IMMOVABLE, movability.SHARES_FOR_GOOD,
         {'devices': Devices(has_share=True), 'where': Where(oldest_service=73)}),
        (COLD, movability.SHARES, {'devices': Devices(has_share=True), 'where': NEW}),
        (IMMOVABLE, movability.USERS_SECRET, {'extra_specs': TPM}),
        (IMMOVABLE, movability.USERS_SECRET, {'image': {'hw_tpm_version': '1.2'}}),
        (COLD, movability.NO_HOST_SECRET,
         {'extra_specs': TPM | {'hw:tpm_secret_security': 'deployment'}}),
        (COLD, movability.VTPM_AND_OLD_COMPUTE,
         {'extra_specs': HOST_TPM, 'where': Where(oldest_service=71)}),
        (COLD, movability.ENCRYPTED, {'extra_specs': {'hw:mem_encryption': 'true'}}),
        (COLD, movability.ENCRYPTED, {'image': {'hw_mem_encryption': 'True'}}),
        (COLD, movability.VDPA_AND_OLD_COMPUTE,
         {'devices': Devices(port_types=frozenset({'vdpa'})), 'where': Where(oldest_service=62)}),
        (COLD, movability.POWER, {'power_state': 4}),
        (COLD, movability.NUMA_AND_OLD_COMPUTE, {'devices': Devices(has_numa=True), 'where': OLD}),
        (COLD, movability.VPMEM_AND_OLD_COMPUTE,
         {'resources': {'CUSTOM_PMEM_NAMESPACE_4GB': 1}, 'where': OLD}),
        (COLD, movability.DEVICE, {'devices': Devices(has_fixed_device=True)}),
        (COLD, movability.OLD_QEMU,
         {'resources': {'VGPU': 1}, 'where': Where(hypervisor_version=8000005)}))
    @ddt.unpack
    def test_novas_reason_against_a_live_migration(self, can, why, server):
        self.assertEqual(Movability(can=can, why=why), self.movability(**server))
        self.assertIn(why, movability.REASONS)

    @ddt.data(
        {}, {'extra_specs': HOST_TPM}, {'extra_specs': HOST_TPM, 'where': NEW},
        {'extra_specs': {'hw:mem_encryption': 'false'}}, {'power_state': 1}, {'power_state': 3},
        {'devices': Devices(port_types=frozenset({'vdpa'}), has_numa=True), 'where': NEW},
        {'devices': Devices(port_types=frozenset({'vdpa'}), has_numa=True)},
        {'resources': {'CUSTOM_PMEM_NAMESPACE_4GB': 1}, 'where': NEW}, {'resources': {'VGPU': 1}},
        {'resources': {'VGPU': 1}, 'where': Where(hypervisor_version=9000000)},
        {'resources': {'VCPU': 1}, 'where': Where(hypervisor_version=6000000)})
    def test_the_others_are_migrated_live_as_far_as_is_known(self, server):
        self.assertIs(MOVES_LIVE, self.movability(**server))

    @staticmethod
    def movability(**server):
        return movability.movability(**{'extra_specs': {}, 'image': {}, 'resources': {}} | server)
