"""Every constraint says the same by row, column and pair, and why."""

import dataclasses

import numpy as np
import testtools
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from kronos_nova.constraints import registry
from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.constraints.isolation import Isolation
from kronos_nova.constraints.reserve import Reserve
from kronos_nova.objects import snapshot as objects
from kronos_nova.simulation import State
from tests.unit.planners import clouds

UP = objects.Service(state='up', status='enabled')


def snapshot_of(problem, aggregates=(), specs=(), cells=()):
    """A snapshot with the problem's hosts and instances."""
    return objects.Snapshot(
        taken_at='2026-11-20T12:00:00+00:00', aggregates=tuple(aggregates),
        hosts=tuple(objects.Host(name=name, uuid=name, service=UP, inventory={},
                                 cell=cells[n] if cells else 'cell1')
                    for n, name in enumerate(problem.hosts)),
        instances=tuple(objects.Instance(
            uuid=uuid, name=uuid, display_name=uuid, host=problem.hosts[problem.vm_host[n]],
            project_id=f'p{n % 2}', status='ACTIVE', vcpus=1, memory_mb=512, disk_gb=0,
            flavor_extra_specs=specs[n] if specs else {})
            for n, uuid in enumerate(problem.vms)))


def aggregate(name, hosts, zone=None, **metadata):
    return objects.Aggregate(name=name, uuid=name, hosts=tuple(hosts), availability_zone=zone,
                             metadata=metadata)


class AgreementTest(testtools.TestCase):
    @settings(max_examples=80, deadline=None)
    @given(clouds.problems(), st.integers(0, 2), st.data())
    def test_rows_columns_and_pairs_agree_and_refusals_have_a_reason(self, problem, reserve, data):
        half = problem.hosts[:len(problem.hosts) // 2]
        snapshot = snapshot_of(
            problem, [aggregate('a', half, zone='z1', filter_tenant_id='p0', ssd='true'),
                      aggregate('b', problem.hosts[1:], ssd='false, maybe')],
            specs=[{'aggregate_instance_extra_specs:ssd': word} if word else {} for word in
                   data.draw(st.lists(st.sampled_from(('', 'true', '<or> true <or> maybe')),
                                      min_size=len(problem.vms), max_size=len(problem.vms)))],
            cells=['c1', *['c2'] * (len(problem.hosts) - 1)])
        pairs = st.tuples(st.sampled_from(problem.vms), st.sampled_from(problem.hosts))
        rules = ConstraintRules(restrict_to_az=data.draw(st.booleans()), reserve_hosts=reserve,
                      vetoes=data.draw(st.dictionaries(pairs, st.just('no'))),
                      returns=data.draw(st.frozensets(pairs)))
        state, constraints = State(problem), registry.load(problem, snapshot, rules)
        for constraint in constraints.constraints:
            columns = np.array([constraint.column(state, h) for h in range(len(problem.hosts))])
            for vm in range(len(problem.vms)):
                mask = constraint.mask(state, vm)
                for host in range(len(problem.hosts)):
                    if host == problem.vm_host[vm]:
                        continue
                    permitted = constraint.permits(state, vm, host)
                    self.assertEqual([permitted] * 2, [mask[host], columns[host, vm]], constraint)
                    if not permitted:
                        self.assertTrue(constraint.why(state, vm, host).strip())


class IsolationTest(testtools.TestCase):
    def allowed(self, *aggregates, specs=()):
        problem = clouds.idle([0, 1], hosts=3)
        constraint = Isolation(problem, snapshot_of(problem, aggregates, specs), ConstraintRules())
        return [constraint.mask(State(problem), vm).tolist() for vm in range(2)]

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

    def test_an_operator_that_is_not_understood_admits_nothing(self):
        numbers = aggregate('a', ['h2'], disks='4')
        specs = [{'aggregate_instance_extra_specs:disks': '>= 2'}, {}]
        self.assertEqual([[False] * 3, [True] * 3], self.allowed(numbers, specs=specs))

    def test_where_nobody_asks_it_is_idle(self):
        problem = clouds.idle([0, 1])
        self.assertTrue(Isolation(problem, snapshot_of(problem), ConstraintRules()).idle)


class ReserveTest(testtools.TestCase):
    """Hosts take 4 instances each."""

    def permits(self, vm_host, vm, host, reserve, available=None):
        problem = clouds.idle(vm_host, hosts=3)
        used = np.bincount(vm_host, minlength=3)[:, None].astype(float)
        problem = dataclasses.replace(problem, used=used, limits=np.full((3, 1), 4.0))
        if available is not None:
            problem = dataclasses.replace(problem, available=np.array(available))
        constraint = Reserve(problem, None, ConstraintRules(reserve_hosts=reserve))
        return constraint.permits(State(problem), vm, host)

    def test_the_last_instance_may_leave_while_enough_stays_free(self):
        self.assertTrue(self.permits([0, 1, 2], 0, 1, reserve=1))

    def test_it_may_not_when_too_little_would(self):
        self.assertFalse(self.permits([0, 1, 1], 0, 1, reserve=1))

    def test_moves_between_hosts_in_use_change_nothing(self):
        self.assertTrue(self.permits([0, 0, 1, 1], 0, 1, reserve=2))

    def test_a_disabled_host_is_not_emptied_into_the_reserve(self):
        for reserve, permitted in ((1, True), (2, False)):
            self.assertEqual(permitted, self.permits(
                [0, 0, 0, 1, 2], 0, 1, reserve, available=[False, True, True]))

    def test_an_empty_host_brings_its_room_along(self):
        self.assertTrue(self.permits([0, 0, 0, 1], 0, 2, reserve=2, available=[False, True, True]))
