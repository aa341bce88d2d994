"""Room that is held counts as in use, until its servers are there."""

import dataclasses
import datetime

import testtools

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.objects import numa
from kronos_nova.objects.shape import Shape
from kronos_nova.objects.snapshot import Flavor
from kronos_nova.room import holding
from kronos_nova.room import slots
from tests.unit.db import test_holds
from tests.unit.room import clouds

PLAIN = Shape(name='plain', vcpus=4, memory_mb=4096)
WIDE = Shape(name='wide', vcpus=8, memory_mb=4096, extra_specs={
    'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': '2'})
NOW = datetime.datetime(2026, 11, 26, tzinfo=datetime.UTC)
LARGE = Flavor(name='plain', id='1')


def held(shape, **more):
    return test_holds.wish('r1', NOW, state='held', shape=shape, **more)


def fits(snapshot, shape):
    return slots.SlotCounter(snapshot, ConstraintRules(), [shape]).slots(0).total


class WithHeldTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        cells = tuple(numa.NumaCell(id=n, memory_mb=8192, pinned_cpus=4) for n in (0, 1))
        self.plain = clouds.cloud([clouds.host('a'), clouds.host('b')])
        self.pinned = clouds.cloud([clouds.host('a', cells=cells, inventory={
            **clouds.host('a').inventory,
            'PCPU': dataclasses.replace(clouds.host('a').inventory['VCPU'], total=8)})])

    def test_nothing_else_fits_there(self):
        self.assertEqual(4, fits(self.plain, PLAIN))
        kept = holding.with_held(self.plain, [held(PLAIN, hosts={'a': 2})])
        self.assertEqual(2, fits(kept, PLAIN))
        self.assertEqual({'b': 2}, {name: count for name, count in slots.SlotCounter(
            kept, ConstraintRules(), [PLAIN]).slots(0).by_host.items() if count})

    def test_a_resource_of_which_nothing_may_be_allocated_has_no_room(self):
        closed = dataclasses.replace(clouds.host('a').inventory['VCPU'], allocation_ratio=0.0)
        there = clouds.cloud([clouds.host(name, inventory={
            **clouds.host(name).inventory, 'CUSTOM_LICENSE': closed}) for name in ('a', 'b')])
        kept = holding.with_held(there, [held(PLAIN, hosts={'a': 2})])
        self.assertEqual(2, fits(kept, PLAIN))

    def test_what_is_used_of_it_is_counted_as_its_server_alone(self):
        kept = holding.with_held(self.plain, [held(PLAIN, hosts={'a': 2}, used={'s': 'a'})])
        self.assertEqual(3, fits(kept, PLAIN))

    def test_what_placement_holds_already_is_not_counted_again(self):
        kept = held(PLAIN, hosts={'a': 2}, consumers={'c1': 'a', 'c2': 'a'})
        self.assertEqual(2, fits(holding.with_held(self.plain, [kept]), PLAIN))  # no usage is known
        read = dataclasses.replace(self.plain, hosts=tuple(
            dataclasses.replace(host, used={'VCPU': 8, 'MEMORY_MB': 8192} if host.name == 'a'
                                else {}) for host in self.plain.hosts))
        self.assertEqual(fits(read, PLAIN), fits(holding.with_held(read, [kept]), PLAIN))
        # One was allocated after the cloud was read.
        late = dataclasses.replace(read, hosts=tuple(
            dataclasses.replace(host, used={'VCPU': 4, 'MEMORY_MB': 4096} if host.name == 'a'
                                else {}) for host in self.plain.hosts))
        self.assertEqual(fits(read, PLAIN), fits(
            holding.with_held(late, [kept], allocated={'c1'}), PLAIN))

    def test_its_numa_cells_are_taken(self):
        self.assertEqual(1, fits(self.pinned, WIDE))
        kept = holding.with_held(self.pinned, [held(WIDE, hosts={'a': 1})])
        self.assertEqual([4, 4], [cell.pinned_used for cell in kept.hosts[0].cells])
        self.assertEqual(0, fits(kept, WIDE))

    def test_hosts_that_are_gone_hold_nothing(self):
        self.assertEqual(4, fits(holding.with_held(self.plain, [held(PLAIN, hosts={'x': 1})]),
                                 PLAIN))


class UsedByTest(testtools.TestCase):
    def test_new_servers_of_the_flavor_and_project_use_it(self):
        of_others = clouds.server('s3', 'a', flavor=LARGE, project_id='other')
        snapshot = clouds.cloud([clouds.host('a'), clouds.host('b')], [
            clouds.server('s1', 'a', flavor=LARGE), clouds.server('s2', 'a', flavor=LARGE),
            of_others, clouds.server('s4', 'b', flavor=LARGE), clouds.server('s5', 'a')])
        hold = held(PLAIN, hosts={'a': 1}, project_id='p', known=('s1',))
        self.assertEqual({'s2': 'a'}, holding.used_by(hold, snapshot))
        of_any = held(PLAIN, hosts={'a': 3})
        self.assertEqual({'s1': 'a', 's2': 'a', 's3': 'a'}, holding.used_by(of_any, snapshot))

    def test_a_server_that_has_left_stays_counted(self):
        hold = held(PLAIN, hosts={'a': 1}, used={'gone': 'a'})
        self.assertEqual({'gone': 'a'}, holding.used_by(hold, clouds.cloud(
            [clouds.host('a')], [clouds.server('s1', 'a', flavor=LARGE)])))
