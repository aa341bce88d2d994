"""A cloud whose guests are real, and what has to be true of them."""

import time

from tests.e2e.box.hypervisors import guests
from tests.e2e.box.hypervisors import heartbeats
from tests.e2e.box.processes import wait_for
from tests.e2e.executor import base

FLAVOR = 'guest'
MEMORY_MB = 128


class HypervisorTestCase(base.ExecutorTestCase):
    """``guests`` and ``heartbeats`` are those of the cloud that all tests of a class share."""

    computes, workers, driver = 2, 1, 'libvirt'

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.guests = guests.Guests(cls.cloud.client)
        cls.cloud.client.create_flavor(FLAVOR, vcpus=1, ram=MEMORY_MB, disk=0)
        cls.hypervisors = cls.cloud.hypervisors.hosts
        cls.heartbeats = heartbeats.Heartbeats(
            {name: host.guests for name, host in cls.hypervisors.items()})
        cls.heartbeats.start()

    @classmethod
    def tearDownClass(cls):
        cls.heartbeats.stop()
        super().tearDownClass()

    def boot(self, count, host, **work):
        """Servers that work so, once their hearts beat; their uuids."""
        image = self.guests.image(**work)
        uuids = [self.cloud.client.create(image, flavor=FLAVOR, host=host)
                 for _number in range(count)]
        self.cloud.client.wait_active(uuids, 60 + 10 * count)
        self.addCleanup(self._delete, uuids)
        for uuid in uuids:
            self.wait_beat(uuid, time.monotonic())
        return uuids

    def wait_beat(self, uuid, since, timeout=60):
        """Wait until it is heard after that; the host where it is."""
        return wait_for(lambda: self.heartbeats.of(uuid, since), timeout,
                        f'{uuid} is not heard')[-1].host

    def domain(self, uuid):
        """The name of its domain in libvirt."""
        return self.cloud.client.server(uuid)['OS-EXT-SRV-ATTR:instance_name']

    def domains(self):
        """{host: instances whose guest runs there, as libvirt says}"""
        return {name: {line.split()[0] for line in host.virsh(
            'list', '--uuid', '--state-running').splitlines() if line}
            for name, host in self.hypervisors.items()}

    def assert_alive(self, uuids, strays=0):
        """Each runs once, where Nova says, and has never run twice or been set back."""
        for uuid in uuids:
            host = self.wait_beat(uuid, time.monotonic(), 20)
            self.assertEqual(self.cloud.client.host(uuid), host)
            self.assertEqual([host], [name for name, running in self.domains().items()
                                      if uuid in running])
            self.assertEqual([], self.heartbeats.strays(uuid))
        self.assert_allocations_exact(120)
