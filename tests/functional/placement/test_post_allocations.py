"""``POST /allocations`` line by line, against the real service: each answer and its error."""

import dataclasses

import fixtures
from keystoneauth1 import exceptions as ks_exceptions
from oslo_utils import uuidutils
from placement import microversion

from kronos_nova.placement import errors
from kronos_nova.placement.allocations import INSTANCE
from kronos_nova.placement.allocations import MIGRATION
from kronos_nova.placement.allocations import AllocationSet
from kronos_nova.placement.client import PlacementClient
from kronos_nova.placement.client import retrying
from tests.functional import base as functional_base
from tests.functional.placement import base

VERSIONS = list(microversion.VERSIONS)
SMALL = {'VCPU': 1, 'MEMORY_MB': 512}


class PostAllocationsTest(base.PlacementTestCase):
    def setUp(self):
        super().setUp()
        self.source, self.destination = self.host(), self.host()

    def post(self, *consumers):
        self.client.post(AllocationSet.from_consumers(*consumers))

    def instance_on(self, provider, amounts=SMALL):
        """An instance that holds ``amounts`` there, as placement now has it."""
        new = self.consumer({provider: amounts})
        self.post(new)
        return dataclasses.replace(self.client.consumer(new.uuid), consumer_type=INSTANCE)

    def sent(self):
        """The last body that was posted, and the status it got."""
        return [(body, status) for method, path, body, status in self.service.requests
                if (method, path) == ('POST', '/allocations')][-1]

    def test_204_two_consumers_change_at_once(self):
        instance = self.instance_on(self.source)
        migration = self.consumer({self.source: SMALL}, kind=MIGRATION)

        self.post(migration, instance.holding({self.destination: SMALL}))

        self.assertEqual(({
            migration.uuid: {
                'allocations': {self.source: {'resources': {'VCPU': 1, 'MEMORY_MB': 512}}},
                'consumer_generation': None, 'consumer_type': 'MIGRATION',
                'project_id': 'a-project', 'user_id': 'a-user'},
            instance.uuid: {
                'allocations': {self.destination: {'resources': {'VCPU': 1, 'MEMORY_MB': 512}}},
                'consumer_generation': 1, 'consumer_type': 'INSTANCE',
                'project_id': 'a-project', 'user_id': 'a-user'},
        }, 204), self.sent())
        self.assertEqual({self.source: SMALL}, self.held(migration.uuid))
        self.assertEqual({self.destination: SMALL}, self.held(instance.uuid))

    def test_existing_allocations_are_replaced_not_added_to(self):
        instance = self.instance_on(self.source)

        self.post(instance.holding({self.source: {'VCPU': 2}}))

        self.assertEqual({self.source: {'VCPU': 2}}, self.held(instance.uuid))
        self.assertEqual(0, self.usage(self.source)['MEMORY_MB'])

    def test_empty_allocations_remove_the_consumer(self):
        instance = self.instance_on(self.source)

        self.post(instance.holding({}))

        self.assertEqual({}, self.sent()[0][instance.uuid]['allocations'])
        self.assertIsNone(self.client.consumer(instance.uuid).generation)
        self.assertEqual(0, self.usage(self.source)['VCPU'])

    def test_a_removed_consumer_may_come_again(self):
        instance = self.instance_on(self.source)
        self.post(instance.holding({}))

        self.post(instance.holding({self.source: SMALL}, generation=None))

        self.assertEqual({self.source: SMALL}, self.held(instance.uuid))

    def test_400_a_body_that_breaks_the_schema(self):
        new = self.consumer({self.source: SMALL}, kind='lower case')

        error = self.assertRaises(errors.MalformedRequest, self.post, new)

        self.assertEqual(400, self.sent()[1])
        self.assertIn('lower case', str(error))

    def test_400_an_amount_of_nothing(self):
        self.assertRaises(errors.MalformedRequest, self.post,
                          self.consumer({self.source: {'VCPU': 0}}))

    def test_400_a_provider_name_that_is_no_uuid(self):
        self.assertRaises(errors.MalformedRequest, self.post, self.consumer({'host1': SMALL}))

    def test_400_an_unknown_provider(self):
        unknown = uuidutils.generate_uuid()
        instance = self.instance_on(self.source)

        error = self.assertRaises(errors.UnknownProvider, self.post,
                                  instance.holding({unknown: SMALL}))

        self.assertEqual(400, self.sent()[1])
        self.assertIn(unknown, str(error))
        self.assertEqual({self.source: SMALL}, self.held(instance.uuid))

    def test_400_an_unknown_resource_class(self):
        instance = self.instance_on(self.source)

        error = self.assertRaises(errors.UnknownResourceClass, self.post,
                                  instance.holding({self.source: {'CUSTOM_MAGIC': 1}}))

        self.assertEqual(400, self.sent()[1])
        self.assertIn('CUSTOM_MAGIC', str(error))

    def test_409_capacity_and_none_of_the_set_is_written(self):
        fits, does_not = self.consumer({self.source: SMALL}), self.consumer(
            {self.destination: {'VCPU': 9}})
        self.set_inventory(self.destination, {'VCPU': {'total': 8, 'max_unit': 16}})

        self.assertRaises(errors.InsufficientInventory, self.post, fits, does_not)

        self.assertEqual(409, self.sent()[1])
        self.assertEqual([{}, {}], [self.held(fits.uuid), self.held(does_not.uuid)])

    def test_409_max_unit_is_judged_per_consumer(self):
        self.set_inventory(self.source, {'VCPU': {'total': 16, 'max_unit': 8}})

        self.assertRaises(errors.InsufficientInventory, self.post,
                          self.consumer({self.source: {'VCPU': 9}}))
        self.post(self.consumer({self.source: {'VCPU': 8}}),
                  self.consumer({self.source: {'VCPU': 8}}))

        self.assertEqual(16, self.usage(self.source)['VCPU'])

    def test_409_a_provider_without_inventory_of_that_class(self):
        self.assertRaises(errors.InsufficientInventory, self.post,
                          self.consumer({self.source: {'VGPU': 1}}))

    def test_409_a_consumer_that_was_changed(self):
        stale = self.instance_on(self.source)
        self.post(stale.holding({self.source: {'VCPU': 2}}))

        error = self.assertRaises(errors.ConsumerChanged, self.post,
                                  stale.holding({self.destination: SMALL}))

        self.assertEqual(409, self.sent()[1])
        self.assertIn(stale.uuid, str(error))
        self.assertEqual({self.source: {'VCPU': 2}}, self.held(stale.uuid))

    def test_409_a_new_consumer_that_is_not_new(self):
        instance = self.instance_on(self.source)

        self.assertRaises(errors.ConsumerChanged, self.post,
                          self.consumer({self.destination: SMALL}, uuid=instance.uuid))

    def test_409_a_known_consumer_that_is_gone(self):
        instance = self.instance_on(self.source)
        self.call('DELETE', f'/allocations/{instance.uuid}', expected=204)

        self.assertRaises(errors.ConsumerChanged, self.post,
                          instance.holding({self.destination: SMALL}))

        self.assertEqual({}, self.held(instance.uuid))

    def test_409_a_provider_that_changed_under_placement(self):
        self.service.conf_fixture.config(allocation_conflict_retry_count=0, group='placement')

        self.assertRaises(errors.ProviderChanged, self.post, self.consumer({self.source: SMALL}))

        self.assertEqual(409, self.sent()[1])
        self.assertEqual(0, self.usage(self.source)['VCPU'])

    def test_401_is_no_outage(self):
        self.service.token = ''
        client = PlacementClient(functional_base.placement_adapter(self.service))

        self.assertRaises(errors.PlacementRefused, client.consumer, uuidutils.generate_uuid())

    def test_no_endpoint_is_an_outage(self):
        class Refusing:
            def request(self, *args, **kwargs):
                raise ks_exceptions.ConnectFailure('refused')

        self.assertRaises(errors.PlacementUnavailable,
                          PlacementClient(Refusing()).consumer, uuidutils.generate_uuid())


class ReplaceTest(base.PlacementTestCase):
    """Read, decide, post, and all again after a conflict."""

    def setUp(self):
        super().setUp()
        self.provider_uuid = self.host()
        self.pauses = []
        self.after_pause = lambda: None
        self.client = PlacementClient(functional_base.placement_adapter(self.service),
                                      attempts=self.attempts)
        self.instance = self.consumer({self.provider_uuid: {'VCPU': 1}})
        self.client.post(AllocationSet.from_consumers(self.instance))

    def attempts(self):
        def pause(seconds):
            self.pauses.append(seconds)
            self.after_pause()

        return retrying(attempts=4).copy(sleep=pause)

    def one_more(self, held):
        instance = held[self.instance.uuid]
        vcpus = instance.allocations[self.provider_uuid]['VCPU'] + 1
        return AllocationSet.from_consumers(instance.holding({self.provider_uuid: {'VCPU': vcpus}},
                                                             consumer_type=INSTANCE))

    def test_a_change_between_reading_and_writing_is_not_lost(self):
        interfered = []

        def change(held):
            wanted = self.one_more(held)
            if not interfered:
                interfered.append(self.client.post(wanted))
            return wanted

        self.client.replace([self.instance.uuid], change)

        self.assertEqual({self.provider_uuid: {'VCPU': 3}}, self.held(self.instance.uuid))
        self.assertEqual(1, len(self.pauses))

    def test_a_provider_conflict_is_tried_again_after_growing_random_pauses(self):
        self.service.conf_fixture.config(allocation_conflict_retry_count=0, group='placement')

        def recover():
            if len(self.pauses) == 3:
                self.service.conf_fixture.config(allocation_conflict_retry_count=10,
                                                 group='placement')

        self.after_pause = recover
        self.client.replace([self.instance.uuid], self.one_more)

        self.assertEqual({self.provider_uuid: {'VCPU': 2}}, self.held(self.instance.uuid))
        self.assertEqual(3, len(self.pauses))
        self.assertEqual(3, len(set(self.pauses)))

    def test_exhausted_retries_raise_and_nothing_has_changed(self):
        self.service.conf_fixture.config(allocation_conflict_retry_count=0, group='placement')

        self.assertRaises(errors.ProviderChanged, self.client.replace, [self.instance.uuid],
                          self.one_more)

        self.assertEqual(3, len(self.pauses))
        self.assertEqual({self.provider_uuid: {'VCPU': 1}}, self.held(self.instance.uuid))

    def test_what_will_never_fit_is_not_tried_again(self):
        self.set_inventory(self.provider_uuid, {'VCPU': 1})

        self.assertRaises(errors.InsufficientInventory, self.client.replace, [self.instance.uuid],
                          self.one_more)

        self.assertEqual([], self.pauses)


class MicroversionTest(base.PlacementTestCase):
    def offer(self, highest):
        self.useFixture(fixtures.MonkeyPatch(
            'placement.microversion.VERSIONS', VERSIONS[:VERSIONS.index(highest) + 1]))
        return PlacementClient(functional_base.placement_adapter(self.service))

    def test_consumer_types_are_spoken_where_they_are_offered(self):
        self.assertEqual('1.38', self.client.negotiate())

    def test_generations_without_types_are_spoken_before(self):
        provider = self.host()
        client = self.offer('1.37')

        self.assertEqual('1.37', client.negotiate())
        new = self.consumer({provider: SMALL})
        client.post(AllocationSet.from_consumers(new))

        self.assertEqual({provider: SMALL}, client.consumer(new.uuid).allocations)
        self.assertRaises(errors.ConsumerChanged, client.post, AllocationSet.from_consumers(new))

    def test_an_older_placement_is_refused_with_what_it_lacks(self):
        for highest, feature in (('1.12', 'POST /allocations'), ('1.26', 'consumer generations'),
                                 ('1.35', 'same_subtree')):
            error = self.assertRaises(errors.PlacementTooOld, self.offer(highest).negotiate)

            self.assertIn(highest, str(error))
            self.assertIn(feature, str(error))
