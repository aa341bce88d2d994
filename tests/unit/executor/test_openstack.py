"""The public-API way to Nova, over real HTTP."""

import datetime
import inspect
import json
import re

import openstack
import testtools
from keystoneauth1 import session
from keystoneauth1 import token_endpoint
from openstack.config import cloud_region

from kronos_nova import exception
from kronos_nova.executor import compute
from kronos_nova.executor.openstack import OpenStackComputeApi
from kronos_nova.executor.openstack_hosts import OpenStackHostApi
from kronos_nova.objects import move as moves
from tests.unit import fakes_web_server

NOW = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)
MOVE = moves.MoveRecord(
    uuid='11111111-1111-1111-1111-111111111111', plan_uuid='plan', aggregate='gpu', ordinal=1,
    phase='spread', instance_uuid='vm1', source='a', destination='b', memory_mb=1024,
    reason='spreads', state=moves.MIGRATING, not_before=NOW, created_at=NOW, requested_at=NOW)
SERVER = {'server': {'OS-EXT-SRV-ATTR:host': 'a', 'status': 'ACTIVE',
                     'OS-EXT-STS:task_state': None, 'locked': True}}


def migration(number, **changes):
    return {'id': number, 'uuid': f'migration{number}', 'status': 'running', 'dest_node': 'b',
            'created_at': '2026-11-20T12:00:01.000000', **changes}


class OpenStackComputeApiTest(testtools.TestCase):
    """``answers`` maps a regular expression of method and path to (status, body)."""

    def setUp(self):
        super().setUp()
        self.answers = {'GET /?': (200, {'version': {
            'id': 'v2.1', 'status': 'CURRENT', 'version': '2.100', 'min_version': '2.1',
            'links': [{'rel': 'self', 'href': '/v2.1'}]}})}
        self.server = self.useFixture(fakes_web_server.WebServer(self.respond))
        plugin = token_endpoint.Token(f'{self.server.url}/v2.1', 'token')
        region = cloud_region.from_session(
            session.Session(plugin, timeout=5), compute_endpoint_override=f'{self.server.url}/v2.1')
        self.connection = openstack.connection.Connection(config=region)
        self.api = OpenStackComputeApi(self.connection)

    def respond(self, handler):
        asked = f'{handler.command} {handler.path.removeprefix("/v2.1")}'
        status, body = next((answer for pattern, answer in self.answers.items()
                             if re.fullmatch(pattern, asked)), (404, None))
        fakes_web_server.say(
            status, json.dumps(body).encode(), Content_Type='application/json')(handler)

    def test_it_has_all_of_the_port(self):
        methods = inspect.getmembers(compute.ComputeApi, inspect.isfunction)
        self.assertGreater(len(methods), 5)
        for name, wanted in methods:
            if not name.startswith('_'):
                self.assertEqual(list(inspect.signature(wanted).parameters), list(
                    inspect.signature(getattr(OpenStackComputeApi, name)).parameters))

    def test_an_instance_is_read(self):
        self.answers['GET /servers/vm1'] = 200, SERVER
        found = self.api.instance('vm1')
        self.assertEqual(('a', 'ACTIVE', None, True),
                         (found.host, found.status, found.task_state, found.locked))
        self.assertIsNone(self.api.instance('vm2'))

    def test_a_service_is_read(self):
        service = {'state': 'up', 'status': 'disabled', 'forced_down': False, 'host': 'a',
                   'disabled_reason': 'RAM'}
        self.answers[r'GET /os-services\?.*host=a'] = 200, {'services': [service]}
        self.answers[r'GET /os-services\?.*host=b'] = 200, {'services': []}
        self.assertTrue(self.api.service('a').is_evacuable)
        self.assertIsNone(self.api.service('b'))

    def test_another_spelling_is_another_host_and_an_empty_name_is_none(self):
        service = {'state': 'up', 'status': 'enabled', 'forced_down': False, 'host': 'compute1',
                   'disabled_reason': None}
        self.answers[r'GET /os-services\?.*'] = 200, {'services': [service]}
        for name in ('COMPUTE1', 'compute1 ', '', 'compute1&x=y'):
            self.assertIsNone(self.api.service(name))
        self.assertTrue(self.server.requests[-1][1].endswith('host=compute1%26x%3Dy'))

    def test_a_cell_that_is_down_does_not_answer(self):
        """Nova then shows what its API database has of servers and services."""
        self.answers['GET /servers/vm1'] = 200, {'server': {
            'id': 'vm1', 'status': 'UNKNOWN', 'tenant_id': 'p', 'created': '2026-11-20T12:00:00Z'}}
        self.answers[r'GET /os-services\?.*host=a'] = 200, {'services': [
            {'binary': 'nova-compute', 'host': 'a', 'status': 'UNKNOWN'}]}
        # Nova leaves such a cell out of lists that are filtered.
        self.answers[r'GET /servers/detail\?.*'] = 200, {'servers': []}
        self.answers[r'GET /os-migrations\?.*'] = 200, {'migrations': []}
        hosts = OpenStackHostApi(self.connection)
        for ask, what in ((self.api.instance, 'vm1'), (hosts.server, 'vm1'),
                          (self.api.service, 'a'), (hosts.servers_on, 'a')):
            self.assertRaises(exception.NovaUnavailable, ask, what)

    def test_a_host_that_nova_refuses_to_disable_is_not_taken_for_disabled(self):
        service = {'state': 'up', 'status': 'enabled', 'forced_down': False, 'host': 'a',
                   'id': 's1', 'disabled_reason': None}
        self.answers[r'GET /os-services\?.*'] = 200, {'services': [service]}
        hosts = OpenStackHostApi(self.connection)
        for status in (400, 409):
            self.answers['PUT /os-services/s1'] = status, {
                'badRequest': {'message': 'no such reason'}}
            for ask in (lambda: hosts.disable('a', 'RAM'), lambda: hosts.enable('a')):
                error = self.assertRaises(exception.NovaClientError, ask)
                self.assertIn('no such reason', str(error))
        self.answers['PUT /os-services/s1'] = 200, {'service': service}
        hosts.disable('a', 'RAM')

    def test_what_is_deleted_softly_is_on_its_host(self):
        listed = {'id': 'vm1', 'name': 'web', 'status': 'SOFT_DELETED', 'locked': False,
                  'OS-EXT-STS:task_state': None}
        self.answers[r'GET /servers/detail\?.*soft_deleted=True.*host=a'] = 200, {
            'servers': [listed]}
        self.answers[r'GET /servers/detail\?.*marker=vm1'] = 200, {'servers': []}
        self.answers[r'GET /os-migrations\?.*'] = 200, {'migrations': []}
        self.answers[r'GET /os-services\?.*'] = 200, {'services': []}
        [found] = OpenStackHostApi(self.connection).servers_on('a')
        self.assertEqual(('vm1', 'SOFT_DELETED'), (found.uuid, found.status))

    def test_a_list_of_servers_that_does_not_end_is_refused(self):
        listed = {'id': 'vm1', 'name': 'web', 'status': 'ACTIVE', 'locked': False,
                  'OS-EXT-STS:task_state': None}
        self.answers[r'GET /servers/detail\?.*'] = 200, {'servers': [listed]}
        error = self.assertRaises(exception.NovaClientError,
                                  OpenStackHostApi(self.connection).servers_on, 'a')
        self.assertIn('does not end', str(error))

    def test_what_is_not_confirmed_elsewhere_is_reported(self):
        self.answers[r'GET /servers/detail\?.*'] = 200, {'servers': []}
        self.answers[r'GET /os-migrations\?status=finished&source_compute=a'] = 200, {
            'migrations': [migration(1, instance_uuid='vm1', source_compute='a'),
                           migration(2, instance_uuid='gone', source_compute='a')]}
        self.answers[r'GET /os-migrations\?.*'] = 200, {'migrations': []}
        self.answers[r'GET /os-services\?.*'] = 200, {'services': []}
        self.answers['GET /servers/vm1'] = 200, {'server': {
            'id': 'vm1', 'name': 'web', 'status': 'VERIFY_RESIZE', 'locked': True,
            'OS-EXT-STS:task_state': None}}
        [found] = OpenStackHostApi(self.connection).servers_on('a')
        self.assertEqual(('vm1', 'VERIFY_RESIZE', True),
                         (found.uuid, found.status, found.is_unsettled))

    def test_a_migration_is_asked_for_under_the_uuid_of_the_move(self):
        self.answers['POST /servers/vm1/action'] = 202, None
        self.api.live_migrate(MOVE)
        _method, _path, headers, body = self.server.requests[-1]
        self.assertEqual({'os-migrateLive': {'host': 'b', 'block_migration': 'auto'}},
                         json.loads(body))
        self.assertEqual(f'req-{MOVE.uuid}', headers['X-OpenStack-Request-ID'])

    def test_a_refusal_is_distinguished_from_a_nova_that_does_not_answer(self):
        refused, outdated = exception.PreFlightError, exception.PlanOutdated
        refusals = {400: ('kernel', refused), 404: ('gone', outdated), 409: ('busy', outdated)}
        for status, (why, kind) in refusals.items():
            self.answers['POST /servers/vm1/action'] = status, {'error': {'message': why}}
            error = self.assertRaises(kind, self.api.live_migrate, MOVE)
            self.assertIn(why, str(error))
        for status in (401, 403, 429, 500, 503):
            self.answers['POST /servers/vm1/action'] = status, {'error': {'message': 'no'}}
            self.server.requests.clear()
            self.assertRaises(exception.NovaClientError, self.api.live_migrate, MOVE)
            self.assertEqual(['POST'], [request[0] for request in self.server.requests])

    def test_a_nova_that_hangs_up_does_not_answer(self):
        self.server.respond = lambda handler: handler.connection.close()
        for ask in (lambda: self.api.instance('vm1'), lambda: self.api.service('a'),
                    lambda: self.api.migration(MOVE), lambda: self.api.abort(MOVE)):
            self.assertRaises(exception.NovaClientError, ask)

    def test_a_web_server_that_answers_in_its_place_is_a_nova_that_does_not_answer(self):
        page = fakes_web_server.say(200, b'<html>Maintenance</html>', Content_Type='text/html')
        other = fakes_web_server.say(200, b'{"status": "ok"}', Content_Type='application/json')
        self.assertIsNone(self.api.instance('vm1'))     # learns the version of the API
        for self.server.respond in (page, other):
            for ask in (lambda: self.api.instance('vm1'), lambda: self.api.service('a'),
                        lambda: self.api.migration(MOVE),
                        lambda: OpenStackHostApi(self.connection).servers_on('a')):
                self.assertRaises(exception.NovaUnavailable, ask)

    def test_the_first_migration_since_the_request_is_ours(self):
        self.answers[r'GET /os-migrations\?.*'] = 200, {'migrations': [
            migration(9), migration(8, status='queued', dest_node=None),
            migration(7, created_at='2026-11-20T11:59:00.000000')]}
        self.answers['GET /servers/vm1/migrations/8'] = 200, {'migration': {
            'memory_total_bytes': 100, 'memory_remaining_bytes': 40}}
        found = self.api.migration(MOVE)
        self.assertEqual(('migration8', 'queued', False, 100, 40),
                         (found.uuid, found.status, found.was_started, found.memory_total,
                          found.memory_remaining))

    def test_a_failure_is_reported_in_novas_words(self):
        self.answers[r'GET /os-migrations\?.*'] = 200, {'migrations': [
            migration(8, status='error')]}
        self.answers['GET /servers/vm1/os-instance-actions'] = 200, {'instanceActions': [
            {'action': 'reboot', 'request_id': 'other', 'start_time': '3'},
            {'action': 'live-migration', 'request_id': 'ours', 'start_time': '2'},
            {'action': 'live-migration', 'request_id': 'older', 'start_time': '1'}]}
        self.answers['GET /servers/vm1/os-instance-actions/ours'] = 200, {'instanceAction': {
            'events': [{'details': None}, {'details': 'no route'}]}}
        self.assertEqual('no route', self.api.migration(MOVE).fault)

    def test_a_migration_is_ended_or_forced(self):
        self.answers[r'GET /os-migrations\?.*'] = 200, {'migrations': [migration(8)]}
        self.answers['DELETE /servers/vm1/migrations/8'] = 202, None
        self.answers['POST /servers/vm1/migrations/8/action'] = 400, {
            'badRequest': {'message': 'not running'}}
        self.api.abort(MOVE)
        self.api.force_complete(MOVE)
        asked = [(method, path) for method, path, _headers, _body in self.server.requests
                 if method != 'GET']
        self.assertEqual([('DELETE', '/v2.1/servers/vm1/migrations/8'),
                          ('POST', '/v2.1/servers/vm1/migrations/8/action')], asked)
