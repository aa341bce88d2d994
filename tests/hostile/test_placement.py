"""Answers of placement that are no answers: a proxy's page, another service, half a document."""

import contextlib

import ddt
import requests
import testtools

from kronos_nova import exception
from kronos_nova.placement import client
from kronos_nova.placement import errors


class Saying:
    """A keystoneauth adapter whose every answer has the same body."""

    def __init__(self, body, status=200):
        self.response = requests.Response()
        self.response.status_code = status
        self.response._content = body

    def request(self, path, method, **_kwargs):
        return self.response


@ddt.ddt
class AnswerTest(testtools.TestCase):
    @ddt.data(b'', b'<html>Sign in</html>', b'[]', b'{}', b'null', b'{"versions": []}',
              b'{"versions": [{"max_version": "x"}]}', b'[' * 100_000, b'{"resource_providers": 5}',
              b'{"allocations": [1]}', b'{"versions": [{"max_version": "1.39"}]')
    def test_is_an_error_of_placement(self, body):
        asked = client.PlacementClient(Saying(body))
        self.assertRaises(exception.PlacementError, asked.negotiate)
        asked._version = client.PLACEMENT_ALLOCATIONS
        for ask in (asked.roots, asked.sharing, lambda: asked.name('x'), lambda: asked.tree('x'),
                    lambda: asked.held_on('x'), lambda: asked.candidates('x'),
                    lambda: asked.aggregates('x')):
            self.assertRaises(errors.AnswerNotUnderstood, ask)
        with contextlib.suppress(errors.AnswerNotUnderstood):
            asked.consumer('x')  # an answer without allocations is one of a consumer without any

    def test_what_it_says_of_an_error_is_bounded_and_keeps_to_its_line(self):
        asked = client.PlacementClient(Saying(b'no\r\n\x1b[2J' * 10_000, 403))
        asked._version = client.PLACEMENT_ALLOCATIONS
        said = str(self.assertRaises(errors.PlacementRefused, asked.roots))
        self.assertLess(len(said), 2000)
        self.assertTrue(said.isprintable())
