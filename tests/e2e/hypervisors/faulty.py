"""Faults of hosts while their guests move, and the checks of guests after them."""

import contextlib
import os
import pathlib
import resource
import signal
import sqlite3
import time

from kronos_nova import clock
from kronos_nova.objects import move as moves
from tests.e2e.box.processes import wait_for
from tests.e2e.executor import base as executor_base
from tests.e2e.hypervisors import base

BANDWIDTH_MIB = 8
"""MiB a second that Nova lets a copy take: time enough to interfere."""

RESTLESS = {'memory_mb': 64, 'dirty_mb_s': 4 * BANDWIDTH_MIB}
"""The work of a guest that is never copied as fast as it writes."""

LITTLE_DISK = 2 ** 16
"""Bytes that no guest's disk fits into."""

SPARE_MEMORY = 2 ** 27
"""Bytes that libvirt may take besides those that it has. QEMU without KVM takes three times as many
for what it computes alone."""


def planned(uuid, order=1):
    return executor_base.planned(uuid, 'compute1', 'compute2', order)


class FaultyTestCase(base.HypervisorTestCase):
    """Moves from compute1 to compute2; ``source`` and ``destination`` are these HypervisorHosts."""

    executor = {'max_retries': 0}
    nova_conf = {'libvirt': {'live_migration_bandwidth': BANDWIDTH_MIB},
                 'kronos_allocations': {'reconcile_interval': 2, 'grace': 5, 'task_timeout': 5}}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.source, cls.destination = (cls.hypervisors[name] for name in ('compute1', 'compute2'))

    def move(self, uuid):
        """The MoveRecord of its move, as soon as that is in the middle of its copy."""
        plan = self.start([planned(uuid)])
        [move] = self.journal.moves(plan)
        self.wait_state(move.uuid, moves.MIGRATING)
        wait_for(lambda: self.is_copying(uuid), 60, 'nothing is copied')
        return move

    def is_copying(self, uuid):
        found = self.source.virsh('domjobinfo', uuid)
        return 'Memory remaining' in found and 'Memory processed:    0.000' not in found

    def ended(self, move, timeout=180):
        self.wait_ended(timeout)
        return self.journal.move(move.uuid)

    # What happens

    def kill_qemu(self, host, uuid):
        os.kill(self.qemu(host, uuid), signal.SIGKILL)

    def qemu(self, host, uuid):
        """The process of a guest; hosts share this machine's process ids."""
        return int((host.guests / f'{self.domain(uuid)}.pid').read_text())

    @staticmethod
    def restart_libvirtd(host):
        host.libvirtd.kill()
        host.start_libvirtd(60)

    def cut_link(self, host):
        self.cloud.hypervisors.switch.unplug(host.machine)
        self.addCleanup(self.plug_in, host)

    def plug_in(self, host):
        self.cloud.hypervisors.switch.plug(host.machine)

    @contextlib.contextmanager
    def without_memory(self, host):
        """Limit the memory of processes that libvirt starts there to little more than its own."""
        pid = host.libvirtd.pid
        pages = int(pathlib.Path(f'/proc/{pid}/statm').read_text().split()[0])
        had = resource.prlimit(pid, resource.RLIMIT_AS, (
            pages * resource.getpagesize() + SPARE_MEMORY, resource.RLIM_INFINITY))
        try:
            yield
        finally:
            resource.prlimit(pid, resource.RLIMIT_AS, had)

    @contextlib.contextmanager
    def without_disk(self, host):
        """Return where instances are there, is no room for another's disk."""
        path = str(self.cloud.hypervisors.instances_path)
        host.machine.run('mount', '-t', 'tmpfs', '-o', f'size={LITTLE_DISK}', 'none', path)
        try:
            yield
        finally:
            host.machine.run('umount', '--lazy', path)

    @contextlib.contextmanager
    def full_storage(self):
        """Nothing more can be written to what the hosts share."""
        self.cloud.hypervisors.storage.fill()
        try:
            yield
        finally:
            self.cloud.hypervisors.storage.empty()

    def force(self, uuid):
        [migration] = self.cloud.client.compute(
            'GET', f'/servers/{uuid}/migrations')['migrations']
        self.cloud.client.compute('POST', f'/servers/{uuid}/migrations/{migration["id"]}/action',
                                  json={'force_complete': None})

    # What has to be true

    def assert_failed(self, move, text, error_type='MigrationFailed'):
        """Check that the reason is reported, and that the instance is left as it is. A refused move
        puts no instance into quarantine."""
        self.assertEqual((moves.FAILED, error_type), (move.state, move.error_type), move)
        print(f'{self.id()}: {move.error}')
        self.assertIn(text, move.error)
        self.assertEqual(error_type != moves.REFUSED,
                         move.instance_uuid in self.cooldowns.quarantined(clock.utcnow()))

    def assert_runs_on(self, uuid, host='compute1'):
        """It runs once, there, and has always; nothing is left elsewhere."""
        self.assertEqual(host, self.cloud.client.host(uuid))
        self.wait_free(uuid, 'ACTIVE')
        self.assert_alive([uuid])
        self.assert_nothing_left(uuid, host)

    def assert_stopped(self, uuid, host='compute1'):
        """It is stopped there, with its files, and can be started again."""
        self.wait_free(uuid, 'SHUTOFF')
        self.assertEqual(host, self.cloud.client.host(uuid))
        self.assertEqual([], [name for name, running in self.domains().items() if uuid in running])
        self.assert_nothing_left(uuid, host)
        self.assert_allocations_exact(60)
        self.cloud.client.compute('POST', f'/servers/{uuid}/action', json={'os-start': None})
        self.assertEqual(host, self.wait_beat(uuid, time.monotonic()))

    def migration_status(self, uuid):
        rows = self.cloud.database.query(
            'nova_cell1', 'SELECT status FROM migrations WHERE instance_uuid = %s', uuid)
        return rows[-1]['status'] if rows else None

    def wait_free(self, uuid, status):
        def state():
            server = self.cloud.client.server(uuid)
            return server['status'], server['OS-EXT-STS:task_state']
        wait_for(lambda: state() == (status, None), 60, lambda: f'{uuid} is {state()}')

    def assert_nothing_left(self, uuid, host):
        """Files and claims of it are on its host, and nowhere else."""
        for name in self.hypervisors:
            wait_for(lambda name=name: self.has_files(name, uuid) == self.is_to_have_files(
                name, host), 60, f'files of {uuid} at {name}, which should be at {host}')
            wait_for(lambda name=name: self.claimed(name).count(uuid) == (name == host), 60,
                     lambda name=name: f'claims at {name}: {self.claimed(name)}')

    def has_files(self, name, uuid):
        return (self.hypervisors[name].instances / uuid).exists()

    def is_to_have_files(self, name, host):
        """Return whether files of an instance at ``host`` are there."""
        return name == host or self.storage == 'shared'

    def claimed(self, host):
        """The instances that nova-compute keeps claims of; it reads the file as anybody may."""
        path = self.cloud.nova.computes[host].state_path / 'claim.sqlite'
        with sqlite3.connect(f'file:{path}?mode=ro', uri=True, timeout=5) as connection:
            return [uuid for uuid, in connection.execute('SELECT instance_uuid FROM claims')]


class EndsOfQemu:
    """Tests for each place of the files of instances."""

    def test_qemu_ends_at_the_source(self):
        [uuid] = self.boot(1, 'compute1', memory_mb=64)
        move = self.move(uuid)
        self.kill_qemu(self.source, uuid)
        self.assert_failed(self.ended(move), 'has ended at compute1')
        self.assert_stopped(uuid)

    def test_qemu_ends_at_the_destination(self):
        [uuid] = self.boot(1, 'compute1', memory_mb=64)
        move = self.move(uuid)
        self.kill_qemu(self.destination, uuid)
        self.assert_failed(self.ended(move), 'runs on at compute1')
        self.assert_runs_on(uuid)
