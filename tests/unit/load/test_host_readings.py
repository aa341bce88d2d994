"""One figure a host, or the reason why there is none that may be trusted."""

import ddt
import numpy as np
import testtools
from hypothesis import HealthCheck
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from kronos_nova.load import host_readings
from kronos_nova.objects.metrics import Sample
from kronos_nova.objects.metrics import Vector
from tests.unit.planners.clouds import MANY

NAN = float('nan')
FRACTION = host_readings.Range(0.0, 1.0)
HOSTS = ('h0', 'h1', 'h2')


def vector(*values, at=0.0, warnings=()):
    """A sample for each host in order; None for no sample."""
    return Vector(tuple(Sample({'host': f'h{number}'}, value, at)
                        for number, value in enumerate(values) if value is not None), warnings)


def read(answer, available=(True, True, True), allowed=FRACTION, **rules):
    return host_readings.read(answer, 'host', HOSTS, np.array(available), allowed,
                              host_readings.ScoringRules(**rules))


@ddt.ddt
class ReadTest(testtools.TestCase):
    def test_each_host_has_its_own(self):
        found = read(vector(0.1, 0.2, 0.3))
        np.testing.assert_allclose([0.1, 0.2, 0.3], found.values)
        self.assertEqual(((), ()), (found.problems, found.warnings))

    def test_series_of_others_and_without_the_label_are_passed_over(self):
        answer = Vector((*vector(0.1, 0.2, 0.3).samples, Sample({'host': 'elsewhere'}, 9.0, 0.0),
                         Sample({'instance': 'h0'}, 9.0, 0.0)))
        self.assertEqual((), read(answer).problems)

    @ddt.data(-0.1, 1.1, float('inf'), float('-inf'))
    def test_out_of_range_wherever_it_shows(self, value):
        found = read(vector(0.1, value, 0.3), available=(True, False, True))
        self.assertIn('such as h1', found.problems[0])

    def test_how_many_answered_and_how_old_the_oldest_of_them_is(self):
        answer = Vector((*vector(0.1, at=30.0).samples, Sample({'host': 'h2'}, 0.4, 20.0)))
        found = read(answer)
        self.assertEqual((2 / 3, 20.0), (found.coverage, found.oldest))
        found = read(answer, available=(True, False, False))
        self.assertEqual((1.0, 30.0), (found.coverage, found.oldest))
        found = read(answer, oldest=40.0)
        self.assertEqual(0.0, found.coverage)
        self.assertTrue(np.isnan(found.oldest))
        self.assertEqual(0.0, read(answer, available=(False, False, False)).coverage)

    def test_rounding_is_not_out_of_range(self):
        self.assertEqual((), read(vector(-1e-10, 1 + 1e-10, 0.5)).problems)

    def test_a_range_without_end(self):
        allowed = host_readings.Range(0.0, float('inf'))
        self.assertEqual((), read(vector(1.0, 200.0, 3.0), allowed=allowed).problems)
        found = read(vector(1.0, -1.0, 3.0), allowed=allowed)
        self.assertIn('out of range 0 and above', found.problems[0])

    def test_two_series_of_a_host(self):
        answer = Vector((*vector(0.1, 0.2, 0.3).samples, Sample({'host': 'h1'}, 0.4, 0.0)))
        self.assertIn('more than one series for h1', read(answer).problems[0])

    @ddt.data(None, NAN)
    def test_a_missing_host_is_a_problem_where_all_are_needed(self, value):
        self.assertIn('1 of 3 available hosts has no sample: h1; min_coverage permits',
                      read(vector(0.1, value, 0.3)).problems[0])

    def test_the_option_is_not_named_where_it_cannot_help(self):
        found = read(vector(None, None, None)).problems[0]
        self.assertNotIn('min_coverage', found)
        self.assertIn('kronos-test-config compares', found)

    def test_one_that_is_not_available_needs_none(self):
        found = read(vector(0.1, None, 0.3), available=(True, False, True))
        self.assertEqual(((), ()), (found.problems, found.warnings))

    def test_fewer_do_where_an_operator_says_so_and_those_without_are_named(self):
        found = read(vector(0.1, None, 0.3), min_coverage=0.6)
        self.assertEqual(((), ('no sample for h1: left out of the plan',)),
                         (found.problems, found.warnings))
        self.assertNotEqual((), read(vector(0.1, None, 0.3), min_coverage=0.7).problems)

    def test_none_at_all_never_do(self):
        self.assertNotEqual((), read(vector(), min_coverage=0.0).problems)

    def test_no_host_to_measure(self):
        self.assertEqual(('no host is up and enabled',),
                         read(vector(0.1, 0.2, 0.3), available=(False,) * 3).problems)

    def test_old_samples_are_none(self):
        found = read(vector(0.1, 0.2, 0.3, at=5.0), oldest=6.0)
        self.assertIn('3 of them only an old one', found.problems[0])
        self.assertIn('compare the clocks', found.problems[0])
        self.assertEqual((), read(vector(0.1, 0.2, 0.3, at=6.0), oldest=6.0).problems)

    def test_samples_from_the_future_are_used_and_said(self):
        found = read(vector(0.1, 0.2, 0.3, at=9.0), newest=6.0)
        self.assertEqual(((), 1), (found.problems, len(found.warnings)))
        self.assertIn('3 hosts have samples from the future', found.warnings[0])
        self.assertIn('clocks', found.warnings[0])
        self.assertEqual((), read(vector(0.1, 0.2, 0.3, at=6.0), newest=6.0).warnings)

    def test_an_old_value_out_of_range_is_a_broken_query_too(self):
        self.assertIn('out of range', read(vector(0.1, 7.0, 0.3, at=5.0), oldest=6.0).problems[0])

    def test_what_the_source_says_is_handed_on(self):
        self.assertEqual(('slow',), read(vector(0.1, 0.2, 0.3, warnings=('slow',))).warnings)

    def test_many_names_are_counted(self):
        hosts = tuple(f'h{n}' for n in range(9))
        found = host_readings.read(vector(), 'host', hosts, np.ones(9, dtype=bool), FRACTION,
                                   host_readings.ScoringRules())
        self.assertIn('h0, h1, h2 and 6 more', found.problems[0])


class NormalisedTest(testtools.TestCase):
    def test_between_the_least_and_the_most(self):
        np.testing.assert_allclose([0.0, 1.0, 0.5],
                                   host_readings.normalised(np.array([0.2, 0.6, 0.4])))

    def test_all_equal_is_0_and_nan_stays(self):
        np.testing.assert_array_equal([0.0, NAN, 0.0],
                                      host_readings.normalised(np.array([0.3, NAN, 0.3])))
        np.testing.assert_array_equal([NAN], host_readings.normalised(np.array([NAN])))

    @settings(max_examples=60 * MANY, deadline=None,
              suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
    def test_stays_within_0_and_1_and_keeps_the_order(self, values):
        found = host_readings.normalised(np.array(values))
        self.assertTrue(((found >= 0) & (found <= 1)).all())
        self.assertTrue((np.diff(found[np.argsort(values, kind='stable')]) >= 0).all())
