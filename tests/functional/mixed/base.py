"""A cloud of two hosts, and everything that Nova does to a server that moves."""

import pathlib
import traceback

import fixtures
from nova import exception
from nova.tests import fixtures as nova_fixtures

from kronos_nova.plugin import entry
from tests.functional import base
from tests.functional.mixed import fakes_drivers
from tests.functional.mixed import kinds

CONDUCTOR, SOURCE, DESTINATION = 'conductor', 'source', 'destination'
SERVICES = (CONDUCTOR, SOURCE, DESTINATION)
STOCK = frozenset()
SMALL_DISK, LARGE_DISK = 1, 10
PRE_CHECK = 'check_can_live_migrate_destination'


class MixedCloud(base.NovaTestCase):
    """Servers are booted on host1, the source, and can only move to host2.

    :cvar kind: what they hold besides VCPU and memory
    :cvar kronos: which of SERVICES have Kronos
    """

    kind = kinds.LocalDisk()
    kronos = frozenset(SERVICES)
    hosts = ('host1', 'host2')

    def setUp(self):
        fakes_drivers.COURSE.reset(fakes_drivers.RUN)
        self.useFixture(nova_fixtures.HostNameWeigherFixture())
        self.kind.configure(self)
        self.useFixture(fixtures.MonkeyPatch(
            'nova.virt.driver.load_compute_driver',
            lambda virtapi, *_: getattr(fakes_drivers, self.kind.driver)(virtapi)))
        super().setUp()
        self.leaked = frozenset()
        self.kind.furnish(self)
        self.flavors = {disk: self._create_flavor(
            vcpu=1, memory_mb=512, disk=disk, ephemeral=0, extra_spec=self.kind.extra_specs)
            for disk in (SMALL_DISK, LARGE_DISK)}

    def _configure_placement(self):
        super()._configure_placement()
        directory = self.useFixture(fixtures.TempDir()).path
        self.flags(claim_db=str(pathlib.Path(directory, 'claim.sqlite')), group='kronos_claims')

    def start_service(self, name, host=None, **kwargs):
        role = {'host1': SOURCE, 'host2': DESTINATION}.get(host, name)
        if role in self.kronos:
            kwargs['manager'] = entry.MANAGERS[f'nova-{name}']
        return super().start_service(name, host, **kwargs)

    def boot_server(self):
        server = self._create_server(
            networks=self.kind.networks(self), flavor_id=self.flavors[SMALL_DISK])
        self.assertEqual('host1', server['OS-EXT-SRV-ATTR:host'])
        self.assert_holds_alone(server, 'host1')
        return server

    def assert_holds_alone(self, server, *hosts, disk=SMALL_DISK, besides=None):
        """Check that the server holds what it should on ``hosts``, and that no other consumer holds
        anything, but for what ``leaked`` before."""
        expected = dict(besides or {})
        for host in hosts:
            expected.update(self.kind.held(host, disk))
        self._wait_for_assert(lambda: self.assertEqual(
            {server['id']: expected} if hosts else {}, self.held_by_others()))

    def held_by_others(self):
        """The allocations of all consumers but those that are known to have ``leaked``."""
        return {consumer: held for consumer, held in self.held_by_anybody().items()
                if consumer not in self.leaked}

    def held_by_anybody(self):
        """{consumer: {provider name: {resource class: amount}}}"""
        found = {}
        for provider in self._get_all_providers():
            held = self._get_allocations_by_provider_uuid(provider['uuid'])
            for consumer, allocation in held.items():
                # The uuid in a device's provider's name is that of its address.
                name = provider['name'] if '0000:' not in provider['name'] else (
                    provider['name'].partition('_')[0] + '_PCI')
                found.setdefault(consumer, {})[name] = allocation['resources']
        return found

    def go_through(self, operations):
        """Do each to a server of its own, and tell at the end of all that went wrong."""
        failures = []
        for operation in operations:
            try:
                self._do(operation)
            except Exception:
                failures.append(f'{operation}:\n{traceback.format_exc(limit=-3)}')
                self.leaked = frozenset(self.held_by_anybody())
        if failures:
            self.fail('\n'.join(failures))

    def _do(self, operation):
        fakes_drivers.COURSE.reset(fakes_drivers.RUN)
        server = self.boot_server()
        hosts, disk = getattr(self, operation)(server)
        besides = self.kind.left_by_evacuation('host1', disk) if operation == EVACUATION else {}
        self.assert_holds_alone(server, *hosts, disk=disk, besides=besides)
        if operation == DELETION:
            self.leaked = frozenset(self.held_by_anybody())
            return
        self._delete_server(server)
        self.assert_holds_alone(server)

    # What happens to a server; each returns the hosts on which it should hold, and its disk.

    def live_migration(self, server):
        self.migrate(server)
        self._wait_for_migration_status(server, ['completed'])
        self.server_on(server, 'host2')
        return ('host2',), SMALL_DISK

    def live_migration_to_a_named_host(self, server):
        self.migrate(server, 'host2')
        self._wait_for_migration_status(server, ['completed'])
        self.server_on(server, 'host2')
        return ('host2',), SMALL_DISK

    def live_migration_that_fails_its_checks(self, server):
        def refuse(*_args, **_kwargs):
            raise exception.MigrationPreCheckError(reason='injected')

        with fixtures.MonkeyPatch(
                f'nova.compute.rpcapi.ComputeAPI.{PRE_CHECK}', refuse):
            self.migrate(server)
            self._wait_for_migration_status(server, ['error'])
        self.server_on(server, 'host1')
        return ('host1',), SMALL_DISK

    def live_migration_that_is_rolled_back(self, server):
        fakes_drivers.COURSE.reset(fakes_drivers.FAIL)
        self.migrate(server)
        self._wait_for_migration_status(server, ['failed'])
        self.server_on(server, 'host1')
        return ('host1',), SMALL_DISK

    def live_migration_that_is_aborted(self, server):
        migration = self.hold(server)
        self.api.delete_migration(server['id'], migration['id'])
        self._wait_for_migration_status(server, ['cancelled'])
        self.server_on(server, 'host1')
        return ('host1',), SMALL_DISK

    def live_migration_that_is_forced_to_complete(self, server):
        migration = self.hold(server)
        self.api.force_complete_migration(server['id'], migration['id'])
        self._wait_for_migration_status(server, ['completed'])
        self.server_on(server, 'host2')
        return ('host2',), SMALL_DISK

    def live_migration_while_the_server_is_deleted(self, server):
        self.hold(server)
        self.api.delete_server(server['id'])
        self._wait_until_deleted(server)
        fakes_drivers.COURSE.let_go('failed')
        # Bug 1848343: it is the source that gives a deleted server its allocation back.
        return () if SOURCE in self.kronos else ('host1',), SMALL_DISK

    def cold_migration(self, server):
        self._migrate_server(server)
        self._confirm_resize(server)
        return ('host2',), SMALL_DISK

    def cold_migration_that_is_reverted(self, server):
        self._migrate_server(server)
        self._revert_resize(server)
        return ('host1',), SMALL_DISK

    def resize(self, server):
        self._resize_server(server, self.flavors[LARGE_DISK])
        self._confirm_resize(server)
        return ('host2',), LARGE_DISK

    def resize_that_is_reverted(self, server):
        self._resize_server(server, self.flavors[LARGE_DISK])
        self._revert_resize(server)
        return ('host1',), SMALL_DISK

    def evacuation(self, server):
        service = self.lose_source()
        self._evacuate_server(server, expected_host='host2')
        self.assert_holds_alone(server, 'host1', 'host2')
        self.computes['host1'] = self.restart_compute_service(
            self.computes['host1'], keep_hypervisor_state=False)
        self.api.put_service(service, {'forced_down': False})
        return ('host2',), SMALL_DISK

    def lose_source(self):
        """Stop host1 for good, and tell Nova so. Returns the id of its nova-compute service."""
        self.computes['host1'].stop()
        service = self.api.get_services(host='host1', binary='nova-compute')[0]['id']
        self.api.put_service(service, {'forced_down': True})
        return service

    def hold(self, server):
        """Begin a live migration that does not end of itself."""
        fakes_drivers.COURSE.reset(fakes_drivers.HOLD)
        self.migrate(server)
        self.assertTrue(fakes_drivers.COURSE.begun.wait(30))
        return self._wait_for_migration_status(server, ['running'])


DELETION = 'live_migration_while_the_server_is_deleted'
EVACUATION = 'evacuation'
NAMED = 'live_migration_to_a_named_host'
# Evacuation is the last: it restarts a host.
OPERATIONS = (
    'live_migration', 'live_migration_that_fails_its_checks',
    'live_migration_that_is_rolled_back', 'live_migration_that_is_aborted',
    'live_migration_that_is_forced_to_complete', DELETION,
    'cold_migration', 'cold_migration_that_is_reverted', 'resize', 'resize_that_is_reverted',
    EVACUATION)
