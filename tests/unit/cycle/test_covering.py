"""Evaluations plan moves after which a host may be lost again."""

import dataclasses

import fixtures

from kronos_nova.cooldown import PastMove
from kronos_nova.objects import automation
from kronos_nova.objects import plan as plans
from kronos_nova.objects import snapshot as objects
from kronos_nova.objects.automation import PAUSE
from kronos_nova.objects.automation import Switch
from kronos_nova.objects.dry_run import Verdict
from kronos_nova.policies import windows
from tests.unit.cycle import test_evaluation
from tests.unit.cycle import test_loss_rule

VCPUS = {'vm1': 16, 'vm2': 8, 'vm4': 60}


class CoveringTest(test_evaluation.CycleTestCase):
    """The large server of b restarts nowhere until one of the small ones leaves its host."""

    def setUp(self):
        super().setUp()
        self.cloud.aggregates = {'gpu': ('a', 'b', 'c')}
        self.cloud.placed = {'vm1': 'a', 'vm2': 'c', 'vm4': 'b'}
        self.cloud.load = dict.fromkeys('abc', 0.3)
        self.cloud.read = test_loss_rule.with_host_c(self.cloud.read, VCPUS)

    def evaluate(self, rules=test_evaluation.RULES, options=test_loss_rule.HELD):
        [report] = self.run_cycle(rules, engine_options=options).aggregates
        return report

    def test_a_small_one_gives_way(self):
        report = self.evaluate()
        [move] = report.moves
        self.assertEqual((plans.PLANNED, plans.MAKE_ROOM, automation.REPAIR),
                         (report.outcome, move.phase, report.purpose))
        self.assertEqual({'a', 'c'}, {move.source, move.destination})
        self.assertIn('all servers of b restart elsewhere', move.reason)
        [plan] = self.journal.plans()
        self.assertEqual((automation.REPAIR, plans.EXECUTING), (plan.purpose, plan.state))

    def test_by_default_nothing_moves(self):
        self.assertEqual((), self.evaluate(options=test_evaluation.OPTIONS).moves)

    def test_once_it_is_covered_nothing_moves(self):
        self.cloud.placed['vm2'] = 'a'
        self.assertEqual((), self.evaluate().moves)

    def test_nothing_moves_if_a_migration_in_progress_covers_it(self):
        """Host d is like c, and its server may go to a as well."""
        def read(*scope, real=self.cloud.read):
            seen = real(*scope)
            hosts, servers = ({each.name: each for each in seen.hosts},
                              {each.uuid: each for each in seen.instances})
            there = dataclasses.replace(hosts['c'], name='d', uuid='d')
            other = dataclasses.replace(servers['vm2'], uuid='vm5', name='vm5', host='d')
            return dataclasses.replace(
                seen, hosts=(*seen.hosts, there), instances=(*seen.instances, other),
                aggregates=tuple(dataclasses.replace(each, hosts=(*each.hosts, 'd'))
                                 for each in seen.aggregates)).with_moves_under_way(moves)

        moves = []
        self.cloud.load['d'] = 0.3
        self.cloud.read = read
        self.assertEqual([plans.MAKE_ROOM], [move.phase for move in self.plan_only().moves])
        moves.append(objects.MoveUnderWay(instance_uuid='vm2', source='c', destination='a'))
        self.assertNotIn(plans.MAKE_ROOM, [move.phase for move in self.plan_only().moves])

    def plan_only(self):
        return self.evaluate(self.level(gpu='observe'))

    def test_it_goes_before_balancing(self):
        self.cloud.load = {'a': 0.9, 'b': 0.3, 'c': 0.1}
        self.assertEqual(plans.MAKE_ROOM, self.evaluate().moves[0].phase)

    def test_it_does_not_go_before_a_host_is_emptied(self):
        self.cloud.status['a'] = 'disabled'
        report = self.evaluate(options=dataclasses.replace(
            test_loss_rule.HELD, evacuate_disabled_hosts=True))
        self.assertEqual([plans.EVACUATE], [move.phase for move in report.moves])

    def test_an_error_in_it_keeps_no_plan_from_being_made(self):
        self.useFixture(fixtures.MonkeyPatch(
            'kronos_nova.cycle.covering.with_covering_plans', lambda *_args: 1 // 0))
        self.cloud.load = {'a': 0.9, 'b': 0.3, 'c': 0.1}
        self.assertEqual([plans.SPREAD], [move.phase for move in self.evaluate().moves])

    def test_it_has_the_level_of_repairs(self):
        for repairs, state in (('off', None), ('observe', plans.OBSERVED),
                               ('approve', plans.PROPOSED)):
            self.evaluate(dataclasses.replace(test_evaluation.RULES, automation=(
                automation.Defaults(level='auto', repairs=repairs))))
            states = [plan.state for plan in self.journal.plans()]
            self.assertEqual([state] if state else [], states[:1], repairs)

    def test_nothing_is_planned_to_start_while_it_is_paused(self):
        self.ports().switches.set(Switch(
            kind=PAUSE, aggregate='gpu', value='pause', set_at=self.clock(), set_by='jane'))
        self.evaluate()
        self.assertEqual([plans.OBSERVED], [plan.state for plan in self.journal.plans()])

    def test_what_the_scheduler_refuses_is_not_planned(self):
        self.dry_run = lambda *_args: Verdict(refused='NUMATopologyFilter')
        self.assertEqual((), self.evaluate().moves)

    def test_nothing_is_planned_while_hosts_that_may_have_the_room_are_not_read(self):
        real = self.cloud.read
        self.cloud.read = lambda *scope: dataclasses.replace(
            real(*scope), unread={'gpu': 'cell one does not answer'})
        self.assertEqual((), self.evaluate().moves)

    def test_nothing_is_planned_outside_of_maintenance_windows(self):
        """The clock of these tests is at noon."""
        self.assertEqual((), self.evaluate(options=dataclasses.replace(
            test_loss_rule.HELD, windows=windows.parse(['gpu; 0 3 * * *; 60']))).moves)

    def test_it_waits_for_the_plan_of_another_aggregate_with_the_same_hosts(self):
        self.cloud.aggregates['ssd'] = ('a', 'b', 'c')
        self.cycles.begin('ssd', 'one', self.clock(), 1)
        options = dataclasses.replace(test_loss_rule.HELD, aggregates=('gpu', 'ssd'))
        gpu, ssd = self.run_cycle(self.level(gpu='observe'), engine_options=options).aggregates
        self.assertEqual([plans.MAKE_ROOM], [move.phase for move in gpu.moves])
        self.assertEqual((), ssd.moves)

    def test_servers_do_not_return_to_hosts_that_they_left(self):
        left = [PastMove(instance_uuid=uuid, source=source, destination=on,
                         ended_at=self.clock().timestamp() - 600)
                for uuid, source, on in (('vm1', 'c', 'a'), ('vm2', 'a', 'c'))]
        rules = dataclasses.replace(self.level(gpu='observe'), no_return_window=3600)
        for window, planned in ((0, 1), (3600, 0)):
            [report] = self.run_cycle(rules, engine_options=dataclasses.replace(
                test_loss_rule.HELD, no_return_window=window), history=left).aggregates
            self.assertEqual(planned, len(report.moves))
