"""A host is emptied of servers that their owners locked, by Nova's own API."""

from nova.tests.functional.api import client

from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from tests.functional import test_balancing


class LockedTest(test_balancing.BalancingTestCase):
    def lock(self, server):
        owner = client.TestOpenStackClient(
            'owner', self.api.base_url, server['tenant_id'], roles=['reader', 'member'])
        owner.post_server_action(server['id'], {'lock': {}})

    def test_locked_servers_leave_a_disabled_host_and_stay_locked(self):
        self.flags(evacuate_disabled_hosts=True, group='kronos')
        servers = [self.boot('host1') for _ in range(2)]
        for server in servers:
            self.lock(self.api.get_server(server['id']))
        [service] = self.api.get_services(host='host1', binary='nova-compute')
        self.api.put_service(service['id'], {'status': 'disabled'})
        report = self.cycle()
        self.assertEqual({plans.EVACUATE}, {move.phase for move in report.moves})
        self.assertEqual([moves.COMPLETED] * 2, [move.state for move in self.carry_out()])
        self.assertNotIn('host1', self.hosts_of(servers))
        for server in servers:
            self.assertTrue(self.api.get_server(server['id'])['locked'])
            self.assertEqual(1, len(self.held_by(server['id'])))

    def test_locked_servers_are_not_balanced(self):
        servers = [self.boot('host1') for _ in range(4)]
        for server in servers:
            self.lock(self.api.get_server(server['id']))
        self.assertEqual((), self.cycle().moves)
        self.assertEqual([], self.journal.moves())

