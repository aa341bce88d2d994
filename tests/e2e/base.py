"""A test case with a cloud in a box, shared by the tests of a class."""

import collections

import testtools
from testtools import content

from tests.e2e import box
from tests.e2e.box.processes import wait_for
from tests.e2e.demo import evidence

FLAVOR = 'm1.small'
RESOURCES = {'VCPU': 1, 'MEMORY_MB': 2048, 'DISK_GB': 1}


class CloudTestCase(testtools.TestCase):
    """Subclasses say in ``settings`` what cloud they need; a failing test brings the logs' ends."""

    settings = box.Settings(computes=3)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cloud = box.Cloud(cls.settings)
        cls.addClassCleanup(cls.cloud.stop)
        cls.prepare()
        cls.cloud.start()
        cls.client = cls.cloud.client
        cls.client.create_flavor(FLAVOR, vcpus=1, ram=2048)

    @classmethod
    def prepare(cls):
        """Called before the cloud starts, when its root and addresses are known."""

    def setUp(self):
        super().setUp()
        self.addOnException(self._attach_logs)

    def _attach_logs(self, _exc_info):
        for daemon in self.cloud.nova.all():
            self.addDetail(daemon.name, content.text_content(daemon.process.tail(40)))

    def boot(self, name, host):
        [server] = self.cloud.boot(name, host=host, flavor=FLAVOR)
        return server

    def writes_during(self, work):
        """Run ``work``; the writes of allocations that placement was sent meanwhile."""
        _entries, offset = self.cloud.placement.requests_since()
        work()
        entries, _offset = self.cloud.placement.requests_since(offset)
        return [entry for entry in entries if entry['method'] in ('PUT', 'POST', 'DELETE') and
                entry['path'].startswith('/allocations')]

    def assert_clean(self):
        """Check that every server is ACTIVE with one allocation, where it runs, and that no other
        consumer has any.

        Nova calls a migration completed a moment before it lets go of the source.
        """
        def problems():
            return evidence.audit(self.client, [])['problems']
        wait_for(lambda: not problems(), 20, lambda: f'allocations are wrong: {problems()}')

    def assert_moved_once(self, moves):
        """Each server has as many completed live migrations as it had moves.

        There may be others that came to nothing: what the killed worker was preparing dies with
        it, and the move is tried again.
        """
        wanted = collections.Counter(move['instance_uuid'] for move in moves)
        found, others = collections.Counter(), set()
        for server in wanted:
            states = [each['status'] for each in self.client.migrations(instance_uuid=server)]
            found[server] = states.count('completed')
            others |= {*states} - {'completed'}
        self.assertEqual(wanted, found)
        self.assertLessEqual(others, {'error', 'failed'})
