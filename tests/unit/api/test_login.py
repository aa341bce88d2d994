"""Logging in: the requests to keystone, and the reports of its answers."""

import http.server
import json
import logging
import threading

import fixtures
import testtools
from oslo_context import context as oslo_context

from kronos_nova.api import login
from tests.unit.api import base

TOKEN = {'token': {'expires_at': '2030-01-01T00:00:00.000000Z', 'methods': ['password'],
                   'issued_at': '2026-01-01T00:00:00.000000Z',
                   'user': {'id': 'u', 'name': 'jane', 'domain': {'id': 'd', 'name': 'Default'}}}}
GIVEN = {'user': 'jane', 'password': ' correct horse ', 'project': 'ops'}


class Keystone(http.server.BaseHTTPRequestHandler):
    def do_POST(self):  # noqa: N802 - http.server's name
        body = self.rfile.read(int(self.headers['Content-Length']))
        self.server.asked.append((self.path, json.loads(body)['auth']))
        self.server.entered.set()
        self.server.may_answer.wait(30)
        self.send_response(self.server.status)
        answer = json.dumps(TOKEN if self.server.status == 201 else {'error': {
            'code': self.server.status, 'message': 'secret of keystone', 'title': 'x'}}).encode()
        for name, value in (('X-Subject-Token', 'the-token'), ('Content-Length', len(answer)),
                            ('Content-Type', 'application/json')):
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_arguments):
        pass


class LoginTestCase(base.ApiTestCase):
    def setUp(self):
        self.keystone = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Keystone)
        self.keystone.asked, self.keystone.status = [], 201
        self.keystone.may_answer, self.keystone.entered = threading.Event(), threading.Event()
        self.keystone.may_answer.set()
        threading.Thread(target=self.keystone.serve_forever, daemon=True).start()
        super().setUp()
        self.conf.set_override('www_authenticate_uri',
                               f'http://127.0.0.1:{self.keystone.server_port}',
                               'keystone_authtoken')
        self.addCleanup(self.keystone.server_close)
        self.addCleanup(self.keystone.shutdown)

    def login(self, expected=200, headers=None, **given):
        return self.ask('/ui/login', 'POST', token=None, expected=expected,
                        json={**GIVEN, **given}, headers=headers or {})


class LoginTest(LoginTestCase):
    def test_a_password_is_shown_to_keystone_and_a_token_given(self):
        self.assertEqual({'token': 'the-token', 'expires_at': '2030-01-01T00:00:00Z'},
                         self.login())
        [(path, sent)] = self.keystone.asked
        self.assertEqual('/v3/auth/tokens', path.partition('?')[0])
        self.assertEqual({'name': 'jane', 'domain': {'name': 'Default'},
                          'password': ' correct horse '}, sent['identity']['password']['user'])
        self.assertEqual({'project': {'name': 'ops', 'domain': {'name': 'Default'}}},
                         sent['scope'])

    def test_without_a_project_the_token_is_of_the_system(self):
        self.ask('/ui/login', 'POST', token=None, json={'user': 'jane', 'password': 'x'})
        self.assertEqual({'system': {'all': True}}, self.keystone.asked[0][1]['scope'])

    def test_whom_keystone_refuses_learns_no_more_than_that(self):
        for status in (400, 401, 403):
            self.keystone.status = status
            [error] = self.login(expected=401)['errors']
            self.assertEqual('keystone did not accept this user, password and project.',
                             error['detail'])

    def test_a_wrong_address_of_keystone_is_no_wrong_password(self):
        logged = self.useFixture(fixtures.FakeLogger())
        self.keystone.status = 404
        for _ in range(6):
            [error] = self.login(expected=503)['errors']
        self.assertIn('keystone does not answer', error['detail'])
        self.assertIn(f'keystone at http://127.0.0.1:{self.keystone.server_port} did not answer',
                      logged.output)
        self.assertIn('404', logged.output)

    def test_the_fifth_wrong_password_locks_out_and_keystone_is_not_asked(self):
        self.keystone.status = 401
        for _ in range(5):
            self.login(expected=401)
        self.keystone.status = 201
        self.login(expected=429)
        self.assertLess(290, int(self.answer.headers['Retry-After']))
        self.assertEqual(5, len(self.keystone.asked))
        self.login(user='joe')

    def test_a_refused_login_is_logged_with_its_address_and_without_another_user(self):
        found = []

        class Handler(logging.Handler):
            def emit(self, record):
                found.append((record.getMessage(), oslo_context.get_current().user_id))

        handler = Handler()
        login.LOG.logger.addHandler(handler)
        self.addCleanup(login.LOG.logger.removeHandler, handler)
        self.keystone.status = 401
        for _ in range(2 * self.conf.kronos_api.threads):
            self.ask('/v1/status')
        self.login(expected=401)
        self.assertEqual(
            [('keystone refused a login as jane@Default from 127.0.0.1', None)], found)

    def test_without_an_address_of_keystone_the_remedy_is_logged(self):
        logged = self.useFixture(fixtures.FakeLogger())
        self.conf.set_override('www_authenticate_uri', None, 'keystone_authtoken')
        self.login(expected=503)
        self.assertIn('Set auth_url or www_authenticate_uri', logged.output)

    def test_a_keystone_that_fails_is_no_wrong_password(self):
        self.keystone.status = 500
        self.assertNotIn('secret', str(self.login(expected=503)))

    def test_no_other_site_can_have_a_browser_send_that(self):
        """A form can be sent to anywhere; JSON is asked about first, and no server here permits
        it."""
        for kind in ('text/plain', 'application/x-www-form-urlencoded', ''):
            self.ask('/ui/login', 'POST', token=None, expected=415, data=json.dumps(GIVEN),
                     headers={'Content-Type': kind})
        self.assertEqual([], self.keystone.asked)
        answer = self.ask('/ui/login', 'OPTIONS', token=None)
        self.assertNotIn('access-control-allow-origin', self.answer.headers, answer)

    def test_what_is_sent_on_is_made_here(self):
        for wrong in ({'auth_url': 'http://elsewhere'}, {'user': 7}, {'password': ''}):
            self.login(expected=400, **wrong)
        self.assertEqual([], self.keystone.asked)

    def test_many_at_once_do_not_take_all_threads(self):
        self.keystone.may_answer.clear()
        begun = [threading.Thread(target=self.login) for _each in range(login.AT_ONCE)]
        for thread in begun:
            self.keystone.entered.clear()
            thread.start()
            self.assertTrue(self.keystone.entered.wait(30))
        self.login(expected=503)
        self.ask('/v1/access')
        self.keystone.may_answer.set()
        for thread in begun:
            thread.join()
        self.login()

    def test_it_can_be_switched_off(self):
        self.conf.set_override('password_login', False, 'kronos_api')
        self.login(expected=403)
        self.assertEqual([], self.keystone.asked)


class ProxyTest(LoginTestCase):
    kronos = 'aggregates = gpu, db\n[oslo_middleware]\nenable_proxy_headers_parsing = true'

    def test_clients_behind_a_proxy_are_distinguished_and_none_has_an_address_for_each_try(self):
        self.keystone.status = 401
        for number in range(21):
            self.login(401 if number < 20 else 429, user=f'user{number}', headers={
                'X-Forwarded-For': f'10.0.0.{number}, 198.51.100.7'})
        self.login(401, user='another', headers={'X-Forwarded-For': '198.51.100.8'})


class WrongPasswordsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.now = 0.0
        self.wrong = login.WrongPasswords(3, 60, lambda: self.now)

    def fail(self, times, user='jane', address='a'):
        for _ in range(times):
            self.wrong.add(user, address)

    def test_a_user_is_locked_out_at_one_address_and_let_in_again_later(self):
        self.fail(2)
        self.assertEqual(0, self.wrong.seconds_left('jane', 'a'))
        self.now = 10
        self.fail(1)
        self.now = 20
        self.assertEqual(50, self.wrong.seconds_left('jane', 'a'))
        self.assertEqual(0, self.wrong.seconds_left('jane', 'b'))
        self.assertEqual(0, self.wrong.seconds_left('joe', 'a'))
        self.now = 70
        self.assertEqual(0, self.wrong.seconds_left('jane', 'a'))

    def test_an_address_that_tries_many_users_is_locked_out(self):
        for number in range(12):
            self.fail(1, f'user{number}')
        self.assertLess(0, self.wrong.seconds_left('another', 'a'))
        self.assertEqual(0, self.wrong.seconds_left('another', 'b'))

    def test_a_user_that_is_tried_from_many_addresses_is_locked_out(self):
        for number in range(30):
            self.fail(1, 'jane', f'address{number}')
        self.assertLess(0, self.wrong.seconds_left('jane', 'a'))
        self.assertEqual(0, self.wrong.seconds_left('joe', 'a'))

    def test_the_right_password_ends_the_count_of_its_user_at_its_address(self):
        self.fail(2)
        self.wrong.forget('jane', 'a')
        self.fail(2)
        self.assertEqual(0, self.wrong.seconds_left('jane', 'a'))

    def test_ways_to_write_a_name_that_keystone_takes_for_one_are_one(self):
        for user in ('Jane@Default', 'JANE @default', 'j\u00e1ne@Default  '):
            self.fail(1, user)
        self.assertLess(0, self.wrong.seconds_left('jane@Default', 'a'))
        self.wrong.forget('jANE@Default', 'a')
        self.assertEqual(0, self.wrong.seconds_left('jane@Default', 'a'))

    def test_addresses_of_one_ipv6_network_are_one(self):
        for number in range(12):
            self.fail(1, f'user{number}', f'2001:db8::{number:x}')
        self.assertLess(0, self.wrong.seconds_left('another', '2001:db8::ffff'))

    def test_an_attack_from_many_addresses_takes_little_memory(self):
        for number in range(2 * login.MOST_KEPT):
            self.fail(1, f'user{number}', f'address{number}')
        self.assertEqual(login.MOST_KEPT, len(self.wrong._found))

    def test_without_a_limit_nothing_is_counted(self):
        self.wrong = login.WrongPasswords(0, 60, lambda: self.now)
        self.fail(100)
        self.assertEqual(0, self.wrong.seconds_left('jane', 'a'))
