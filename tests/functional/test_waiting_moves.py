"""Moves are asked of Nova's scheduler in the state in which they run."""

from nova import context
from nova import objects
from oslo_utils.fixture import uuidsentinel as uuids

from kronos_nova.objects import plan as plans
from kronos_nova.objects.dry_run import AGREED
from kronos_nova.objects.dry_run import CHANGES_YET
from kronos_nova.objects.dry_run import NO_ROOM_YET
from kronos_nova.objects.dry_run import ROOM
from kronos_nova.objects.dry_run import Before
from kronos_nova.objects.dry_run import Verdict
from kronos_nova.plugin import dry_run
from tests.functional.test_balancing import BalancingTestCase

MEMORY_MB, ROOM_FOR = 2048, 3
FILTER = 'nova.scheduler.filters.affinity_filter.ServerGroupAntiAffinityFilter.host_passes'


class WaitingMovesTest(BalancingTestCase):
    """Each host has room for three servers and half a one, by memory."""

    hosts = ('host1', 'host2')

    def setUp(self):
        self.flags(reserved_host_memory_mb=8192 - ROOM_FOR * MEMORY_MB - MEMORY_MB // 2,
                   ram_allocation_ratio=1.0)
        super().setUp()
        self.flavor = self._create_flavor(memory_mb=MEMORY_MB, vcpu=1, disk=1, ephemeral=0)

    def fill(self, host, servers):
        return [self.boot(host, flavor_id=self.flavor)['id'] for _ in range(servers)]

    def ask(self, uuid, destination='host2', **before):
        """Ask about a move after some others (uuids)."""
        known = {each.uuid: each for each in self.inventory.read().instances}
        return dry_run.SchedulerDryRun()(
            plans.PlannedMove(
                order=1, phase=plans.EVACUATE, instance_uuid=uuid, source='host1',
                destination=destination, memory_mb=MEMORY_MB, combined_after=0.0, reason=''),
            None, None, Before(**{
                name: value if name == 'alike' else tuple(known[other] for other in value)
                for name, value in before.items()}))

    def refuse(self, refuses):
        """Let a filter refuse hosts."""
        self.stub_out(FILTER, lambda _self, host, _spec: not refuses(host))

    def test_a_server_with_contradicting_records_is_refused_alone(self):
        """Nova's request for the server names no group, but the group has it as a member."""
        first, second = self.fill('host1', 2)
        admin = context.get_admin_context()
        group = objects.InstanceGroup(
            admin, uuid=uuids.group, name='g', policy='anti-affinity', rules={},
            project_id=self.api.project_id, user_id='u', members=[first])
        group.create()
        refused = self.ask(first).refused
        self.assertIn('Nova cannot prepare a live migration of it: AttributeError', refused)
        self.assertEqual(AGREED, self.ask(second))

    def test_room_that_another_leaves_is_not_asked_for(self):
        [server], others = self.fill('host1', 1), self.fill('host2', ROOM_FOR)
        written = self.placement_fixture.writes_of_allocations()
        self.assertIn('no candidate', self.ask(server).refused)
        self.assertEqual(Verdict(without=ROOM), self.ask(server, leaving=others[:1]))
        self.assertEqual(Verdict(without=ROOM), self.ask(
            server, leaving=others[:1], arriving=others[1:2]))
        self.assertEqual(written, self.placement_fixture.writes_of_allocations())

    def test_filters_that_do_not_count_servers_refuse_for_good(self):
        [server], others = self.fill('host1', 1), self.fill('host2', ROOM_FOR)
        self.refuse(lambda host: host.host == 'host2')
        self.assertIn('a filter', self.ask(server, leaving=others[:1]).refused)

    def test_filters_are_asked_though_there_is_no_room_yet(self):
        [server], others = self.fill('host1', 1), self.fill('host2', ROOM_FOR)
        self.refuse(lambda host: host.host == 'host2')
        self.assertIn('a filter', self.ask(
            server, leaving=others[:1], arriving=others[1:2]).refused)

    def test_where_no_processor_is_free_nothing_can_be_asked(self):
        [server], others = self.fill('host1', 1), self.fill('host2', ROOM_FOR)
        node = self._get_provider_uuid_by_host('host2')
        inventories = self.placement.get(f'/resource_providers/{node}/inventories').body
        inventories['inventories']['VCPU'] |= {'total': ROOM_FOR, 'allocation_ratio': 1.0}
        self._update_inventory(node, inventories)
        self.assertEqual(Verdict(unasked=NO_ROOM_YET), self.ask(
            server, leaving=others[:1], arriving=others[1:2]))

    def test_as_many_are_asked_for_as_come(self):
        [server] = self.fill('host1', 1)
        self.refuse(lambda host: host.num_instances >= 2)
        self.assertEqual([True, True, False, True], [
            self.ask(server, alike=alike) == AGREED for alike in (0, 1, 2, 1)])

    def test_what_a_member_of_the_group_that_leaves_causes_is_no_refusal(self):
        group = self.api.post_server_groups({'name': 'apart', 'policy': 'anti-affinity'})
        first, second = (self.boot_member(host, group['id']) for host in self.hosts)
        self.assertIn('a filter', self.ask(first).refused)
        self.assertEqual(Verdict(unasked=CHANGES_YET), self.ask(first, leaving=[second]))

    def boot_member(self, host, group):
        request = self._build_server(host=host, networks='none', flavor_id=self.flavor)
        made = self.api.post_server(
            {'server': request, 'os:scheduler_hints': {'group': group}})
        return self._wait_for_state_change(made, 'ACTIVE')['id']
