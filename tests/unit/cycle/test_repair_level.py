"""Repairs of violated rules at a level of automation of their own."""

import dataclasses

from kronos_nova.cycle import evaluation
from kronos_nova.db import switches
from kronos_nova.objects import automation
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from kronos_nova.policies import loader
from tests.unit.cycle import test_evaluation
from tests.unit.cycle.test_evaluation import POLICIES
from tests.unit.cycle.test_evaluation import RULES

RULE = """
rules:
- {name: on-b, must_run_on: {hosts: [b]}, servers: {uuid: [vm9]}}
"""


class RepairLevelTest(test_evaluation.CycleTestCase):
    """Six servers are on host a, of which a rule wants vm9 on b."""

    def setUp(self):
        super().setUp()
        self.cloud.placed = dict.fromkeys(('vm1', 'vm2', 'vm3', 'vm4', 'vm5', 'vm9'), 'a')

    def run_cycle(self, level, repairs=None):
        rules = dataclasses.replace(RULES, automation=automation.Defaults(
            level=level, repairs=repairs))
        [report] = evaluation.Cycle(
            self.ports(), loader.parse(POLICIES + RULE), test_evaluation.OPTIONS, rules,
            self.clock).run().aggregates
        return report

    def plans(self):
        """(purpose, state) of each plan, the newest first."""
        return [(plan.purpose, plan.state) for plan in self.journal.plans()]

    def moved(self, report):
        """{server: whether a rule is why}"""
        return {move.instance_uuid: 'rule' in move.reason for move in report.moves}

    def end_the_plan(self):
        """Carry out the moves of the plan that runs."""
        for move in self.journal.dispatch(test_evaluation.WIDE, self.clock):
            move = self.journal.claim(move.uuid, self.clock())
            for state in (moves.MIGRATING, moves.VERIFYING, moves.COMPLETED):
                move = self.journal.advance(move, state, self.clock(), finished_at=self.clock())
            self.journal.settle(move.uuid, self.clock())
            self.cloud.placed[move.instance_uuid] = move.destination
        self.journal.close_plans(self.clock())
        self.clock.go(2000)

    def test_without_a_level_of_their_own_repairs_are_part_of_the_plan(self):
        for repairs in (None, 'auto'):
            report = self.run_cycle('auto', repairs)
            self.assertEqual({'vm9'}, {vm for vm, is_repair in self.moved(report).items()
                                       if is_repair})
            self.assertEqual(3, len(report.moves))
            self.assertEqual(('balance', 'executing'), self.plans()[0])
            self.end_the_plan()
            self.cloud.placed = dict.fromkeys(self.cloud.placed, 'a')

    def test_repairs_that_need_less_approval_go_first_and_alone(self):
        self.assertEqual({'vm9': True}, self.moved(self.run_cycle('observe', 'auto')))
        self.assertEqual([('repair', 'executing')], self.plans())
        self.end_the_plan()
        report = self.run_cycle('observe', 'auto')
        self.assertEqual({False}, {*self.moved(report).values()})
        self.assertEqual(('balance', 'observed'), self.plans()[0])

    def test_repairs_that_need_more_approval_wait_until_nothing_else_is_moved(self):
        report = self.run_cycle('auto', 'approve')
        self.assertEqual({False}, {*self.moved(report).values()})
        self.assertNotIn('vm9', self.moved(report))
        self.assertEqual([('balance', 'executing')], self.plans())
        self.end_the_plan()
        self.assertEqual({'vm9': True}, self.moved(self.run_cycle('auto', 'approve')))
        self.assertEqual(('repair', 'proposed'), self.plans()[0])
        self.cloud.placed |= {'vm1': 'a', 'vm2': 'a', 'vm3': 'a'}
        self.clock.go(10)
        self.run_cycle('auto', 'approve')
        self.assertEqual([('balance', 'executing'), ('repair', 'superseded')], self.plans()[:2])
        self.assertEqual('other moves are made first, without approval',
                         self.journal.plans()[1].ended_because)

    def test_a_repair_that_is_no_longer_needed_is_superseded(self):
        self.cloud.placed = {'vm1': 'a', 'vm9': 'a', 'vm2': 'b'}
        self.cloud.load = {'a': 0.1, 'b': 0.1}
        self.run_cycle('auto', 'approve')
        self.assertEqual([('repair', 'proposed')], self.plans())
        self.cloud.placed['vm9'] = 'b'
        self.run_cycle('auto', 'approve')
        self.assertEqual([('repair', 'superseded')], self.plans())

    def test_nothing_is_repaired_at_the_level_off_and_nothing_is_said_of_it(self):
        self.cloud.placed = {'vm1': 'a', 'vm9': 'a', 'vm2': 'b'}
        self.cloud.load = {'a': 0.1, 'b': 0.1}
        report = self.run_cycle('auto', 'off')
        self.assertEqual(([], plans.BALANCED, ()), (self.plans(), report.outcome, report.warnings))

    def test_moves_of_a_repair_are_started_by_the_level_of_repairs(self):
        defaults, board = automation.Defaults(level='observe'), switches.SwitchBoard(self.database)

        def refusal(purpose, is_approved=False):
            return board.read().refusal('gpu', defaults, purpose, is_approved)

        def set_level(level, kind=automation.REPAIR_LEVEL):
            board.set(automation.Switch(kind=kind, aggregate='gpu', value=level, set_by='jane',
                                        set_at=self.clock()))

        self.assertEqual('the level of rule repairs in gpu is observe now', refusal('repair'))
        set_level('auto')
        self.assertIsNone(refusal('repair'))
        self.assertEqual('the level of gpu is observe now', refusal('balance'))
        set_level('approve')
        self.assertIsNone(refusal('repair', is_approved=True))
        self.assertIsNotNone(refusal('repair'))
        set_level('off', automation.LEVEL)
        self.assertIsNotNone(refusal('repair', is_approved=True))

    def test_no_level_is_above_the_ceiling(self):
        defaults = automation.Defaults(level='observe', repairs='auto', ceiling='approve')
        self.assertEqual('approve', automation.Switches().level('gpu', defaults, 'repair'))
