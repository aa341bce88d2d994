"""RabbitMQ with a node name, ports, cookie and epmd of its own."""

import os
import pathlib
import secrets
import socket

from tests.e2e.box.processes import Process
from tests.e2e.box.settings import LOOPBACK

# Debian's wrapper in the path changes to the user rabbitmq; this is the server itself.
SERVER = pathlib.Path('/usr/lib/rabbitmq/bin/rabbitmq-server')
ERLANG = ('+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none '
          '-kernel inet_dist_use_interface {127,0,0,1}')


class RabbitMQ:
    def __init__(self, root, ports):
        self._home = root / 'rabbitmq'
        self.port = ports.take()
        names, distribution = ports.take(), ports.take()
        self._env = {
            'HOME': str(self._home),
            'ERL_EPMD_ADDRESS': LOOPBACK, 'ERL_EPMD_PORT': str(names),
            'RABBITMQ_NODENAME': f'box{self.port}@localhost',
            'RABBITMQ_NODE_IP_ADDRESS': LOOPBACK, 'RABBITMQ_NODE_PORT': str(self.port),
            'RABBITMQ_DIST_PORT': str(distribution),
            'RABBITMQ_MNESIA_BASE': str(self._home / 'mnesia'),
            'RABBITMQ_LOG_BASE': str(self._home / 'log'),
            'RABBITMQ_PID_FILE': str(self._home / 'pid'),
            'RABBITMQ_CONFIG_FILE': str(self._home / 'none'),
            'RABBITMQ_ENABLED_PLUGINS_FILE': str(self._home / 'plugins'),
            'RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS': ERLANG,
        }
        self.epmd = Process('epmd', ['epmd', '-address', LOOPBACK, '-port', names], root,
                            ready=lambda: listens(names))
        self.server = Process('rabbitmq', [SERVER], root, env=self._env,
                              ready=lambda: listens(self.port))

    def _write_cookie(self):
        """Erlang itself first makes one that others may read, and then takes that right away; if a
        second Erlang, as rabbitmq-server starts one, looks in between, it refuses to go on."""
        cookie = self._home / '.erlang.cookie'
        if not cookie.exists():
            with open(cookie, 'x', opener=lambda path, flags: os.open(path, flags, 0o400)) as file:
                file.write(secrets.token_hex(16))

    @property
    def url(self):
        return f'rabbit://guest:guest@{LOOPBACK}:{self.port}/'

    def start(self, timeout):
        """Start it; ``server.wait_ready`` tells when it serves."""
        self._home.mkdir(parents=True, exist_ok=True)
        (self._home / 'plugins').write_text('[].\n')
        os.chmod(self._home, 0o700)
        self._write_cookie()
        self.epmd.start()
        self.epmd.wait_ready(timeout)
        self.server.start()


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0
