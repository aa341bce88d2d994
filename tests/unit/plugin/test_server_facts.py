"""Facts about instances from the texts of Nova's records."""

import json
import logging

import fixtures
import testtools

from kronos_nova.inventory import numa
from kronos_nova.plugin import server_facts


class TextsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))

    def has_fixed_device(self, *requests):
        return server_facts._has_fixed_device(requests)

    def test_a_device_of_the_flavor_is_fixed_unless_it_may_be_migrated_live(self):
        self.assertTrue(self.has_fixed_device({'alias_name': 'gpu', 'spec': [{'vendor_id': '1'}]}))
        self.assertTrue(self.has_fixed_device({'alias_name': 'gpu', 'spec': None}))
        self.assertFalse(self.has_fixed_device(
            {'alias_name': 'gpu', 'spec': [{'live_migratable': 'true'}]}))

    def test_every_spec_of_a_device_must_permit_live_migration(self):
        self.assertTrue(self.has_fixed_device({'alias_name': 'gpu', 'spec': [
            {'live_migratable': 'true'}, {'live_migratable': 'false'}]}))

    def test_devices_of_ports_have_no_alias_and_are_not_fixed(self):
        self.assertFalse(self.has_fixed_device({'alias_name': None, 'spec': [{}]}))
        self.assertFalse(server_facts._has_fixed_device(None))

    def test_the_named_model_of_processors_is_read(self):
        self.assertEqual('Skylake-Server', server_facts._cpu_model('i', json.dumps(
            {'nova_object.data': {'model': 'Skylake-Server'}})))
        self.assertEqual(['', ''], [server_facts._cpu_model('i', text) for text in (
            None, json.dumps({'nova_object.data': {'model': None}}))])
        self.assertEqual('', self.log.output)

    def test_a_damaged_record_counts_as_none_and_is_logged_with_the_instance(self):
        self.assertEqual(('', False), (server_facts._cpu_model('i7', '{'),
                                       server_facts._has_fixed_device(
                                           server_facts._parsed('i7', '[{', 'PCI requests'))))
        self.assertEqual(numa.NO_TOPOLOGY, server_facts._topology('i7', '{"nova_object.data": 3}'))
        for what in ('CPU model', 'PCI requests', 'NUMA topology'):
            self.assertIn(f"Instance i7: Nova's record of its {what} cannot be read",
                          self.log.output)
