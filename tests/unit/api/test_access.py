"""Access to the API, the form of its answers, and its reports of errors."""

import logging
import time

import fixtures
import requests
from oslo_context import context as oslo_context
from oslo_db import exception as db_exc

from kronos_client.contract import versions
from kronos_nova.api import application
from kronos_nova.api import routes
from kronos_nova.db import switches
from tests.unit import fakes_web_server
from tests.unit.api import base


class AccessTest(base.ApiTestCase):
    def test_every_operation_is_refused_without_a_valid_token(self):
        for token in (None, 'made up', 'expired'):
            for operation in routes.OPERATIONS:
                error = self.refuse(operation.path.replace('{', '').replace('}', ''), 401,
                                    method=operation.method, token=token)
                self.assertEqual('Unauthorized', error['title'])
            self.assertIn('keystone.invalid', self.answer.headers['WWW-Authenticate'])

    def test_log_lines_before_an_operation_is_found_name_no_user(self):
        """One thread serves a user, and then requests that end before an operation is found."""
        found = []

        class Notes(logging.Handler):
            def emit(self, record):
                found.append((record.getMessage(), oslo_context.get_current()))
        handler = Notes(level=logging.DEBUG)
        logging.getLogger().addHandler(handler)
        self.addCleanup(logging.getLogger().removeHandler, handler)
        made = application.make(self.conf, self.services())
        served = base.client(made)
        for path, token in (('/v1/status', 'made up'), ('/v1/status', 'expired'),
                            ('/nothing', base.READER), ('/healthcheck', 'made up')):
            self.assertEqual(200, served.simulate_get(
                '/v1/status', headers={'X-Auth-Token': base.READER}).status_code)
            del found[:]
            served.simulate_get(path, headers={'X-Auth-Token': token})
            logging.getLogger('tests').warning('after that')
            self.assertNotIn('kronos_reader-id', {context and context.user_id
                                                  for _message, context in found}, found)

    def test_identity_headers_of_a_client_are_ignored(self):
        self.refuse('/v1/status', 401, token=None, headers={
            'X-Identity-Status': 'Confirmed', 'X-Roles': 'admin', 'X-User-Id': 'u'})

    def test_a_reader_of_a_project_is_no_reader_of_the_cloud(self):
        error = self.refuse('/v1/plans', 403, token=base.TENANT)
        self.assertIn('kronos:plans:list', error['detail'])

    def test_readers_of_the_system_and_of_kronos_may_look(self):
        for token in (base.READER, base.SYSTEM_READER, base.OPERATOR, base.ADMIN):
            self.ask('/v1/plans', token=token)

    def test_operations_that_change_something_are_refused_to_readers(self):
        """Each operation that is no reader's is refused to readers, before anything else of the
        request is looked at."""
        for operation in routes.OPERATIONS:
            if operation.audience != 'reader':
                self.refuse(operation.path.replace('{', '').replace('}', ''), 403,
                            method=operation.method, data=b'{')
            if operation.audience == 'admin':
                self.refuse(operation.path.replace('{', '').replace('}', ''), 403,
                            method=operation.method, token=base.OPERATOR, data=b'{')

    def test_a_policy_file_has_the_last_word(self):
        (self.folder / 'policy.yaml').write_text('"kronos:plans:list": "role:member"\n')
        self.ask('/v1/plans', token=base.TENANT)
        self.refuse('/v1/plans', 403, token=base.READER)

    def test_what_everybody_may_know_needs_no_token(self):
        [version] = self.ask('/', token=None)['versions']
        self.assertEqual((versions.VERSIONS[0], versions.VERSIONS[-1], f'{self.url}/v1'),
                         (version['min_version'], version['version'], version['links'][0]['href']))
        self.assertEqual('3.1.0', self.ask('/v1/openapi.json', token=None)['openapi'])
        self.assertEqual('OK', requests.get(f'{self.url}/healthcheck', timeout=60).text)


class KeystoneTest(base.ApiTestCase):
    """keystone itself is not there, and keystonemiddleware as it is."""

    kronos = ('aggregates = gpu, db\n[keystone_authtoken]\nauth_type = password\n'
              'auth_url = http://127.0.0.1:9\nusername = kronos\npassword = secret\n'
              'http_request_max_retries = 0')

    def know_people(self):
        """Know no one: there is no keystone to ask."""

    def test_while_it_is_away_no_token_is_said_to_be_invalid(self):
        error = self.refuse('/v1/status', 503, token='good')
        self.assertIn('keystone', error['detail'])
        self.assertEqual('5', self.answer.headers['Retry-After'])
        self.assertNotIn('secret', str(error))

    def test_while_it_is_away_everybody_has_what_needs_no_token(self):
        self.refuse('/v1/status', 401, token=None)
        for path in ('/ui/', '/healthcheck', '/v1/openapi.json'):
            answer = requests.get(f'{self.url}{path}', headers={'X-Auth-Token': 'good'}, timeout=60)
            self.assertEqual(200, answer.status_code)

    def test_one_that_is_silent_is_not_waited_for_without_end(self):
        silent = self.useFixture(fakes_web_server.WebServer(lambda _handler: time.sleep(20)))
        self.conf.set_override('auth_url', silent.url, 'keystone_authtoken')
        self.patch(application, 'KEYSTONE_SECONDS', 1)
        self.url = self.serve(application.make(self.conf, self.services()))
        begun = time.monotonic()
        self.refuse('/v1/status', 503, token='good')
        self.assertLess(time.monotonic() - begun, 15)


class FormTest(base.ApiTestCase):
    def test_each_answer_tells_its_microversion(self):
        for wanted in (None, 'kronos 1.0', 'kronos latest', 'compute 2.1'):
            headers = {'OpenStack-API-Version': wanted} if wanted else {}
            self.ask('/v1/plans', headers=headers)
            self.assertEqual('kronos 1.0', self.answer.headers['OpenStack-API-Version'])
            self.assertIn('openstack-api-version', self.answer.headers['Vary'].lower())

    def test_a_microversion_that_there_is_not_is_not_acceptable(self):
        self.refuse('/v1/plans', 406, headers={'OpenStack-API-Version': 'kronos 9.9'})
        self.refuse('/v1/plans', 400, headers={'OpenStack-API-Version': 'kronos one'})

    def test_a_request_of_another_service_is_followed(self):
        wanted = 'req-11111111-2222-4333-8444-555555555555'
        self.ask('/v1/plans', headers={'X-Openstack-Request-Id': wanted})
        self.assertIn('req-', self.answer.headers['x-openstack-request-id'])
        self.assertNotEqual(wanted, self.answer.headers['x-openstack-request-id'])

    def test_a_path_that_there_is_not_is_not_found_and_a_method_not_allowed(self):
        self.refuse('/v1/nothing', 404)
        self.refuse('/v1/status', 405, method='DELETE')

    def test_what_a_query_may_not_say_is_reported(self):
        for query, said in (('limit=0', 'limit'), ('limit=many', 'limit'), ('limit=9999', 'limit'),
                            ('colour=red', 'colour'), (f'marker={"x" * 300}', 'marker'),
                            ('limit=1&limit=2', 'limit')):
            self.assertIn(said, self.refuse(f'/v1/plans?{query}', 400)['detail'])

    def test_a_database_that_is_away_is_reported_without_its_address(self):
        def fail(_self):
            raise db_exc.DBConnectionError('mysql://secret@controller refused')

        logged = self.useFixture(fixtures.FakeLogger())
        self.patch(switches.SwitchBoard, 'read', fail)
        error = self.refuse('/v1/automation', 503)
        self.assertNotIn('secret', str(error))
        self.assertIn('/v1/automation failed, because something that Kronos needs does not answer: '
                      'mysql://secret@controller refused', logged.output.replace('\n', ' '))
        self.assertNotIn('Traceback', logged.output)

    def test_a_fault_of_ours_is_reported_without_what_it_was(self):
        def fail(_self):
            raise ValueError('secret')

        self.patch(switches.SwitchBoard, 'read', fail)
        self.assertNotIn('secret', str(self.refuse('/v1/automation', 500)))

    def test_a_nova_conf_that_is_wrong_is_no_fault_of_the_request(self):
        self.conf.set_override('aggregate_automation', {'gpu': 'sometimes'}, 'kronos')
        self.refuse('/v1/automation', 500)
