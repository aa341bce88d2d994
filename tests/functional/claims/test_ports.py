"""Room for instances with ports of their own: direct ones whose bandwidth placement hands out."""

from unittest import mock

import testtools
from nova import context
from nova import objects

from kronos_nova.plugin import two_phase


class PortsTest(testtools.TestCase):
    def tested(self, *specs):
        """The specifications with which a destination is tested."""
        requests = [objects.InstancePCIRequest(
            request_id=f'r{number}', count=1, spec=[spec], requester_id=f'port{number}',
            numa_policy=None, is_new=False) for number, spec in enumerate(specs)]
        instance = objects.Instance(
            context.get_admin_context(), uuid='vm1', system_metadata={}, image_ref='',
            flavor=objects.Flavor(extra_specs={}), pci_requests=objects.InstancePCIRequests(
                instance_uuid='vm1', requests=requests))
        with mock.patch.object(two_phase.nova_claims, 'MoveClaim') as claim:
            two_phase.TwoPhaseClaims(mock.MagicMock())._test_move(None, instance, None, 'node')
        self.assertEqual(list(specs), [request.spec[0] for request in requests])
        return [request.spec[0] for request in claim.call_args.args[7].requests]

    def test_the_network_function_of_the_source_is_not_asked_of_the_destination(self):
        self.assertEqual(
            [{'physical_network': 'physnet1'}],
            self.tested({'physical_network': 'physnet1', 'parent_ifname': 'host1-ens2'}))

    def test_nor_are_its_providers(self):
        self.assertEqual([{'physical_network': 'physnet1'}], self.tested(
            {'physical_network': 'physnet1', 'rp_uuids': '5f1e3f6a-0000-4000-8000-000000000001'}))

    def test_what_a_port_needs_anywhere_is(self):
        spec = {'physical_network': 'physnet1', 'remote_managed': 'False'}
        self.assertEqual([spec], self.tested(spec))
