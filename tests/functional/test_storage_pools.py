"""Moves of servers whose disks lie in storage pools: sharing providers that some hosts reach."""

import uuid

from nova import exception
from nova.virt import fake

from kronos_nova.objects import plan as plans
from kronos_nova.objects.dry_run import AGREED
from kronos_nova.plugin import dry_run
from tests.functional import test_live_migration

ON_HOST, STORED = {'VCPU': 1, 'MEMORY_MB': 512}, {'DISK_GB': 1}
KRONOS = {'nova-conductor': 'kronos_nova.plugin.managers.Conductor',
          'nova-compute': 'kronos_nova.plugin.managers.Compute'}


class StorageTestCase(test_live_migration.AtomicTestCase):
    """``pools`` says which hosts reach which pool; a host that reaches none has a disk of its
    own."""

    managers = KRONOS
    hosts = ('host1', 'host2')
    pools = {'pool1': ('host1',), 'pool2': ('host2',)}

    def setUp(self):
        served = {host for hosts in self.pools.values() for host in hosts}
        real = fake.FakeDriver.update_provider_tree

        def update_provider_tree(this, tree, nodename, allocations=None):
            real(this, tree, nodename, allocations=allocations)
            if nodename in served:
                inventory = dict(tree.data(nodename).inventory)
                inventory.pop('DISK_GB', None)
                tree.update_inventory(nodename, inventory)

        self.stub_out('nova.virt.fake.FakeDriver.update_provider_tree', update_provider_tree)
        super().setUp()
        aggregates = {host: [] for host in self.hosts}
        for name, hosts in self.pools.items():
            self._make_pool(name, aggregates, hosts)
        for host, uuids in aggregates.items():
            self._set_aggregates(self.uuid_of(host), uuids)

    def _make_pool(self, name, aggregates, hosts):
        pool, aggregate = self._post_resource_provider(name)['uuid'], str(uuid.uuid4())
        self._update_inventory(pool, {'resource_provider_generation': 0, 'inventories': {
            'DISK_GB': {'total': 100}}})
        self._set_provider_traits(pool, ['MISC_SHARES_VIA_AGGREGATE'])
        self._set_aggregates(pool, [aggregate])
        for host in hosts:
            aggregates[host].append(aggregate)

    def _set_aggregates(self, provider, uuids):
        generation = self.placement.get(f'/resource_providers/{provider}').body['generation']
        self.placement.put(f'/resource_providers/{provider}/aggregates', {
            'aggregates': uuids, 'resource_provider_generation': generation}, version='1.19')

    def boot_on(self, host):
        """Nova itself finds no room for a named host with a pool: the others are closed."""
        services = {each['host']: each['id'] for each in self.api.get_services(
            binary='nova-compute')}
        others = [services[each] for each in self.hosts if each != host]
        for each in others:
            self.api.put_service(each, {'status': 'disabled'})
        server = self._create_server(networks='none')
        for each in others:
            self.api.put_service(each, {'status': 'enabled'})
        return self.server_on(server, host)

    def held_on(self, host):
        """The allocations of a server on ``host``."""
        pool = next((pool for pool, hosts in self.pools.items() if host in hosts), None)
        return {host: {**ON_HOST, **STORED}} if pool is None else {host: ON_HOST, pool: STORED}

    def assert_moved(self, server, host, status='completed'):
        migration = self._wait_for_migration_status(server, [status])
        self.server_on(server, host)
        self.assert_holds(server['id'], self.held_on(host))
        self.assert_holds(migration['uuid'], {})


class LiveMigrationTest(StorageTestCase):
    """Between two pools, and between a pool and a local disk."""

    hosts = ('host1', 'host2', 'host3')

    def test_between_pools_where_no_host_is_named(self):
        server = self.boot_on('host1')
        self.api.put_service(self._service_of('host3'), {'status': 'disabled'})

        self.migrate(server)

        self.assert_moved(server, 'host2')

    def _service_of(self, host):
        [service] = self.api.get_services(host=host, binary='nova-compute')
        return service['id']

    def test_to_a_named_host_and_on_to_one_with_a_disk_of_its_own_and_back(self):
        server = self.boot_on('host1')
        for host in ('host2', 'host3', 'host1'):
            agreed = dry_run.SchedulerDryRun()(plans.PlannedMove(
                order=1, phase=plans.EVACUATE, instance_uuid=server['id'], source='any',
                destination=host, memory_mb=512, combined_after=0.0, reason=''), None, None)
            self.assertEqual(AGREED, agreed)
            self.migrate(server, host)
            self.server_on(server, host)
            self.assert_holds(server['id'], self.held_on(host))
        self.assert_moved(server, 'host1')

    def test_a_rollback_gives_back_the_source_pool_and_gives_up_the_other(self):
        test_live_migration.RevertingComputeTest.roll_back(self)
        server = self.boot_on('host1')

        self.migrate(server, 'host2')

        self.assert_moved(server, 'host1', 'failed')

    def test_the_scheduler_is_not_asked_more_often_than_nova_would(self):
        self.flags(migrate_max_retries=0)
        server = self.boot_on('host1')
        asked = []

        def none(this, spec, destination):
            asked.append(destination)
            return []

        self.stub_out('kronos_nova.plugin.allocation_claim.AllocationClaim.candidates', none)
        self.migrate(server)
        migration = self._wait_for_migration_status(server, ['error'])

        self.assertEqual(1, len(asked))
        self.server_on(server, 'host1')
        self.assert_holds(server['id'], self.held_on('host1'))
        self.assert_holds(migration['uuid'], {})


class ColdMigrationTest(StorageTestCase):
    def test_a_revert_gives_up_the_destinations_pool(self):
        server = self.boot_on('host1')
        self._migrate_server(server)
        self._wait_for_state_change(server, 'VERIFY_RESIZE')
        self.assert_holds(server['id'], self.held_on('host2'))

        self._revert_resize(server)

        self.server_on(server, 'host1')
        self.assert_holds(server['id'], self.held_on('host1'))


class StockComputeTest(StorageTestCase):
    """Computes without Kronos, as while it is being installed."""

    managers = {'nova-conductor': KRONOS['nova-conductor']}
    pools = {'pool': ('host1', 'host2')}

    def test_novas_own_rollback_keeps_what_is_shared(self):
        test_live_migration.RevertingComputeTest.roll_back(self)
        server = self.boot_on('host1')

        self.migrate(server, 'host2')

        self.assert_moved(server, 'host1', 'failed')

    def test_a_refusal_before_that_does_too(self):
        def check(*args, **kwargs):
            raise exception.MigrationPreCheckError(reason='not here')

        self.stub_out('nova.compute.rpcapi.ComputeAPI.check_can_live_migrate_destination', check)
        server = self.boot_on('host1')

        self.migrate(server, 'host2')

        self.assert_moved(server, 'host1', 'error')

    def test_a_move_that_succeeds_leaves_it_counted_once(self):
        server = self.boot_on('host1')

        self.migrate(server, 'host2')

        self.assert_moved(server, 'host2')
