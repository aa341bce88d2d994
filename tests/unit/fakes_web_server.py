"""A web server on loopback that says what a test tells it to."""

import datetime
import http.server
import ipaddress
import threading

import fixtures
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec


class WebServer(fixtures.Fixture):
    """Answers every request by ``self.respond(handler)``; ``requests`` are what arrived.

    :param tls: an ``ssl.SSLContext`` for HTTPS
    """

    def __init__(self, respond, tls=None):
        self.respond = respond
        self.tls = tls
        self.requests = []

    def _setUp(self):
        fixture = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self):
                length = int(self.headers.get('Content-Length', 0))
                fixture.requests.append(
                    (self.command, self.path, dict(self.headers), self.rfile.read(length)))
                fixture.respond(self)

            do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815 - what http.server calls

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *args: None  # clients that hang up are the point
        if self.tls:
            self.server.socket = self.tls.wrap_socket(self.server.socket, server_side=True)
        thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    @property
    def url(self):
        return f'{"https" if self.tls else "http"}://127.0.0.1:{self.server.server_port}'


def say(status, body=b'', **headers):
    """A respond function that always sends the same."""
    def respond(handler):
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace('_', '-'), value)
        handler.send_header('Content-Length', str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
    return respond


def say_in_turn(*responds):
    """One respond function after the other; the last one for ever."""
    left = list(responds)

    def respond(handler):
        (left.pop(0) if len(left) > 1 else left[0])(handler)
    return respond


def self_signed():
    """A key and a certificate for 127.0.0.1 that is its own authority, PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, '127.0.0.1')])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(
            [x509.IPAddress(ipaddress.ip_address('127.0.0.1'))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256()))
    return (certificate.public_bytes(serialization.Encoding.PEM) +
            key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                              serialization.NoEncryption()))
