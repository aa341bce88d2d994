"""The moves after which new servers fit."""

import dataclasses

import testtools

from bench import making_room
from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.planners.base import Limits
from kronos_nova.room import making
from kronos_nova.room import shapes
from tests.unit.room import clouds

LIMITS = Limits(budget=1000)


def plan(snapshot, text, count=1, **more):
    return making.plan(snapshot, ConstraintRules(), shapes.parse(text), count, LIMITS, **more)


class MakingTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.snapshot = clouds.cloud(
            [clouds.host('a'), clouds.host('b')],
            [clouds.server('small', 'a', 2, 2048), clouds.server('other', 'b', 2, 4096)])

    def test_without_need_nothing_moves(self):
        found = plan(self.snapshot, '4:4096')
        self.assertEqual(((), 1, ()), (found.moves, len(found.hosts), found.missing))

    def test_the_server_with_the_least_memory_gives_way(self):
        found = plan(self.snapshot, '8:4096')

        [move] = found.moves
        self.assertEqual(('small', 'a', 'b'), (move.instance_uuid, move.source, move.destination))
        self.assertEqual((('a',), 2048), (found.hosts, found.memory_mb))

    def test_servers_move_to_the_hosts_with_the_least_load(self):
        hosts = [clouds.host(name) for name in 'abcd']
        cloud = clouds.cloud(hosts, [clouds.server(f's{name}', name, 3) for name in 'bcd'] + [
            clouds.server('s1', 'a'), clouds.server('s2', 'a')])

        def places(**loads):
            found = plan(cloud, '8:4096', pinned=['sb', 'sc', 'sd'], loads=loads)
            self.assertEqual(('a',), found.hosts)
            return sorted(move.destination for move in found.moves)
        self.assertEqual(['c', 'd'], places(b=.9, c=.2, d=.2))
        self.assertEqual(['b', 'b'], places(b=.1, c=.8, d=.8))
        self.assertEqual(2, len({*places()}))

    def test_as_little_memory_is_copied_where_only_some_new_servers_find_room(self):
        """No two hosts can be emptied. To empty c copies less memory than to empty b."""
        cloud = clouds.cloud(
            [clouds.host('a', 6, 8192), clouds.host('b', 8, 16384), clouds.host('c', 8, 8192)],
            [clouds.server('s0', 'b', 2, 4096), clouds.server('s1', 'b', 2, 3072),
             clouds.server('s2', 'a', 4, 1024), clouds.server('s5', 'c', 2, 4096)],
            server_groups=(clouds.group('affinity', 's2', 's0'),))
        found = plan(cloud, '7:1024', count=2, pinned=['s2'])
        self.assertEqual((('c',), 4096, True), (found.hosts, found.memory_mb, found.is_proven))

    def test_no_server_waits_elsewhere_where_another_end_needs_no_waiting(self):
        cloud = clouds.cloud(
            [clouds.host('a', 6, 8192), clouds.host('b', 8, 8192), clouds.host('c', 8, 16384)],
            [clouds.server('s0', 'a', 2, 3072), clouds.server('s1', 'b', 3, 4096),
             clouds.server('s2', 'b', 3, 1024), clouds.server('s3', 'c', 3, 1024),
             clouds.server('s4', 'a', 2, 1024)],
            server_groups=(clouds.group('anti-affinity', 's3', 's4'),))
        found = plan(cloud, '6:8192', pinned=['s0', 's1'])
        self.assertEqual((('c',), 2048), (found.hosts, found.memory_mb))

    def test_a_cheap_plan_counts_where_a_soft_group_sends_one_of_its_servers_elsewhere(self):
        """Two servers leave a, with less memory together than the one on d. One of the two has to
        go to b, where its soft group is."""
        cloud = clouds.cloud(
            [clouds.host(name) for name in 'abcd'],
            [clouds.server('s0', 'a', 2, 1024), clouds.server('s1', 'a', 2, 1024),
             clouds.server('s2', 'b', 3, 4096), clouds.server('s3', 'c', 3, 4096),
             clouds.server('s4', 'd', 2, 3072)],
            server_groups=(clouds.group('soft-affinity', 's0', 's2'),))
        found = plan(cloud, '8:4096', pinned=['s2', 's3'])
        self.assertEqual((('a',), 2048), (found.hosts, found.memory_mb))
        self.assertIn(('s0', 'b'), [(move.instance_uuid, move.destination) for move in found.moves])

    def test_a_server_that_may_not_move_stays(self):
        found = plan(self.snapshot, '8:4096', pinned=['small'])
        self.assertEqual(['other'], [move.instance_uuid for move in found.moves])
        none = plan(self.snapshot, '8:4096', pinned=['small', 'other'])
        self.assertEqual(((), (), True), (none.moves, none.hosts, none.is_proven))

    def test_what_is_missing_is_named(self):
        found = plan(self.snapshot, '99:4096')

        self.assertEqual(((), True), (found.hosts, found.is_proven))
        self.assertIn('it needs 99 VCPU', found.missing[0])

    def test_what_new_servers_lack_together_is_said_of_servers_that_need_a_place(self):
        found = plan(self.snapshot, '3:1024', count=5)

        self.assertIn('the 5 servers that need a place need 15 VCPU together', found.missing[0])

    def test_a_plan_that_is_cut_says_so(self):
        found = making.plan(self.snapshot, ConstraintRules(), shapes.parse('99:4096'), 1,
                            Limits(budget=1000, clock=lambda: 1.0, deadline=0.0))
        self.assertEqual(((), (making.CUT,), False),
                         (found.hosts, found.missing, found.is_proven))

    def test_no_server_moves_to_another_cell(self):
        hosts = [clouds.host('a'), clouds.host('b', cell='cell2')]
        found = plan(dataclasses.replace(self.snapshot, hosts=tuple(hosts)), '8:4096')
        self.assertEqual((), found.hosts)


class RefereeTest(testtools.TestCase):
    def test_room_is_made_with_the_least_memory(self):
        """By an integer program that shares nothing with the planner."""
        made = 0
        for seed in range(4):
            ours, least, _seconds = making_room.compared(seed)
            self.assertEqual(least, ours, seed)
            made += bool(ours)
        self.assertEqual(4, made)
