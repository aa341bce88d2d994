"""Connections that take nothing of their answers, on the server of ``kronos-api``."""

import contextlib
import socket
import threading
import time

import testtools
from waitress import wasyncore

from kronos_nova.cmd import api_server

LARGE = b'x' * 2 ** 20
"""An answer that no system keeps in its own buffers."""


def answer(environ, start_response):
    body = LARGE if environ['PATH_INFO'] == '/large' else b'OK'
    start_response('200 OK', [('Content-Length', str(len(body)))])
    return [body]


class ServerTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        for name, value in (('MOST_CONNECTIONS', 20), ('MARGIN', 10), ('PATIENCE_SECONDS', 0.5),
                            ('WHOLE_SECONDS', 2)):
            self.patch(api_server, name, value)
        self.server = api_server.create(answer, 0, host='127.0.0.1', port=0, threads=4)
        # On a network the system takes less for a slow client than on the loopback interface.
        self.server.adj.socket_options = [(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)]
        self.address = '127.0.0.1', int(self.server.effective_port)
        is_over = threading.Event()
        self.standing = threading.Lock()    # the loop stands still while it is held

        def run():
            while not is_over.is_set():
                with self.standing:
                    pass
                wasyncore.loop(timeout=0.05, map=self.server._map, count=1, use_poll=True)

        def end():
            is_over.set()
            thread.join()
            self.server.task_dispatcher.shutdown()
            wasyncore.close_all(self.server._map, ignore_all=True)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self.addCleanup(end)

    def connect(self):
        made = socket.socket()
        self.addCleanup(made.close)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        made.settimeout(5)
        made.connect(self.address)
        return made

    def ask(self, path, client=None):
        made = client or self.connect()
        made.sendall(f'GET {path} HTTP/1.1\r\nHost: a\r\n\r\n'.encode())
        return made

    def untaken(self):
        return sum(each.total_outbufs_len > 0 for each in self.server.active_channels.values())

    def wait_for(self, condition):
        deadline = time.monotonic() + 10
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)


class PauseTest(ServerTestCase):
    def setUp(self):
        super().setUp()
        self.patch(api_server, 'HEAD_SECONDS', 1)

    def test_a_client_is_not_cut_because_the_server_stood_still(self):
        client = self.connect()
        self.wait_for(lambda: self.server.active_channels)
        with self.standing:
            time.sleep(0.5)     # the loop is at its turn until then
            self.ask('/', client)
            time.sleep(3)
        self.assertIn(b'200 OK', client.recv(4096))

    def test_one_that_sends_nothing_is_cut_all_the_same(self):
        client = self.connect()
        self.wait_for(lambda: self.server.active_channels)
        with self.standing:
            time.sleep(3)
        self.assertEqual(b'', client.recv(4096))


class NotTakenTest(ServerTestCase):
    def test_they_make_room_for_others(self):
        for _number in range(20):
            self.ask('/large')
        self.wait_for(lambda: self.untaken() == 20)
        client = self.connect()
        for _number in range(5):    # while its request is on the way
            self.ask('/large')
            time.sleep(0.02)
        self.assertIn(b'OK', self.ask('/', client).recv(1000))

    def test_they_are_closed_however_many_come_at_once(self):
        for _number in range(60):
            with contextlib.suppress(OSError):
                self.ask('/large')
        for _number in range(3):
            self.assertIn(b'OK', self.ask('/').recv(1000))

    def test_one_that_takes_too_little_is_closed_in_time(self):
        self.ask('/large')
        self.wait_for(lambda: self.untaken() == 1)
        self.wait_for(lambda: not self.server.active_channels)

    def test_one_that_takes_enough_is_not(self):
        client, taken = self.ask('/large'), 0
        deadline = time.monotonic() + 4
        while time.monotonic() < deadline:
            taken += len(client.recv(2048))
            time.sleep(0.1)
        client.settimeout(10)
        while taken < len(LARGE):
            part = client.recv(2 ** 16)
            self.assertTrue(part, 'it was closed')
            taken += len(part)


class ReusedDescriptorTest(ServerTestCase):
    """A closed connection and a new one may have the same file descriptor."""

    def setUp(self):
        super().setUp()
        self.late = self.connect()
        self.wait_for(lambda: len(self.server.active_channels) == 1)
        [self.channel] = self.server.active_channels.values()

    def test_a_new_connection_is_served_when_an_overdue_one_is_closed(self):
        with self.standing:
            time.sleep(0.2)
            self.channel.waiting_since = time.time() - 2 * api_server.HEAD_SECONDS
            client = self.connect()
            self.server.next_channel_cleanup = 0
        self.assertIn(b'200 OK', self.ask('/', client).recv(4096))
        self.assertNotIn(self.channel, self.server.active_channels.values())

    def test_a_closed_connection_asks_for_no_events(self):
        with self.standing:
            time.sleep(0.2)
            self.channel.handle_close()
            self.assertFalse(self.channel.readable())
            self.assertFalse(self.channel.writable())
