"""Errors of requests to placement, by whether placement may answer later."""

from unittest import mock

import ddt
import testtools
from keystoneauth1 import exceptions as ks_exceptions

from kronos_nova import exception
from kronos_nova.inventory import providers
from kronos_nova.placement import client
from kronos_nova.placement import errors
from kronos_nova.placement.allocations import AllocationSet


class Failing:
    """A keystoneauth adapter that cannot send a request, because it gets no token."""

    def __init__(self, error):
        self.error, self.requests = error, 0

    def request(self, path, method, **_kwargs):
        self.requests += 1
        raise self.error


def attempts():
    return client.retrying(attempts=3, longest_pause=0)


SILENCE = (ks_exceptions.ServiceUnavailable(), ks_exceptions.InternalServerError(),
           ks_exceptions.BadGateway(), ks_exceptions.DiscoveryFailure('no versions found'),
           ks_exceptions.ConnectFailure('refused'))
"""Errors of keystoneauth while keystone is down, or answers with 5xx."""
REFUSALS = ks_exceptions.Unauthorized(), ks_exceptions.EndpointNotFound()
"""Errors of keystoneauth that only an operator can remove."""


@ddt.ddt
class KeystoneTest(testtools.TestCase):
    def client(self, error):
        self.adapter = Failing(error)
        found = client.PlacementClient(self.adapter, attempts)
        found._version = client.PLACEMENT_ALLOCATIONS
        return found

    @ddt.data(*SILENCE)
    def test_while_keystone_is_silent_the_request_is_repeated(self, error):
        self.assertRaises(errors.PlacementUnavailable, self.client(error).replace, ['vm'],
                          lambda held: None)
        self.assertEqual(3, self.adapter.requests)

    @ddt.data(*REFUSALS)
    def test_what_keystone_refuses_is_not_repeated(self, error):
        self.assertRaises(errors.AccessRefused, self.client(error).replace, ['vm'],
                          lambda held: None)
        self.assertEqual(1, self.adapter.requests)

    @ddt.data((401, errors.AccessRefused), (403, errors.AccessRefused),
              (406, errors.AccessRefused), (407, errors.AccessRefused), (404, errors.NotFound),
              (400, errors.PlacementRefused))
    @ddt.unpack
    def test_a_refusal_of_every_request_is_told_from_that_of_one(self, status, kind):
        self.answer(status, b'{"errors": [{"detail": "no"}]}')
        error = self.assertRaises(errors.PlacementRefused, self.found.name, 'root')
        self.assertIs(kind, type(error))

    @ddt.data(b'<h1>Not Found</h1>', b'{"message": "no such page"}')
    def test_a_404_of_another_program_concerns_every_request(self, content):
        """The endpoint in the catalogue is wrong, so no provider was deleted."""
        self.answer(404, content)
        self.assertRaises(errors.AccessRefused, self.found.name, 'root')
        self.found._version = None
        self.assertRaises(errors.AccessRefused, self.found.negotiate)

    @ddt.data(400, 405, 409, 418)
    def test_a_page_of_another_program_concerns_every_request(self, status):
        self.answer(status, b'<h1>no</h1>')
        self.assertRaises(errors.AccessRefused, self.found.name, 'root')
        self.assertRaises(errors.AccessRefused, self.found.post, AllocationSet(()))

    @ddt.data(('consumer', 'vm'), ('tree', 'root'), ('providers',), ('roots_in', ['aggregate']),
              ('resource_classes',), ('sharing',), ('candidates', ''), ('negotiate',),
              ('in_tree_and_aggregates', 'root', ['aggregate']), ('post', AllocationSet(())))
    def test_a_404_where_placement_has_no_object_concerns_every_request(self, call):
        """The endpoint in the catalogue has a wrong path, and placement itself answers there."""
        self.answer(404, b'{"errors": [{"detail": "The resource could not be found."}]}')
        name, *arguments = call
        self.assertRaises(errors.AccessRefused, getattr(self.found, name), *arguments)

    @ddt.data('inventories', 'traits', 'name', 'held_on', 'aggregates')
    def test_a_404_of_one_provider_means_that_it_was_deleted(self, name):
        self.answer(404, b'{"errors": [{"detail": "No resource provider with uuid root found"}]}')
        self.assertRaises(errors.NotFound, getattr(self.found, name), 'root')

    @ddt.data(413, 414, 431)
    def test_a_request_that_is_too_long_for_a_proxy_is_refused_alone(self, status):
        self.answer(status, b'<h1>no</h1>')
        self.assertRaises(errors.PlacementRefused, self.found.name, 'root')
        error = self.assertRaises(errors.PlacementRefused, self.found.post, AllocationSet(()))
        self.assertNotIsInstance(error, errors.OF_EVERY_REQUEST)

    @ddt.data((200, b''), (200, b'<h1>welcome</h1>'), (302, b''))
    @ddt.unpack
    def test_allocations_are_changed_by_the_status_of_placement_alone(self, status, content):
        """A proxy answers in place of placement, which does not get the request."""
        self.answer(status, content)
        self.assertRaises(errors.AnswerNotUnderstood, self.found.post, AllocationSet(()))

    @ddt.data(408, 429)
    def test_a_proxy_that_is_too_busy_is_an_outage(self, status):
        self.answer(status, b'')
        self.assertRaises(errors.PlacementUnavailable, self.found.name, 'root')

    def answer(self, status, content):
        self.found = self.client(None)
        self.adapter.request = lambda *_args, **_kwargs: mock.Mock(
            status_code=status, content=content, text='no')

    @ddt.data(('consumer', 'vm'), ('tree', 'root'), ('providers',), ('inventories', 'root'),
              ('traits', 'root'), ('roots_in', ['aggregate']), ('name', 'root'),
              ('held_on', 'root'), ('resource_classes',), ('sharing',), ('aggregates', 'root'),
              ('in_tree_and_aggregates', 'root', ['aggregate']), ('candidates', ''))
    def test_an_answer_of_another_form_is_an_error_of_placement(self, call):
        """A proxy may answer in place of placement, with JSON of its own."""
        name, *arguments = call
        found = self.client(None)
        self.adapter.request = lambda *_args, **_kwargs: mock.Mock(
            status_code=200, content=b'{"message": "welcome"}')
        self.assertRaises(errors.AnswerNotUnderstood, getattr(found, name), *arguments)

    def test_the_role_of_the_user_is_not_blamed_for_the_silence_of_keystone(self):
        said = str(self.assertRaises(
            exception.InventoryError, providers.ProviderCache().read,
            self.client(ks_exceptions.ServiceUnavailable()), {'host': ()}))
        self.assertNotIn('admin role', said)
