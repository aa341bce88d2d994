"""Servers that speak TCP on loopback and keep to no protocol."""

import contextlib
import gzip
import socket
import threading
import time

import fixtures

HEAD = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n'


class RawServer(fixtures.Fixture):
    """Hands every connection, once something was sent, to ``talk(connection)``.

    ``connections`` counts those that were made, ``ended`` those whose talk is over.
    """

    def __init__(self, talk):
        self.talk = talk
        self.connections = self.ended = 0

    def _setUp(self):
        self.socket = socket.create_server(('127.0.0.1', 0))
        self.addCleanup(self.socket.close)
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def url(self):
        return f'http://127.0.0.1:{self.socket.getsockname()[1]}'

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _address = self.socket.accept()
                self.connections += 1
                threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection):
        with connection, contextlib.suppress(OSError):
            connection.recv(1 << 16)
            self.talk(connection)
        self.ended += 1


def drip(before, piece, pause=0.02):
    """A talk: ``before`` at once, then ``piece`` again and again, as long as anybody listens."""
    def talk(connection):
        connection.sendall(before)
        while True:
            connection.sendall(piece)
            time.sleep(pause)
    return talk


DRIPS = {
    'status line': drip(b'HTTP/1.1 200 ', b'O', pause=0.05),
    'header': drip(HEAD + b'X-Slow: ', b'a', pause=0.05),
    'headers': drip(HEAD, b'X-Slow: a\r\n', pause=0.05),
    'interim responses': drip(b'', b'HTTP/1.1 100 Continue\r\n\r\n'),
    'body': drip(HEAD + b'Content-Length: 1000000\r\n\r\n', b' '),
    'body without end': drip(HEAD + b'\r\n', b' '),
    'chunk size': drip(HEAD + b'Transfer-Encoding: chunked\r\n\r\n', b'0', pause=0.05),
    'chunks': drip(HEAD + b'Transfer-Encoding: chunked\r\n\r\n', b'1\r\n \r\n'),
    'trailers': drip(HEAD + b'Transfer-Encoding: chunked\r\n\r\n0\r\n', b'X-Slow: a\r\n'),
    'empty gzip members': drip(
        HEAD + b'Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n',
        b'14\r\n' + gzip.compress(b'', mtime=0) + b'\r\n'),
}
"""By what arrives a little at a time, and never ends."""
