"""Live migrations between hosts that are all but full: room is never promised twice."""

from nova.scheduler.client import query
from oslo_utils import uuidutils

from kronos_nova.placement.allocations import INSTANCE
from kronos_nova.placement.allocations import AllocationSet
from kronos_nova.placement.allocations import Consumer
from tests.functional import test_live_migration

ROOM_FOR = 3
MEMORY_MB = 2048


class TightRoomTest(test_live_migration.AtomicTestCase):
    """Each host has room for three servers, by memory."""

    def setUp(self):
        self.flags(reserved_host_memory_mb=8192 - ROOM_FOR * MEMORY_MB, ram_allocation_ratio=1.0)
        super().setUp()
        self.flavor = self._create_flavor(memory_mb=MEMORY_MB, vcpu=1, disk=1, ephemeral=0)
        self.sampled = []

    def watch(self):
        """Sample what is promised on each host at every write of allocations."""
        hosts = [self.uuid_of(host) for host in self.hosts]

        def sample(method, path, body):
            if method in ('POST', 'PUT') and path.startswith('/allocations'):
                self.sampled.append(tuple(
                    self._get_provider_usages(host)['MEMORY_MB'] // MEMORY_MB for host in hosts))

        self.placement_fixture.after = sample

    def fill(self, host, servers):
        return [self.boot(host, flavor_id=self.flavor) for _ in range(servers)]

    def test_two_servers_swap_hosts_that_have_room_for_one_more(self):
        left, right = self.fill('host1', 2)[0], self.fill('host2', 2)[0]
        self.watch()

        self.migrate(left, 'host2')
        self.migrate(right, 'host1')
        self._wait_for_migration_status(left, ['completed'])
        self._wait_for_migration_status(right, ['completed'])

        self.server_on(left, 'host2')
        self.server_on(right, 'host1')
        self.assertEqual(['host2'], list(self.held_by(left['id'])))
        self.assertEqual(['host1'], list(self.held_by(right['id'])))
        self.assertTrue(all(max(usage) <= ROOM_FOR for usage in self.sampled), self.sampled)

    def test_a_destination_that_was_filled_after_the_choice_is_refused(self):
        [server] = self.fill('host1', 1)
        self.fill('host2', 2)
        self.watch()
        destination = self.uuid_of('host2')

        def taken_after_the_scheduler_chose(real):
            def select_destinations(*args, **kwargs):
                chosen = real(*args, **kwargs)
                if not self.placement_client.held_on(destination).get(stranger):
                    self.placement_client.post(AllocationSet.from_consumers(Consumer(
                        uuid=stranger, allocations={destination: {'MEMORY_MB': MEMORY_MB}},
                        project_id='a', user_id='b', consumer_type=INSTANCE)))
                return chosen

            return select_destinations

        stranger = uuidutils.generate_uuid()
        client = 'nova.scheduler.client.query.SchedulerQueryClient'
        self.stub_out(f'{client}.select_destinations', taken_after_the_scheduler_chose(
            query.SchedulerQueryClient.select_destinations))
        self.migrate(server, 'host2')
        migration = self._wait_for_migration_status(server, ['error'])

        self.server_on(server, 'host1')
        self.assertEqual(['host1'], list(self.held_by(server['id'])))
        self.assert_holds(migration['uuid'], {})
        self.assertTrue(all(max(usage) <= ROOM_FOR for usage in self.sampled), self.sampled)
        event = self._wait_for_action_fail_completion(
            server, 'live-migration', 'conductor_live_migrate_instance')
        self.assertIn('NoValidHost', event['traceback'])
