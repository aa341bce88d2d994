"""Eligibility of an instance for moves, by its status and by the way in which Nova can move it."""

import ddt
import testtools

from kronos_nova.objects import eligibility
from kronos_nova.objects.eligibility import LIVE_STATUSES
from kronos_nova.objects.eligibility import TO_BALANCE
from kronos_nova.objects.eligibility import TO_EVACUATE
from kronos_nova.objects.snapshot import COLD
from kronos_nova.objects.snapshot import IMMOVABLE
from kronos_nova.objects.snapshot import LIVE
from kronos_nova.objects.snapshot import Instance
from kronos_nova.objects.snapshot import Movability

SEV = Movability(can=COLD, why='the memory is encrypted')
FPGA = Movability(can=IMMOVABLE, why='an accelerator')
FREE = Movability(can=LIVE)


def instance(status, live):
    return Instance(uuid='v', name='v', display_name='v', host='a', project_id='p', status=status,
                    vcpus=1, memory_mb=1, disk_gb=1, live=live)


@ddt.ddt
class MovabilityTest(testtools.TestCase):
    @ddt.data(
        ('ACTIVE', FREE, LIVE, ''), ('PAUSED', FREE, LIVE, ''), ('ACTIVE', SEV, COLD, SEV.why),
        # Nova migrates nothing cold that is paused.
        ('PAUSED', SEV, IMMOVABLE, SEV.why),
        ('SHUTOFF', FREE, COLD, 'its status is SHUTOFF'),
        ('SHUTOFF', SEV, COLD, 'its status is SHUTOFF'), ('SHUTOFF', FPGA, IMMOVABLE, FPGA.why),
        ('SUSPENDED', FREE, IMMOVABLE, 'its status is SUSPENDED'),
        ('RESCUE', SEV, IMMOVABLE, SEV.why), ('ACTIVE', FPGA, IMMOVABLE, FPGA.why))
    @ddt.unpack
    def test_the_status_narrows_what_nova_can_do(self, status, live, can, why):
        self.assertEqual(Movability(can=can, why=why),
                         eligibility.movability(instance(status, live)))

    @ddt.data(('ACTIVE', FREE, None, None), ('ACTIVE', SEV, 'refused', 'refused'),
              ('PAUSED', SEV, 'refused', 'refused'), ('ACTIVE', FPGA, 'refused', 'refused'),
              ('SHUTOFF', FREE, 'not_active', None), ('SHUTOFF', SEV, 'not_active', None),
              ('SHUTOFF', FPGA, 'not_active', 'refused'))
    @ddt.unpack
    def test_only_what_stopped_is_moved_cold(self, status, live, balancing, emptying):
        server = instance(status, live)
        self.assertEqual(balancing, eligibility.obstacle(
            server, eligibility.OptOut(), TO_BALANCE))
        self.assertEqual(emptying, eligibility.obstacle(
            server, eligibility.OptOut(), TO_EVACUATE, (*LIVE_STATUSES, 'SHUTOFF')))

    def test_novas_reason_is_named_where_it_is_the_reason(self):
        server = instance('ACTIVE', SEV)
        self.assertEqual('refused: the memory is encrypted',
                         eligibility.in_words(server, 'refused'))
        self.assertEqual('cooldown', eligibility.in_words(server, 'cooldown'))
        self.assertEqual('refused', eligibility.in_words(instance('ACTIVE', FREE), 'refused'))
