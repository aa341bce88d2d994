"""nova-compute is killed at each status of a live migration, at either end, and started again.

A process is held at the status in question: a nova-compute that is stopped (``SIGSTOP``) answers
no request.
"""

import os
import signal

from tests.e2e.box.processes import wait_for
from tests.e2e.hypervisors import faulty

SOON = 0.005
"""Seconds between two looks for what does not last."""

ANSWER_SECONDS = 20

PATIENCE_SECONDS = 120
"""Seconds for which the source asks a destination to do the rest (``PATIENCE_SECONDS`` of the fix
``post_migration_retry``)."""


class KilledComputesTest(faulty.FaultyTestCase):
    nova_conf = {**faulty.FaultyTestCase.nova_conf,
                 # The next one is queued.
                 'DEFAULT': {'max_concurrent_live_migrations': 1,
                             'rpc_response_timeout': ANSWER_SECONDS, 'long_rpc_timeout': 60}}

    def begin(self, **work):
        [uuid] = self.boot(1, 'compute1', **work)
        self.start([faulty.planned(uuid)])
        return uuid

    def begin_copy(self, **work):
        uuid = self.begin(**work)
        wait_for(lambda: self.is_copying(uuid), 60, 'nothing is copied')
        return uuid

    def wait_status(self, uuid, *statuses, timeout=60):
        wait_for(lambda: self.migration_status(uuid) in statuses, timeout,
                 lambda: f'the migration is {self.migration_status(uuid)}', SOON)

    def listen(self, name):
        """Asks whether that nova-compute has written something into its log since now."""
        log = self.cloud.nova.computes[name].process.log
        begin = log.stat().st_size
        return lambda text: text in log.read_bytes()[begin:]

    def stop(self, name):
        os.kill(self.cloud.nova.computes[name].process.pid, signal.SIGSTOP)
        self.addCleanup(self.go_on, name)

    def go_on(self, name):
        if self.cloud.nova.computes[name].process.alive():
            os.kill(self.cloud.nova.computes[name].process.pid, signal.SIGCONT)

    def kill(self, name):
        self.cloud.nova.computes[name].process.kill()
        self.addCleanup(self.ensure, name)

    def ensure(self, name):
        """Start a nova-compute that a failed test has left dead, for the tests after it."""
        if not self.cloud.nova.computes[name].process.alive():
            self.restart(name)

    def restart(self, name):
        self.cloud.nova.computes[name].start()

    def kill_and_restart(self, name):
        self.kill(name)
        self.restart(name)

    def has_arrived(self, uuid):
        return uuid in self.domains()['compute2']

    def assert_sound(self, *uuids):
        """Wherever they ended, they run once, as Nova says, and nothing is left elsewhere; hosts"""
        self.wait_ended(300)
        hosts = []
        for uuid in uuids:
            wait_for(lambda uuid=uuid: self.cloud.client.server(uuid)[
                'OS-EXT-STS:task_state'] is None, 120, f'{uuid} is not set free')
            hosts.append(self.cloud.client.host(uuid))
            print(f'{self.id()}: at {hosts[-1]}')
            self.assert_runs_on(uuid, hosts[-1])
        return hosts

    # queued

    def begin_queued(self):
        """Two of whom one is copied and the other waits for it."""
        uuids = self.boot(2, 'compute1', **faulty.RESTLESS)
        self.start([faulty.planned(uuid, order) for order, uuid in enumerate(uuids, 1)])
        wait_for(lambda: sorted(self.migration_status(uuid) or '' for uuid in uuids) ==
                 ['queued', 'running'], 60, 'none is queued')
        return uuids

    def test_the_source_while_one_is_queued(self):
        uuids = self.begin_queued()
        self.kill_and_restart('compute1')
        self.assertEqual(['compute1', 'compute1'], self.assert_sound(*uuids))

    def test_the_destination_while_one_is_queued(self):
        uuids = self.begin_queued()
        self.kill_and_restart('compute2')
        self.end_copies(uuids)
        self.assert_sound(*uuids)

    def end_copies(self, uuids):
        """End the copies of guests that would never be copied."""
        for uuid in sorted(uuids, key=self.migration_status, reverse=True):    # running, queued
            wait_for(lambda uuid=uuid: self.is_copying(uuid), 90, 'nothing is copied')
            self.force(uuid)
            self.wait_status(uuid, 'completed', 'failed', 'error')

    # preparing

    def begin_preparing(self):
        uuid = self.begin(memory_mb=32)
        self.wait_status(uuid, 'queued', 'preparing')
        self.stop('compute2')
        self.wait_status(uuid, 'preparing')
        return uuid

    def test_the_source_while_the_destination_prepares(self):
        uuid = self.begin_preparing()
        self.kill('compute1')
        self.go_on('compute2')
        self.restart('compute1')
        self.assertEqual(['compute1'], self.assert_sound(uuid))

    def test_the_destination_while_it_prepares(self):
        uuid = self.begin_preparing()
        self.kill_and_restart('compute2')
        self.assert_sound(uuid)

    # running

    def test_the_source_while_it_is_copied(self):
        uuid = self.begin_copy(memory_mb=64, dirty_mb_s=2 * faulty.BANDWIDTH_MIB)
        self.kill_and_restart('compute1')
        self.assertEqual(['compute1'], self.assert_sound(uuid))

    def test_the_source_is_away_when_the_guest_arrives(self):
        uuid = self.begin_copy(memory_mb=32)
        self.kill('compute1')
        wait_for(lambda: self.has_arrived(uuid), 120, 'it does not arrive')
        self.restart('compute1')
        self.assertEqual(['compute2'], self.assert_sound(uuid))

    def test_the_destination_while_it_is_copied(self):
        uuid = self.begin_copy(memory_mb=64)
        self.kill_and_restart('compute2')
        self.assert_sound(uuid)

    # running, and the guest has arrived

    def begin_arrival(self):
        """The source asks the destination, which does not answer, to do the rest."""
        uuid = self.begin_copy(memory_mb=32)
        self.stop('compute2')
        has_written = self.listen('compute1')
        wait_for(lambda: has_written(b'_post_live_migration() is started'), 120,
                 'it does not arrive')
        return uuid

    def test_the_source_when_the_guest_has_arrived(self):
        uuid = self.begin_arrival()
        self.kill('compute1')
        self.go_on('compute2')
        self.restart('compute1')
        self.assertEqual(['compute2'], self.assert_sound(uuid))

    def test_the_destination_when_the_guest_has_arrived(self):
        uuid = self.begin_arrival()
        self.kill_and_restart('compute2')
        self.assertEqual(['compute2'], self.assert_sound(uuid))

    def begin_last_steps(self):
        """The destination has been asked, and has begun to do the rest."""
        has_written = self.listen('compute2')
        uuid = self.begin_copy(memory_mb=32)
        wait_for(lambda: has_written(b'Post operation of migration started'), 120,
                 'it does not arrive', SOON)
        return uuid

    def test_the_destination_in_its_last_steps(self):
        uuid = self.begin_last_steps()
        self.kill_and_restart('compute2')
        self.assertEqual(['compute2'], self.assert_sound(uuid))

    def test_the_destination_in_its_last_steps_and_for_longer(self):
        """It is back when the source has given up asking it."""
        uuid = self.begin_last_steps()
        self.kill('compute2')
        self.wait_status(uuid, 'completed', timeout=PATIENCE_SECONDS + 3 * ANSWER_SECONDS)
        self.restart('compute2')
        self.assertEqual(['compute2'], self.assert_sound(uuid))
