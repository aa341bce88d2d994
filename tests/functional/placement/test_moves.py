"""Start and revert of a move against the real placement service."""

import dataclasses
import functools

from oslo_utils import uuidutils

from kronos_nova.placement import errors
from kronos_nova.placement import moves
from kronos_nova.placement.allocations import INSTANCE
from kronos_nova.placement.allocations import AllocationSet
from tests.functional.placement import base

SMALL = {'VCPU': 1, 'MEMORY_MB': 512}
LARGE = {'VCPU': 6, 'MEMORY_MB': 4096}
AGGREGATE = uuidutils.generate_uuid()


def alive():
    return False


def gone():
    return True


class MoveTestCase(base.PlacementTestCase):
    def setUp(self):
        super().setUp()
        self.source, self.destination = self.host(), self.host()
        self.instance = uuidutils.generate_uuid()
        self.move = moves.Parties(
            instance=self.instance, migration=uuidutils.generate_uuid(), source=self.source,
            destination=self.destination, project_id=base.PROJECT, user_id=base.USER)
        self.start = functools.partial(moves.start, self.client, self.move)

    def give(self, allocations, uuid=None):
        """Write allocations as another client, in place of those that are there."""
        held = self.client.consumer(uuid or self.instance)
        self.client.post(AllocationSet.from_consumers(dataclasses.replace(
            held, allocations=allocations, consumer_type=INSTANCE, project_id=base.PROJECT,
            user_id=base.USER)))

    def finish(self):
        """Finish as nova-compute does when the guest has moved."""
        self.give({}, uuid=self.move.migration)

    def revert(self, is_gone=alive, **kwargs):
        return moves.revert(self.client, self.move, is_gone, **kwargs)

    def assertHeld(self, instance, migration):
        self.assertEqual((instance, migration),
                         (self.held(self.instance), self.held(self.move.migration)))

    def writes(self):
        return len(self.service.writes_of_allocations())


class MoveTest(MoveTestCase):
    def test_start_splits_and_its_end_leaves_the_destination(self):
        self.give({self.source: SMALL})

        self.start({self.destination: SMALL})
        self.assertHeld({self.destination: SMALL}, {self.source: SMALL})
        self.finish()

        self.assertHeld({self.destination: SMALL}, {})

    def test_revert_gives_the_source_back(self):
        self.give({self.source: SMALL})
        self.start({self.destination: SMALL})

        self.revert()

        self.assertHeld({self.source: SMALL}, {})
        self.assertEqual(0, self.usage(self.destination)['VCPU'])

    def test_each_step_is_one_request_and_nothing_when_repeated(self):
        self.give({self.source: SMALL})
        for step in (lambda: self.start({self.destination: SMALL}), self.revert):
            before = self.writes()
            step()
            self.assertEqual(before + 1, self.writes())
            step()
            self.assertEqual(before + 1, self.writes())

    def test_a_destination_that_was_refused_is_replaced_by_another(self):
        other = self.host()
        self.give({self.source: SMALL})

        self.start({self.destination: SMALL})
        self.start({other: SMALL})

        self.assertHeld({other: SMALL}, {self.source: SMALL})

    def test_a_full_destination_changes_nothing(self):
        self.give({self.source: SMALL})
        self.set_inventory(self.destination, {'MEMORY_MB': 8192})

        self.assertRaises(errors.InsufficientInventory, self.start, {self.destination: SMALL})

        self.assertHeld({self.source: SMALL}, {})

    def test_a_source_that_does_not_permit_what_is_left_there_is_named(self):
        self.give({self.source: SMALL})
        for limits in ({'total': 8, 'max_unit': SMALL['VCPU'] - 1} if SMALL['VCPU'] > 1 else
                       {'total': 8, 'min_unit': SMALL['VCPU'] + 1},
                       {'total': 9, 'min_unit': 3, 'step_size': 3}):
            self.set_inventory(self.source, {'VCPU': limits, 'MEMORY_MB': 8192, 'DISK_GB': 100})
            error = self.assertRaises(errors.SourceRefused, self.start,
                                      {self.destination: SMALL})
            self.assertIn(f'{SMALL["VCPU"]} of VCPU on provider {self.source}', str(error))
            self.assertHeld({self.source: SMALL}, {})

    def test_an_overcommitted_source_may_be_left_and_come_back_to(self):
        self.give({self.source: LARGE})
        self.give({self.source: SMALL}, uuid=uuidutils.generate_uuid())
        self.set_inventory(self.source, {'VCPU': {'total': 4, 'max_unit': 8}, 'MEMORY_MB': 8192})

        self.start({self.destination: LARGE})
        self.assertHeld({self.destination: LARGE}, {self.source: LARGE})
        self.revert()

        self.assertHeld({self.source: LARGE}, {})

    def test_a_deleted_instance_gets_nothing_back(self):
        self.give({self.source: SMALL})
        self.start({self.destination: SMALL})

        self.revert(gone)

        self.assertHeld({}, {})

    def test_an_instance_deleted_while_reverting_gets_nothing_back(self):
        self.give({self.source: SMALL})
        self.start({self.destination: SMALL})
        asked = []

        def deleted_after_the_first_look():
            asked.append(1)
            if len(asked) == 1:
                self.call('DELETE', f'/allocations/{self.instance}', expected=204)
                return False
            return True

        self.revert(deleted_after_the_first_look)

        self.assertHeld({}, {})

    def test_an_instance_that_held_nothing_gets_the_destination(self):
        self.start({self.destination: SMALL})
        self.assertHeld({self.destination: SMALL}, {})

        self.revert(before={})

        self.assertHeld({}, {})

    def test_leftovers_of_earlier_moves_go(self):
        leftover = self.host()
        self.give({self.source: SMALL, leftover: SMALL})

        self.start({self.destination: SMALL})

        self.assertHeld({self.destination: SMALL}, {self.source: SMALL})
        self.assertEqual(0, self.usage(leftover)['VCPU'])

    def test_revert_of_what_is_finished_is_refused(self):
        self.give({self.source: SMALL})
        self.start({self.destination: SMALL})
        self.finish()

        self.assertRaises(errors.NothingToMove, self.revert)

        self.assertHeld({self.destination: SMALL}, {})


class DoubledTest(MoveTestCase):
    """One consumer with source and destination, as before migrations had allocations."""

    def setUp(self):
        super().setUp()
        self.give({self.source: SMALL, self.destination: LARGE})

    def test_revert_keeps_the_source(self):
        self.revert()
        self.assertHeld({self.source: SMALL}, {})

    def test_it_can_be_split(self):
        self.start({self.destination: LARGE})
        self.assertHeld({self.destination: LARGE}, {self.source: SMALL})


class SameHostResizeTest(MoveTestCase):
    """Old and new together are more than one consumer may hold: 6 + 8 VCPU of a max_unit of 8."""

    def setUp(self):
        super().setUp()
        self.set_inventory(self.source, {'VCPU': {'total': 16, 'max_unit': 8}, 'MEMORY_MB': 16384})
        self.move = dataclasses.replace(self.move, destination=self.source)
        self.new = {'VCPU': 8, 'MEMORY_MB': 8192}
        self.give({self.source: LARGE})
        moves.start(self.client, self.move, {self.source: self.new})

    def test_both_are_held_meanwhile(self):
        self.assertHeld({self.source: self.new}, {self.source: LARGE})
        self.assertEqual({'VCPU': 14, 'MEMORY_MB': 12288}, self.usage(self.source))

    def test_confirmed(self):
        self.finish()
        self.assertHeld({self.source: self.new}, {})

    def test_reverted(self):
        self.revert()
        self.assertHeld({self.source: LARGE}, {})

    def test_one_consumer_could_not_hold_both(self):
        self.assertRaises(errors.InsufficientInventory, self.give, {
            self.source: {'VCPU': 14, 'MEMORY_MB': 12288}})


class SharingProviderTest(MoveTestCase):
    """Storage that both hosts reach: its usage stays what it is throughout."""

    def setUp(self):
        super().setUp()
        self.storage = self.provider({'DISK_GB': 100}, aggregates=[AGGREGATE],
                                     traits=['MISC_SHARES_VIA_AGGREGATE'])
        self.source = self.provider({'VCPU': 8, 'MEMORY_MB': 8192}, aggregates=[AGGREGATE])
        self.destination = self.provider({'VCPU': 8, 'MEMORY_MB': 8192}, aggregates=[AGGREGATE])
        self.move = dataclasses.replace(self.move, source=self.source,
                                        destination=self.destination)
        self.disk = {'DISK_GB': 20}
        self.give({self.source: SMALL, self.storage: self.disk})

    def assertStored(self, disk_gb):
        self.assertEqual({'DISK_GB': disk_gb}, self.usage(self.storage))

    def test_a_finished_move_counts_it_once(self):
        moves.start(self.client, self.move, {self.destination: SMALL})
        self.assertHeld({self.destination: SMALL, self.storage: self.disk}, {self.source: SMALL})
        self.assertStored(20)

        self.finish()

        self.assertHeld({self.destination: SMALL, self.storage: self.disk}, {})
        self.assertStored(20)

    def test_nova_computes_own_way_back_finds_it_with_the_migration(self):
        """It gives the instance what the migration holds, and no more."""
        move = dataclasses.replace(self.move, source_overwrites=True)
        moves.start(self.client, move, {self.destination: SMALL})
        self.assertHeld({self.destination: SMALL, self.storage: self.disk},
                        {self.source: SMALL, self.storage: self.disk})
        self.assertStored(40)

        self.revert()

        self.assertHeld({self.source: SMALL, self.storage: self.disk}, {})

    def test_a_reverted_move_counts_it_once(self):
        moves.start(self.client, self.move, {self.destination: SMALL})
        self.revert()

        self.assertHeld({self.source: SMALL, self.storage: self.disk}, {})
        self.assertStored(20)

    def test_a_move_that_nova_split_counts_it_once_again_when_reverted(self):
        """Nova gives the migration all that the instance held: the storage counts twice."""
        self.give({self.source: SMALL, self.storage: self.disk}, uuid=self.move.migration)
        self.give({self.destination: SMALL, self.storage: self.disk})
        self.assertStored(40)

        self.revert()

        self.assertHeld({self.source: SMALL, self.storage: self.disk}, {})
        self.assertStored(20)

    def test_a_resize_to_another_size_of_disk(self):
        before = self.held(self.instance)
        moves.start(self.client, self.move, {self.destination: SMALL,
                                             self.storage: {'DISK_GB': 50}})
        self.assertStored(50)

        self.revert(before=before)

        self.assertHeld({self.source: SMALL, self.storage: self.disk}, {})
        self.assertStored(20)

    def test_storage_that_the_destination_does_not_reach_belongs_to_the_source(self):
        alone = self.host()
        move = dataclasses.replace(self.move, destination=alone)

        moves.start(self.client, move, {alone: {**SMALL, **self.disk}})
        self.assertHeld({alone: {**SMALL, **self.disk}},
                        {self.source: SMALL, self.storage: self.disk})
        moves.revert(self.client, move, alive)

        self.assertHeld({self.source: SMALL, self.storage: self.disk}, {})


class TwoPoolsTest(MoveTestCase):
    """Each host stores its disks in a pool that the other does not reach."""

    def setUp(self):
        super().setUp()
        (self.source, self.pool), (self.destination, self.other_pool) = (
            self.host_and_pool() for _ in range(2))
        self.move = dataclasses.replace(self.move, source=self.source,
                                        destination=self.destination)
        self.disk = {'DISK_GB': 20}
        self.here = {self.source: SMALL, self.pool: self.disk}
        self.there = {self.destination: SMALL, self.other_pool: self.disk}
        self.give(self.here)

    def host_and_pool(self):
        aggregate = uuidutils.generate_uuid()
        pool = self.provider({'DISK_GB': 100}, aggregates=[aggregate],
                             traits=['MISC_SHARES_VIA_AGGREGATE'])
        return self.provider({'VCPU': 8, 'MEMORY_MB': 8192}, aggregates=[aggregate]), pool

    def test_each_pool_belongs_to_its_host(self):
        moves.start(self.client, self.move, self.there)
        self.assertHeld(self.there, self.here)

        self.finish()

        self.assertHeld(self.there, {})

    def test_the_destinations_pool_is_given_up_when_it_is_reverted(self):
        moves.start(self.client, self.move, self.there)

        self.revert()

        self.assertHeld(self.here, {})

    def test_so_it_is_where_nova_split_a_resize_of_a_server_without_disk(self):
        self.give({self.source: SMALL}, uuid=self.move.migration)
        self.give(self.there)
        self.move = dataclasses.replace(self.move, is_live=False)

        self.revert()

        self.assertHeld({self.source: SMALL}, {})

    def test_the_next_destination_may_share_what_the_first_did_not(self):
        moves.start(self.client, self.move, self.there)
        neighbour = self.provider({'VCPU': 8, 'MEMORY_MB': 8192},
                                  aggregates=self.client.aggregates(self.pool))
        move = dataclasses.replace(self.move, destination=neighbour)

        moves.start(self.client, move, {neighbour: SMALL})

        self.assertHeld({neighbour: SMALL, self.pool: self.disk}, {self.source: SMALL})
        moves.revert(self.client, move, alive)
        self.assertHeld(self.here, {})

    def test_an_aggregate_of_a_nested_provider_counts(self):
        nested = self.provider({'SRIOV_NET_VF': 4}, parent=self.destination,
                               aggregates=self.client.aggregates(self.pool))

        moves.start(self.client, self.move, {self.destination: SMALL, nested: {'SRIOV_NET_VF': 1}})

        self.assertHeld({self.destination: SMALL, nested: {'SRIOV_NET_VF': 1},
                         self.pool: self.disk}, {self.source: SMALL})


class NestedProvidersTest(MoveTestCase):
    """NUMA nodes, a VGPU and a network interface with guaranteed bandwidth go along."""

    def setUp(self):
        super().setUp()
        self.hosts = [self.nested() for _ in range(2)]
        (self.source, *_), (self.destination, *_) = self.hosts
        self.move = dataclasses.replace(self.move, source=self.source,
                                        destination=self.destination)

    def nested(self):
        root = self.provider({'DISK_GB': 100})
        numa = self.provider({'PCPU': 8, 'MEMORY_MB': 8192}, parent=root)
        gpu = self.provider({'VGPU': 4}, parent=numa)
        agent = self.provider({}, parent=root)
        nic = self.provider({'NET_BW_EGR_KILOBIT_PER_SEC': 10000}, parent=agent)
        return root, numa, gpu, nic

    def on(self, host):
        root, numa, gpu, nic = host
        return {root: {'DISK_GB': 10}, numa: {'PCPU': 2, 'MEMORY_MB': 1024}, gpu: {'VGPU': 1},
                nic: {'NET_BW_EGR_KILOBIT_PER_SEC': 1000}}

    def test_the_whole_tree_moves(self):
        here, there = (self.on(host) for host in self.hosts)
        self.give(here)

        moves.start(self.client, self.move, there)
        self.assertHeld(there, here)
        self.finish()

        self.assertHeld(there, {})

    def test_the_whole_tree_comes_back(self):
        here, there = (self.on(host) for host in self.hosts)
        self.give(here)
        moves.start(self.client, self.move, there)

        self.revert()

        self.assertHeld(here, {})
