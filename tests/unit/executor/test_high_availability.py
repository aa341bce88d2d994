"""Masakari over real HTTP."""

import json

import openstack
import testtools
from keystoneauth1 import session
from keystoneauth1 import token_endpoint
from openstack.config import cloud_region

from kronos_nova import exception
from kronos_nova.executor import high_availability
from tests.unit import fakes_web_server

HOSTS = {'s1': ['a', 'b'], 's2': ['a']}
"""Names of hosts by the uuid of their segment."""


class MasakariTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.on_maintenance, self.status = set(), 200
        self.server = self.useFixture(fakes_web_server.WebServer(self.respond))
        region = cloud_region.from_session(
            session.Session(token_endpoint.Token(f'{self.server.url}/v1', 'token'), timeout=5),
            instance_ha_endpoint_override=f'{self.server.url}/v1')
        self.masakari = high_availability.Masakari(openstack.connection.Connection(config=region))

    def respond(self, handler):
        path = handler.path.partition('?')[0].removeprefix('/v1').strip('/').split('/')
        body = {}
        if handler.command == 'PUT':
            change = json.loads(self.server.requests[-1][-1])['host']['on_maintenance']
            (self.on_maintenance.add if change else self.on_maintenance.discard)(path[-1])
            body = {'host': self.host(*path[-1].split('-'))}
        elif path == ['']:
            body = {'version': {'id': 'v1.2', 'status': 'CURRENT', 'version': '1.2',
                                'min_version': '1.0', 'links': [
                                    {'rel': 'self', 'href': f'{self.server.url}/v1'}]}}
        elif path == ['segments']:
            body = {'segments': [{'uuid': uuid, 'name': uuid} for uuid in HOSTS]}
        elif path[0] == 'segments':
            body = {'hosts': [self.host(path[1], name) for name in HOSTS[path[1]]]}
        fakes_web_server.say(self.status, json.dumps(body).encode(),
                             Content_Type='application/json')(handler)

    def host(self, segment, name):
        uuid = f'{segment}-{name}'
        return {'uuid': uuid, 'name': name, 'failover_segment_id': segment,
                'on_maintenance': uuid in self.on_maintenance}

    def test_a_host_is_left_alone_in_every_segment_and_watched_again(self):
        self.assertTrue(self.masakari.is_watched('a'))
        self.masakari.watch('a', False)
        self.assertEqual({'s1-a', 's2-a'}, self.on_maintenance)
        self.assertEqual((False, True), (self.masakari.is_watched('a'),
                                         self.masakari.is_watched('b')))
        self.masakari.watch('a', True)
        self.assertEqual(set(), self.on_maintenance)

    def test_a_host_that_it_does_not_have_is_not_watched(self):
        self.assertFalse(self.masakari.is_watched('c'))
        self.masakari.watch('c', False)
        self.assertEqual(set(), self.on_maintenance)

    def test_what_it_refuses_is_an_error_that_a_drain_waits_for(self):
        self.status = 409
        error = self.assertRaises(exception.NovaClientError, self.masakari.is_watched, 'a')
        self.assertIn('masakari does not answer, or refuses', str(error))
