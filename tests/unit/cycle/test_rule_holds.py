"""Instances that an operator's rules do not let move now."""

import testtools

from kronos_nova.cycle.rule_holds import rule_holds
from kronos_nova.policies import loader
from kronos_nova.policies.selection import Selections
from tests.unit.cycle import test_evaluation

RULES = """
rules:
- {name: never, never_move: true, servers: {uuid: [vm1, vm2]}}
- {name: once, max_moves: 1, servers: {uuid: [vm2, vm3]}}
"""


class RuleHoldsTest(testtools.TestCase):
    def held(self, *uuids):
        cloud = test_evaluation.RecordedCloud(lambda: None)
        selections = Selections(loader.parse(test_evaluation.POLICIES + RULES).rules, cloud.read())
        found = rule_holds(selections, 'gpu', {*uuids}, 0.0, {'vm3': 1})
        return {uuid: hold.why for uuid, hold in found.items()}

    def test_only_instances_of_the_aggregate_are_held(self):
        self.assertEqual({'vm2': 'rule never never moves it'}, self.held('vm2', 'vm4'))
        self.assertEqual({}, self.held())

    def test_each_is_held_by_the_rule_that_is_the_strongest(self):
        self.assertEqual({'vm1': 'rule never never moves it', 'vm2': 'rule never never moves it',
                          'vm3': 'rule once moves it 1 times a day at most'},
                         self.held('vm1', 'vm2', 'vm3', 'vm4'))
