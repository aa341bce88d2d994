"""Connections that send a byte now and then, on the real program ``kronos-api``: nothing of a
request is ever whole, and each holds a connection."""

import contextlib
import selectors
import socket
import threading
import time

import requests

from kronos_nova.cmd import api_server
from kronos_nova.cmd import manage
from tests.unit.api import test_program

CONNECTIONS = 400
TOKENS = 200
"""Requests a second with a token that is none."""
MOST_SECONDS = 1.0
"""Most seconds that all health checks but one in twenty may take. On a machine whose processors are
busy with something else, a single one takes longer."""


class Dripping:
    """Connections that send the head of a request byte by byte, and come again when they are cut.

    :ivar cut: how many were cut by the server
    """

    def __init__(self, port, count):
        self.address, self.count = ('127.0.0.1', port), count
        self.cut, self._over, self._open = 0, threading.Event(), set()
        self._worker = threading.Thread(target=self._work, daemon=True)

    def __enter__(self):
        self._worker.start()
        return self

    def __exit__(self, *_exc):
        self._over.set()
        self._worker.join(30)
        for each in self._open:
            each.close()

    def _work(self):
        while not self._over.is_set():
            while len(self._open) < self.count:
                self._open.add(socket.create_connection(self.address, timeout=5))
            with selectors.DefaultSelector() as selector:
                for each in self._open:
                    selector.register(each, selectors.EVENT_READ)
                for key, _events in selector.select(0):   # an answer, or the end
                    key.fileobj.close()
                    self._open.discard(key.fileobj)
                    self.cut += 1
            for each in self._open:
                with contextlib.suppress(OSError):
                    each.send(b'G')
            self._over.wait(0.5)


class DrippingConnectionsTest(test_program.ProgramTestCase):
    def setUp(self):
        super().setUp()
        manage.main([f'--config-file={self.config}', 'db', 'sync', 'control'])
        self.process, deadline = self.start(), time.monotonic() + 60
        while True:
            try:
                self.health()
                return
            except requests.ConnectionError:
                self.assertIsNone(self.process.poll())
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.1)

    def health(self):
        """Seconds that the health check takes."""
        began = time.monotonic()
        answer = requests.get(f'http://127.0.0.1:{self.port}/healthcheck', timeout=30)
        self.assertEqual('OK', answer.text)
        return time.monotonic() - began

    def assert_prompt(self, taken):
        """Check durations of the health check, in seconds."""
        self.assertLess(sorted(taken)[len(taken) * 19 // 20 - 1], MOST_SECONDS, taken)
        self.assertLess(max(taken), api_server.HEAD_SECONDS / 2, taken)

    def ask(self, over):
        """Ask with bogus tokens, as many a second as one thread of ten has to."""
        with requests.Session() as session:
            while not over.wait(10 / TOKENS):
                with contextlib.suppress(requests.RequestException):
                    session.get(f'http://127.0.0.1:{self.port}/v1/plans', timeout=10,
                                headers={'X-Auth-Token': f'bogus{time.monotonic_ns()}'})

    def test_the_health_check_answers(self):
        over = threading.Event()
        askers = [threading.Thread(target=self.ask, args=(over,), daemon=True) for _ in range(10)]
        with Dripping(self.port, CONNECTIONS) as dripping:
            time.sleep(2)
            for each in askers:
                each.start()
            deadline = time.monotonic() + 2 * api_server.HEAD_SECONDS + 5
            taken = []
            while time.monotonic() < deadline:
                taken.append(self.health())
                time.sleep(0.3)
            over.set()
            for each in askers:
                each.join(30)
        self.assert_prompt(taken)
        self.assertGreaterEqual(dripping.cut, CONNECTIONS, 'they are cut, not only tolerated')

    def test_more_connections_than_may_be_open_make_room_for_whole_requests(self):
        """The oldest that has no whole request goes first."""
        over = api_server.MOST_CONNECTIONS + 100
        with Dripping(self.port, over):
            time.sleep(2)
            self.assert_prompt([self.health() for _ in range(20)])

    def test_a_slow_request_that_is_whole_in_time_is_answered(self):
        with socket.create_connection(('127.0.0.1', self.port), timeout=30) as client:
            for byte in b'GET /healthcheck HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n':
                client.send(bytes([byte]))
                time.sleep(api_server.HEAD_SECONDS / 200)
            answer = b''.join(iter(lambda: client.recv(4096), b''))
        self.assertTrue(answer.startswith(b'HTTP/1.1 200'), answer)
