"""PCI devices of servers, as Nova's records and flavors have them."""

import json

import testtools

from kronos_nova import boundary
from kronos_nova.inventory import devices
from kronos_nova.objects.numa import Device

SPEC = [{'vendor_id': '8086', 'product_id': '154c', 'dev_type': 'type-VF'}]


def request(**more):
    return {'alias_name': 'nic', 'count': 2, 'spec': SPEC, 'numa_policy': 'required',
            'request_id': 'r', 'is_new': False, 'requester_id': None} | more


class RequestedTest(testtools.TestCase):
    def test_devices_of_an_alias_are_read_with_what_matches_it(self):
        found = devices.requested([request()])
        self.assertEqual((Device(alias='nic', count=2, policy='required'),), found.devices)
        [(alias, spec)] = found.specs
        self.assertEqual(('nic', SPEC), (alias, json.loads(spec)))

    def test_devices_of_ports_and_of_placement_alone_are_left_out(self):
        for other in (request(alias_name=None), request(spec=[{'resource_class': 'CUSTOM_GPU'}]),
                      request(spec=[])):
            self.assertEqual(devices.NOTHING, devices.requested([other]))
        self.assertEqual(devices.NOTHING, devices.requested(None))

    def test_an_unknown_policy_is_that_of_nova_by_default(self):
        for policy in (None, 'new'):
            [device] = devices.requested([request(numa_policy=policy)]).devices
            self.assertEqual('legacy', device.policy)

    def test_what_nova_would_not_write_is_refused(self):
        for wrong in (['text'], [request(count=-1)], [request(count=None)],
                      [request(alias_name=1)]):
            self.assertRaises(boundary.OutOfBounds, devices.requested, wrong)


class FlavorTest(testtools.TestCase):
    def devices(self, text, **more):
        return [(each.alias, each.count, each.policy) for each in devices.of_flavor(
            {devices.ALIAS: text, **more}, {'nic', 'gpu'})]

    def test_the_devices_of_known_aliases(self):
        self.assertEqual([('nic', 2, 'legacy'), ('gpu', 1, 'legacy')],
                         self.devices('nic:2, gpu:1'))
        self.assertEqual([('gpu', 1, 'legacy')], self.devices('other:2,gpu:1'))
        self.assertEqual([], self.devices('gpu'))
        self.assertEqual((), devices.of_flavor({}, {'nic'}))

    def test_with_the_policy_of_the_flavor(self):
        self.assertEqual([('nic', 1, 'preferred')],
                         self.devices('nic:1', **{devices.POLICY: 'preferred'}))
