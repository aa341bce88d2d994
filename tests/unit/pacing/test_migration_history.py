"""The expected times of moves are learnt from those that ended."""

import random

import testtools

from kronos_nova.cooldown.planning_history import PastTry
from kronos_nova.pacing import migration_history
from kronos_nova.pacing.migration_history import Assumed
from kronos_nova.pacing.migration_history import Guest
from kronos_nova.pacing.migration_history import MigrationHistory


def past(uuid='vm', seconds=10.0, gib=4, source='a', destination='b', **more):
    return PastTry(instance_uuid=uuid, source=source, destination=destination,
                   memory_mb=gib * 1024, seconds=seconds, failed=seconds is None, **more)


def guest(uuid='new', gib=4, **more):
    return Guest(uuid=uuid, memory_mb=gib * 1024, **more)


class ExperienceTest(testtools.TestCase):
    def test_without_any_what_is_assumed_holds(self):
        found = MigrationHistory(assumed=Assumed(bandwidth=1024.0, fixed=5.0))
        self.assertEqual(9.0, found.seconds(guest()))
        self.assertEqual(migration_history.FIXED + 4096 / migration_history.BANDWIDTH,
                         MigrationHistory().seconds(guest()))

    def test_seconds_and_bandwidth_are_learnt(self):
        chance = random.Random(1)
        tries = [past(f'vm{n}', gib=gib, seconds=(20 + gib * 1024 / 250) * chance.uniform(.9, 1.1),
                      source=f'h{n % 7}', destination=f'h{n % 5}')
                 for n, gib in enumerate(chance.choices((2, 4, 8, 16, 64), k=60))]
        found = MigrationHistory(tries)
        self.assertTrue(abs(found.fixed - 20) < 3, found.fixed)
        self.assertTrue(abs(found.bandwidth / 250 - 1) < 0.1, found.bandwidth)
        for gib in (2, 32, 128):
            self.assertTrue(abs(found.seconds(guest(gib=gib)) / (20 + gib * 1024 / 250) - 1) < .15)

    def test_one_that_hung_does_not_spoil_the_rest(self):
        tries = [past(f'vm{n}', seconds=14.0, source=f'h{n}') for n in range(20)]
        before = MigrationHistory(tries)
        after = MigrationHistory([*tries, past('stuck', seconds=1700.0)])
        self.assertTrue(after.seconds(guest()) < 1.2 * before.seconds(guest()))

    def test_a_move_that_ended_before_it_began_teaches_nothing(self):
        tries = [past(f'vm{n}', seconds=14.0, source=f'h{n}') for n in range(20)]
        before = MigrationHistory(tries)
        after = MigrationHistory([*tries, past('vm20', seconds=-86_000.0)])
        self.assertEqual(before.seconds(guest()), after.seconds(guest()))

    def test_moves_that_shared_a_link_were_not_on_a_slow_one(self):
        tries = [past(f'vm{n}', gib=32, seconds=10 + 2 * 32.768, sharing=2.0, source=f'h{n}')
                 for n in range(20)]
        self.assertTrue(abs(MigrationHistory(tries).seconds(guest(gib=32)) / 42.768 - 1) < .1)

    def test_what_a_guest_writes_is_computed_from_what_was_copied(self):
        tries = [past('busy', seconds=22.0, gib=8, processed_mb=12_000),
                 past('idle', seconds=14.0, gib=8, processed_mb=4_096)]
        found = MigrationHistory(tries, Assumed(bandwidth=1000.0))
        busy, idle = (found.copy(guest(name, gib=8), 'c', 'd') for name in ('busy', 'idle'))
        self.assertTrue(250 < busy.dirty_mb_s < 400, busy)
        self.assertEqual((0.0, 4096.0), (idle.dirty_mb_s, idle.memory_mb))

    def test_what_is_asked_for_goes_before_what_was_learnt(self):
        found = MigrationHistory([past(processed_mb=9000.0)]).copy(
            guest('vm', used_mb=100.0, dirty_mb_s=7.0), 'a', 'b')
        self.assertEqual((100.0, 7.0), (found.memory_mb, found.dirty_mb_s))

    def test_an_instance_and_a_pair_that_are_slower_are_believed_the_more_the_oftener(self):
        usual = [past(f'vm{n}', seconds=14.0, source=f's{n}', destination=f'd{n}')
                 for n in range(30)]
        factors = []
        for times in (1, 3, 9):
            slow = [past('slow', seconds=42.0)] * times
            found = MigrationHistory([*usual, *slow], Assumed(bandwidth=1024.0))
            factors.append((found.copy(guest('slow'), 'x', 'y').factor,
                            found.slowness('a', 'b'), found.slowness('s1', 'd1')))
        instance, pair, other = zip(*factors, strict=True)
        self.assertEqual(sorted(pair), list(pair))
        self.assertTrue(instance[0] > 1.0 and 1.1 < pair[0] < 2.0 < pair[2] < 3.2, factors)
        self.assertTrue(all(abs(each - 1) < 0.1 for each in other))

    def test_failures_and_moves_without_a_time_tell_nothing_of_it(self):
        self.assertEqual(MigrationHistory().seconds(guest()),
                         MigrationHistory([past(seconds=None)]).seconds(guest()))

    def test_who_shares_a_link_is_derived_from_the_times(self):
        def move(source, destination, begun, ended):
            return {'source': source, 'destination': destination, 'begun': begun, 'ended': ended}
        self.assertEqual([1.5, 2.0, 1.0], migration_history.sharing([
            move('a', 'b', 0, 10), move('a', 'c', 5, 10), move('x', 'y', 0, 10)]))
        self.assertEqual([], migration_history.sharing([]))

    def test_it_is_what_comparing_each_with_each_gives(self):
        chance = random.Random(3)
        spans = [(begun, begun + chance.choice((0.5, 3, 20))) for begun in (
            chance.uniform(0, 60) for _ in range(40))]
        wanted = [sum(max(0.0, min(end, other_end) - max(begin, other_begin))
                      for other_begin, other_end in spans) / (end - begin)
                  for begin, end in spans]
        found = migration_history.sharing(
            {'source': 'a', 'destination': n, 'begun': begin, 'ended': end}
            for n, (begin, end) in enumerate(spans))
        for one, other in zip(wanted, found, strict=True):
            self.assertAlmostEqual(one, other)
