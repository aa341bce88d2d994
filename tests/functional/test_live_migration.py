"""The atomic live migration task in a whole Nova with a real placement."""

from nova import exception
from nova import utils
from nova.compute import rpcapi

from kronos_nova.plugin import placement
from tests.functional import base

SMALL = {'VCPU': 1, 'MEMORY_MB': 512, 'DISK_GB': 1}


class AtomicTestCase(base.NovaTestCase):
    managers = {'nova-conductor': 'kronos_nova.plugin.managers.Conductor'}

    def setUp(self):
        placement.client.cache_clear()
        self.addCleanup(placement.client.cache_clear)
        super().setUp()

    def writes(self, server):
        """The writes of allocations since this test began that name ``server``."""
        return [(method, body) for method, path, body
                in self.placement_fixture.writes_of_allocations()
                if server['id'] in path or server['id'] in (body or {})]


class AtomicMoveTest(AtomicTestCase):
    hosts = ('host1', 'host2', 'host3')

    def test_one_post_splits_the_allocations_and_the_instance_ends_with_one(self):
        server = self.boot('host1')
        before = len(self.writes(server))

        self.migrate(server, 'host2')
        migration = self._wait_for_migration_status(server, ['completed'])

        [(method, body)] = self.writes(server)[before:]
        self.assertEqual('POST', method)
        source, destination = self.uuid_of('host1'), self.uuid_of('host2')
        self.assertEqual({source: {'resources': SMALL}}, body[migration['uuid']]['allocations'])
        self.assertEqual('MIGRATION', body[migration['uuid']]['consumer_type'])
        self.assertIsNone(body[migration['uuid']]['consumer_generation'])
        self.assertEqual({destination: {'resources': SMALL}}, body[server['id']]['allocations'])
        self.assertEqual('INSTANCE', body[server['id']]['consumer_type'])
        self.assertIsNotNone(body[server['id']]['consumer_generation'])
        self.assertEqual({'host2': SMALL}, self.held_by(server['id']))
        self.assertEqual({}, self.held_by(migration['uuid']))

    def test_without_a_destination_the_scheduler_chooses(self):
        server = self.boot('host1')

        self.migrate(server)
        migration = self._wait_for_migration_status(server, ['completed'])

        host = self.api.get_server(server['id'])['OS-EXT-SRV-ATTR:host']
        self.assertIn(host, ('host2', 'host3'))
        self.assertEqual({host: SMALL}, self.held_by(server['id']))
        self.assertEqual({}, self.held_by(migration['uuid']))

    def test_a_full_destination_is_refused_and_nothing_changes(self):
        server = self.boot('host1')
        self._reserve_placement_resource('host2', 'VCPU', 10)
        self._reserve_placement_resource('host2', 'MEMORY_MB', 8192)
        before = len(self.writes(server))

        self.migrate(server, 'host2')
        migration = self._wait_for_migration_status(server, ['error'])

        server = self._wait_for_server_parameter(
            server, {'status': 'ACTIVE', 'OS-EXT-STS:task_state': None})
        self.assertEqual([], self.writes(server)[before:])
        self.assertEqual({'host1': SMALL}, self.held_by(server['id']))
        self.assertEqual({}, self.held_by(migration['uuid']))

    def test_a_host_that_fails_the_live_checks_is_replaced_by_the_next(self):
        server = self.boot('host1')
        refused = []

        def check(this, context, instance, destination, *args, **kwargs):
            if not refused:
                refused.append(destination)
                raise exception.MigrationPreCheckError(reason='not here')
            return real(this, context, instance, destination, *args, **kwargs)

        real = rpcapi.ComputeAPI.check_can_live_migrate_destination
        self.stub_out('nova.compute.rpcapi.ComputeAPI.check_can_live_migrate_destination', check)
        self.migrate(server)
        migration = self._wait_for_migration_status(server, ['completed'])

        [other] = {'host2', 'host3'} - set(refused)
        self.assertEqual({other: SMALL}, self.held_by(server['id']))
        self.assertEqual({}, self.held_by(migration['uuid']))

    def test_when_every_host_fails_the_checks_the_source_is_restored(self):
        server = self.boot('host1')

        def check(*args, **kwargs):
            raise exception.MigrationPreCheckError(reason='nowhere')

        self.stub_out('nova.compute.rpcapi.ComputeAPI.check_can_live_migrate_destination', check)
        self.migrate(server)
        migration = self._wait_for_migration_status(server, ['error'])
        self._wait_for_server_parameter(server, {'status': 'ACTIVE', 'OS-EXT-STS:task_state': None})

        self.assertEqual({'host1': SMALL}, self.held_by(server['id']))
        self.assertEqual({}, self.held_by(migration['uuid']))

    def test_a_forced_move_skips_the_scheduler_and_claims_in_one_post(self):
        server = self.boot('host1')
        before = len(self.writes(server))

        with utils.temporary_mutation(self.api, microversion='2.67'):
            self.api.post_server_action(server['id'], {'os-migrateLive': {
                'host': 'host3', 'block_migration': 'auto', 'force': True}})
        migration = self._wait_for_migration_status(server, ['completed'])

        self.assertEqual(['POST'], [method for method, _body in self.writes(server)[before:]])
        self.assertEqual({'host3': SMALL}, self.held_by(server['id']))
        self.assertEqual({}, self.held_by(migration['uuid']))


class DeletedMeanwhileTest(AtomicTestCase):
    def test_a_server_deleted_before_the_rollback_gets_nothing_back(self):
        """Bug 1848343: Nova's rollback gives the allocation of a deleted server back to it."""
        server = self.boot('host1')

        def check(this, context, instance, *args, **kwargs):
            instance.destroy()
            self.placement.delete(f'/allocations/{instance.uuid}')
            raise exception.MigrationPreCheckError(reason='deleted')

        self.stub_out('nova.compute.rpcapi.ComputeAPI.check_can_live_migrate_destination', check)
        self.migrate(server, 'host2')
        def nobody_holds_anything():
            # The API does not list migrations of deleted servers.
            consumers = {uuid for method, body in self.writes(server) if method == 'POST'
                         for uuid in body}
            self.assertEqual(2, len(consumers))
            self.assertEqual([{}, {}], [self.held_by(uuid) for uuid in consumers])

        self._wait_for_assert(nobody_holds_anything)
