"""``openstack allocation replace`` against the real placement service."""

import json
import types

import fixtures
from osc_lib import exceptions

from kronos_nova.osc import allocation
from kronos_nova.placement import errors
from kronos_nova.placement.allocations import MIGRATION
from kronos_nova.placement.allocations import AllocationSet
from tests.functional.placement import base

SMALL = {'VCPU': 1}


class ReplaceTest(base.PlacementTestCase):
    def setUp(self):
        super().setUp()
        self.source, self.destination = self.host(), self.host()
        self.instance = self.consumer({self.source: SMALL})
        self.client.post(AllocationSet.from_consumers(self.instance))
        self.migration = self.consumer({self.source: SMALL}, kind=MIGRATION)

    def replace(self, body):
        path = self.useFixture(fixtures.TempDir()).join('allocations.json')
        with open(path, 'w') as file:
            file.write(body if isinstance(body, str) else json.dumps(body))
        app = types.SimpleNamespace(client_manager=types.SimpleNamespace(kronos=self.client))
        command = allocation.Replace(app, None)
        _columns, rows = command.take_action(command.get_parser('x').parse_args(['--file', path]))
        return rows

    def split(self, **changes):
        """The body that starts a move, with as little as may be said."""
        return {
            self.instance.uuid: {
                'allocations': {self.destination: {'resources': SMALL}}, **changes},
            self.migration.uuid: {**self.migration.to_body(), 'consumer_generation': None}}

    def test_consumers_change_at_once_and_are_shown(self):
        rows = self.replace(self.split())

        self.assertEqual({self.destination: SMALL}, self.held(self.instance.uuid))
        self.assertEqual({self.source: SMALL}, self.held(self.migration.uuid))
        self.assertEqual([(self.instance.uuid, 'INSTANCE', 'VCPU=1'),
                          (self.migration.uuid, 'MIGRATION', 'VCPU=1')],
                         [(row[1], row[2], row[-1]) for row in rows])

    def test_what_was_replaced_and_cannot_be_shown_is_not_reported_as_a_failure(self):
        real = self.client.post

        def post(wanted):
            real(wanted)
            self.useFixture(fixtures.MockPatchObject(
                self.client, 'consumer', side_effect=errors.PlacementUnavailable(problem='503')))
        with fixtures.MockPatchObject(self.client, 'post', post):
            error = self.assertRaises(exceptions.CommandError, self.replace, self.split())
        self.assertIn('The allocations were replaced, but cannot be shown', str(error))

    def test_a_generation_that_was_given_guards(self):
        error = self.assertRaises(exceptions.CommandError, self.replace,
                                  self.split(consumer_generation=0))

        self.assertIn(self.instance.uuid, str(error))
        self.assertEqual({}, self.held(self.migration.uuid))

    def test_nothing_removes_a_consumer(self):
        rows = self.replace({self.instance.uuid: {'allocations': {}}})

        self.assertEqual({}, self.held(self.instance.uuid))
        self.assertEqual([''], [row[-1] for row in rows])

    def test_a_file_that_is_no_body_is_refused_with_what_it_should_be(self):
        for body in ('{', '[]', {'x': 1}, {self.instance.uuid: {'allocations': {'y': 2}}}):
            error = self.assertRaises(exceptions.CommandError, self.replace, body)
            self.assertTrue('allocations' in str(error), str(error))
