"""Healing writes the real use of an instance, and leaves moves in progress alone."""

from keystoneauth1 import exceptions as ks_exceptions
from nova import exception

from kronos_nova import clock
from kronos_nova.db import repairs as repairs_db
from kronos_nova.objects import repair as repairs
from kronos_nova.placement import audit
from kronos_nova.placement import heal
from kronos_nova.placement import holdings
from kronos_nova.placement.allocations import AllocationSet
from kronos_nova.placement.allocations import Consumer
from kronos_nova.plugin import nova_records
from tests.functional import test_allocations_audit
from tests.functional import test_candidates
from tests.functional import test_live_migration
from tests.functional import test_storage_pools
from tests.functional.mixed import base as mixed
from tests.functional.mixed import kinds

AT_ONCE = test_allocations_audit.AT_ONCE
SMALL = test_allocations_audit.SMALL


class Heals(test_candidates.OrdersCandidates):
    """A mixin for tests in which an audit is made and what it finds is healed."""

    def heal(self):
        """[(kind, state)] of what was found."""
        held = holdings.read(self.placement_client)
        records = nova_records.CellRecords(self.placement_client)
        healer = heal.Healer(self.placement_client, records, held, AT_ONCE,
                             repairs_db.Repairs(self.control_database, clock.utcnow))
        return [(each.kind, healer.heal(each).state)
                for each in audit.audit(held, records, AT_ONCE).findings]

    def lose_and_heal(self, server):
        """Whichever way placement names first."""
        before = self.held_by(server['id'])
        for reverse in (False, True):
            self.order_candidates(reverse)
            self.placement.delete(f'/allocations/{server["id"]}')
            self.assertEqual([(audit.MISSING, repairs.HEALED)], self.heal())
            self.assertEqual(before, self.held_by(server['id']))


class TwoBridges(kinds.QosPort):
    """Each could have the port."""

    def furnish(self, test):
        super().furnish(test)
        for host in test.hosts:
            other = test.placement.post('/resource_providers', version='1.20', body={
                'name': f'{host}:other',
                'parent_provider_uuid': test.uuid_of(f'{host}:agent')}).body['uuid']
            test._update_inventory(other, {
                'resource_provider_generation': 0,
                'inventories': {name: {'total': 10000} for name in self.BANDWIDTH}})
            test._set_provider_traits(other, list(self.TRAITS))


class PortTest(Heals, mixed.MixedCloud):
    kind = TwoBridges()

    def boot_server(self):
        return self._create_server(networks=self.kind.networks(self),
                                   flavor_id=self.flavors[mixed.SMALL_DISK])

    def test_bandwidth_is_allocated_where_neutron_has_the_port(self):
        self.lose_and_heal(self.boot_server())

    def test_it_is_not_allocated_elsewhere_where_there_is_no_room_for_it(self):
        server = self.boot_server()
        [bridge] = [name for name in self.held_by(server['id']) if name != 'host1']
        self.placement.delete(f'/allocations/{server["id"]}')
        self._reserve_placement_resource(bridge, self.kind.BANDWIDTH[0], 10000)

        self.assertEqual([(audit.MISSING, repairs.FAILED)], self.heal())
        self.assertEqual({}, self.held_by(server['id']))


class DeviceTest(Heals, test_candidates.NumaAndDevicesTestCase):
    """The healed device, of several of a kind, is the one that the guest has."""

    def held_by(self, consumer):
        names = {rp['uuid']: rp['name'] for rp in self._get_all_providers()}
        held = self.placement.get(f'/allocations/{consumer}', version='1.38').body['allocations']
        return {names[uuid]: allocation['resources'] for uuid, allocation in held.items()}

    def test_it_is_allocated_where_the_guest_has_it(self):
        server = self._create_server(host='host1', flavor_id=self.with_device, networks='none')

        self.lose_and_heal(server)


class InMidMoveTest(test_allocations_audit.AuditTestCase):
    def test_a_move_that_begins_while_nova_is_read_is_left_alone(self):
        server = self.boot('host1')
        source, destination = self.uuid_of('host1'), self.uuid_of('host2')
        records = self.records
        real = records.histories

        def histories(wanted):
            found = real(wanted)
            held = self.placement_client.consumer(server['id'])
            moved = held.holding({destination: dict(held.allocations[source])},
                                 consumer_type='INSTANCE')
            self.placement_client.post(AllocationSet.from_consumers(moved))
            return found

        records.histories = histories
        healer = heal.Healer(self.placement_client, records, holdings.read(self.placement_client),
                             AT_ONCE, self.repairs)

        self.assertEqual((None, True), healer.examine(server['id']))

    def test_a_provider_that_is_deleted_while_it_is_read_is_no_failure(self):
        self.boot('host1')
        child = self.placement.post('/resource_providers', version='1.20', body={
            'name': 'gpu', 'parent_provider_uuid': self.uuid_of('host1')}).body['uuid']

        def before(method, path, body):
            if path == f'/resource_providers/{child}/allocations':
                self.placement_fixture.before = lambda *asked: None
                self.placement.delete(f'/resource_providers/{child}')

        self.placement_fixture.before = before

        self.assertEqual([], self.findings())

    def test_a_repair_whose_answer_was_lost_can_be_undone(self):
        server = self.boot('host1')
        doubled = {self.uuid_of(host): SMALL for host in ('host1', 'host2')}
        held = self.placement_client.consumer(server['id'])
        self.placement_client.post(AllocationSet.from_consumers(
            held.holding(doubled, consumer_type='INSTANCE')))
        findings = self.audit().findings

        def after(method, path, body):
            if (method, path) == ('POST', '/allocations'):
                self.placement_fixture.after = lambda *asked: None
                raise ks_exceptions.ConnectFailure('lost')

        self.placement_fixture.after = after
        [outcome] = self.heal(findings)
        [repair] = self.repairs.list()
        self.assertEqual((repairs.FAILED, repairs.PLANNED), (outcome.state, repair.state))
        self.assert_holds(server['id'], {'host1': SMALL})

        heal.undo(self.placement_client, self.repairs, repair.uuid)

        self.assert_holds(server['id'], {'host1': SMALL, 'host2': SMALL})


class HealedMeanwhileTest(test_live_migration.AtomicTestCase):
    def test_a_move_that_fails_leaves_what_was_healed_as_it_began(self):
        server, healed = self.boot('host1'), []
        self.placement.delete(f'/allocations/{server["id"]}')

        def heal_at_once(method, path, _body):
            if path.startswith('/allocation_candidates') and not healed:
                healed.append(path)
                self.placement_client.post(AllocationSet.from_consumers(Consumer(
                    uuid=server['id'], allocations={self.uuid_of('host1'): SMALL},
                    consumer_type='INSTANCE', project_id='a-project', user_id='a-user')))

        def refuse(*args, **kwargs):
            raise exception.MigrationPreCheckError(reason='injected')

        self.stub_out('nova.compute.rpcapi.ComputeAPI.check_can_live_migrate_destination', refuse)
        self.placement_fixture.before = heal_at_once
        self.migrate(server, 'host2')
        self._wait_for_migration_status(server, ['error'])

        self.assert_holds(server['id'], {'host1': SMALL})


class PoolTest(Heals, test_storage_pools.StorageTestCase):
    pools = {'pool': ('host1', 'host2')}

    def test_a_pool_that_is_not_to_be_shared_any_more_keeps_its_disks(self):
        server = self.boot_on('host1')
        self._set_provider_traits(self.uuid_of('pool'), [])

        self.assertEqual([], self.heal())
        self.assert_holds(server['id'], self.held_on('host1'))
