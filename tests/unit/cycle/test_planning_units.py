"""Aggregates that are one unit."""

import testtools
from hypothesis import HealthCheck
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from kronos_nova.cycle import aggregates
from tests.unit.planners.clouds import MANY

CLOUDS = st.lists(st.sets(st.integers(0, 9), max_size=4), max_size=8)


class UnitsTest(testtools.TestCase):
    def test_through_others_too(self):
        found = aggregates.planning_units('abcd', {'a': ['1', '2'], 'b': ['3'], 'c': ['2', '4'],
                                                   'd': ['4']})
        self.assertEqual([frozenset('acd'), frozenset('b')], [found['a'], found['b']])

    def test_an_unknown_aggregate_is_alone(self):
        self.assertEqual({'a': frozenset('a')}, aggregates.planning_units('a', {}))

    def test_only_those_that_are_asked_for_connect(self):
        hosts = {'a': ['1'], 'b': ['1', '2'], 'c': ['2']}
        self.assertEqual(frozenset('a'), aggregates.planning_units('ac', hosts)['a'])

    @settings(max_examples=50 * MANY, deadline=None,
              suppress_health_check=[HealthCheck.too_slow])
    @given(CLOUDS)
    def test_units_share_no_host_and_fall_into_no_smaller_ones(self, clouds):
        hosts = dict(zip('abcdefgh', clouds, strict=False))
        found = aggregates.planning_units(hosts, hosts)
        units = set(found.values())
        self.assertEqual(sorted(hosts), sorted(name for unit in units for name in unit))
        for unit in units:
            inside = set().union(*(hosts[name] for name in unit))
            outside = set().union(*(hosts[name] for name in hosts if name not in unit))
            self.assertFalse(inside & outside)
            start = min(unit)
            reached = set(hosts[start])
            joined = {start}
            for _name in unit:
                joined |= {name for name in unit if hosts[name] & reached}
                reached |= set().union(*(hosts[name] for name in joined))
            self.assertEqual(unit, frozenset(joined))
