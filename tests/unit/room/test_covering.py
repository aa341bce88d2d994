"""Moves after which all servers of a lost host restart elsewhere."""

import itertools
import random
import time

import testtools

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.planners.base import Limits
from kronos_nova.room import covering
from kronos_nova.room import defragmenting
from kronos_nova.room import failover
from kronos_nova.room.losses import HOST
from kronos_nova.room.losses import Loss
from tests.unit.room import clouds

RULES = ConstraintRules()


def loss(*names):
    return Loss(level=HOST, name=' and '.join(names), hosts=names)


def plan(cloud, lost, pinned=()):
    return covering.plan(cloud, RULES, lost, Limits(
        budget=50, clock=time.monotonic, deadline=time.monotonic() + 10), pinned)


def is_covered(cloud, lost):
    judge = failover.failover_of(cloud, RULES)
    return judge.judge([judge.index(name) for name in lost.hosts]).verdict == failover.FITS


class CoveringTest(testtools.TestCase):
    """The large server of b needs a host with one small server less."""

    cloud = clouds.cloud([clouds.host(name) for name in 'abc'], [
        clouds.server('first', 'a', 2, 4096), clouds.server('second', 'c', 2, 1024),
        clouds.server('large', 'b', 7)])

    def test_others_give_way_with_the_least_memory_to_copy(self):
        [move] = plan(self.cloud, loss('b'))
        self.assertEqual(('second', 'c', 'a'), (
            move.instance_uuid, move.source, move.destination))
        after = defragmenting.after(self.cloud, [move], RULES)
        self.assertEqual([False, True], [is_covered(cloud, loss('b'))
                                         for cloud in (self.cloud, after)])

    def test_one_that_is_pinned_does_not(self):
        [move] = plan(self.cloud, loss('b'), ['second', 'large'])
        self.assertEqual('first', move.instance_uuid)

    def test_nothing_moves_where_that_is_of_no_use(self):
        self.assertEqual((), plan(self.cloud, loss('b'), ['first', 'second']))

    def test_nothing_moves_where_all_restart_already(self):
        self.assertEqual((), plan(self.cloud, loss('a')))

    def test_random_clouds_are_covered_afterwards(self):
        found = 0
        for seed in range(40):
            cloud = random_cloud(seed)
            for lost in map(loss, 'abcde'):
                moves = () if is_covered(cloud, lost) else plan(cloud, lost)
                if moves:
                    found += 1
                    self.assertTrue(is_covered(defragmenting.after(cloud, moves, RULES), lost))
        self.assertGreater(found, 10)


def random_cloud(seed):
    """Five hosts, some 70 % full of servers of 1 to 6 VCPUs."""
    draw = random.Random(seed)
    free, servers = dict.fromkeys('abcde', 8), []
    for number in itertools.count():
        vcpus, host = draw.choice((1, 1, 2, 2, 3, 4, 6)), draw.choice('abcde')
        if sum(free.values()) - vcpus < 40 * 0.3:
            break
        if vcpus <= free[host]:
            free[host] -= vcpus
            servers.append(clouds.server(f's{number}', host, vcpus, 1024 * draw.randint(1, 8)))
    return clouds.cloud([clouds.host(name, 8, 1 << 20) for name in 'abcde'], servers)
