"""Two servers of an anti-affinity group that are migrated at once end on one host.

Nova closed this: a destination looks again once the migration says where it goes, which Kronos'
task has to write down before it tells the source. Here both are checked before either has said so.
"""

import contextlib
import threading

from nova.compute import rpcapi

from tests.functional.regressions import base


class GroupAtOnceTest(base.RegressionTestCase):
    hosts = ('host1', 'host2', 'host3')

    def meet_after_the_checks(self):
        """No migration goes on from the checks at its destination until both were there."""
        real, both = rpcapi.ComputeAPI.check_can_live_migrate_destination, threading.Barrier(2)

        def check(*args, **kwargs):
            try:
                return real(*args, **kwargs)
            finally:
                with contextlib.suppress(threading.BrokenBarrierError):
                    both.wait(10)

        self.stub_out('nova.compute.rpcapi.ComputeAPI.check_can_live_migrate_destination', check)

    def boot_into(self, group):
        server = self.api.post_server({
            'server': self._build_server(networks='none', flavor_id=self.flavors[1]),
            'os:scheduler_hints': {'group': group['id']}})
        return self._wait_for_state_change(server, 'ACTIVE')

    def test_they_do_not_end_on_one_host(self):
        group = self.api.post_server_groups({'name': 'apart', 'policy': 'anti-affinity'})
        servers = [self.boot_into(group) for _ in range(2)]
        self.meet_after_the_checks()

        for server in servers:
            self.migrate(server)
        for server in servers:
            self._wait_for_migration_status(server, ['completed', 'error', 'failed'])
            self._wait_for_server_parameter(server, {'OS-EXT-STS:task_state': None})

        now = [self.api.get_server(server['id'])['OS-EXT-SRV-ATTR:host'] for server in servers]
        self.assertEqual(2, len(set(now)), now)
        for server, host in zip(servers, now, strict=True):
            self.assert_holds(server['id'], self.kind.held(host, 1))


class StockGroupAtOnceTest(GroupAtOnceTest):
    kronos = frozenset()
