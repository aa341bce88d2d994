"""A real placement service on its own, with a few hosts to fill."""

import itertools

import fixtures
import testtools
from oslo_utils import uuidutils

from kronos_nova.placement.allocations import INSTANCE
from kronos_nova.placement.allocations import Consumer
from kronos_nova.placement.client import PlacementClient
from tests.functional import base

PROJECT, USER = 'a-project', 'a-user'


class PlacementTestCase(testtools.TestCase):
    """``service`` is the fixture with the real service, ``client`` is ours."""

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.service = self.useFixture(base.RecordedPlacement())
        self.client = PlacementClient(base.placement_adapter(self.service))
        self._names = itertools.count()

    def call(self, method, path, body=None, expected=200):
        """A plain request at microversion 1.38."""
        response = base.placement_adapter(self.service).request(
            path, method, json=body, raise_exc=False,
            headers={'OpenStack-API-Version': 'placement 1.38'})
        self.assertEqual(expected, response.status_code, response.text)
        return response.json() if response.text else None

    def provider(self, inventory, parent=None, aggregates=(), traits=()):
        """The uuid of a new provider with ``inventory``: {class: total, or a whole inventory}."""
        uuid = uuidutils.generate_uuid()
        self.call('POST', '/resource_providers', {
            'uuid': uuid, 'name': f'provider{next(self._names)}', 'parent_provider_uuid': parent})
        self.set_inventory(uuid, inventory, generation=0)
        self.call('PUT', f'/resource_providers/{uuid}/aggregates', {
            'aggregates': list(aggregates), 'resource_provider_generation': 1})
        self.call('PUT', f'/resource_providers/{uuid}/traits', {
            'traits': list(traits), 'resource_provider_generation': 2})
        return uuid

    def set_inventory(self, provider, inventory, generation=None):
        if generation is None:
            generation = self.call('GET', f'/resource_providers/{provider}')['generation']
        self.call('PUT', f'/resource_providers/{provider}/inventories', {
            'resource_provider_generation': generation,
            'inventories': {name: total if isinstance(total, dict) else {'total': total}
                            for name, total in inventory.items()}})

    def host(self, vcpus=8, memory_mb=8192, disk_gb=100):
        return self.provider({'VCPU': vcpus, 'MEMORY_MB': memory_mb, 'DISK_GB': disk_gb})

    def consumer(self, allocations, uuid=None, kind=INSTANCE):
        """A consumer that placement does not know yet, and what it is to hold."""
        return Consumer(uuid=uuid or uuidutils.generate_uuid(), allocations=allocations,
                        project_id=PROJECT, user_id=USER, consumer_type=kind)

    def held(self, uuid):
        body = self.call('GET', f'/allocations/{uuid}')
        return {provider: held['resources'] for provider, held in body['allocations'].items()}

    def usage(self, provider):
        return self.call('GET', f'/resource_providers/{provider}/usages')['usages']
