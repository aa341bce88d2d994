"""Room for new servers that is to be there at any time."""

import dataclasses

import testtools

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.planners.base import Limits
from kronos_nova.policies import Buffer
from kronos_nova.room import buffers
from kronos_nova.room import shapes
from kronos_nova.room import slots
from tests.unit.room import clouds

RULES = ConstraintRules()
HALF = shapes.parse('4:8192')


def buffer(keep, name='half', aggregate='gpu'):
    return Buffer(name=name, aggregate=aggregate, flavor='4:8192', keep=keep), HALF


def cloud(*servers):
    """Three hosts with room for two servers of four VCPUs and half of the memory each."""
    return clouds.cloud([clouds.host(name) for name in 'abc'], servers, aggregates=(
        clouds.objects.Aggregate(name='gpu', uuid='g', hosts=('a', 'b', 'c')),))


def reserve(snapshot, *wanted):
    return buffers.reserve(snapshot, RULES, wanted)


class ReserveTest(testtools.TestCase):
    def test_its_room_is_in_use_on_many_hosts_those_with_least_room_first(self):
        kept, [state] = reserve(cloud(clouds.server('s', 'b', 4, 8192)), buffer(2))
        self.assertEqual(({'a': 1, 'b': 1}, 2, False), (state.hosts, state.found, state.is_lost))
        self.assertEqual({'a': 1, 'b': 0, 'c': 2}, dict(slots.SlotCounter(
            kept, RULES, [HALF]).slots(0).by_host))

    def test_an_empty_host_is_kept_only_where_no_other_host_has_room(self):
        """An empty host that is kept has no load, however uneven the others are."""
        servers = [clouds.server(f's{host}', host, 4, 8192) for host in 'ab']
        for keep, hosts in ((1, {'a': 1}), (2, {'a': 1, 'b': 1}), (3, {'a': 1, 'b': 1, 'c': 1}),
                            (4, {'a': 1, 'b': 1, 'c': 2})):
            self.assertEqual(hosts, reserve(cloud(*servers), buffer(keep))[1][0].hosts)

    def test_of_a_large_host_a_smaller_part_is_kept(self):
        snapshot = dataclasses.replace(cloud(), hosts=(
            clouds.host('a'), clouds.host('b', 32, 65536), clouds.host('c')))
        _kept, [state] = reserve(snapshot, buffer(6))
        self.assertEqual({'a': 1, 'b': 4, 'c': 1}, state.hosts)

    def test_where_load_is_packed_its_room_is_on_the_hosts_with_most(self):
        servers = [clouds.server('s', 'a', 4, 8192)]
        _kept, [state] = buffers.reserve(cloud(*servers), RULES, [buffer(3)], packs_load=True)
        self.assertEqual({'b': 2, 'c': 1}, state.hosts)

    def test_each_buffer_has_room_of_its_own(self):
        _kept, [one, other] = reserve(cloud(), buffer(4), buffer(4, 'other'))
        self.assertEqual((4, 2), (one.found, other.found))
        self.assertTrue(other.is_lost)

    def test_a_server_counts_once_while_it_moves(self):
        """Server s leaves host a for host b. Both hosts have its amounts in use."""
        full = {'VCPU': 4, 'MEMORY_MB': 8192}
        snapshot = dataclasses.replace(cloud(clouds.server('s', 'a', 4, 8192)), hosts=tuple(
            clouds.host(name, used=dict(full) if name == 'a' else dict.fromkeys(full, 0))
            for name in 'abc')).with_moves_under_way(
                [clouds.objects.MoveUnderWay(instance_uuid='s', source='a', destination='b')])
        self.assertEqual(4, slots.SlotCounter(snapshot, RULES, [HALF]).slots(0).total)
        kept, [state] = reserve(snapshot, buffer(5))
        self.assertEqual(({'a': 2, 'b': 1, 'c': 2}, False), (state.hosts, state.is_lost))
        self.assertEqual(0, slots.SlotCounter(kept, RULES, [HALF]).slots(0).total)
        [one, other] = reserve(snapshot, buffer(3), buffer(3, 'other'))[1]
        self.assertEqual((3, 2), (one.found, other.found))

    def test_a_part_is_of_what_hosts_without_servers_hold(self):
        servers = [clouds.server(f's{host}', host, 4, 8192) for host in 'abc']
        _kept, [state] = reserve(cloud(*servers), buffer('50%'))
        self.assertEqual((3, 3), (state.wanted, state.found))

    def test_hosts_of_other_aggregates_have_no_part_in_it(self):
        snapshot = dataclasses.replace(cloud(), aggregates=(clouds.objects.Aggregate(
            name='gpu', uuid='g', hosts=('a',)),))
        _kept, [state] = reserve(snapshot, buffer(3))
        self.assertEqual({'a': 2}, state.hosts)


class PlanTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        # An eighth of each host is in use, so that only one more half fits on each.
        self.snapshot = cloud(*(clouds.server(f's{host}', host, 1, 2048) for host in 'abc'))

    def plan(self, keep, budget=10, pinned=()):
        _kept, [state] = reserve(self.snapshot, buffer(keep))
        return buffers.plan(self.snapshot, RULES, state, Limits(budget=budget), pinned)

    def test_what_is_lost_is_made_by_moves(self):
        found = self.plan(4)
        self.assertEqual((1, 4), (len(found.moves), len(found.hosts)))

    def test_as_much_is_made_as_the_budget_has_moves_for(self):
        self.assertEqual(5, len(self.plan(5).hosts))
        found = self.plan(5, budget=1)
        self.assertEqual((1, 4), (len(found.moves), len(found.hosts)))

    def test_what_no_host_could_hold_is_not_tried(self):
        # A search for so many new servers would not end.
        found = self.plan(10 ** 30)
        self.assertEqual(5, len(found.hosts))

    def test_what_cannot_be_made_is_not_tried_by_moves_that_bring_nothing(self):
        self.assertIsNone(self.plan(4, pinned=('sa', 'sb', 'sc')))
        self.assertIsNone(self.plan(4, budget=0))


class KeepTest(testtools.TestCase):
    def test_a_number_or_a_part(self):
        for keep, wanted in ((3, 3), ('1%', 1), ('10%', 2), ('100%', 20)):
            self.assertEqual(wanted, buffer(keep)[0].wanted(20))
        for wrong in (0, -1, '0%', '101%', '10', 'x', 1.5, True):
            self.assertRaises(ValueError, buffer, wrong)
