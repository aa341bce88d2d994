"""Room that allocations in placement keep, where nova-scheduler has no KronosFilter."""

import time
from unittest import mock

import fixtures
import nova.conf
from nova.cmd import manage

from kronos_client.contract import room as contract
from kronos_nova import clock
from kronos_nova import conf as kronos_conf
from kronos_nova import exception
from kronos_nova.db import holds
from kronos_nova.objects import hold
from kronos_nova.objects import repair as repairs
from kronos_nova.placement import audit
from kronos_nova.placement import heal
from kronos_nova.placement import holdings
from kronos_nova.placement import room_allocations
from kronos_nova.placement.client import PlacementClient
from kronos_nova.placement.room_allocations import RoomAllocations
from kronos_nova.services import room
from tests.functional import base
from tests.functional import room_case
from tests.functional import test_allocations_audit
from tests.functional import test_balancing
from tests.functional import test_held_room

CONF = nova.conf.CONF


class AllocatedRoomTestCase(room_case.RoomMixin, base.NovaTestCase):
    """On each of two hosts is a server of 2 GiB, so that neither has room for one of 7,000 MiB."""

    managers = {'nova-conductor': 'kronos_nova.plugin.managers.Conductor'}
    keeps_by_allocations = True

    def setUp(self):
        self.useFixture(fixtures.MonkeyPatch('nova.virt.fake.MediumFakeDriver',
                                             test_balancing.QemuDriver))
        super().setUp()
        kronos_conf.register_opts(CONF)
        self.set_up_room()
        self.small, self.wide = (self._create_flavor(vcpu=1, memory_mb=mb, disk=1)
                                 for mb in (2048, 7000))
        self.wide_name = self.name_of(self.wide)
        self.servers = [self.boot(host, flavor_id=self.small) for host in self.hosts]

    def release(self, found):
        return room.release(self.context, contract.OneRoom(room=found.uuid))

    def kept(self):
        """{host: number of servers to come for which placement keeps room there}"""
        found = {}
        for host in self.hosts:
            held = self.placement_client.held_on(self.uuid_of(host))
            found[host] = sum(map(RoomAllocations(self.placement_client).is_ours, held))
        return {host: count for host, count in found.items() if count}

    def assert_nothing_leaks(self, found):
        """Placement keeps what the hold says, and each server has its one allocation."""
        self.assertEqual(found.left() if found.state == hold.HELD else {}, self.kept())
        servers = self.api.get_servers(search_opts={'status': 'ACTIVE'})
        for each in servers:
            self.assertEqual(1, len(self.held_by(each['id'])))
        self.assertEqual(len(servers) + sum(self.kept().values()), sum(
            len(self.placement_client.held_on(self.uuid_of(host))) for host in self.hosts))


class AllocatedRoomTest(AllocatedRoomTestCase):
    def test_placement_keeps_it_from_others(self):
        found = self.made()

        [host], [other] = found.hosts, {*self.hosts} - {*found.hosts}
        self.assertEqual((hold.ALLOCATIONS, [host]),
                         (found.keeper, [*found.consumers.values()]))
        [consumer] = found.consumers
        held = self.placement_client.consumer(consumer)
        self.assertEqual((room_allocations.OWNER, room_allocations.ROOM),
                         (held.project_id, held.consumer_type))
        self.assertEqual(other, self.where(self.small))
        self.assertIsNone(self.where(self.small, 'ERROR'))
        self.evaluate()
        self.assert_nothing_leaks(self.holds.get(found.uuid))

    def test_a_server_that_it_is_for_gets_it(self):
        found = self.made()
        [consumer] = found.consumers
        held = self.held_by(consumer)
        server = self._create_server(flavor_id=self.wide, networks='none')
        self.assertEqual([*found.hosts], [server['OS-EXT-SRV-ATTR:host']])
        self.assert_holds(server['id'], held)
        found = self.until(found.uuid, hold.USED)
        self.evaluate()
        self.assert_nothing_leaks(found)
        self.assertEqual({}, self.holds.get(found.uuid).consumers)

    def test_each_of_two_servers_gets_it_before_the_next_evaluation(self):
        flavor = self._create_flavor(vcpu=1, memory_mb=5000, disk=1)
        self.wide_name = self.name_of(flavor)
        self.made(count=2)
        self.assertEqual({*self.hosts}, {self.where(flavor), self.where(flavor)})

    def test_a_server_of_another_project_does_not(self):
        found = self.made(project='another')
        self.assertIsNone(self.where(self.wide, 'ERROR'))
        self.evaluate()
        self.assert_nothing_leaks(self.holds.get(found.uuid))

    def test_servers_for_which_it_does_not_suffice_leave_it_as_it_is(self):
        found = self.made()
        wanted = self._build_server(flavor_id=self.wide, networks='none')
        created = self.api.post_server({'server': {**wanted, 'min_count': 2, 'max_count': 2}})
        self._wait_for_state_change(created, 'ERROR')
        self.assert_nothing_leaks(found)

    def test_what_a_server_did_not_use_is_kept_again(self):
        found = self.made()
        RoomAllocations(self.placement_client).give_back(found.consumers)
        self.assertEqual({}, self.kept())
        self.evaluate()
        self.assert_nothing_leaks(self.holds.get(found.uuid))

    def test_others_take_it_once_it_is_released(self):
        found = self.made()
        self.release(found)
        self.assertEqual({}, self.kept())
        self.assertEqual(*({host} for host in (self.where(self.wide), *found.hosts)))
        self.evaluate()
        self.assertEqual([], self.holds.with_consumers())

    def test_it_expires(self):
        found = self.made(hold_seconds=60)
        self.holds.note(found, expires_at=clock.utcnow())
        self.evaluate()
        found = self.holds.get(found.uuid)
        self.assertEqual((hold.EXPIRED, {}), (found.state, found.consumers))
        self.assert_nothing_leaks(found)

    def test_cells_and_devices_are_refused(self):
        for specs, why in (({'hw:numa_nodes': '1'}, 'KronosFilter'),
                           ({'pci_passthrough:alias': 'gpu:1'}, 'pci_passthrough:alias'),
                           ({'accel:device_profile': 'fpga'}, 'accel:device_profile')):
            flavor = self._create_flavor(vcpu=1, memory_mb=512, disk=1, extra_spec=specs)
            error = self.assertRaises(exception.RequestRefused, room.make, self.context,
                                      contract.MakeRoom(flavor=self.name_of(flavor)))
            self.assertIn(why, str(error))
        self.assertEqual([], self.holds.in_states(hold.HOLD_TRANSITIONS))

    def test_devices_of_resource_classes_are_held(self):
        """A VGPU is on a provider below the host's."""
        root = self.uuid_of('host1')
        child = self.placement.post('/resource_providers', version='1.20', body={
            'name': 'host1_gpu', 'parent_provider_uuid': root}).body['uuid']
        self.placement.put(f'/resource_providers/{child}/inventories', version='1.20', body={
            'inventories': {'VGPU': {'total': 2}}, 'resource_provider_generation': 0})
        flavor = self._create_flavor(vcpu=1, memory_mb=512, disk=1,
                                     extra_spec={'resources:VGPU': '1'})
        made = room.make(self.context, contract.MakeRoom(
            flavor=self.name_of(flavor), count=2, approve=True))
        found = self.until(made.hold.uuid, hold.HELD)
        self.assertEqual({'host1': 2}, dict(found.hosts))
        for consumer in found.consumers:
            self.assertEqual({'VGPU': 1}, self.held_by(consumer)['host1_gpu'])
        self.evaluate()
        self.assertEqual(found.consumers, self.holds.get(found.uuid).consumers)


class KilledTest(AllocatedRoomTestCase):
    """Each write of the control database, and each request to placement, is the last of its
    process once."""

    def die(self, owner, name, after, work):
        """Do work until a step ends its process."""
        real = getattr(owner, name)

        def dying(*args, **kwargs):
            if after:
                real(*args, **kwargs)
            raise test_held_room.Killed
        with mock.patch.object(owner, name, dying):
            for _turn in range(20):
                try:
                    work()
                except test_held_room.Killed:
                    return
        self.fail(f'{name} was never called')

    def turn(self):
        self.evaluate()
        self.worker.tick()
        time.sleep(0.1)

    def test_room_is_kept_and_nothing_leaks(self):
        for owner, name in ((holds.Holds, 'note'), (RoomAllocations, 'allocate'),
                            (PlacementClient, 'post'), (holds.Holds, 'enter')):
            for after in (False, True):
                first = self.made()     # its servers have moved: the steps below are those of holds
                self.release(first)
                made = self.make(approve=True)
                self.die(owner, name, after, self.turn)
                found = self.until(made.hold.uuid, hold.HELD)
                self.assert_nothing_leaks(found)
                self.assertEqual(1, sum(self.kept().values()))
                self.release(found)
                self.evaluate()
                self.assertEqual(({}, []), (self.kept(), self.holds.with_consumers()))

    def test_room_ends_and_nothing_leaks(self):
        for owner, name in ((holds.Holds, 'enter'), (RoomAllocations, 'give_back'),
                            (PlacementClient, 'post'), (holds.Holds, 'note')):
            for after in (False, True):
                found = self.made()
                self.holds.note(found, expires_at=clock.utcnow())
                self.die(owner, name, after, self.evaluate)
                self.evaluate()
                found = self.holds.get(found.uuid)
                self.assertEqual((hold.EXPIRED, {}), (found.state, found.consumers))
                self.assert_nothing_leaks(found)

    def test_a_lost_answer_of_placement_changes_nothing(self):
        made = self.make(approve=True)

        def lose(method, path, body):
            if (method, path) == ('POST', '/allocations') and any(
                    each['project_id'] == room_allocations.OWNER for each in body.values()):
                self.placement_fixture.after = lambda *asked: None
                return base.answer(503)
            return None
        self.placement_fixture.after = lose
        self.assert_nothing_leaks(self.until(made.hold.uuid, hold.HELD))


class AuditTest(AllocatedRoomTestCase, test_allocations_audit.AuditTestCase):
    """Audits, ours and Nova's, of room that is kept."""

    def rooms(self):
        return {uuid: audit.KeptRoom(hold=each.uuid, host=host, is_kept=each.state == hold.HELD,
                                     has_ended=each.state not in hold.OPEN)
                for uuid, (each, host) in self.holds.consumers().items()}

    def audit(self, limits=None):
        return audit.audit(holdings.read(self.placement_client), self.records, self.limits,
                           rooms=self.rooms,
                           is_room=RoomAllocations(self.placement_client).is_ours)

    def heal(self, findings=None):
        healer = heal.Healer(self.placement_client, self.records,
                             holdings.read(self.placement_client), self.limits, self.repairs,
                             self.rooms)
        return [healer.heal(each) for each in (findings or self.audit().findings)]

    def test_room_that_is_kept_is_no_finding(self):
        self.made()
        self.assertEqual([], self.findings())

    def test_room_that_holds_nothing_is_found(self):
        [consumer] = self.made().consumers
        RoomAllocations(self.placement_client).give_back([consumer])
        self.assertEqual([(audit.MISSING, consumer)], self.findings())

    def test_room_that_has_ended_is_healed(self):
        found = self.made()
        [consumer] = found.consumers
        self.holds.enter(found, hold.RELEASED)
        self.assertHealedAlone(consumer)

    def test_room_of_a_lost_database_is_healed(self):
        found = self.made()
        [consumer] = found.consumers
        self.holds.note(found, consumers={})
        self.assertHealedAlone(consumer)

    def assertHealedAlone(self, consumer):
        self.assertEqual([(audit.LEAKED, consumer)], self.findings())
        [outcome] = self.heal()
        self.assertEqual(repairs.HEALED, outcome.state, outcome)
        self.assertEqual(([], {}), (self.findings(), self.kept()))
        heal.undo(self.placement_client, self.repairs, outcome.repair)
        self.assertTrue(self.kept())

    def test_room_that_is_kept_by_now_is_not_healed(self):
        found = self.made()
        [consumer] = found.consumers
        self.holds.note(found, consumers={})
        findings = self.audit().findings
        self.holds.note(found, consumers=found.consumers)
        [outcome] = self.heal(findings)
        self.assertEqual(repairs.SKIPPED, outcome.state)
        self.assertTrue(self.kept())

    def test_novas_audit_removes_it_and_the_next_evaluation_brings_it_back(self):
        found = self.made()
        self.assertEqual(3, manage.PlacementCommands().audit())
        self.assertEqual(4, manage.PlacementCommands().audit(delete=True))
        self.assertEqual({}, self.kept())
        self.evaluate()
        self.assert_nothing_leaks(self.holds.get(found.uuid))

        manage.PlacementCommands().audit(delete=True)
        [host] = found.hosts
        self.boot(host, flavor_id=self.wide)    # another takes it; by its name, so that it is ours
        self.holds.note(self.holds.get(found.uuid), known=tuple(
            each['id'] for each in self.api.get_servers()))
        self.evaluate()
        self.assertIn('placement has no room for them any more', self.holds.get(found.uuid).problem)
        self.evaluate()
        self.assertIn('placement has no room for them any more', self.holds.get(found.uuid).problem)
