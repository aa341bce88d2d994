"""A second balancer at work: a script that moves servers back to where they were booted. Kronos
reports it within three evaluations of the third server that was moved back."""

import datetime
import json
import pathlib
import threading
import time

import fixtures
import testtools

from tests.e2e import box
from tests.e2e.box import processes
from tests.e2e.test_record import POLICIES

INTERVAL = 10
SERVERS = 8
ENOUGH = 3
"""Live migrations of others from which Kronos takes them for another balancer's."""


class Rival(fixtures.Fixture):
    """Moves every server that is elsewhere back to its host, as another tool's optimizer would.

    :ivar ended: when each of its live migrations had ended, in Unix seconds
    """

    def __init__(self, client, homes):
        self.client, self.homes = client, homes
        self.ended, self._over = [], threading.Event()

    def _setUp(self):
        worker = threading.Thread(target=self._work, daemon=True)
        self.addCleanup(worker.join, 60)
        self.addCleanup(self._over.set)
        worker.start()

    def _work(self):
        while not self._over.wait(0.5):
            for server in self.client.servers():
                uuid, host = server['id'], server['OS-EXT-SRV-ATTR:host']
                if host != self.homes[uuid] and server['OS-EXT-STS:task_state'] is None:
                    self._move_back(uuid)

    def _move_back(self, uuid):
        self.client.live_migrate(uuid, self.homes[uuid])
        if self.client.migration_ended(uuid)['status'] == 'completed':
            self.ended.append(time.time())


class OtherBalancerTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        policies = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / 'policies.yaml'
        policies.write_text(POLICIES)
        self.cloud = box.Cloud(box.Settings(computes=2, kronos=True, nova_conf={'kronos': {
            'policies_file': policies, 'aggregates': 'rack', 'evaluation_interval': INTERVAL,
            'automation': 'auto', 'cooldown': 0, 'restraint': 0}}))
        self.addCleanup(self.cloud.stop)
        self.cloud.start()

    def populate(self):
        """Servers on one host; their hosts by uuid."""
        client = self.cloud.client
        client.create_flavor('m1.small', vcpus=1, ram=4096)
        client.create_aggregate('rack', self.cloud.settings.hosts())
        names = [f'web{number}' for number in range(SERVERS)]
        self.cloud.monitoring.set_load({name: {'cpu': 0.1, 'memory': 0.9} for name in names})
        host = sorted(self.cloud.settings.hosts())[0]
        return dict.fromkeys(self.cloud.boot(*names, host=host), host)

    def evaluation(self):
        """(when it was made, in Unix seconds, what it warns of) of the last evaluation; (0, [])
        before the first."""
        status = json.loads(self.cloud.manage('status', '-f', 'json', check=False))
        for row in status['aggregates']:
            if row['name'] == 'rack' and row['evaluated_at']:
                return (datetime.datetime.fromisoformat(row['evaluated_at']).timestamp(),
                        [each for each in row['warnings'] if 'another balancer' in each])
        return 0, []

    def test_servers_that_a_script_moves_back_are_reported(self):
        homes = self.populate()
        rival = self.useFixture(Rival(self.cloud.client, homes))
        processes.wait_for(lambda: len(rival.ended) >= ENOUGH, 300, 'no server was moved back',
                           interval=0.5)
        enough_at, seen = rival.ended[ENOUGH - 1], {}

        def is_reported():
            at, warnings = self.evaluation()
            if at > enough_at:
                seen[at] = warnings
            return bool(warnings)

        processes.wait_for(is_reported, 6 * INTERVAL, lambda: f'it is not reported: {seen}',
                           interval=1)
        self.assertLessEqual(len(seen), 3)
        warning, = self.evaluation()[1]
        self.assertIn('live migrations of servers that Kronos has moved were made by others',
                      warning)
        self.assertTrue(any(uuid in warning for uuid in homes))
