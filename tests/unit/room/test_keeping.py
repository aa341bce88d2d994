"""The keeper of room, by what a flavor asks for."""

import ddt
import testtools

from kronos_nova.objects import hold
from kronos_nova.objects.shape import Shape
from kronos_nova.room import keeping

PINNED = {'hw:cpu_policy': 'dedicated'}


@ddt.ddt
class KeeperTest(testtools.TestCase):
    def keeper_of(self, specs, is_filtered, name='f'):
        return keeping.keeper_of(Shape(name=name, vcpus=2, memory_mb=512, disk_gb=1,
                                       extra_specs=specs), is_filtered)

    @ddt.data(({}, True, hold.FILTER), ({}, False, hold.ALLOCATIONS),
              (PINNED, True, hold.FILTER),
              ({'resources:VGPU': '1'}, True, hold.ALLOCATIONS),
              ({'resources:CUSTOM_LICENCE': '1'}, False, hold.ALLOCATIONS),
              ({'resources_GPU:VGPU': '1'}, True, hold.ALLOCATIONS),
              ({'resources:MEMORY_MB': '256'}, True, hold.FILTER))
    @ddt.unpack
    def test_is_what_can_hold_all_of_it(self, specs, is_filtered, expected):
        keeper = self.keeper_of(specs, is_filtered)
        self.assertEqual((expected, ''), (keeper.name, keeper.why_none))

    @ddt.data((PINNED, False, 'enable KronosFilter in every nova-scheduler'),
              ({**PINNED, 'resources:VGPU': '1'}, True, 'NUMA cells and VGPU'),
              ({**PINNED, 'resources1:VGPU': '1'}, True, 'NUMA cells and resources1:VGPU'),
              ({'pci_passthrough:alias': 'a:1'}, True, 'pci_passthrough:alias'),
              ({'accel:device_profile': 'a'}, False, 'accel:device_profile'))
    @ddt.unpack
    def test_is_nothing_where_something_would_not_be_held(self, specs, is_filtered, why):
        keeper = self.keeper_of(specs, is_filtered)
        self.assertEqual('', keeper.name)
        self.assertIn(why, keeper.why_none)

    def test_a_colon_in_the_name_of_a_flavor_does_not_split_the_problem(self):
        keeper = self.keeper_of({'accel:device_profile': 'a'}, True, name='gpu: large')
        self.assertEqual(('flavor gpu: large asks for devices (accel:device_profile), which cannot '
                          'be kept free', 'ask for a flavor without them'),
                         (keeper.problem, keeper.remedy))
