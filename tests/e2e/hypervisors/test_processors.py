"""A destination whose processor lacks what a guest was promised."""

import contextlib

from tests.e2e.hypervisors import faulty

MODEL, FEATURE = 'Nehalem', 'sse4.2'
QEMU = '/usr/bin/qemu-system-x86_64'

LESSER_QEMU = f'''#!/bin/sh
exec {{qemu}} "$@" -L /usr/share/qemu -global {MODEL}-x86_64-cpu.{FEATURE}=off
'''
"""Without KVM, a host's processor is what its QEMU computes."""


class ProcessorsTest(faulty.FaultyTestCase):
    nova_conf = {**faulty.FaultyTestCase.nova_conf, 'libvirt': {
        'live_migration_bandwidth': faulty.BANDWIDTH_MIB, 'cpu_mode': 'custom',
        'cpu_models': MODEL}}

    def test_the_destination_has_a_lesser_one(self):
        [uuid] = self.boot(1, 'compute1', memory_mb=32)
        with self.lesser_processor(self.destination):
            [move] = self.carry_out([faulty.planned(uuid)])
        self.assert_failed(move, FEATURE)
        self.assert_runs_on(uuid)
        # And the next move takes it there.
        self.assert_well_done(self.carry_out([faulty.planned(uuid)]))
        self.assert_runs_on(uuid, 'compute2')

    @contextlib.contextmanager
    def lesser_processor(self, host):
        """Let libvirt there ask QEMU again, which has changed."""
        qemu, lesser = host.folder / 'qemu', host.folder / 'lesser-qemu'
        qemu.touch()
        lesser.write_text(LESSER_QEMU.format(qemu=qemu))
        lesser.chmod(0o755)
        host.machine.run('mount', '--bind', QEMU, str(qemu))
        host.machine.run('mount', '--bind', str(lesser), QEMU)
        try:
            yield
        finally:
            host.machine.run('umount', '--lazy', QEMU)
            host.machine.run('umount', '--lazy', str(qemu))
