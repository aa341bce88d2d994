"""Moves that lower what may be lost are left out, and no others."""

import dataclasses

import testtools

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.objects import plan as plans
from kronos_nova.room import loss_rule
from kronos_nova.room.losses import LossMemory
from tests.unit.room import clouds


def move(order, uuid, source, destination, phase=plans.SPREAD, **more):
    return plans.PlannedMove(order=order, phase=phase, instance_uuid=uuid, source=source,
                             destination=destination, memory_mb=1024, combined_after=None,
                             reason='', **more)


class LossRuleTest(testtools.TestCase):
    """Host c is the only one that takes the large server of b, as long as nothing comes to it."""

    hosts = [clouds.host(name) for name in 'abc']
    servers = [clouds.server('s1', 'a', 2), clouds.server('s2', 'a', 2),
               clouds.server('s3', 'a', 1), clouds.server('large', 'b', 7)]

    def rule(self, hosts=1, domains=0, left=lambda: 1.0, cloud=None):
        return loss_rule.LossRule(cloud or clouds.cloud(self.hosts, self.servers),
                                  ConstraintRules(), hosts, domains, LossMemory(), left)

    def cut(self, *moves, **rule):
        return loss_rule.cut(self.rule(**rule), moves)

    def test_a_move_that_takes_the_room_for_another_host_is_left_out(self):
        found = self.cut(move(1, 's1', 'a', 'c'))
        self.assertEqual(
            {1: 'b could not be lost any more with all servers restarting elsewhere'}, found)

    def test_a_move_that_takes_no_such_room_is_made(self):
        self.assertEqual({}, self.cut(move(1, 's3', 'a', 'c')))
        self.assertEqual({}, self.cut(move(1, 's3', 'a', 'b')))

    def test_only_what_lowers_a_verdict_is_left_out(self):
        found = self.cut(move(1, 's3', 'a', 'b'), move(2, 's1', 'a', 'c'))
        self.assertEqual([2], [*found])

    def test_what_helps_only_together_or_waits_for_it_goes_too(self):
        found = self.cut(move(1, 's3', 'a', 'b', group=1), move(2, 's1', 'a', 'c', group=1))
        self.assertEqual([1, 2], [*found])
        found = self.cut(move(1, 's1', 'a', 'c'), move(2, 's3', 'a', 'b', depends_on=(1,)))
        self.assertEqual([1, 2], [*found])

    def test_only_the_end_of_a_plan_counts(self):
        self.assertEqual({}, self.cut(move(1, 's1', 'a', 'c'), move(2, 's1', 'c', 'a')))

    def test_moves_that_empty_a_host_are_not_left_out_and_are_what_others_are_held_against(self):
        empties = move(1, 's1', 'a', 'c', plans.EVACUATE)
        self.assertEqual({}, self.cut(empties))
        self.assertEqual({}, self.cut(empties, move(2, 's3', 'a', 'c')))

    def test_a_host_that_could_not_be_lost_before_holds_nothing(self):
        full = clouds.cloud(self.hosts[:2], self.servers)
        self.assertEqual({}, self.cut(move(1, 's3', 'a', 'b'), cloud=full))

    def test_only_what_is_proven_to_fit_counts(self):
        """Without time nothing is proven, and so nothing is lowered that was known to fit."""
        looks = iter([1.0, 1.0, 1.0, *[0.0] * 99])
        self.assertEqual([1], [*self.cut(move(1, 's3', 'a', 'b'), left=lambda: next(looks))])

    def test_pairs_of_hosts_are_held_for_two(self):
        """Hosts c and d take the large servers of a and b, as long as nothing comes to c."""
        four = clouds.cloud(
            [clouds.host('a'), clouds.host('b'), clouds.host('c', 7), clouds.host('d')],
            [clouds.server('one', 'a', 7), clouds.server('small', 'a', 1),
             clouds.server('two', 'b', 7)])
        taken = move(1, 'small', 'a', 'c')
        self.assertEqual({}, self.cut(taken, cloud=four))
        [why] = self.cut(taken, cloud=four, hosts=2).values()
        self.assertIn('a and b could not be lost', why)

    def test_failure_domains_are_held_a_level_at_a_time(self):
        racks = clouds.cloud([dataclasses.replace(host, domains={'rack': rack})
                              for host, rack in zip(self.hosts, ('r1', 'r2', 'r3'), strict=True)],
                             self.servers)
        self.assertEqual([], self.rule(hosts=0, domains=0, cloud=racks).losses)
        [why] = self.cut(move(1, 's1', 'a', 'c'), hosts=0, domains=1, cloud=racks).values()
        self.assertIn('r2 could not be lost', why)
