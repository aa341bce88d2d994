"""The RequestSpec of an instance, as its own records say."""

import json
import types
import urllib.parse

import testtools
from nova import objects
from nova.objects import fields

from kronos_nova.objects.dry_run import Before
from kronos_nova.plugin import candidates

OWN, WANTED = 1, 2
"""Ids of the flavor that an instance has, and of one that it was to get."""
ROOT = '11111111-0000-4000-8000-000000000000'
"""Uuid of a host's provider."""


class CandidatesTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        objects.register_all()
        self.requests = objects.InstancePCIRequests(requests=[])
        self.instance = types.SimpleNamespace(
            flavor=self.flavor(OWN, {'hw:numa_nodes': '2'}), pci_requests=self.requests,
            image_meta=objects.ImageMeta(properties=objects.ImageMetaProps()))

    @staticmethod
    def flavor(number, extra_specs=None):
        return objects.Flavor(id=number, vcpus=2, memory_mb=1024, root_gb=1, ephemeral_gb=0,
                              swap=0, extra_specs=extra_specs or {})


class RequestSpecTest(CandidatesTestCase):
    def spec(self, flavor):
        return objects.RequestSpec(
            flavor=flavor, numa_topology=None,
            pci_requests=objects.InstancePCIRequests(requests=[objects.InstancePCIRequest(
                count=1, alias_name='gpu', spec=[], requester_id=None,
                numa_policy=fields.PCINUMAAffinityPolicy.LEGACY)]))

    def test_the_flavor_of_a_resize_that_failed_is_replaced_and_what_follows_from_it(self):
        spec = candidates.with_flavor_of(self.instance, self.spec(self.flavor(WANTED)))
        self.assertEqual((OWN, 2, self.requests), (
            spec.flavor.id, len(spec.numa_topology.cells), spec.pci_requests))

    def test_what_was_asked_for_with_the_flavor_of_the_instance_is_kept(self):
        spec = candidates.with_flavor_of(self.instance, self.spec(self.flavor(OWN)))
        self.assertEqual((self.instance.flavor, None, 1), (
            spec.flavor, spec.numa_topology, len(spec.pci_requests.requests)))


class FakePlacement:
    """A host without disk, and a sharing provider with disk that it reaches."""

    def __init__(self):
        self.asked = []

    def sharing(self):
        return {'pool', 'elsewhere'}

    def aggregates(self, uuid):
        return {'pool': ['one'], 'elsewhere': ['two']}[uuid]

    def in_tree_and_aggregates(self, root, aggregates):
        return [root] if 'one' in aggregates else []

    def inventories(self, uuid):
        return {'DISK_GB': {'total': 100}}

    def candidates(self, query):
        self.asked.append(dict(urllib.parse.parse_qsl(query)))
        if 'in_tree_KRONOS_SHARED0' not in self.asked[-1]:
            return []
        return [{'allocations': {ROOT: {'resources': {'VCPU': 2}},
                                 'pool': {'resources': {'DISK_GB': 1}}},
                 'mappings': {'': [ROOT], '_KRONOS_SHARED0': ['pool']}}]


class AskedTest(CandidatesTestCase):
    """Requests to placement for one host."""

    def request(self, **specs):
        return objects.RequestSpec(
            flavor=self.flavor(OWN, specs), numa_topology=None, pci_requests=None,
            image=objects.ImageMeta(properties=objects.ImageMetaProps()), is_bfv=False,
            requested_resources=[], request_level_params=objects.RequestLevelParams(),
            requested_destination=None, availability_zone=None)

    def extra(self, spec):
        return {name.removeprefix('resources:'): amount
                for name, amount in spec.flavor.extra_specs.items()}

    def test_disk_of_a_pool_is_asked_for_where_the_host_has_none(self):
        placement = FakePlacement()
        found, = candidates.on_host(placement, self.request(), ROOT, {})
        alone, shared = placement.asked
        self.assertEqual(('DISK_GB:1,MEMORY_MB:1024,VCPU:2', ROOT),
                         (alone['resources'], alone['in_tree']))
        self.assertEqual(
            ('MEMORY_MB:1024,VCPU:2', 'DISK_GB:1', 'pool', 'none'),
            (shared['resources'], shared['resources_KRONOS_SHARED0'],
             shared['in_tree_KRONOS_SHARED0'], shared.get('group_policy', 'none')))
        self.assertEqual({'DISK_GB'}, found.shared_classes)
        self.assertEqual({ROOT: {'resources': {'VCPU': 2}}, 'pool': {'resources': {
            'DISK_GB': 1}}}, json.loads(found.to_request())['allocations'])

    def test_what_is_held_on_a_pool_is_not_asked_for_again(self):
        placement = FakePlacement()
        self.assertEqual([], candidates.on_host(
            placement, self.request(), ROOT, {'pool': {'DISK_GB': 1}}))
        self.assertEqual(['MEMORY_MB:1024,VCPU:2'], [each['resources'] for each in placement.asked])

    def test_without_room_one_processor_is_asked_for(self):
        self.assertEqual({'VCPU': '1', 'MEMORY_MB': '0', 'DISK_GB': '0'},
                         self.extra(candidates.without_room(self.request())))

    def test_dedicated_processors_are_asked_for_whole(self):
        spec = candidates.without_room(self.request(**{'hw:cpu_policy': 'dedicated'}))
        self.assertEqual({'hw:cpu_policy': 'dedicated', 'MEMORY_MB': '0', 'DISK_GB': '0'},
                         self.extra(spec))

    def test_amounts_that_the_flavor_names_itself_are_left(self):
        spec = candidates.without_room(self.request(**{'resources:VCPU': '3'}))
        self.assertEqual('3', spec.flavor.extra_specs['resources:VCPU'])

    def test_room_that_moves_make_is_not_asked_for_yet(self):
        leaving = types.SimpleNamespace(resources={'MEMORY_MB': 1000, 'VCPU': 9})
        spec = self.request()
        changed = candidates.in_later_room(spec, Before(leaving=(leaving,)))
        self.assertEqual({'MEMORY_MB': '24', 'VCPU': '1'}, self.extra(changed))
        self.assertEqual({}, spec.flavor.extra_specs)

    def test_a_move_without_others_before_it_asks_for_all(self):
        spec = self.request()
        self.assertIs(spec, candidates.in_later_room(spec, Before()))

    def test_groups_of_ports_and_devices_that_are_held_are_left_out(self):
        spec = self.request()
        spec.requested_resources = [objects.RequestGroup(resources=resources) for resources in (
            {'NET_BW_EGR_KILOBIT_PER_SEC': 1}, {'NET_BW_EGR_KILOBIT_PER_SEC': 1, 'CUSTOM_X': 1})]
        left, = candidates.without_groups(
            spec, {'port': {'NET_BW_EGR_KILOBIT_PER_SEC': 5}}).requested_resources
        self.assertIn('CUSTOM_X', left.resources)
