"""The RequestSpec of an instance, as its own records say."""

import types

import testtools
from nova import objects
from nova.objects import fields

from kronos_nova.plugin import candidates

OWN, WANTED = 1, 2
"""Ids of the flavor that an instance has, and of one that it was to get."""


class RequestSpecTest(testtools.TestCase):
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
