"""The health check answers whatever else does not."""

import collections
import concurrent.futures
import contextlib
import http
import socket
import time

import msgspec
import requests
import testtools
import webob

from kronos_client.contract import errors
from kronos_nova.cmd import api
from tests.unit.api import base

MOST_SECONDS = 3.0
"""Half of what a request waits whose token keystone does not check."""
ASKED = 200
WAITS = 'no answer yet'


class FrozenKeystoneTest(base.ApiTestCase):
    """A keystone that takes connections and says nothing."""

    def setUp(self):
        self.keystone = socket.create_server(('127.0.0.1', 0), backlog=1000)
        self.kronos = (
            'aggregates = gpu, db\n[keystone_authtoken]\nauth_type = password\nauth_url = '
            f'http://127.0.0.1:{self.keystone.getsockname()[1]}\nusername = kronos\n'
            'password = secret')
        super().setUp()
        self.addCleanup(self.keystone.close)

    def know_people(self):
        """No one is known, for keystone does not answer."""

    def services(self):
        api.ask_keystone_once(self.conf)
        return super().services()

    def status_of(self, number):
        with contextlib.suppress(requests.RequestException):
            return requests.get(f'{self.url}/v1/plans', timeout=6,
                                headers={'X-Auth-Token': f'bogus{number}'}).status_code
        return WAITS

    def check(self):
        began = time.monotonic()
        answer = requests.get(f'{self.url}/healthcheck', headers={'X-Auth-Token': 'bogus'},
                              timeout=30)
        self.assertEqual('OK', answer.text)
        self.assertLess(time.monotonic() - began, MOST_SECONDS)

    def test_it_answers_while_hundreds_of_tokens_wait_for_keystone(self):
        with concurrent.futures.ThreadPoolExecutor(ASKED) as pool:
            asked = [pool.submit(self.status_of, number) for number in range(ASKED)]
            time.sleep(1)
            for _ in range(5):
                self.check()
                time.sleep(0.2)
            found = collections.Counter(each.result() for each in asked)
        most = api.WAITING * self.conf.kronos_api.threads
        self.assertLessEqual(found[WAITS], most)
        self.assertEqual(ASKED - found[WAITS], found[http.HTTPStatus.SERVICE_UNAVAILABLE])


class BusyTest(testtools.TestCase):
    def test_a_request_too_many_is_refused_in_the_form_of_all_errors(self):
        limit = api.AdmissionLimit(None, 0)
        answer = webob.Request.blank('/v1/plans').get_response(limit)
        [error] = msgspec.json.decode(answer.body, type=errors.Errors).errors
        self.assertEqual((503, 'kronos.busy', answer.headers['X-Openstack-Request-Id']),
                         (error.status, error.code, error.request_id))
        self.assertIn('ask again in a few seconds', str(errors.from_answer(error)))
