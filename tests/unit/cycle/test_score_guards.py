"""A policy of which only the scores of hosts are used still protects hosts from servers that other
plans bring."""

import dataclasses

import testtools

from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.cycle.steps import plan_cycle
from kronos_nova.objects import snapshot as objects
from kronos_nova.objects.metrics import Sample
from kronos_nova.objects.metrics import Vector
from kronos_nova.policies import Policy
from kronos_nova.policies import PolicySet
from tests.unit.cycle import test_steps as clouds

GIB = 1024
POLICY = {'mode': 'spread', 'weight': 0.5, 'threshold': 0.1, 'imbalance_query': 'hosts',
          'vm_profile_query': 'servers'}


class Recorded:
    """Answers by policy and kind."""

    def __init__(self, **answers):
        self.answers = answers

    def query(self, query):
        label = 'uuid' if query.kind == 'vm_profile' else 'host'
        return Vector(tuple(Sample({label: name}, value, clouds.NOW)
                            for name, value in self.answers[query.policy][query.kind].items()))


class ScoreGuardTest(testtools.TestCase):
    """Four hosts of 16 GiB. The profile of memory does not fit the scores in aggregate two, and
    fits in aggregate one, which has host h1 as well."""

    def setUp(self):
        super().setUp()
        self.place = {'a': 'h0', 'b': 'h0', 'c': 'h2', 'd': 'h2', 'e': 'h2'}
        self.size = dict.fromkeys(self.place, 1)
        self.aggregates = {'one': ('h0', 'h1'), 'two': ('h1', 'h2')}
        self.source = Recorded(
            cpu={'imbalance': {'h0': 0.4, 'h1': 0.0, 'h2': 0.9},
                 'vm_profile': {'a': 0.2, 'b': 0.2, 'c': 0.3, 'd': 0.3, 'e': 0.3}},
            memory={'imbalance': {'h0': 0.3, 'h1': 0.2, 'h2': 0.2},
                    'vm_profile': {'a': 0.1, 'b': 0.1, 'c': 0.9, 'd': 0.9, 'e': 0.9}})
        self.moves = ()

    def reports(self):
        hosts = tuple(dataclasses.replace(clouds.host(name), inventory={
            'VCPU': objects.ResourceInventory(total=16),
            'MEMORY_MB': objects.ResourceInventory(total=16 * GIB)}) for name in ('h0', 'h1', 'h2'))
        snapshot = objects.Snapshot(
            taken_at='', hosts=hosts, moves_under_way=self.moves,
            instances=tuple(clouds.instance(uuid, on, memory_mb=self.size[uuid] * GIB)
                            for uuid, on in self.place.items()),
            aggregates=tuple(objects.Aggregate(name=name, uuid=name, hosts=inside)
                             for name, inside in self.aggregates.items()))
        reports = plan_cycle(
            snapshot, PolicySet(policies=tuple(Policy(name=name, **POLICY)
                                               for name in ('cpu', 'memory'))),
            EngineOptions(include_unassigned_hosts=False),
            PlannerPorts(source=self.source, clock=lambda: 0.0, now=clouds.NOW)).aggregates
        return {report.name: report for report in reports}

    def moved(self, report):
        self.assertEqual(['ok', 'no_data'], [policy.state for policy in report.policies])
        return [(move.instance_uuid, move.destination) for move in report.moves]

    def test_an_aggregate_is_planned_after_another_has_brought_servers_to_a_shared_host(self):
        reports = self.reports()
        self.assertEqual([('a', 'h1')], [(move.instance_uuid, move.destination)
                                         for move in reports['one'].moves])
        self.assertEqual([('c', 'h1')], self.moved(reports['two']))

    def test_each_server_counts_with_its_own_size(self):
        """Server c may use all memory of h1, and server b of aggregate one little."""
        self.size['c'] = 16
        self.assertEqual([('d', 'h1')], self.moved(self.reports()['two']))

    def test_servers_that_an_earlier_plan_brings_count(self):
        """Server a may use half of h1, so that there is no room for another of this size."""
        self.size |= {'a': 8, 'c': 8, 'd': 8, 'e': 8}
        self.source.answers['cpu']['vm_profile']['b'] = 0.01
        reports = self.reports()
        self.assertEqual(['a'], [move.instance_uuid for move in reports['one'].moves])
        self.assertEqual([], self.moved(reports['two']))

    def test_servers_that_are_migrating_to_a_host_count(self):
        self.size |= {'a': 8, 'c': 8, 'd': 8, 'e': 8}
        self.aggregates = {'two': ('h1', 'h2')}
        self.assertEqual([('c', 'h1')], self.moved(self.reports()['two']))
        self.moves = (objects.MoveUnderWay(instance_uuid='a', source='h0', destination='h1'),)
        self.assertEqual([], self.moved(self.reports()['two']))
