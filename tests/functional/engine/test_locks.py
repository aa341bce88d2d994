"""The locks on aggregates, on the back ends of tooz that this machine has."""

import shutil
import signal
import subprocess
import sys
import time
from unittest import mock

import fixtures
import requests
import testtools
from tooz import coordination

from kronos_nova import exception
from kronos_nova.engine import locks
from tests.e2e.box import processes
from tests.e2e.box import settings
from tests.functional import mariadb

ODD = 'all/of ../it: ' + 'x' * 230
HOLDER = """
import sys, time
from kronos_nova.engine import locks
held = locks.AggregateLocks(sys.argv[1], sys.argv[2], 'holder')
print(held.acquire('gpu'), flush=True)
time.sleep(600)
"""


class LocksTest:
    """The contract of back ends. ``url`` is set by the subclasses, ``expiry`` is how many
    seconds the lock of a dead process may last."""

    expiry = 15
    url = None

    def member(self, name):
        made = locks.AggregateLocks(self.url, self.state_path, name)
        self.addCleanup(made.release_all)
        return made

    def start(self, server):
        server.start()
        self.addCleanup(server.kill)
        server.wait_ready(60)

    @property
    def state_path(self):
        return self.useFixture(fixtures.TempDir()).path

    def test_one_worker_plans_an_aggregate_and_others_plan_others_meanwhile(self):
        one, two = self.member('one'), self.member('two')
        for name in ('gpu', ODD):
            self.assertTrue(one.acquire(name))
            self.assertFalse(two.acquire(name))
        self.assertTrue(two.acquire('other'))
        one.heartbeat()
        one.release('gpu')
        self.assertTrue(two.acquire('gpu'))
        self.assertFalse(two.acquire(ODD))
        one.release_all()
        self.assertTrue(two.acquire(ODD))

    def test_another_takes_over_from_one_that_is_killed(self):
        heir = self.member('heir')
        holder = subprocess.Popen(
            [sys.executable, '-c', HOLDER, self.url, self.state_path],
            stdout=subprocess.PIPE, text=True)
        self.addCleanup(holder.stdout.close)
        self.addCleanup(holder.wait)
        self.addCleanup(holder.kill)
        self.assertEqual('True', holder.stdout.readline().strip())
        self.assertFalse(heir.acquire('gpu'))
        holder.send_signal(signal.SIGKILL)
        deadline = time.monotonic() + self.expiry
        while not heir.acquire('gpu'):
            self.assertLess(time.monotonic(), deadline, 'the lock of a dead process stays')
            time.sleep(0.2)


class FilesTest(LocksTest, testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.url = f'file://{self.state_path}'

    def test_a_back_end_that_went_away_is_a_warning(self):
        # A real one would be asked again for a minute.
        one = self.member('one')
        one.acquire('gpu')
        with mock.patch.object(one._coordinator, 'heartbeat',
                               side_effect=coordination.ToozConnectionError('injected')), \
                self.assertLogs('kronos_nova.engine.locks', 'WARNING') as logged:
            one.heartbeat()
        self.assertIn('at the same time: injected', logged.output[0])


class MySqlTest(LocksTest, testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.url = f'mysql://{self.useFixture(mariadb.MariaDB()).login}/kronos'


@testtools.skipUnless(shutil.which('redis-server'), 'redis-server is not installed')
class RedisTest(LocksTest, testtools.TestCase):
    expiry = 30

    def setUp(self):
        super().setUp()
        port = settings.Ports().take()
        server = processes.Process(
            'redis', ['redis-server', '--port', port, '--bind', '127.0.0.1', '--save', '',
                      '--dir', self.state_path], self.state_path,
            ready=lambda: subprocess.run(['redis-cli', '-p', str(port), 'ping'],
                                         capture_output=True).stdout == b'PONG\n')
        self.start(server)
        self.url = f'redis://127.0.0.1:{port}?lock_timeout=6'


@testtools.skipUnless(shutil.which('etcd'), 'etcd is not installed')
class Etcd3Test(LocksTest, testtools.TestCase):
    expiry = 30

    def setUp(self):
        super().setUp()
        ports = settings.Ports()
        client, peers = (f'http://127.0.0.1:{ports.take()}' for _ in range(2))
        server = processes.Process(
            'etcd', ['etcd', '--data-dir', f'{self.state_path}/etcd',
                     '--listen-client-urls', client, '--advertise-client-urls', client,
                     '--listen-peer-urls', peers, '--initial-advertise-peer-urls', peers,
                     '--initial-cluster', f'default={peers}'], self.state_path,
            ready=lambda: self.is_healthy(client))
        self.start(server)
        self.url = f'etcd3+{client}?lock_timeout=6'

    @staticmethod
    def is_healthy(url):
        try:
            # Later releases tell a reason too.
            return requests.get(f'{url}/health', timeout=1).json()['health'] == 'true'
        except requests.RequestException:
            return False


class WrongUrlTest(testtools.TestCase):
    def test_a_back_end_that_there_is_not_is_named_with_the_option(self):
        error = self.assertRaises(exception.ConfigurationError, locks.AggregateLocks,
                                  'nonsense://here', '/nonexistent', 'one')
        self.assertIn('[kronos] coordination_url', str(error))
