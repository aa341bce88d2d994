"""Allocations that keep room, over a placement that remembers."""

from urllib import parse

import ddt
import testtools

from kronos_nova.objects.shape import Shape
from kronos_nova.placement import room_allocations
from kronos_nova.placement.allocations import Consumer
from kronos_nova.placement.room_allocations import RoomAllocations

HOST = {'VCPU': 2, 'MEMORY_MB': 512}
GPU = Shape(name='gpu', vcpus=2, memory_mb=512, extra_specs={'resources:VGPU': '1'})


class Placement:
    """One host with VGPUs on two providers below it: one on the first, two on the second."""

    def __init__(self):
        self.held = {}

    def replace(self, uuids, change):
        for each in change({uuid: Consumer(uuid=uuid, allocations=self.held.get(uuid, {}))
                            for uuid in uuids}).consumers:
            self.held[each.uuid] = each.allocations

    def candidates(self, query):
        return [{'allocations': {'host': {'resources': HOST}, gpu: {'resources': {'VGPU': 1}}}}
                for gpu in ('gpu0', 'gpu1')]

    def inventories(self, provider):
        totals = {'host': {'VCPU': 4, 'MEMORY_MB': 4096}, 'gpu0': {'VGPU': 1}, 'gpu1': {'VGPU': 2}}
        return {name: {'total': total, 'reserved': 0, 'allocation_ratio': 4.0 if name == 'VCPU'
                       else 1.0} for name, total in totals[provider].items()}

    def held_on(self, provider):
        return {uuid: held[provider] for uuid, held in self.held.items() if provider in held}


@ddt.ddt
class RoomAllocationsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.placement = Placement()
        self.allocations = RoomAllocations(self.placement)

    def test_each_server_is_where_its_devices_are_left(self):
        self.allocations.allocate(GPU, {'c1': 'host', 'c2': 'host', 'c3': 'host'})
        self.assertEqual(['gpu0', 'gpu1', 'gpu1'],
                         [max({*held} - {'host'}) for held in self.placement.held.values()])

    def test_nothing_is_taken_where_not_all_find_room(self):
        self.assertRaises(room_allocations.NoCandidate, self.allocations.allocate, GPU,
                          {f'c{number}': 'host' for number in range(4)})
        self.assertEqual({}, self.placement.held)

    def test_what_is_held_already_is_not_taken_again(self):
        self.allocations.allocate(GPU, {'c1': 'host'})
        before = dict(self.placement.held)
        self.allocations.allocate(GPU, {'c1': 'host', 'c2': 'host', 'c3': 'host'})
        self.assertEqual(before['c1'], self.placement.held['c1'])
        self.assertEqual(3, len(self.placement.held))

    @ddt.data(
        ({}, {'resources': 'MEMORY_MB:512,VCPU:2', 'in_tree': 'r'}),
        ({'resources:VGPU': '1', 'trait:A': 'required', 'trait:B': 'forbidden'},
         {'resources': 'MEMORY_MB:512,VCPU:2,VGPU:1', 'in_tree': 'r', 'required': 'A,!B'}),
        ({'resources1:VGPU': '1', 'trait1:A': 'required'},
         {'resources': 'MEMORY_MB:512,VCPU:2', 'in_tree': 'r', 'resources1': 'VGPU:1',
          'required1': 'A', 'in_tree1': 'r'}),
        ({'resources1:VGPU': '1', 'resources2:VGPU': '1', 'group_policy': 'isolate'},
         {'resources': 'MEMORY_MB:512,VCPU:2', 'in_tree': 'r', 'resources1': 'VGPU:1',
          'in_tree1': 'r', 'resources2': 'VGPU:1', 'in_tree2': 'r', 'group_policy': 'isolate'}))
    @ddt.unpack
    def test_placement_is_asked_for_what_a_server_asks(self, specs, expected):
        asked = dict(parse.parse_qsl(room_allocations.query(
            Shape(name='f', vcpus=2, memory_mb=512, extra_specs=specs), 'r')))
        self.assertEqual('100', asked.pop('limit'))
        self.assertEqual(expected, asked)
