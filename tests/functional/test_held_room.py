"""Room for a server of two NUMA cells: made by moving others, kept for it, and used."""

from unittest import mock
from urllib import parse

import nova.conf

from kronos_client.contract import room as contract
from kronos_nova import clock
from kronos_nova.db import holds
from kronos_nova.db import journal as db_journal
from kronos_nova.objects import hold
from kronos_nova.objects import snapshot
from kronos_nova.plugin import compute_api
from kronos_nova.plugin import held_room
from kronos_nova.plugin import scheduler
from kronos_nova.services import room
from tests.functional import room_case
from tests.functional.inventory import test_numa

CONF = nova.conf.CONF
FILTERS = ['ComputeFilter', 'NUMATopologyFilter', 'KronosFilter']


class Killed(BaseException):
    """Ends a step as the death of its process does."""


class HeldRoomTest(room_case.RoomMixin, test_numa.NumaTestCase):
    """On each of two hosts is a server of two CPUs."""

    hosts = ('a', 'b')

    def setUp(self):
        self.flags(available_filters=['nova.scheduler.filters.all_filters',
                                      'kronos_nova.plugin.scheduler.KronosFilter'],
                   enabled_filters=FILTERS, group='filter_scheduler')
        super().setUp()
        self.flags(enabled_filters=FILTERS, group='filter_scheduler')
        self.set_up_room()
        self.addCleanup(scheduler.VIEW.forget)
        scheduler.report(self.database, is_filtering=True)
        self.small = self._create_flavor(vcpu=2, memory_mb=512, disk=1, extra_spec=test_numa.PINNED)
        self.wide = self._create_flavor(vcpu=8, memory_mb=1024, disk=1,
                                        extra_spec={**test_numa.PINNED, 'hw:numa_nodes': '2'})
        self.wide_name = self.name_of(self.wide)
        self.servers = [self._create_server(host=host, flavor_id=self.small, networks='none')
                        for host in ('a', 'b')]

    def _migrate_stub(self, domain, destination, params, flags):
        """Any server moves, wherever it goes."""
        dest = self.computes[parse.urlsplit(destination).hostname]
        dest.driver._host.get_connection().createXML(params['destination_xml'], 'ignored')
        domain.complete_job()

    def evaluate(self):
        """An evaluation in a new process, after which nova-scheduler has read what there is."""
        super().evaluate()
        scheduler.refresh(scheduler.VIEW, self.database, 600)
        scheduler.report(self.database, is_filtering=True)

    def places(self):
        return [self.api.get_server(each['id'])['OS-EXT-SRV-ATTR:host'] for each in self.servers]

    def assert_one_allocation_each(self):
        for each in self.api.get_servers(search_opts={'status': 'ACTIVE'}):
            found = self.placement.get(f'/allocations/{each["id"]}').body['allocations']
            self.assertEqual(1, len(found), found)

    def test_servers_that_found_no_host_find_one_the_next_time(self):
        self.flags(refused_room_hold=600, automation='approve', group='kronos')
        self.assertIsNone(self.where(self.wide, 'ERROR'))
        [wish] = self.holds.in_states(hold.OPEN)
        self.assertEqual((hold.ANY, hold.REQUESTED, 1, self.wide_name),
                         (wish.aggregate, wish.state, wish.count, wish.shape.name))
        self.evaluate()
        found = self.holds.get(wish.uuid)
        self.assertEqual((hold.PROPOSED, snapshot.UNASSIGNED, 1),
                         (found.state, found.aggregate, found.moves))
        room.approve(self.context, contract.OneRoom(room=wish.uuid))
        self.until(wish.uuid, hold.HELD)
        self.assertIsNotNone(self.where(self.wide))
        self.assert_one_allocation_each()

    def test_room_without_approval_moves_nothing(self):
        self.assertIsNone(self.where(self.wide, 'ERROR'))
        made = self.make()
        self.assertEqual((1, 'proposed'), (len(made.room.moves), made.hold.state))
        self.evaluate()
        self.assertEqual(['a', 'b'], self.places())
        self.assertEqual([], self.journal.moves())

        room.approve(self.context, contract.OneRoom(room=made.hold.uuid))
        found = self.until(made.hold.uuid, hold.HELD)

        [host] = found.hosts
        self.assertEqual({'a': ['b', 'b'], 'b': ['a', 'a']}[host], self.places())
        self.assert_one_allocation_each()

    def test_it_is_kept_from_others_until_it_is_used(self):
        found = self.made()
        [host], [other] = found.hosts, {'a', 'b'} - {*found.hosts}

        self.assertEqual([other, other], [self.where(self.small) for _each in range(2)])
        self.assertIsNone(self.where(self.small, 'ERROR'))
        self.assertEqual(host, self.where(self.wide))
        self.assertEqual(hold.USED, self.until(found.uuid, hold.USED).state)
        self.assert_one_allocation_each()

    def test_what_cannot_be_compared_keeps_no_server_from_being_started(self):
        self.made()
        with mock.patch.object(held_room, '_fit', side_effect=ValueError('odd topology')):
            self.assertEqual(3, len([self.where(self.small) for _each in range(3)]))

    def test_others_take_it_once_it_is_released(self):
        found = self.made()
        room.release(self.context, contract.OneRoom(room=found.uuid))
        self.evaluate()

        self.assertEqual(4, len([self.where(self.small) for _each in range(4)]))
        self.assertEqual([], self.holds.in_states(hold.OPEN))

    def test_it_expires(self):
        found = self.made(hold_seconds=60)
        self.holds.note(found, expires_at=clock.utcnow())
        self.evaluate()

        self.assertEqual(hold.EXPIRED, self.holds.get(found.uuid).state)
        self.assertEqual(4, len([self.where(self.small) for _each in range(4)]))

    def test_what_is_missing_is_named_and_nothing_is_written(self):
        made = self.make(count=2)
        self.assertIsNone(made.hold)
        self.assertTrue(made.room.missing)
        self.assertEqual([], self.holds.in_states(hold.HOLD_TRANSITIONS))

    def test_whatever_dies_at_whatever_step_the_room_is_made_and_nothing_leaks(self):
        """Each write of the control database, and each request to Nova or placement, is the last
        of its process once."""
        steps = [(holds.Holds, 'enter'), (db_journal.Journal, 'record_plan'),
                 (db_journal.Journal, 'end_waiting'),
                 (compute_api.InProcessComputeApi, 'live_migrate')]
        for owner, name in steps:
            for after in (False, True):
                made = self.make(approve=True)
                self.die(owner, name, after)
                found = self.until(made.hold.uuid, hold.HELD)
                self.assertEqual(1, sum(found.hosts.values()))
                self.assert_one_allocation_each()
                room.release(self.context, contract.OneRoom(room=found.uuid))
                self.spread_again()
        self.assertEqual([], self.journal.aggregates_with_open_plans())

    def die(self, owner, name, after):
        """Evaluate and carry out until a step ends its process, or the room is there."""
        real = getattr(owner, name)

        def dying(*args, **kwargs):
            if after:
                real(*args, **kwargs)
            raise Killed
        with mock.patch.object(owner, name, dying):
            for _turn in range(10):
                try:
                    self.evaluate()
                    self.worker.tick()
                except Killed:
                    return
        self.fail(f'{name} was never called')

    def spread_again(self):
        """Both servers on hosts of their own, as before."""
        if len({*self.places()}) == 1:
            [host] = {'a', 'b'} - {*self.places()}
            self.api.post_server_action(self.servers[0]['id'], {'os-migrateLive': {
                'host': host, 'block_migration': 'auto'}})
            self._wait_for_server_parameter(self.servers[0], {
                'OS-EXT-SRV-ATTR:host': host, 'OS-EXT-STS:task_state': None})
