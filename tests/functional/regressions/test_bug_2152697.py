"""A pinned server that was started by a Nova before 2026.1 has no IO thread to pin again.

Nova 33 raises an AttributeError out of its driver, and has the server in ERROR though it runs on.
"""

import importlib.metadata

from nova.tests.fixtures import libvirt as fakelibvirt

from tests.functional.inventory import test_numa

IS_FIXED = not importlib.metadata.version('nova').startswith('33.')


class WithoutIoThreadTest(test_numa.NumaTestCase):
    hosts = ()

    def setUp(self):
        super().setUp()
        self.flags(cpu_shared_set='0,1', cpu_dedicated_set='2,3', group='compute')
        for host in ('a', 'b'):
            self.start_compute(hostname=host, host_info=fakelibvirt.HostInfo(
                cpu_nodes=1, cpu_sockets=1, cpu_cores=4, cpu_threads=1))
        self.server = self._create_server(host='a', networks='none', flavor_id=self._create_flavor(
            vcpu=1, memory_mb=512, disk=1, extra_spec=test_numa.PINNED))

    def make_old(self):
        """Let libvirt know the guest without what Nova asks for since 2026.1."""
        (domain,) = self.computes['a'].driver._host.get_connection()._vms.values()
        for key in ('iothreads', 'iothread_pin'):
            domain._def.pop(key)
        domain._job_type = fakelibvirt.VIR_DOMAIN_JOB_NONE    # as it is before libvirt is asked

    def test_it_moves_or_runs_on_where_it_was(self):
        self.make_old()
        self.src, self.dest = self.computes['a'], self.computes['b']
        status, host, pinned = ('completed', 'b', {'a': [0], 'b': [1]}) if IS_FIXED else (
            'failed', 'a', {'a': [1], 'b': [0]})
        self._live_migrate(self.server, status, host='b')
        self.assertEqual(host, self.api.get_server(self.server['id'])['OS-EXT-SRV-ATTR:host'])
        self._wait_for_assert(lambda: self.assertEqual(pinned, self.pinned()))
