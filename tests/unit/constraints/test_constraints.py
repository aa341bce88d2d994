"""The compiled form of single constraints; that all together say what each rule means is tested
with the model."""

import dataclasses

import numpy as np
import testtools

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.constraints.capacity import Capacity
from kronos_nova.constraints.isolation import Isolation
from kronos_nova.constraints.operator_rules import rule_groups
from kronos_nova.constraints.reserve import Reserve
from kronos_nova.model import Model
from kronos_nova.model import State
from kronos_nova.objects import snapshot as objects
from kronos_nova.policies.rules import OperatorRule
from kronos_nova.policies.selection import Selections
from tests.unit.planners import clouds
from tests.unit.planners.clouds import snapshot_of


def aggregate(name, hosts, zone=None, **metadata):
    return objects.Aggregate(name=name, uuid=name, hosts=tuple(hosts), availability_zone=zone,
                             metadata=metadata)


class IsolationTest(testtools.TestCase):
    def allowed(self, *aggregates, specs=()):
        problem = clouds.idle([0, 1], hosts=3)
        rules = Isolation.compile(problem, snapshot_of(problem, aggregates, specs),
                                  ConstraintRules())
        allowed = np.logical_and.reduce([np.ones((2, 3), dtype=bool), *(
            rule.allows(None, *np.indices((2, 3))) for rule in rules)])
        return allowed.tolist()

    def test_a_host_kept_for_a_project_keeps_others_out(self):
        self.assertEqual([[True, True, True], [True, True, False]],
                         self.allowed(aggregate('a', ['h2'], filter_tenant_id='p0, p7')))

    def test_further_tenants_may_have_keys_of_their_own(self):
        self.assertEqual([[True] * 3] * 2, self.allowed(
            aggregate('a', ['h2'], filter_tenant_id='p0', filter_tenant_id2='p1')))

    def test_a_flavor_gets_the_hosts_it_asks_for(self):
        ssd = aggregate('a', ['h0', 'h2'], ssd='true')
        specs = [{'aggregate_instance_extra_specs:ssd': 'true'}, {}]
        self.assertEqual([[True, False, True], [True] * 3], self.allowed(ssd, specs=specs))

    def test_a_flavor_compares_by_the_operators_of_nova(self):
        """Each value of the metadata with the wishes that accept it and those that do not; by
        nova.scheduler.filters.extra_specs_ops."""
        for value, accepted, refused in (
                ('4', ('>= 2', '= 4', '== 4.0', '<= 4', '!= 5', '4', '<or> 3 <or> 4', 's== 4'),
                 ('>= 5', '= 5', '== 5', '<= 3', '!= 4', ' 4', '<or> 3 <or> 5', 's!= 4', '>=', '')),
                ('ssd', ('s== ssd', 's!= hdd', 's> hdd', 's>= ssd', 's< tape', 's<= ssd', '<in> sd',
                         '<all-in> ss sd', '<or> ssd'),
                 ('s== hdd', 's!= ssd', 's> ssd', 's< ssd', '<in> hd', '<all-in> ss hd', '>= 2',
                  '<or> s', '== ssd', '<or>')),
                ('hdd, ssd', ('s== ssd', '<or> tape <or> hdd'), ('s== tape',))):
            there = aggregate('a', ['h2'], disks=value)
            for wish in (*accepted, *refused):
                specs = [{'aggregate_instance_extra_specs:disks': wish}, {}]
                self.assertEqual([[False, False, wish in accepted], [True] * 3],
                                 self.allowed(there, specs=specs), (value, wish))

    def test_a_host_without_the_key_does_not_meet_any_wish(self):
        specs = [{'aggregate_instance_extra_specs:disks': 's!= 4'}, {}]
        self.assertEqual([[False] * 3, [True] * 3], self.allowed(specs=specs))

    def test_without_isolated_aggregates_it_compiles_to_nothing(self):
        problem = clouds.idle([0, 1])
        self.assertEqual((), Isolation.compile(problem, snapshot_of(problem), ConstraintRules()))


class ReserveTest(testtools.TestCase):
    """Hosts take 4 instances each."""

    def allows(self, vm_host, vm, host, reserve, available=None):
        problem = clouds.idle(vm_host, hosts=3)
        used = np.bincount(vm_host, minlength=3)[:, None].astype(float)
        problem = dataclasses.replace(problem, used=used, limits=np.full((3, 1), 4.0))
        if available is not None:
            problem = dataclasses.replace(problem, available=np.array(available))
        rules = Reserve.compile(problem, clouds.snapshot_of(problem),
                                ConstraintRules(reserve_hosts=reserve))
        return bool(State(Model(problem, rules)).delta((vm, host)).feasible)

    def test_the_last_instance_may_leave_while_enough_stays_free(self):
        self.assertTrue(self.allows([0, 1, 2], 0, 1, reserve=1))

    def test_it_may_not_when_too_little_would(self):
        self.assertFalse(self.allows([0, 1, 1], 0, 1, reserve=1))

    def test_moves_between_hosts_in_use_change_nothing(self):
        self.assertTrue(self.allows([0, 0, 1, 1], 0, 1, reserve=2))

    def test_a_disabled_host_is_not_emptied_into_the_reserve(self):
        for reserve, permitted in ((1, True), (2, False)):
            self.assertEqual(permitted, self.allows(
                [0, 0, 0, 1, 2], 0, 1, reserve, available=[False, True, True]))

    def test_an_empty_host_brings_its_room_along(self):
        self.assertTrue(self.allows([0, 0, 0, 1], 0, 2, reserve=2, available=[False, True, True]))


class CapacityTest(testtools.TestCase):
    def test_an_instance_bigger_than_one_consumer_may_be_fits_nowhere(self):
        problem = dataclasses.replace(
            clouds.idle([0, 1], hosts=3), demands=np.array([[32.0], [4.0]]),
            min_unit=np.ones((3, 1)), max_unit=np.array([[64.0], [16.0], [32.0]]),
            step_size=np.ones((3, 1)))
        state = State(Model(problem, Capacity.compile(problem, None, ConstraintRules())))
        delta = state.delta((0, np.arange(3)))
        self.assertEqual([False, False, True], delta.feasible.tolist())
        why = state.model.rules[delta.against[1]].why(state, 0, 1)
        self.assertEqual('h1 does not give 32 VCPU to one instance: from 1 to 16 in steps of 1',
                         why)


class RuleGroupsTest(testtools.TestCase):
    def groups(self, *moves, on='a', hosts=('a', 'b')):
        """The group of a rule that keeps v and w apart by racks, in the problem of some hosts.
        Server w is on d, in a rack of its own. Hosts b and c are in one rack."""
        snapshot = objects.Snapshot(
            taken_at='', hosts=tuple(objects.Host(
                name=name, uuid=name, service=clouds.UP, inventory={}, domains={'rack': rack})
                for name, rack in zip('abcd', ('r1', 'r2', 'r2', 'r3'), strict=True)),
            instances=tuple(objects.Instance(
                uuid=uuid, name=uuid, display_name=uuid, host=host, project_id='p',
                status='ACTIVE', vcpus=1, memory_mb=512, disk_gb=0)
                for uuid, host in (('v', on), ('w', 'd'))),
            moves_under_way=tuple(objects.MoveUnderWay(
                instance_uuid=uuid, source=source, destination=destination)
                for uuid, source, destination in moves))
        rule = OperatorRule(name='apart', servers={'uuid': ['v', 'w']}, keep_apart='rack')
        return [(group.members.tolist(), group.arriving.tolist())
                for group in rule_groups(Selections((rule,), snapshot), ('v',), hosts, {})]

    def test_a_server_counts_in_the_rack_to_which_it_migrates_outside_of_the_problem(self):
        self.assertEqual([], self.groups())
        self.assertEqual([([0], [1])], self.groups(('w', 'd', 'c')))

    def test_a_server_counts_once_in_the_rack_in_which_it_migrates(self):
        self.assertEqual([], self.groups(('v', 'b', 'c'), on='b', hosts=('b', 'c')))
