"""Room in NUMA cells: slots, losses, room that is made, and the cloud as it would be."""

import testtools

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.objects import snapshot as objects
from kronos_nova.objects.numa import NumaCell
from kronos_nova.objects.shape import Shape
from kronos_nova.planners.base import Limits
from kronos_nova.room import defragmenting
from kronos_nova.room import failover
from kronos_nova.room import making
from kronos_nova.room import slots
from kronos_nova.room import whatif
from tests.unit.room import clouds

PINNED = {'hw:cpu_policy': 'dedicated'}


def shape(vcpus, nodes=1):
    return Shape(id=str(vcpus), name=f'pinned{vcpus}', vcpus=vcpus, memory_mb=vcpus * 1024,
                 extra_specs=PINNED | {'hw:numa_nodes': str(nodes)})


def host(name, *used, **more):
    """A host with cells of eight CPUs to pin and 8 GiB, of which so many are in use."""
    return clouds.host(name, inventory={
        'PCPU': objects.ResourceInventory(total=8 * len(used)),
        'MEMORY_MB': objects.ResourceInventory(total=8192 * len(used))}, cells=tuple(
            NumaCell(id=number, memory_mb=8192, memory_used_mb=count * 1024, pinned_cpus=8,
                     pinned_used=count) for number, count in enumerate(used)), **more)


def server(uuid, on, vcpus, *cells):
    wanted = shape(vcpus, len(cells))
    return clouds.server(uuid, on, vcpus, vcpus * 1024, resources=dict(wanted.resources),
                         cells=wanted.cells, on_cells=cells)


def count(snapshot, wanted):
    return slots.SlotCounter(snapshot, ConstraintRules(), [wanted]).slots(0)


class CellsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        # Four CPUs are free in each cell of a, eight in one of b.
        self.cloud = clouds.cloud(
            [host('a', 4, 4), host('b', 8, 0)],
            [server('one', 'a', 4, 0), server('two', 'a', 4, 1), server('three', 'b', 8, 0)])

    def test_slots_are_counted_in_cells(self):
        found = count(self.cloud, shape(6))
        self.assertEqual(({'a': 0, 'b': 1}, 1), (found.by_host, found.total))
        self.assertEqual({'a': 2, 'b': 2}, count(self.cloud, shape(4)).by_host)
        self.assertEqual({'a': 1, 'b': 0}, count(self.cloud, shape(8, nodes=2)).by_host)

    def test_cells_are_named_where_they_are_what_is_short(self):
        only_a = clouds.cloud(self.cloud.hosts[:1], self.cloud.instances[:2])
        found = count(only_a, shape(6))
        self.assertEqual((0, slots.CELLS), (found.total, found.short))

    def test_unequal_parts_are_counted_too(self):
        unequal = Shape(name='u', vcpus=7, memory_mb=7168, extra_specs=PINNED | {
            'hw:numa_nodes': '2', 'hw:numa_cpus.0': '0-5', 'hw:numa_mem.0': '6144',
            'hw:numa_cpus.1': '6', 'hw:numa_mem.1': '1024'})
        self.assertEqual({'a': 1}, count(clouds.cloud([host('a', 1, 4)]), unequal).by_host)
        self.assertEqual({'a': 0}, count(clouds.cloud([host('a', 4, 4)]), unequal).by_host)

    def test_a_loss_takes_the_cells_into_which_servers_restart(self):
        judge = failover.failover_of(self.cloud, ConstraintRules())
        lost_a, lost_b = (judge.judge([judge.index(name)]) for name in 'ab')
        self.assertEqual(('fits', 'does_not_fit'), (lost_a.verdict, lost_b.verdict))
        self.assertEqual({'three': 'no other host may take it'}, dict(lost_b.left))
        counter = slots.SlotCounter(self.cloud, ConstraintRules(), [shape(4)])
        self.assertEqual(0, counter.without(0, lost_a))
        self.assertEqual(4, counter.slots(0).total)

    def test_servers_that_fit_one_by_one_may_not_fit_together(self):
        cloud = clouds.cloud([host('a', 6, 6), host('b', 2, 2)],
                             [server('one', 'a', 6, 0), server('two', 'a', 6, 1)])
        judge = failover.failover_of(cloud, ConstraintRules())
        self.assertEqual('fits', judge.judge([judge.index('a')]).verdict)
        tight = clouds.cloud([host('a', 6, 6), host('b', 2, 3)],
                             [server('one', 'a', 6, 0), server('two', 'a', 6, 1)])
        judge = failover.failover_of(tight, ConstraintRules())
        self.assertEqual('does_not_fit', judge.judge([judge.index('a')]).verdict)
        self.assertFalse(judge.fits_in_novas_order([judge.index('a')]))

    def test_room_is_made_in_one_cell(self):
        only_a = clouds.cloud([host('a', 4, 4), host('b', 8, 4)],
                              [server('one', 'a', 4, 0), server('two', 'a', 4, 1),
                               server('three', 'b', 8, 0), server('four', 'b', 4, 1)])
        found = making.plan(only_a, ConstraintRules(), shape(8), 1, Limits(budget=100))
        self.assertEqual(1, len(found.hosts))
        (move,) = found.moves
        self.assertEqual(4096, move.memory_mb)

    def test_slots_are_made_of_fragments(self):
        cloud = clouds.cloud(
            [host('a', 4, 2), host('b', 4, 4), host('c', 8, 8)],
            [server('one', 'a', 4, 0), server('two', 'b', 4, 0), server('three', 'a', 2, 1)])
        found = defragmenting.plan(cloud, ConstraintRules(), shape(8), Limits(budget=2))
        self.assertEqual((0, 2), (found.before.total, found.after.total))
        self.assertEqual(2, len(found.moves))
        fewer = defragmenting.plan(cloud, ConstraintRules(), shape(8), Limits(budget=1))
        self.assertEqual((1, 1), (fewer.after.total, len(fewer.moves)))
        after = defragmenting.after(cloud, found.moves, ConstraintRules())
        self.assertEqual(2, count(after, shape(8)).total)

    def test_moves_that_make_no_slot_are_none(self):
        cloud = clouds.cloud([host('a', 4, 4)], [server('one', 'a', 4, 0)])
        found = defragmenting.plan(cloud, ConstraintRules(), shape(8), Limits(budget=5))
        self.assertEqual(((), 0, 0), (found.moves, found.before.total, found.after.total))

    def test_the_emptiest_cell_is_counted_after_a_boot(self):
        found = whatif.changed(self.cloud, ConstraintRules(), whatif.Changes(boot=['1:pinned4']),
                               lambda: [shape(4)]).snapshot
        used = {each.name: [cell.pinned_used for cell in each.cells] for each in found.hosts}
        self.assertEqual(12 + 8, sum(sum(cells) for cells in used.values()))
        self.assertEqual(3, count(found, shape(4)).total)

    def test_a_host_like_one_has_empty_cells(self):
        found = whatif.changed(self.cloud, ConstraintRules(), whatif.Changes(add=['1:like=b']),
                               list).snapshot
        self.assertEqual(2, count(found, shape(8)).by_host['b+1'])

    def test_restarted_servers_are_in_cells_of_their_new_hosts(self):
        found = whatif.changed(self.cloud, ConstraintRules(), whatif.Changes(lose=['a']),
                               list).snapshot
        self.assertEqual({('one', (1,)), ('two', (1,)), ('three', (0,))},
                         {(each.uuid, each.on_cells) for each in found.instances})
        self.assertEqual([8, 8], [cell.pinned_used for cell in found.hosts[0].cells])
