"""HTTP as any client may speak it: names with slashes, HEAD, bodies of all sizes and depths."""

import http.client
import urllib.parse

import requests
from falcon import testing

from kronos_nova.api import application
from kronos_nova.api import protocol
from kronos_nova.cmd import api
from kronos_nova.objects import plan as plans
from tests.unit.api import base
from tests.unit.record import clouds

RACK = '/v1/aggregates/rack%2F1'


class SlashTest(base.ApiTestCase):
    kronos = 'aggregates = gpu, rack/1, r%2Fd'

    def test_an_aggregate_with_a_slash_in_its_name_has_all_that_others_have(self):
        self.assertEqual('rack/1', self.ask(RACK)['name'])
        self.assertEqual('rack/1', self.ask(RACK.replace('%2F', '%2f'))['name'])
        self.assertEqual('rack/1', self.ask(f'{RACK}/evaluation')['aggregate'])
        self.assertEqual([], self.ask(f'{RACK}/history?hours=2')['points'])
        levels = self.ask(f'{RACK}/automation', method='PUT', token=base.ADMIN,
                          json={'level': 'off'})['levels']
        self.assertEqual({'rack/1': 'off'}, {each['aggregate']: each['level'] for each in levels
                                             if each['set_by']})

    def test_a_name_is_no_more_than_a_name(self):
        self.refuse('/v1/aggregates/gpu%2Fevaluation', 404)
        self.refuse('/v1/aggregates/rack/1', 404)
        self.refuse('/v1%2Faggregates/gpu', 404)
        self.refuse('/v1/aggregates/rack%001', 400)
        # What is encoded twice is a percent sign.
        self.assertEqual('r%2Fd', self.ask('/v1/aggregates/r%252Fd')['name'])
        self.refuse('/v1/aggregates/rack%252F1', 404)

    def test_a_path_that_a_proxy_has_changed_is_believed_as_it_came(self):
        class Request:
            path = '/v1/aggregates/gpu'
            env = {'REQUEST_URI': '/kronos%2Fprod/v1/aggregates/gpu?x=%2F'}
        protocol.Slashes().process_request(Request, None)
        self.assertEqual('/v1/aggregates/gpu', Request.path)
        Request.env = {'RAW_URI': '/elsewhere%2F'}
        protocol.Slashes().process_request(Request, None)
        self.assertEqual('/v1/aggregates/gpu', Request.path)


class HeadTest(base.ApiTestCase):
    def test_head_answers_what_get_would(self):
        for path in ('/', '/healthcheck', '/ui/', '/ui/live.js', '/v1/openapi.json', '/v1/status',
                     '/v1/aggregates/gpu'):
            self.ask(path, method='HEAD')
            found = self.answer.headers
            got = requests.get(f'{self.url}{path}', headers={'X-Auth-Token': base.READER},
                               timeout=60).headers
            self.assertEqual(got['content-type'], found['content-type'], path)
            self.assertIn('content-length', found, path)
        self.ask('/v1/aggregates/none', method='HEAD', expected=404)
        self.ask('/v1/status', method='HEAD', token=None, expected=401)
        self.ask('/v1/stop', method='HEAD', token=base.ADMIN, expected=405)

    def test_head_makes_no_listener(self):
        for _again in range(2 * self.listeners):
            self.ask('/v1/events', method='HEAD')
        self.assertEqual(0, len(self.feeds[0]._listeners))

    def test_the_page_is_found_as_people_type_it(self):
        answer = requests.get(f'{self.url}/ui', timeout=60)
        self.assertEqual((200, f'{self.url}/ui/'), (answer.status_code, answer.url))


class BodyTest(base.ApiTestCase):
    def test_what_is_nested_too_deep_is_a_fault_of_the_request(self):
        clouds.Cloud(2).write(str(self.folder / 'snapshots/noon'))
        for depth in (700, 50000):
            error = self.refuse(
                '/v1/snapshots/noon/what-if', 400, method='POST', token=base.OPERATOR,
                data='{"policies": {"policies": ' + '[' * depth + ']' * depth + '}}')
            self.assertNotIn('Traceback', error['detail'], depth)

    def test_what_is_far_too_large_is_not_kept(self):
        most = self.conf.oslo_middleware.max_request_body_size
        self.refuse('/v1/stop', 413, method='POST', token=base.ADMIN, data=b' ' * (most + 1))
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(self.url).netloc, timeout=60)
        self.addCleanup(connection.close)
        connection.putrequest('POST', '/v1/stop')
        connection.putheader('Content-Length', str(api.LARGER * most + 1))
        connection.endheaders()
        # Nothing of it was sent.
        self.assertEqual(413, connection.getresponse().status)


class TextTest(base.ApiTestCase):
    """MariaDB with utf8mb3 refuses to be asked for what takes four bytes."""

    def test_what_no_database_may_be_asked_for_is_a_fault_of_the_request(self):
        for method, path in (('GET', '/v1/plans/\U0001f525'),
                             ('GET', '/v1/plans?marker=\U0001f525'),
                             ('GET', '/v1/servers/\U0001f525/explanation'),
                             ('POST', '/v1/hosts/\U0001f525/release')):
            error = self.refuse(path, 400, method=method, token=base.OPERATOR)
            self.assertIn('no name in Nova may have', error['detail'])
        self.refuse('/v1/resume', 400, method='POST', token=base.OPERATOR,
                    json={'aggregate': '\U0001f525'})

    def test_a_stop_is_accepted_with_any_reason(self):
        self.ask('/v1/stop', method='POST', token=base.OPERATOR,
                 json={'reason': 'fire \U0001f525\tin\x07 row 7'})
        [event] = self.ask('/v1/automation/history')['events']
        self.assertEqual('fire \ufffd\ufffdin\ufffd row 7', event['reason'])

    def test_a_deadline_beyond_all_calendars_is_refused(self):
        for deadline in ('9999-12-31T23:59:59-12:00', '0001-01-01T00:00:00+12:00'):
            error = self.refuse('/v1/drains', 400, method='POST', token=base.OPERATOR,
                                json={'hosts': ['a'], 'deadline': deadline})
            self.assertIn('deadline', error['detail'])


class LengthTest(base.ApiTestCase):
    kronos = 'aggregates = gpu, db\nautomation = approve'

    def test_a_body_in_chunks_is_read(self):
        found = self.ask('/v1/pause', method='POST', token=base.OPERATOR,
                         data=iter([b'{"aggregate": ', b'"gpu"}']))
        self.assertEqual(['gpu'], [each['aggregate'] for each in found['pauses']])

    def test_a_body_of_unknown_length_is_not_taken_for_an_empty_one(self):
        """As gunicorn gives a body in chunks. An empty body would approve every move."""
        proposed = self.plan(('vm1', 'a', 'b'), ('vm2', 'b', 'c'))
        environ = testing.create_environ(
            f'/v1/plans/{proposed}/approve', method='POST', body='{"skip": [2]}',
            headers={'X-Auth-Token': base.OPERATOR, 'Transfer-Encoding': 'chunked'})
        del environ['CONTENT_LENGTH']
        answer = []
        content = b''.join(application.make(self.conf, self.services())(
            environ | {'wsgi.input_terminated': True}, lambda status, _headers, *_more:
            answer.append(status)))
        self.assertEqual('400 Bad Request', answer[0], content)
        self.assertIn(b'Content-Length', content)
        self.assertEqual(plans.PROPOSED, self.journal.plan(proposed).state)
