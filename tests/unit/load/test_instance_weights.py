"""Load that each instance adds to its host."""

import dataclasses

import ddt
import numpy as np
import testtools
from hypothesis import HealthCheck
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from kronos_nova import policies
from kronos_nova.load import instance_weights
from kronos_nova.objects.metrics import Sample
from kronos_nova.objects.metrics import Vector
from kronos_nova.objects.snapshot import Instance
from tests.unit.planners.clouds import MANY

NAN = float('nan')


def policy(fallback='skip', label_type='uuid'):
    return policies.parse(f"""policies:
  - {{name: cpu, mode: spread, weight: 1.0, threshold: 0.1, imbalance_query: load,
     vm_profile_query: profile, vm_profile_label: vm, vm_profile_fallback: {fallback},
     vm_profile_label_type: {label_type}}}
""").active[0]


def instance(number, host, vcpus=1, display_name=None):
    return Instance(uuid=f'vm{number}', name=f'instance-{number}', project_id='p', status='ACTIVE',
                    display_name=display_name or f'web{number}', host=f'h{host}', vcpus=vcpus,
                    memory_mb=1, disk_gb=1)


def placed(*instances, scores, scale=1.0):
    hosts = [int(each.host[1:]) for each in instances]
    return instance_weights.PlacedInstances(
        tuple(instances), np.array(hosts, dtype=np.intp), np.array(scores),
        np.full(len(scores), scale), np.ones(len(scores)))


def samples(**values):
    return {name: [(each, '') for each in (value if isinstance(value, list) else [value])]
            for name, value in values.items()}


@ddt.ddt
class ProfileTest(testtools.TestCase):
    def test_every_instance_has_its_own_sample(self):
        found = instance_weights.profile(policy(), samples(vm0=0.2, vm1=0.1),
                                         placed(instance(0, 0), instance(1, 1), scores=[0.5, 0.4]))
        np.testing.assert_allclose([0.2, 0.1], found.values)
        self.assertEqual((), found.warnings)

    @ddt.data(-0.1, 1.2, float('inf'), float('-inf'), [0.1, 0.2])
    def test_what_cannot_be_true_is_not_replaced_by_a_guess(self, value):
        found = instance_weights.profile(policy('host_average'), samples(vm0=value, vm1=0.1),
                                         placed(instance(0, 0), instance(1, 0), scores=[0.9]))
        self.assertTrue(np.isnan(found.values[0]))
        self.assertEqual(0.1, found.values[1])
        self.assertIn('such as that of vm0', found.warnings[0])

    def test_a_server_that_runs_has_memory(self):
        memory = policy().model_copy(update={'name': 'memory'})
        off = dataclasses.replace(instance(2, 0), status='SHUTOFF')
        found = instance_weights.profile(memory, samples(vm0=0.0, vm1=0.1, vm2=0.0),
                                         placed(instance(0, 0), instance(1, 0), off, scores=[0.9]))
        np.testing.assert_array_equal([NAN, 0.1, 0.0], found.values)
        self.assertEqual(('the profile of 1 instance is 0 while running, such as that of vm0: '
                          'not moved',), found.warnings)
        self.assertEqual((), instance_weights.profile(
            policy(), samples(vm0=0.0), placed(instance(0, 0), scores=[0.9])).warnings)

    def test_two_series_of_a_server_after_a_move_are_no_warning(self):
        where = placed(instance(0, 0), instance(1, 0), scores=[0.9])
        both = samples(vm0=[0.1, 0.2], vm1=[0.1, 0.2])
        found = instance_weights.profile(policy(), both, where, np.array([True, False]))
        self.assertTrue(np.isnan(found.values).all())
        self.assertEqual(('the profile of 1 instance is given twice, such as that of vm1: not '
                          'moved',), found.warnings)
        self.assertEqual(
            (), instance_weights.profile(policy(), both, where, np.ones(2, bool)).warnings)

    @ddt.data(('skip', [NAN, NAN]), ('host_average', [0.3, 0.3]),
              ('flavor_vcpu_ratio', [0.15, 0.45]))
    @ddt.unpack
    def test_without_a_sample_the_policy_says_what_to_take(self, fallback, expected):
        found = instance_weights.profile(policy(fallback), {}, placed(
            instance(0, 0, vcpus=1), instance(1, 0, vcpus=3), scores=[0.6]))
        np.testing.assert_allclose(expected, found.values)

    @ddt.data(('host_average', [.3, .3]), ('flavor_vcpu_ratio', [.15, .45]))
    @ddt.unpack
    def test_a_server_that_does_not_run_has_no_share_of_its_host(self, fallback, expected):
        for status in 'SHUTOFF', 'SUSPENDED', 'SHELVED', 'SOFT_DELETED':
            stopped = dataclasses.replace(instance(2, 0, vcpus=8), status=status)
            alone = dataclasses.replace(instance(3, 1), status=status)
            found = instance_weights.profile(policy(fallback), {}, placed(
                instance(0, 0, vcpus=1), instance(1, 0, vcpus=3), stopped, alone,
                scores=[.6, .2]))
            np.testing.assert_allclose([*expected, 0.0, 0.0], found.values)

    def test_a_host_that_was_not_measured_has_nothing_to_share_out(self):
        for fallback in ('host_average', 'flavor_vcpu_ratio'):
            found = instance_weights.profile(policy(fallback), {},
                                             placed(instance(0, 0), scores=[NAN]))
            self.assertTrue(np.isnan(found.values).all())

    def test_instances_without_vcpus_have_no_share_of_them(self):
        found = instance_weights.profile(policy('flavor_vcpu_ratio'), {},
                                         placed(instance(0, 0, vcpus=0), scores=[0.6]))
        self.assertEqual([0.0], found.values.tolist())

    def test_a_name_of_two_instances_identifies_neither(self):
        twins = placed(instance(0, 0, display_name='web'), instance(1, 1, display_name='web'),
                       scores=[0.5, 0.5])
        found = instance_weights.profile(policy(label_type='display_name'), samples(web=0.4), twins)
        self.assertTrue(np.isnan(found.values).all())

    def test_in_units_of_the_host(self):
        """16 vCPUs: 4 of them are a quarter, and 17 are more than there are."""
        found = instance_weights.profile(policy(), samples(vm0=4.0, vm1=17.0), placed(
            instance(0, 0), instance(1, 0), scores=[0.5], scale=1 / 16))
        self.assertEqual(4.0, found.values[0])
        self.assertTrue(np.isnan(found.values[1]))

    def test_instances_that_are_more_than_their_host_together_are_left_alone(self):
        found = instance_weights.profile(policy(), samples(vm0=0.6, vm1=0.8, vm2=0.3), placed(
            instance(0, 0), instance(1, 0), instance(2, 1), scores=[0.5, 0.9]))
        np.testing.assert_array_equal([True, True, False], np.isnan(found.values))
        self.assertIn('such as that of h0', found.warnings[0])

    def test_what_rounding_and_time_make_of_a_full_host_is_no_fault(self):
        found = instance_weights.profile(policy(), samples(vm0=0.52, vm1=0.55), placed(
            instance(0, 0), instance(1, 0), scores=[0.98]))
        self.assertEqual((), found.warnings)

    def test_by_label_keeps_every_value(self):
        vector = Vector((Sample({'vm': 'a'}, 0.1, 0.0), Sample({'vm': 'a'}, 0.2, 0.0),
                         Sample({'other': 'b'}, 0.3, 0.0)))
        self.assertEqual({'a': [(0.1, ''), (0.2, '')]}, instance_weights.by_label(vector, 'vm'))

    @settings(max_examples=60 * MANY, deadline=None,
              suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 8)), max_size=8),
           st.sampled_from(('host_average', 'flavor_vcpu_ratio')))
    def test_fallbacks_share_out_the_host_and_no_more(self, guests, fallback):
        scores = [0.2, 0.5, 1.0]
        where = placed(*(instance(n, host, vcpus) for n, (host, vcpus) in enumerate(guests)),
                       scores=scores)
        found = instance_weights.profile(policy(fallback), {}, where)
        sums = np.bincount(where.vm_host, weights=found.values, minlength=3)
        np.testing.assert_allclose([score if n in where.vm_host else 0.0
                                    for n, score in enumerate(scores)], sums)


class UnitProblemTest(testtools.TestCase):
    def test_per_vcpu_figures_are_no_fractions_of_the_host(self):
        """Each instance's use of its own vCPUs: 1.4 together on a host at 0.5."""
        said = instance_weights.unit_problem(policy(), samples(vm0=0.6, vm1=0.8, vm2=0.5), placed(
            instance(0, 0), instance(1, 0), instance(2, 1), scores=[0.5, 0.1]))
        self.assertIn('on h0, whose score is 0.5, the profile adds up to 1.4', said)
        self.assertIn('host_capacity_query', said)

    def test_one_host_that_is_odd_does_not_condemn_the_policy(self):
        self.assertEqual('', instance_weights.unit_problem(
            policy(), samples(vm0=0.6, vm1=0.8, vm2=0.1), placed(
                instance(0, 0), instance(1, 0), instance(2, 1), scores=[0.5, 0.9])))

    def test_the_right_unit(self):
        self.assertEqual('', instance_weights.unit_problem(
            policy(), samples(vm0=0.2, vm1=0.25), placed(
                instance(0, 0), instance(1, 0), scores=[0.5])))

    def test_the_unit_of_the_host_is_counted_in(self):
        guests = placed(instance(0, 0), instance(1, 0), scores=[0.5], scale=1 / 16)
        self.assertEqual('', instance_weights.unit_problem(
            policy(), samples(vm0=4.0, vm1=3.0), guests))

    def test_an_aggregate_without_instances_or_figures(self):
        self.assertEqual('', instance_weights.unit_problem(policy(), {}, placed(scores=[0.1])))
        self.assertEqual('', instance_weights.unit_problem(policy(), {}, placed(
            instance(0, 0), scores=[NAN])))
