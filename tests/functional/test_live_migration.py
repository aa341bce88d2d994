"""The atomic live migration task in a whole Nova with a real placement."""

import contextlib
import datetime
import importlib
import threading

import ddt
import fixtures
import oslo_messaging as messaging
from nova import context
from nova import exception
from nova import objects
from nova import utils
from nova.compute import rpcapi
from oslo_db import exception as db_exc

from kronos_nova import clock
from kronos_nova.db import repairs
from kronos_nova.db import tasks
from kronos_nova.placement import audit
from kronos_nova.placement import reconcile
from kronos_nova.plugin import conductor
from kronos_nova.plugin import managers
from kronos_nova.plugin import nova_records
from tests.functional import base

SMALL = {'VCPU': 1, 'MEMORY_MB': 512, 'DISK_GB': 1}


class AtomicTestCase(base.NovaTestCase):
    managers = {'nova-conductor': 'kronos_nova.plugin.managers.Conductor'}

    def writes(self, server):
        """The writes of allocations since this test began that name ``server``."""
        return [(method, body) for method, path, body
                in self.placement_fixture.writes_of_allocations()
                if server['id'] in path or server['id'] in (body or {})]

    def evacuate(self, server, host):
        """Lose host1, and evacuate a server."""
        self.computes['host1'].stop()
        [service] = self.api.get_services(host='host1', binary='nova-compute')
        self.api.put_service(service['id'], {'forced_down': True})
        self.api.post_server_action(server['id'], {'evacuate': {'host': host}})
        self._wait_for_server_parameter(server, {
            'OS-EXT-SRV-ATTR:host': host, 'OS-EXT-STS:task_state': None, 'status': 'SHUTOFF'})

    def assert_kept(self, server, host):
        # Nova removes the allocations on the lost host when its nova-compute is started again.
        self.assert_holds(server['id'], {'host1': SMALL, host: SMALL})
        listed = self.api.api_get(f'/os-migrations?instance_uuid={server["id"]}').body
        for migration in listed['migrations']:
            self.assert_holds(migration['uuid'], {})


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
        self.assert_holds(server['id'], {'host2': SMALL})
        self.assert_holds(migration['uuid'], {})

    def test_a_server_that_is_evacuated_before_its_migration_fails_keeps_its_new_room(self):
        self.assert_evacuated_to('host3')

    def test_also_when_it_is_evacuated_to_the_destination(self):
        self.assert_evacuated_to('host2')

    def assert_evacuated_to(self, host):
        """Lose the source while the destination is checked, and evacuate the server."""
        server = self.boot('host1')

        def check(*_args, **_kwargs):
            self.evacuate(server, host)
            raise exception.MigrationPreCheckError(reason='injected')

        self.stub_out('nova.compute.rpcapi.ComputeAPI.check_can_live_migrate_destination', check)
        self.migrate(server, 'host2')
        self.assert_kept(server, host)

    def test_without_a_destination_the_scheduler_chooses(self):
        server = self.boot('host1')

        self.migrate(server)
        migration = self._wait_for_migration_status(server, ['completed'])

        host = self.api.get_server(server['id'])['OS-EXT-SRV-ATTR:host']
        self.assertIn(host, ('host2', 'host3'))
        self.assert_holds(server['id'], {host: SMALL})
        self.assert_holds(migration['uuid'], {})

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
        self.assert_holds(server['id'], {'host1': SMALL})
        self.assert_holds(migration['uuid'], {})

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
        self.assert_holds(server['id'], {other: SMALL})
        self.assert_holds(migration['uuid'], {})

    def test_when_every_host_fails_the_checks_the_source_is_restored(self):
        server = self.boot('host1')

        def check(*args, **kwargs):
            raise exception.MigrationPreCheckError(reason='nowhere')

        self.stub_out('nova.compute.rpcapi.ComputeAPI.check_can_live_migrate_destination', check)
        self.migrate(server)
        migration = self._wait_for_migration_status(server, ['error'])
        self._wait_for_server_parameter(server, {'status': 'ACTIVE', 'OS-EXT-STS:task_state': None})

        self.assert_holds(server['id'], {'host1': SMALL})
        self.assert_holds(migration['uuid'], {})
        fault = objects.InstanceFault.get_latest_for_instance(
            context.get_admin_context(), server['id']).message
        for host in ('host2', 'host3'):
            self.assertIn(f'{host}: Migration pre-check error: nowhere', fault)

    def test_a_forced_move_skips_the_scheduler_and_claims_in_one_post(self):
        server = self.boot('host1')
        before = len(self.writes(server))

        with utils.temporary_mutation(self.api, microversion='2.67'):
            self.api.post_server_action(server['id'], {'os-migrateLive': {
                'host': 'host3', 'block_migration': 'auto', 'force': True}})
        migration = self._wait_for_migration_status(server, ['completed'])

        self.assertEqual(['POST'], [method for method, _body in self.writes(server)[before:]])
        self.assert_holds(server['id'], {'host3': SMALL})
        self.assert_holds(migration['uuid'], {})


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


class ReconcilerTestCase(AtomicTestCase):
    """``reconciler`` looks when :meth:`reconcile` is called, at the time of ``clock``."""

    def setUp(self):
        super().setUp()
        self.clock = clock.utcnow
        self.tasks = tasks.Tasks(self.control_database, 'another:1', lambda: self.clock())
        self.reconciler = reconcile.Reconciler(
            client=self.placement_client,
            nova=nova_records.CellRecords(self.placement_client),
            journal=repairs.Repairs(self.control_database, clock.utcnow),
            tasks=self.tasks, limits=audit.AuditLimits(grace=0), task_timeout=60,
            clock=lambda: self.clock())

    def reconcile(self):
        return [outcome for outcome in self.reconciler.run(3600) if outcome]

    def later(self, seconds):
        now = clock.utcnow() + datetime.timedelta(seconds=seconds)
        self.clock = lambda: now

    def die_at(self, method):
        """Let the task end there, with nothing after it: no rollback, no note."""
        def dies(*args, **kwargs):
            raise base.death()

        self.stub_out(method, dies)

    def migrations(self, server):
        with base.microversion(self.api, '2.80'):
            return self.api.api_get(
                f'/os-migrations?instance_uuid={server["id"]}').body['migrations']


class DeadConductorTest(ReconcilerTestCase):
    """A conductor worker that dies while it prepares a migration; others put it right."""

    def die_before_the_cast(self):
        server = self.boot('host1')
        self.stub_out('kronos_nova.db.tasks.Tasks.end', lambda *args: None)
        self.die_at('nova.compute.rpcapi.ComputeAPI.check_can_live_migrate_destination')
        self.migrate(server, 'host2')
        migration = self._wait_for_migration_status(server, ['accepted'])
        self.assert_holds(migration['uuid'], {'host1': SMALL})
        return server, migration

    def test_what_it_claimed_is_given_back_and_the_server_set_free(self):
        server, migration = self.die_before_the_cast()
        self.later(30)
        self.assertEqual([], self.reconcile())
        self.assert_holds(migration['uuid'], {'host1': SMALL})

        self.later(120)
        [outcome] = self.reconcile()

        self.assertEqual('healed', outcome.state)
        self.server_on(server, 'host1')
        self._wait_for_migration_status(server, ['error'])
        self.assert_holds(server['id'], {'host1': SMALL})
        self.assert_holds(migration['uuid'], {})

    def test_one_that_died_right_after_novas_record_was_made(self):
        server = self.boot('host1')
        self.stub_out('kronos_nova.db.tasks.Tasks.end', lambda *args: None)
        self.die_at('kronos_nova.db.tasks.Tasks.begin')
        self.migrate(server, 'host2')
        self._wait_for_migration_status(server, ['accepted'])
        self.later(30)
        self.reconcile()
        self._wait_for_migration_status(server, ['accepted'])

        self.later(120)
        self.reconcile()

        self._wait_for_migration_status(server, ['error'])
        self.server_on(server, 'host1')
        self.assert_holds(server['id'], {'host1': SMALL})

    def test_one_that_died_right_before(self):
        server = self.boot('host1')
        self.stub_out('kronos_nova.db.tasks.Tasks.end', lambda *args: None)
        self.die_at('nova.objects.migration.Migration.create')
        self.migrate(server, 'host2')
        self._wait_for_assert(lambda: self.assertEqual(1, len(self.tasks.in_progress())))
        self.later(30)
        self.reconcile()
        self._wait_for_server_parameter(server, {'OS-EXT-STS:task_state': 'migrating'})

        self.later(120)
        self.reconcile()

        self.server_on(server, 'host1')

    def test_one_that_lives_but_cannot_write_down_that_it_failed(self):
        server = self.boot('host1')

        def refuse(*_args, **_kwargs):
            raise exception.MigrationPreCheckError(reason='injected')

        self.stub_out('nova.compute.rpcapi.ComputeAPI.check_can_live_migrate_destination', refuse)
        self.stub_out('nova.scheduler.utils.set_vm_state_and_notify', break_off)
        self.migrate(server, 'host2')
        self._wait_for_assert(lambda: self.assertNotEqual(set(), conductor._tasks()._left))
        conductor._tasks().beat()

        self.later(120)
        self.reconcile()

        self._wait_for_migration_status(server, ['error'])
        self.server_on(server, 'host1')
        self.assert_holds(server['id'], {'host1': SMALL})

    def test_a_request_that_lay_in_a_queue_until_the_server_was_set_free_is_dropped(self):
        server = self.boot('host1')
        real = tasks.Tasks.announce

        def announce(this, key, instance_uuid):
            real(this, key, instance_uuid)
            self.api.post_server_action(
                server['id'], {'os-resetState': {'state': 'active'}})

        self.stub_out('kronos_nova.db.tasks.Tasks.announce', announce)
        self.migrate(server, 'host2')

        self.server_on(server, 'host1')
        self._wait_for_assert(lambda: self.assertEqual(frozenset(), self.tasks.in_progress()))
        self.assertEqual([], self.migrations(server))

    def test_a_worker_that_only_seemed_dead_does_not_start_the_migration(self):
        server = self.boot('host1')
        real = tasks.Tasks.hand_over

        def hand_over(this, migration_uuid):
            self.later(120)
            for task in this.dead(self.clock(), self.clock()):
                this.lose(task)
            return real(this, migration_uuid)

        self.stub_out('kronos_nova.db.tasks.Tasks.hand_over', hand_over)
        self.migrate(server, 'host2')
        migration = self._wait_for_migration_status(server, ['error'])

        self.server_on(server, 'host1')
        self.assert_holds(server['id'], {'host1': SMALL})
        self.assert_holds(migration['uuid'], {})


class DeadConductorOfAColdMigrationTest(ReconcilerTestCase):
    """A conductor worker that dies while it prepares a cold migration."""

    managers = ReconcilerTestCase.managers | {
        'nova-compute': 'kronos_nova.plugin.managers.Compute'}

    def die_at(self, method):
        self.stub_out('kronos_nova.db.tasks.Tasks.end', lambda *args: None)
        super().die_at(method)

    def migrate_cold(self, server):
        self.api.post_server_action(server['id'], {'migrate': {'host': 'host2'}})

    def assert_unchanged(self, server):
        self.server_on(server, 'host1')
        self.assertEqual('ACTIVE', self.api.get_server(server['id'])['status'])
        self.assert_holds(server['id'], {'host1': SMALL})

    def test_one_that_died_before_there_was_a_migration(self):
        server = self.boot('host1')
        self.die_at('nova.objects.migration.Migration.create')
        self.migrate_cold(server)
        self._wait_for_assert(lambda: self.assertEqual(1, len(self.tasks.in_progress())))
        self.later(30)
        self.reconcile()
        self._wait_for_server_parameter(server, {'OS-EXT-STS:task_state': 'resize_prep'})

        self.later(120)
        self.reconcile()

        self.assert_unchanged(server)

    def test_one_that_died_before_the_destination_was_asked(self):
        server = self.boot('host1')
        self.die_at('nova.compute.rpcapi.ComputeAPI.prep_resize')
        self.migrate_cold(server)
        migration = self._wait_for_migration_status(server, ['pre-migrating'])
        self._wait_for_assert(lambda: self.assert_holds(server['id'], {'host2': SMALL}))
        self.later(30)
        self.reconcile()
        self._wait_for_migration_status(server, ['pre-migrating'])

        self.later(120)
        self.reconcile()

        self._wait_for_migration_status(server, ['error'])
        self.assert_unchanged(server)
        self.assert_holds(migration['uuid'], {})

    def test_its_request_that_the_destination_receives_afterwards_is_dropped(self):
        server = self.boot('host1')
        asked, real = [], rpcapi.ComputeAPI.prep_resize

        def keep(*args, **kwargs):
            asked.append((args, kwargs))
            raise base.death()
        self.stub_out('kronos_nova.db.tasks.Tasks.end', lambda *args: None)
        self.stub_out('nova.compute.rpcapi.ComputeAPI.prep_resize', keep)
        self.migrate_cold(server)
        self._wait_for_assert(lambda: self.assertEqual(1, len(asked)))
        self.later(120)
        self.reconcile()
        self._wait_for_migration_status(server, ['error'])

        args, kwargs = asked[0]
        real(*args, **kwargs)

        self.assert_unchanged(server)
        self.assertEqual(['error'], [each['status'] for each in self.migrations(server)])

    def test_a_migration_that_ends_before_the_destination_is_asked_sets_the_server_free(self):
        """Nova's resource tracker ends a new migration if an older one was never ended."""
        server = self.boot('host1')
        real = rpcapi.ComputeAPI.prep_resize

        def end_first(this, context, instance, image, flavor, host, migration, *args, **kwargs):
            migration.status = 'error'
            migration.save()
            real(this, context, instance, image, flavor, host, migration, *args, **kwargs)
        self.stub_out('nova.compute.rpcapi.ComputeAPI.prep_resize', end_first)
        self.migrate_cold(server)
        migration = self._wait_for_migration_status(server, ['error'])
        self.assert_unchanged(server)
        self.assert_holds(migration['uuid'], {})

    def test_a_request_that_lay_in_a_queue_until_the_server_was_set_free_is_dropped(self):
        server = self.boot('host1')
        real = tasks.Tasks.announce

        def announce(this, key, instance_uuid):
            real(this, key, instance_uuid)
            self.api.post_server_action(server['id'], {'os-resetState': {'state': 'active'}})
        self.stub_out('kronos_nova.db.tasks.Tasks.announce', announce)
        self.migrate_cold(server)

        self._wait_for_server_parameter(server, {'OS-EXT-STS:task_state': None})
        self._wait_for_assert(lambda: self.assertEqual(frozenset(), self.tasks.in_progress()))
        self.assert_unchanged(server)
        self.assertEqual([], self.migrations(server))


@ddt.ddt
class LostRequestTest(ReconcilerTestCase):
    """A conductor worker receives a request for a migration while no database answers, so that
    neither Nova nor Kronos can record anything."""

    def lose(self, action, place):
        """Request a migration from a conductor whose databases do not answer from ``place`` on."""
        server = self.boot('host1')
        with contextlib.ExitStack() as outage:
            for name in (place, 'kronos_nova.db.tasks.Tasks.announce',
                         'nova.scheduler.utils.set_vm_state_and_notify'):
                outage.enter_context(fixtures.MonkeyPatch(name, break_off))
            self.api.post_server_action(server['id'], action)
            self._wait_for_assert(
                lambda: self.assertEqual(1, len(conductor._tasks()._unrecorded)))
        return server

    def assert_set_free(self, server, mark):
        self._wait_for_server_parameter(server, {'OS-EXT-STS:task_state': mark})
        conductor._tasks().beat()
        self.reconcile()

        self.server_on(server, 'host1')
        self.assertEqual('ACTIVE', self.api.get_server(server['id'])['status'])
        self.assert_holds(server['id'], {'host1': SMALL})
        self.assertEqual(frozenset(), self.tasks.in_progress())
        for migration in self.migrations(server):
            self.assertEqual('error', migration['status'])

    @ddt.data('nova.compute.utils.EventReporter.__enter__',
              'kronos_nova.plugin.conductor._is_outdated',
              'nova.objects.migration.Migration.create',
              'nova.conductor.tasks.live_migrate.LiveMigrationTask.execute')
    def test_of_a_live_migration(self, place):
        server = self.lose({'os-migrateLive': {'host': 'host2', 'block_migration': 'auto'}}, place)
        self.assert_set_free(server, 'migrating')

    @ddt.data('nova.compute.utils.EventReporter.__enter__',
              'kronos_nova.plugin.conductor._is_outdated',
              'nova.objects.migration.Migration.create',
              'nova.conductor.tasks.migrate.MigrationTask.execute')
    def test_of_a_cold_migration(self, place):
        server = self.lose({'migrate': {'host': 'host2'}}, place)
        self.assert_set_free(server, 'resize_prep')


def break_off(*_args, **_kwargs):
    raise db_exc.DBConnectionError('injected')


class DeadConductorOfAComputeTest(AtomicTestCase):
    """nova-compute tells a conductor how a migration fares, and that one dies over it."""

    managers = AtomicTestCase.managers | {'nova-compute': 'kronos_nova.plugin.managers.Compute'}

    def owe(self, status, answers):
        """Let the first answer about ``status`` never come, and ``answers`` happen meanwhile."""
        real, owed = objects.Migration.save, []

        def save(migration):
            if migration.status == status and not owed:
                owed.append(migration)
                answers(migration)
                raise messaging.MessagingTimeout('injected')
            return real(migration)

        self.stub_out('nova.objects.Migration.save', save)
        return owed

    def test_it_is_reported_again(self):
        for status in ('queued', 'preparing', 'running'):
            server = self.boot('host1')
            owed = self.owe(status, lambda migration: None)

            self.migrate(server, 'host2')

            migration = self._wait_for_migration_status(server, ['completed'])
            self.assert_holds(server['id'], {'host2': SMALL})
            self.assert_holds(migration['uuid'], {})
            self.assertEqual(1, len(owed))

    def test_what_was_ended_meanwhile_does_not_go_on(self):
        server = self.boot('host1')

        def give_up(migration):
            other = objects.Migration.get_by_id(migration._context, migration.id)
            other.status = 'error'
            other.save()

        self.owe('queued', give_up)
        self.migrate(server, 'host2')

        self._wait_for_assert(lambda: self.assertIn(
            'is error. Cannot queued while', self.stdlog.logger.output))
        self._wait_for_migration_status(server, ['error'])
        self.assertEqual('host1', self.api.get_server(server['id'])['OS-EXT-SRV-ATTR:host'])


class RevertingComputeTest(AtomicTestCase):
    """nova-compute's own rollback, done by Kronos."""

    managers = {**AtomicTestCase.managers, 'nova-compute': 'kronos_nova.plugin.managers.Compute'}

    def roll_back(self, meanwhile=lambda migration: None):
        def live_migration(this, context, instance, dest, post_method, recover_method,
                           block_migration=False, migrate_data=None):
            meanwhile(migrate_data.migration)
            recover_method(context, instance, dest, migrate_data, migration_status='failed')

        self.stub_out('nova.virt.fake.FakeDriver.live_migration', live_migration)

    def live_migrations_ended(self):
        """An event, set once a source has done all that it does for a live migration."""
        ended, course = threading.Event(), managers.Compute._do_live_migration

        def do_live_migration(*args, **kwargs):
            try:
                return course(*args, **kwargs)
            finally:
                ended.set()

        self.stub_out('kronos_nova.plugin.managers.Compute._do_live_migration', do_live_migration)
        return ended

    def test_a_rollback_gives_the_source_back_in_one_request(self):
        server = self.boot('host1')
        self.roll_back()
        before = len(self.writes(server))

        self.migrate(server, 'host2')
        migration = self._wait_for_migration_status(server, ['failed'])

        self.assertEqual(['POST', 'POST'], [method for method, _ in self.writes(server)[before:]])
        self.server_on(server, 'host1')
        self.assert_holds(server['id'], {'host1': SMALL})
        self.assert_holds(migration['uuid'], {})

    def test_a_source_whose_node_is_not_on_record_any_more_is_left_to_nova(self):
        def rename(migration):
            migration.source_node = 'of another name'

        server = self.boot('host1')
        self.roll_back(rename)

        self.migrate(server, 'host2')
        migration = self._wait_for_migration_status(server, ['failed'])

        self.server_on(server, 'host1')
        self.assert_holds(server['id'], {'host1': SMALL})
        self.assert_holds(migration['uuid'], {})

    def test_a_server_deleted_meanwhile_gets_nothing_back(self):
        """Bug 1848343."""
        server = self.boot('host1')

        def delete(_migration):
            self.api.delete_server(server['id'])
            self._wait_until_deleted(server)

        self.roll_back(delete)
        ended = self.live_migrations_ended()
        self.migrate(server, 'host2')
        # What nova-compute writes last would be tried for minutes once the database is gone.
        self.assertTrue(ended.wait(60))

        def nobody_holds_anything():
            posts = [body for method, body in self.writes(server) if method == 'POST']
            self.assertEqual(1, len(posts))
            self.assertEqual([{}, {}], [self.held_by(uuid) for uuid in posts[0]])

        self._wait_for_assert(nobody_holds_anything)


ON_HOST, STORED = {'VCPU': 1, 'MEMORY_MB': 512}, {'DISK_GB': 1}


class SharedStorageTest(AtomicTestCase):
    """DISK_GB on a provider that both hosts share: 1 at any time, whatever happens."""

    managers = RevertingComputeTest.managers

    def setUp(self):
        # What nova-compute says of a host whose disks lie on shared storage.
        self.stub_out('nova.virt.fake.FakeDriver.update_provider_tree', without_disk)
        super().setUp()
        aggregate = '7f2a9d3e-5b1c-4e8f-9a6d-2c4b8e1f3a50'
        self.storage = self._post_resource_provider('storage')['uuid']
        self._update_inventory(self.storage, {'resource_provider_generation': 0, 'inventories': {
            'DISK_GB': {'total': 100}}})
        self._set_provider_traits(self.storage, ['MISC_SHARES_VIA_AGGREGATE'])
        self._set_aggregate(self.storage, aggregate)
        for host in self.hosts:
            self._set_aggregate(self.uuid_of(host), aggregate)
        self.sampled = set()
        self.placement_fixture.after = self.sample

    def sample(self, method, path, body):
        if method == 'POST' and path == '/allocations':
            self.sampled.add(self._get_provider_usages(self.storage)['DISK_GB'])

    def boot_anywhere(self):
        """Nova itself finds no room for a named host and shared storage; where it is, where not."""
        server = self._create_server(networks='none')
        source = self.api.get_server(server['id'])['OS-EXT-SRV-ATTR:host']
        [other] = set(self.hosts) - {source}
        self.assert_holds(server['id'], {source: ON_HOST, 'storage': STORED})
        return server, source, other

    def test_a_move_to_a_named_host_counts_it_once(self):
        server, _source, other = self.boot_anywhere()

        self.migrate(server, other)
        migration = self._wait_for_migration_status(server, ['completed'])

        self.assert_holds(server['id'], {other: ON_HOST, 'storage': STORED})
        self.assert_holds(migration['uuid'], {})
        self.assertEqual({1}, self.sampled)

    def test_a_move_that_is_rolled_back_counts_it_once(self):
        RevertingComputeTest.roll_back(self)
        server, source, _other = self.boot_anywhere()

        self.migrate(server)
        migration = self._wait_for_migration_status(server, ['failed'])

        self.server_on(server, source)
        self.assert_holds(server['id'], {source: ON_HOST, 'storage': STORED})
        self.assert_holds(migration['uuid'], {})
        self.assertEqual({1}, self.sampled)


def without_disk(this, provider_tree, nodename, allocations=None):
    provider_tree.update_inventory(nodename, {
        name: {'total': total, 'max_unit': total, 'min_unit': 1, 'step_size': 1, 'reserved': 0,
               'allocation_ratio': 1.0}
        for name, total in (('VCPU', 10), ('MEMORY_MB', 8192))})


class EvacuatedColdMoveTest(AtomicTestCase):
    """A server that is evacuated before its cold migration fails keeps its allocations."""

    hosts = ('host1', 'host2', 'host3')
    managers = {**AtomicTestCase.managers, 'nova-compute': 'kronos_nova.plugin.managers.Compute'}

    def fail_after_evacuation(self, path, host, error):
        """Cold migrate a server to host2. Lose its host and evacuate the server when a function of
        Nova is called for the first time, and let the function fail."""
        server = self.boot('host1')
        module, name, function = path.rsplit('.', 2)
        real = getattr(getattr(importlib.import_module(module), name), function)
        called = []

        def fail(*args, **kwargs):
            if called:
                return real(*args, **kwargs)
            called.append(True)
            self.evacuate(server, host)
            raise error
        self.stub_out(path, fail)
        self.api.post_server_action(server['id'], {'migrate': {'host': 'host2'}})
        self._wait_for_migration_status(server, ['error'])
        self.assert_kept(server, host)

    def fail_at_the_destination(self, host):
        self.fail_after_evacuation(
            'nova.compute.manager.ComputeManager._prep_resize', host,
            exception.BuildAbortException(instance_uuid='it', reason='injected'))

    def fail_in_the_conductor(self, host):
        self.fail_after_evacuation(
            'nova.scheduler.client.query.SchedulerQueryClient.select_destinations', host,
            exception.NoValidHost(reason='injected'))

    def test_that_the_destination_cannot_prepare(self):
        self.fail_at_the_destination('host3')

    def test_that_the_destination_cannot_prepare_and_that_is_evacuated_to_it(self):
        self.fail_at_the_destination('host2')

    def test_for_which_no_host_is_found(self):
        self.fail_in_the_conductor('host3')
