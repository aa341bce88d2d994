"""Servers with a NUMA topology move where distinct cells have room for their parts."""

import numpy as np
import testtools

from kronos_nova import model
from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.constraints.capacity import NumaCells
from kronos_nova.model import Model
from kronos_nova.model import State
from kronos_nova.model import assignment
from kronos_nova.model.program import Program
from kronos_nova.objects.numa import InstanceCell
from kronos_nova.objects.numa import NumaCell
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Instance
from kronos_nova.objects.snapshot import Service
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.room import whole

UP = Service(state='up', status='enabled')


def host(name, *pinned_used, pinned=8):
    """A host with cells of eight CPUs to pin and 16 GiB."""
    return Host(name=name, uuid=name, service=UP, inventory={}, cells=tuple(
        NumaCell(id=number, memory_mb=16384, memory_used_mb=used * 1024, pinned_cpus=pinned,
                 pinned_used=used) for number, used in enumerate(pinned_used)))


def instance(uuid, on, *parts, on_cells=None):
    """A server of which each part has so many pinned CPUs, and a GiB for each."""
    return Instance(
        uuid=uuid, name=uuid, display_name=uuid, host=on, project_id='p', status='ACTIVE',
        vcpus=sum(parts), memory_mb=sum(parts) * 1024, disk_gb=0, on_cells=on_cells,
        cells=tuple(InstanceCell(cpus=cpus, memory_mb=cpus * 1024, pinned=True)
                    for cpus in parts))


def state(hosts, instances):
    snapshot = Snapshot(taken_at='2026-11-01T00:00:00Z', hosts=tuple(hosts),
                        instances=tuple(instances))
    return State(whole.model_of(snapshot, ConstraintRules()))


class CellsTest(testtools.TestCase):
    def may(self, state, *moves):
        problem = state.problem
        pairs = [(np.array([problem.vms.index(vm)]), np.array([problem.hosts.index(to)]))
                 for vm, to in moves]
        return bool(state.delta(*pairs).feasible[0])

    def move(self, state, vm, to):
        return state.move(state.problem.vms.index(vm), state.problem.hosts.index(to))

    def test_two_half_free_cells_are_no_free_one(self):
        cloud = state([host('a', 8, 0), host('b', 4, 4), host('c', 8, 0)],
                      [instance('v', 'a', 8, on_cells=(0,))])
        self.assertFalse(self.may(cloud, ('v', 'b')))
        self.assertTrue(self.may(cloud, ('v', 'c')))

    def test_two_parts_need_two_cells(self):
        cloud = state([host('a', 4, 4), host('b', 8, 0), host('c', 4, 2)],
                      [instance('v', 'a', 4, 4, on_cells=(0, 1))])
        self.assertFalse(self.may(cloud, ('v', 'b')))
        self.assertTrue(self.may(cloud, ('v', 'c')))

    def test_a_reason_names_what_is_missing(self):
        cloud = state([host('a', 8, 0), host('b', 4, 4)], [instance('v', 'a', 8, on_cells=(0,))])
        (rule,) = [each for each in cloud.model.rules if each.reason == 'capacity'
                   and 'NUMA' in type(each).__doc__]
        self.assertEqual('b has no NUMA cell with 8 CPUs to pin and 8192 MiB free',
                         rule.why(cloud, 0, 1))

    def test_what_leaves_makes_room_in_its_cell(self):
        cloud = state([host('a', 8, 8), host('b', 6, 6), host('c', 0, 0)],
                      [instance('v', 'a', 8, on_cells=(0,)), instance('w', 'b', 6, on_cells=(1,))])
        self.assertFalse(self.may(cloud, ('v', 'b')))
        self.move(cloud, 'w', 'c')
        self.assertTrue(self.may(cloud, ('v', 'b')))
        self.move(cloud, 'v', 'b')
        self.assertEqual([1], [place.cell for place in cloud.cells.places[0]])

    def test_an_exchange_is_judged_with_both_moves_made(self):
        cloud = state([host('a', 8, 8), host('b', 8, 8)],
                      [instance('v', 'a', 8, on_cells=(0,)), instance('w', 'b', 6, on_cells=(1,))])
        self.assertFalse(self.may(cloud, ('w', 'a')))
        self.assertFalse(self.may(cloud, ('v', 'b'), ('w', 'a')))  # 2 of the cell are others'
        roomy = state([host('a', 8, 8), host('b', 8, 6)],
                      [instance('v', 'a', 8, on_cells=(0,)), instance('w', 'b', 6, on_cells=(1,))])
        self.assertTrue(self.may(roomy, ('v', 'b'), ('w', 'a')))

    def test_a_program_proves_nothing_where_a_server_could_change_its_cell(self):
        """The servers w and x can share a cell of b after one of them has waited on c, until u
        takes the room there."""
        cloud = state([host('a', 8, 5), host('b', 4, 4), host('c', 3)], [
            instance('u', 'a', 5, on_cells=(1,)), instance('v', 'a', 8, on_cells=(0,)),
            instance('w', 'b', 4, on_cells=(0,)), instance('x', 'b', 4, on_cells=(1,))])
        choice = assignment.Assignment(cloud, cloud.model, np.array([0, 1]), np.array([2, 3]),
                                       np.array([1, 2]))
        ended = choice.ended(Program(choice).solve(np.inf, 0.0, 100))
        self.assertEqual((1, False), (len(ended.stays), ended.is_proven))
        for vm, to in (('w', 'c'), ('v', 'b'), ('w', 'b'), ('u', 'c')):
            self.assertTrue(self.may(cloud, (vm, to)))
            self.move(cloud, vm, to)

    def test_moving_back_undoes(self):
        cloud = state([host('a', 6, 2), host('b', 0, 0)], [instance('v', 'a', 2, on_cells=(0,))])
        before = cloud.cells.used.pinned.tolist()
        self.move(cloud, 'v', 'b')
        self.assertNotEqual(before, cloud.cells.used.pinned.tolist())
        self.move(cloud, 'v', 'a')
        self.assertEqual(before, cloud.cells.used.pinned.tolist())

    def test_nothing_is_asked_about_no_server(self):
        cloud = state([host('a', 8, 0), host('b', 0, 0)], [instance('v', 'a', 8, on_cells=(0,))])
        none = np.zeros(0, dtype=np.intp)
        self.assertEqual((0,), cloud.delta((none, none)).feasible.shape)

    def test_a_copy_is_moved_about_on_its_own(self):
        cloud = state([host('a', 8, 0), host('b', 0, 0)], [instance('v', 'a', 8, on_cells=(0,))])
        other = cloud.copy()
        self.move(other, 'v', 'b')
        self.assertEqual([[8.0, 0.0], [0.0, 0.0]], cloud.cells.used.pinned.tolist())
        self.assertEqual([[0.0, 0.0], [8.0, 0.0]], other.cells.used.pinned.tolist())

    def test_a_host_of_which_nothing_is_known_is_left_to_nova(self):
        unknown = Host(name='b', uuid='b', service=UP, inventory={})
        cloud = state([host('a', 8, 0), unknown], [instance('v', 'a', 8, on_cells=(0,))])
        self.assertTrue(self.may(cloud, ('v', 'b')))

    def test_a_host_without_cells_takes_no_server_that_needs_one(self):
        cloud = state([host('a', 8, 0), host('b')], [instance('v', 'a', 8, on_cells=(0,))])
        self.assertFalse(self.may(cloud, ('v', 'b')))

    def test_what_has_arrived_and_is_not_counted_yet_takes_room(self):
        hosts = [host('a', 0, 0), host('b', 8, 4)]
        instances = [instance('v', 'b', 4, on_cells=(0,)), instance('w', 'a', 4, on_cells=(0,))]
        found = model.cells(hosts, instances, np.array([1, 0]), arrived=[0])
        self.assertEqual([8.0, 8.0], found.used.pinned[1].tolist())

    def test_nothing_is_compiled_where_no_server_needs_cells(self):
        cloud = state([host('a', 8, 0), host('b', 0, 0)], [instance('v', 'a')])
        self.assertIsNone(cloud.cells)
        self.assertEqual((), NumaCells.compile(cloud.problem, None, ConstraintRules()))

    def test_the_check_can_be_left_out(self):
        cloud = state([host('a', 8, 0), host('b', 8, 8)], [instance('v', 'a', 8, on_cells=(0,))])
        rules = ConstraintRules(host_checks=frozenset())
        self.assertEqual((), NumaCells.compile(cloud.problem, None, rules))
        self.assertTrue(self.may(State(Model(cloud.problem)), ('v', 'b')))

    def test_a_search_sees_the_sum_of_the_cells(self):
        cloud = state([host('a', 8, 0), host('b', 4, 6)],
                      [instance('v', 'a', 4, 4, on_cells=(0, 0))])
        rule = NumaCells.compile(cloud.problem, None, ConstraintRules())[0]
        free, room, needs = rule.linear(cloud, np.array([0, 1]), np.array([0]))
        self.assertEqual([[8.0, 0.0], [6.0, 0.0]], free.tolist())
        self.assertEqual([[16.0, 0.0], [16.0, 0.0]], room.tolist())
        self.assertEqual([[8.0, 0.0]], needs.tolist())
