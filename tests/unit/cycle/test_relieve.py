"""Mode relieve: hot hosts are relieved and nothing else; with spread it comes first."""

import dataclasses

import numpy as np
import testtools

from kronos_nova import exception
from kronos_nova import policies
from kronos_nova.cooldown import PlanningHistory
from kronos_nova.cycle import solve
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.cycle.prices import MinGain
from kronos_nova.cycle.restraint import Restraint
from kronos_nova.cycle.steps import plan_cycle
from kronos_nova.load import LoadStats
from kronos_nova.objects import snapshot as objects
from kronos_nova.policies import Policy
from kronos_nova.policies import PolicySet
from tests.unit.cycle import test_steps as clouds
from tests.unit.cycle.test_groups import FakePlanner

MARKS = {'high': .8, 'target': .6}
QUERIES = {'imbalance_query': 'a', 'vm_profile_query': 'b'}


class ReliefTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.place = {'a': 'h0', 'b': 'h0', 'c': 'h0', 'd': 'h1'}
        self.loads = {'a': .5, 'b': .3, 'c': .1, 'd': .3}
        self.policy = {**QUERIES, 'name': 'cpu', 'mode': 'relieve', 'weight': 1.0, **MARKS}

    def plan(self, history=None, vcpus=16, **options):
        hosts = 'h0', 'h1', 'h2'
        scores = {host: sum(self.loads[vm] for vm in self.loads if self.place[vm] == host)
                  for host in hosts}
        snapshot = objects.Snapshot(
            taken_at='', hosts=tuple(dataclasses.replace(clouds.host(name), inventory={
                'VCPU': objects.ResourceInventory(total=vcpus)}) for name in hosts),
            instances=tuple(clouds.instance(vm, self.place[vm]) for vm in self.loads),
            aggregates=(objects.Aggregate(name='agg', uuid='agg', hosts=hosts),))
        report, = plan_cycle(
            snapshot, PolicySet(policies=(Policy(**self.policy),)),
            EngineOptions(aggregates=('agg',), include_unassigned_hosts=False, **options),
            PlannerPorts(source=clouds.Recorded(imbalance=scores, vm_profile=self.loads),
                         clock=lambda: 0.0, now=clouds.NOW),
            history or PlanningHistory()).aggregates
        return report

    def test_a_hot_host_is_relieved_with_one_move_and_left_uneven(self):
        report = self.plan()
        [move] = report.moves
        self.assertEqual(('relieve', 'a', 'h2'), (
            move.phase, move.instance_uuid, move.destination))
        self.assertIn('relieves h0, where cpu is too high', move.reason)
        self.assertEqual(('relieve', 'relieve'), (report.mode, report.planner))

    def test_moves_that_take_too_small_a_part_of_the_excess_are_none(self):
        """The largest fits nowhere; each of the others is .16 of what is too much."""
        self.loads = {'a': .82, 'b': .05, 'c': .05, 'd': .3}
        self.assertEqual({'b', 'c'}, {move.instance_uuid for move in self.plan().moves})
        report = self.plan(min_gain=MinGain(per_move=0.2))
        self.assertEqual(('no_move', ()), (report.outcome, report.moves))

    def stayed(self, **options):
        report = self.plan(**options)
        self.assertEqual(('no_move', ()), (report.outcome, report.moves))
        return {skip.reason: skip.instances for skip in report.not_moved}

    def test_servers_of_a_host_that_stays_hot_say_what_forbids_their_moves(self):
        """No other host has a free VCPU."""
        self.place |= {'e': 'h2'}
        self.loads['e'] = .1
        for keys in ({}, {'mode': 'spread', 'threshold': 1.0}):
            self.policy |= keys
            self.assertEqual({'capacity': ('a', 'b', 'c'), 'no_gain': ('d', 'e')},
                             self.stayed(vcpus=1))

    def test_servers_of_a_host_that_stays_hot_say_that_others_would_pass_their_target(self):
        self.place |= {'e': 'h2'}
        self.loads |= {'d': .55, 'e': .55}
        self.assertEqual({'threshold': ('a', 'b', 'c'), 'no_gain': ('d', 'e')}, self.stayed())

    def test_servers_with_too_small_a_part_of_the_excess_are_of_no_use(self):
        """The largest fits nowhere."""
        self.loads = {'a': .82, 'b': .05, 'c': .05, 'd': .3}
        self.assertEqual({'threshold': ('a',), 'no_gain': ('b', 'c', 'd')},
                         self.stayed(min_gain=MinGain(per_move=0.2)))

    def test_a_server_that_leaves_and_returns_is_not_reported_as_not_moved(self):
        self.patch(solve, '_planners',
                   lambda *_given: (FakePlanner('relieve', (0, 2), (3, 2), (0, 0)),))
        report = self.plan()
        moved = {move.instance_uuid for move in report.moves}
        self.assertEqual(3, len(report.moves))
        self.assertEqual({'b', 'c'}, {
            uuid for skip in report.not_moved for uuid in skip.instances})
        self.assertEqual({'a', 'd'}, moved)

    def test_where_nothing_hurts_nothing_is_done(self):
        self.loads['b'] = .1
        report = self.plan()
        self.assertEqual(('balanced', ()), (report.outcome, report.moves))

    def test_beside_spread_it_comes_first_and_the_rest_is_evened(self):
        self.policy |= {'mode': 'spread', 'threshold': .1}
        self.loads['d'] = .05
        self.assertEqual('relieve', self.plan().moves[0].phase)
        self.assertIn('spread', {move.phase for move in self.plan().moves})

    def test_it_waits_for_no_imbalance_to_last(self):
        self.policy |= {'mode': 'spread', 'threshold': .1}
        for slow in ({'stabilization_cycles': 3},
                     {'history': PlanningHistory(spread={'agg': 60.0})}):
            self.assertEqual(['relieve'], [move.phase for move in self.plan(**slow).moves])

    def test_where_only_evenness_is_wanting_the_next_spread_is_waited_for(self):
        self.policy |= {'mode': 'spread', 'threshold': .1}
        self.loads['b'] = .1
        report = self.plan(PlanningHistory(spread={'agg': 60.0}))
        self.assertEqual(('cooling', ()), (report.outcome, report.moves))
        self.assertIn('load is spread again in 60 s', report.warnings)

    def test_with_restraint_a_burst_is_no_reason(self):
        self.policy |= {'mode': 'spread', 'threshold': 1.0}
        known = {vm: load if vm != 'a' else .1 for vm, load in self.loads.items()}
        stats = LoadStats(clouds.NOW - 300, tuple(known), np.array(
            [[86400, load, 1e-4, load, 0.0] for load in known.values()]))
        history = PlanningHistory(load_stats={'agg': {'cpu': stats}})
        self.assertEqual((), self.plan(history, restraint=Restraint(1.0)).moves)
        self.assertEqual(1, len(self.plan(history).moves))
        self.assertEqual(1, len(self.plan(restraint=Restraint(1.0)).moves))


class MarksTest(testtools.TestCase):
    def refused(self, **keys):
        policy = {'name': 'cpu', 'weight': 1.0, **QUERIES, 'mode': 'relieve', **MARKS, **keys}
        policy = {key: value for key, value in policy.items() if value is not ...}
        error = self.assertRaises(exception.PolicyError, policies.parse,
                                  str({'policies': [policy]}).replace("'", '"'))
        return str(error)

    def test_marks_that_make_no_sense_are_refused(self):
        self.assertIn('mode relieve needs high', self.refused(high=..., target=...))
        self.assertIn('given together', self.refused(target=...))
        self.assertIn('target must be below high', self.refused(target=.8))
        self.assertIn('need threshold', self.refused(mode='spread'))
        self.assertIn('has no effect in mode pack', self.refused(mode='pack', threshold=.1))
        self.assertIn('vm_high needs high and target', self.refused(
            mode='spread', threshold=.1, high=..., target=..., vm_high=.1))

    def test_one_file_has_one_mode(self):
        rows = [{'mode': 'relieve', 'weight': .5}, {'mode': 'spread', 'weight': .5}]
        self.assertIn('spread and relieve cannot be mixed',
                      ' '.join(policies.models.contradictions(rows)))

    def test_options_of_other_modes_stand(self):
        self.assertEqual('relieve', dataclasses.replace(
            EngineOptions(), spread_planner='greedy').planner('relieve'))
