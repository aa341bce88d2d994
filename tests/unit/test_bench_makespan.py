"""The cloud of shared links tells the truth about small cases, and hosts become empty in it."""

import numpy as np
import testtools

from bench.makespan import drains
from bench.makespan import world
from kronos_nova.objects.move import Caps
from tests.unit.test_bench_days import scene

SLOWEST = world.PREPARE[1] + world.FINISH[1]
FASTEST = world.PREPARE[0] + world.FINISH[0]


class SharedLinksTest(testtools.TestCase):
    """Servers of 4 GiB on links of 512 MiB a second."""

    def live(self, moves, dirty=0.0, link=512.0, stream=512.0):
        place = [source for source, _destination in moves]
        found = world.SharedLinks(
            scene([1.0] * len(moves), place, hosts=4, samples=1), 1.0,
            world.Network(link=link, stream=stream), world.Guests(
                touched=np.full(len(moves), 4096.0), dirty_rate=np.full(len(moves), dirty),
                working_set=np.full(len(moves), 1024.0)))
        for vm, (_source, destination) in enumerate(moves):
            found.start(vm, destination)
        while found.migrations:
            found.pass_time(1.0)
        return found

    def test_an_idle_guest_takes_what_its_memory_and_nova_take(self):
        took = self.live([(0, 1)]).took[0]
        self.assertTrue(8 + FASTEST <= took <= 8 + SLOWEST)

    def test_two_share_a_link_and_others_are_none_the_slower(self):
        took = self.live([(0, 1), (0, 2), (3, 1)]).took
        self.assertTrue(min(took.values()) > 12 + FASTEST, took)
        took = self.live([(0, 1), (2, 3)]).took
        self.assertTrue(max(took.values()) <= 8 + SLOWEST, took)
        took = self.live([(0, 1), (0, 2)], link=1024.0).took
        self.assertTrue(max(took.values()) <= 8 + SLOWEST, took)

    def test_what_a_guest_writes_is_copied_again(self):
        found = self.live([(0, 1)], dirty=200.0)
        self.assertTrue(4096 + 400 < found.copied[0] < 2 * 4096, found.copied)
        self.assertEqual([1], found.place.tolist())


class DrainTest(testtools.TestCase):
    def test_hosts_become_empty_first_come_first_served_or_by_schedule(self):
        case = drains.Case((3, 3))
        taken = {}
        for in_order in (True, False):
            found = drains.cloud(case, world.Network(link=1100.0, stream=1100.0), seed=1)
            rounds = drains.Emptier(
                case, {'max_concurrent_migrations': 2}, in_order).run(found, rounds=2)
            taken[in_order], moves = rounds[0].seconds, rounds[0].moves
            self.assertEqual({'completed'}, {move.state for each in rounds
                                             for move in each.moves})
            self.assertFalse(np.isin(found.place, (2, 3)).any())
            self.assertEqual((0, len(moves)), tuple(len(each.observed) for each in rounds))
            self.assertTrue(any(move.memory_processed for move in moves))
            self.assertEqual(in_order, not any(move.position for move in moves))

    def test_no_order_is_shorter_than_the_lower_bound(self):
        case = drains.Case((3, 3))
        found = drains.cloud(case, world.Network(link=1100.0, stream=1100.0), seed=2)
        [emptied] = drains.Emptier(case, {}).run(found)
        self.assertTrue(0 < drains.least(found, case, Caps(
            total=4, per_source=1, per_destination=2)) <= emptied.seconds)

    def test_one_after_the_other_takes_what_the_lower_bound_says(self):
        case = drains.Case((3,))
        found = drains.cloud(case, world.Network(link=1100.0, stream=1100.0), seed=2)
        [emptied] = drains.Emptier(case, {'max_concurrent_migrations': 1}).run(found)
        least = drains.least(found, case, Caps(total=1, per_source=1, per_destination=2))
        self.assertTrue(least <= emptied.seconds <= least + drains.POLL, (least, emptied.seconds))
