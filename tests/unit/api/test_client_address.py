"""The address of a client: nothing that the client says itself is taken for it."""

import ddt
import testtools

from kronos_nova.api import client_address

PEER = {'REMOTE_ADDR': '192.0.2.9'}


@ddt.ddt
class ClientAddressTest(testtools.TestCase):
    @ddt.data(
        ({}, '192.0.2.9'),
        ({'HTTP_X_FORWARDED_FOR': '198.51.100.7'}, '198.51.100.7'),
        ({'HTTP_X_FORWARDED_FOR': '10.0.0.1, 10.0.0.2, 198.51.100.7'}, '198.51.100.7'),
        ({'HTTP_X_FORWARDED_FOR': '198.51.100.7:4711'}, '198.51.100.7'),
        ({'HTTP_FORWARDED': 'for=10.0.0.1, for="[2001:db8::7]:4711";proto=https'}, '2001:db8::7'),
        ({'HTTP_FORWARDED': 'for=10.0.0.1', 'HTTP_X_FORWARDED_FOR': '198.51.100.7'},
         '198.51.100.7'),
        ({'HTTP_X_FORWARDED_FOR': '::ffff:198.51.100.7'}, '198.51.100.7'),
        ({'HTTP_X_FORWARDED_FOR': ''}, '192.0.2.9'))
    @ddt.unpack
    def test_it_is_what_the_nearest_proxy_says(self, headers, wanted):
        # As oslo.middleware has overwritten it.
        first = headers.get('HTTP_X_FORWARDED_FOR') or PEER['REMOTE_ADDR']
        self.assertEqual(wanted, client_address.address_of(
            {**PEER, **headers, 'REMOTE_ADDR': first}, trusts_proxy=True))

    def test_without_a_proxy_no_header_is_believed(self):
        self.assertEqual('192.0.2.9', client_address.address_of(
            {**PEER, 'HTTP_X_FORWARDED_FOR': '10.0.0.1', 'HTTP_FORWARDED': 'for=10.0.0.2'},
            trusts_proxy=False))

    def test_what_is_no_address_can_stand_in_a_log(self):
        found = client_address.address_of(
            {**PEER, 'HTTP_X_FORWARDED_FOR': '\x1b[2J' + 'x' * 5000}, trusts_proxy=True)
        self.assertTrue(found.isprintable())
        self.assertLess(len(found), 200)
        self.assertEqual('unknown', client_address.address_of({}, trusts_proxy=True))

    def test_addresses_of_one_ipv6_network_are_one(self):
        self.assertEqual(client_address.network_of('2001:db8:1:2::1'),
                         client_address.network_of('2001:db8:1:2:ffff::9'))
        self.assertNotEqual(client_address.network_of('2001:db8:1:2::1'),
                            client_address.network_of('2001:db8:1:3::1'))
        self.assertEqual('192.0.2.9', client_address.network_of('192.0.2.9'))
