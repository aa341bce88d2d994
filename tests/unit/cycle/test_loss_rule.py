"""No plan of an evaluation lowers what may be lost."""

import dataclasses

from kronos_nova.objects import plan as plans
from tests.unit.cycle import test_evaluation

VCPUS = {'vm1': 16, 'vm2': 16, 'vm3': 16, 'vm4': 60}
HELD = dataclasses.replace(test_evaluation.OPTIONS, failover_hosts=1)


def with_host_c(real, vcpus):
    """Return a read() of a cloud that has one host more, and servers of some sizes."""
    def read(*args):
        found = real(*args)
        return dataclasses.replace(found, hosts=(*found.hosts, dataclasses.replace(
            found.hosts[1], name='c', uuid='rp-c')), instances=tuple(
            dataclasses.replace(each, resources={'VCPU': vcpus[each.uuid]})
            for each in found.instances))
    return read


class LossRuleTest(test_evaluation.CycleTestCase):
    """Host c has none of the load, and is the only one that takes the large server of b."""

    def setUp(self):
        super().setUp()
        self.cloud.aggregates = {'gpu': ('a', 'c')}
        self.cloud.load = {'c': 0.0}
        self.cloud.read = with_host_c(self.cloud.read, VCPUS)

    def test_a_plan_that_does_is_not_made_and_says_why(self):
        [report] = self.run_cycle(engine_options=HELD).aggregates
        self.assertEqual((plans.NO_MOVE, ()), (report.outcome, report.moves))
        [skip] = [skip for skip in report.not_moved if skip.reason == 'failover']
        self.assertIn((skip.instances[0], 'if it were moved, b could not be lost any more with all '
                       'servers restarting elsewhere'), skip.details)
        [note] = [note for note in report.notes if 'failover_hosts' in note]
        self.assertIn('by [kronos] failover_hosts or failover_domains: 1. If the first were '
                      'moved, b could not be lost any more', note)
        self.assertEqual([], self.journal.moves())

    def test_by_default_it_is_made(self):
        [report] = self.run_cycle().aggregates
        self.assertEqual(plans.PLANNED, report.outcome)

    def test_a_plan_that_does_not_is_made(self):
        del self.cloud.placed['vm4']
        [report] = self.run_cycle(engine_options=HELD).aggregates
        self.assertEqual(plans.PLANNED, report.outcome)

    def test_one_that_was_approved_is_held_against_it_before_it_starts(self):
        self.run_cycle(self.level(gpu='approve'))
        [plan] = self.journal.plans()
        self.journal.approve_plan(plan.uuid, [], 'jane', self.clock())
        self.run_cycle(self.level(gpu='approve'), engine_options=HELD)
        self.assertEqual([], [move for move in self.journal.moves() if move.state == 'planned'])
        [after] = [each for each in self.journal.plans() if each.uuid == plan.uuid]
        self.assertNotEqual(plans.EXECUTING, after.state)
