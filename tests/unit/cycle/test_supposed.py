"""The load of a cloud after changes that are only thought of."""

import dataclasses

import testtools

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.cooldown import PlanningHistory
from kronos_nova.cycle import supposed
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.objects import snapshot as objects
from kronos_nova.policies import Policy
from kronos_nova.policies import PolicySet
from kronos_nova.room import whatif
from tests.unit.cycle import test_steps
from tests.unit.room import clouds

IDLE = 0.1
"""Load of each host without servers."""

LOADS = {'one': .2, 'two': .3, 'three': .1, 'four': .1, 'five': .1}
PLACES = {'one': 'a', 'two': 'a', 'three': 'b', 'four': 'b', 'five': 'c'}


class SupposedTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.policies = PolicySet(policies=(Policy(
            name='cpu', mode='spread', weight=1.0, threshold=.05, imbalance_query='a',
            vm_profile_query='b', forecast={}),))
        self.places, self.aggregates = dict(PLACES), {'all': ('a', 'b', 'c')}
        self.sizes = {}

    def snapshot(self):
        return clouds.cloud(
            [clouds.host(name, *self.sizes.get(name, ())) for name in 'abc'],
            [clouds.server(uuid, host) for uuid, host in self.places.items()],
            aggregates=tuple(objects.Aggregate(name=name, uuid=name, hosts=hosts)
                             for name, hosts in self.aggregates.items()))

    def source(self, places=None, loads=LOADS):
        places = places or self.places
        return test_steps.Recorded(
            imbalance={host: IDLE + sum(loads[uuid] for uuid in places if places[uuid] == host)
                       for host in {*places.values(), 'a', 'b', 'c'}}, vm_profile=loads)

    def evaluate(self, history=None, source=None, options=None, **changes):
        snapshot = self.snapshot()
        self.changed = whatif.changed(snapshot, ConstraintRules(), whatif.Changes(**changes),
                                      lambda: [])
        return supposed.evaluate(
            snapshot, self.changed, self.policies,
            options or EngineOptions(include_unassigned_hosts=False),
            PlannerPorts(source=source or self.source(), clock=lambda: 0.0, now=test_steps.NOW),
            history or PlanningHistory())

    def figures(self, found, host, aggregate='all'):
        [row] = [each for each in found.loads
                 if (each.host, each.aggregate) == (host, aggregate)]
        return [None if each is None else round(each, 6)
                for each in (row.now, row.changed, row.planned)]

    def test_without_changes_the_load_is_that_of_now(self):
        found = self.evaluate()
        for row in found.loads:
            self.assertAlmostEqual(row.now, row.changed)
        self.assertEqual([.6, .6], self.figures(found, 'a')[:2])

    def test_a_new_host_takes_no_server_that_needs_features_of_other_processors(self):
        old, new = (objects.Cpu(arch='x86_64', model='m', features=features)
                    for features in (('sse4',), ('sse4', 'avx512')))
        real = self.snapshot
        for model, of_c in ((new, old), (new, new)):
            cpus = {'a': model, 'b': model, 'c': of_c}
            self.snapshot = lambda cpus=cpus: dataclasses.replace(real(), hosts=tuple(
                dataclasses.replace(host, cpu=cpus[host.name]) for host in real().hosts))
            found = self.evaluate(add=['1:like=c'])
            [report] = found.report.aggregates
            self.assertEqual(of_c is new, bool(
                {'c', 'c+1'} & {move.destination for move in report.moves}), report.moves)

    def test_servers_of_a_lost_host_bring_their_load_along(self):
        found = self.evaluate(lose=['a'])
        self.assertEqual([.6, None, None], self.figures(found, 'a'))
        places = {**self.places, **self.changed.restarted}
        self.assertEqual({'one', 'two'}, self.changed.restarted.keys())
        for host in 'bc':
            wanted = IDLE + sum(LOADS[uuid] for uuid in places if places[uuid] == host)
            self.assertEqual(round(wanted, 6), self.figures(found, host)[1])

    def test_it_is_what_a_cloud_in_which_that_has_happened_measures(self):
        """The imbalance and the plan are those of an evaluation there."""
        said = self.evaluate(lose=['a'])
        places = {**self.places, **self.changed.restarted}
        self.places = places
        happened = self.evaluate(source=self.source(places), lose=['a'])
        for host in ('b', 'c', None):
            self.assertEqual(self.figures(happened, host)[1:], self.figures(said, host)[1:])

    def test_a_new_host_has_the_load_of_its_like_without_servers_and_takes_some(self):
        found = self.evaluate(add=['1:like=a'])
        now, changed, planned = self.figures(found, 'a+1')
        self.assertEqual((None, IDLE), (now, changed))
        self.assertGreater(planned, IDLE)
        self.assertIn('a+1', {move.destination for report in found.report.aggregates
                              for move in report.moves})
        now, changed, planned = self.figures(found, None)
        self.assertLess(now, changed)
        self.assertLess(planned, changed)

    def test_of_new_servers_no_load_is_known_and_none_is_added(self):
        found = self.evaluate(boot=['2:1:512'])
        self.assertEqual([.6, .6], self.figures(found, 'a')[:2])

    def test_servers_that_restart_in_another_aggregate_bring_their_load(self):
        self.aggregates = {'first': ('a',), 'others': ('b', 'c')}
        found = self.evaluate(lose=['a'])
        total = sum(self.figures(found, host, 'others')[1] for host in 'bc')
        self.assertAlmostEqual(2 * IDLE + sum(LOADS.values()), total)

    def test_servers_are_a_smaller_part_of_a_larger_host_of_another_aggregate(self):
        """Host c has four times the CPUs of a and b."""
        self.aggregates = {'ab': ('a', 'b'), 'c': ('c',)}
        self.sizes = {'c': (32, 65536)}
        found = self.evaluate(lose=['a', 'b'])
        self.assertEqual({'one', 'two', 'three', 'four'}, self.changed.restarted.keys())
        self.assertEqual(round(IDLE + .1 + (.2 + .3 + .1 + .1) / 4, 6),
                         self.figures(found, 'c', 'c')[1])

    def test_servers_of_a_host_in_two_aggregates_have_the_unit_of_each(self):
        self.aggregates = {'ab': ('a', 'b'), 'bc': ('b', 'c')}
        self.sizes = {'c': (32, 65536)}
        self.places = {'one': 'b', 'two': 'b', 'five': 'c'}
        found = self.evaluate(add=['1:like=a'])
        [report] = [each for each in found.report.aggregates if each.name == 'ab']
        came = {move.instance_uuid for move in report.moves if move.destination != 'b'}
        self.assertTrue(came)
        after = {score.host: score.after for score in report.host_scores}
        self.assertAlmostEqual(sum(LOADS[uuid] for uuid in came),
                               after['a'] + after['a+1'] - 2 * IDLE)

    def test_what_cools_or_waits_keeps_nothing_from_being_planned(self):
        history = PlanningHistory(aggregates={'all': 60.0}, instances=dict.fromkeys(LOADS, 60.0))
        options = EngineOptions(include_unassigned_hosts=False, stabilization_cycles=3)
        plain, cooling = self.evaluate(add=['1:like=a']), self.evaluate(
            history, add=['1:like=a'], options=options)
        self.assertEqual(plain.loads, cooling.loads)

    def test_quarantined_servers_stay(self):
        history = PlanningHistory(quarantines=dict.fromkeys(LOADS, -1))
        [report] = self.evaluate(history, add=['1:like=a']).report.aggregates
        self.assertEqual((), report.moves)

    def test_why_a_load_is_not_known_is_said(self):
        found = self.evaluate(source=test_steps.Recorded(imbalance={}, vm_profile={}), lose=['a'])
        [problem] = found.problems()
        self.assertTrue(problem.startswith('aggregate all, policy cpu: '), problem)
        self.assertEqual((), found.loads)
