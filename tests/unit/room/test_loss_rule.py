"""Moves that lower what may be lost are left out, and no others."""

import dataclasses

import fixtures
import numpy as np
import testtools

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.objects import plan as plans
from kronos_nova.room import defragmenting
from kronos_nova.room import failover
from kronos_nova.room import loss_rule
from kronos_nova.room.losses import LossMemory
from tests.unit.room import clouds

RULES = ConstraintRules()


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


class JudgedOnceTest(testtools.TestCase):
    """A loss is judged again only where moves may change its verdict."""

    def cloud(self, rng):
        """Return a cloud with random servers, of which some are in groups."""
        hosts, servers = [clouds.host(f'h{number}') for number in range(9)], []
        free = dict.fromkeys((host.name for host in hosts), 8)
        for number in range(int(rng.integers(24, 40))):
            name, vcpus = f'h{rng.integers(9)}', int(rng.integers(1, 5))
            if free[name] > vcpus:
                free[name] -= vcpus
                servers.append(clouds.server(f's{number}', name, vcpus))
        apart = [next(each.uuid for each in servers if each.host == name)
                 for name in sorted({each.host for each in servers})[:3]]
        return clouds.cloud(hosts, servers, server_groups=(
            clouds.group('anti-affinity', *apart),
            clouds.group('affinity', *(
                each.uuid for each in servers if each.host == servers[-1].host))))

    def some_moves(self, rng, cloud):
        """Return moves of random servers to hosts with room."""
        free = {host.name: 8 - sum(each.vcpus for each in cloud.instances if each.host == host.name)
                for host in cloud.hosts}
        found = []
        for order, vm in enumerate(rng.permutation(len(cloud.instances))[:2].tolist(), 1):
            each, to = cloud.instances[vm], f'h{rng.integers(9)}'
            if to != each.host and free[to] >= each.vcpus:
                free[to] -= each.vcpus
                found.append(move(order, each.uuid, each.host, to))
        return found

    def rule(self, cloud):
        return loss_rule.LossRule(cloud, RULES, 1, 0, LossMemory(), lambda: 1.0)

    def test_the_verdicts_are_those_of_a_new_rule_plan_after_plan(self):
        lost = 0
        for seed in range(60):
            rng = np.random.default_rng(seed)
            cloud = self.cloud(rng)
            rule = self.rule(cloud)
            for _plan in range(3):
                covered, moves = rule.fitting([]), self.some_moves(rng, cloud)
                after = defragmenting.after(cloud, moves, RULES)
                now = {*self.rule(after).fitting([])}
                self.assertEqual([loss for loss in covered if loss in now],
                                 rule.fitting(moves, covered), seed)
                lost += len({*covered} - now)
                rule, cloud = rule.after(moves, lambda: 1.0), after
        self.assertGreater(lost, 10)

    def test_losses_of_hosts_that_no_move_touches_are_not_judged_again(self):
        judged = []
        self.useFixture(fixtures.MonkeyPatch(
            'kronos_nova.room.failover.Failover.judge', count(judged, failover.Failover.judge)))
        cloud = clouds.cloud([clouds.host(name) for name in 'abcdef'], [
            clouds.server(f's{name}', name, 2) for name in 'abcdef'])
        rule = self.rule(cloud)
        rule.fitting([])
        self.assertEqual(6, len(judged))
        rule.fitting([])
        self.assertEqual(6, len(judged))
        moves = [move(1, 'sa', 'a', 'f')]
        rule.fitting(moves)
        self.assertTrue(8 <= len(judged) < 12, judged)
        count_before = len(judged)
        rule.after(moves, lambda: 1.0).fitting([])
        self.assertEqual(count_before, len(judged))

    def test_all_are_judged_again_where_a_move_may_matter_elsewhere(self):
        """Members of an affinity group restart where most of the others are."""
        cloud = clouds.cloud(
            [clouds.host(name) for name in 'abcd'],
            [clouds.server(f's{name}', name[0], 1) for name in ('a', 'a2', 'b')],
            server_groups=(clouds.group('affinity', 'sa', 'sa2'),))
        judge = failover.failover_of(cloud, RULES)
        self.assertFalse(judge.is_local('sa'))
        self.assertFalse(judge.is_local('unknown'))
        self.assertTrue(judge.is_local('sb'))


def count(calls, function):
    """Return the function, which notes each call."""
    def counted(*args, **more):
        calls.append(args[1])
        return function(*args, **more)
    return counted
