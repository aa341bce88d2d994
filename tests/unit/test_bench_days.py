"""The bench of days tells the truth about small worlds, and the same thing every time."""

import argparse
import dataclasses
import itertools
import pathlib

import fixtures
import numpy as np
import testtools

from bench import days
from bench.days import bounds
from bench.days import day_known
from bench.days import pipeline
from bench.days import rivals
from bench.days import scenario
from bench.days import summary
from bench.days import tally
from bench.days import world

THRESHOLD = 0.15


def scene(demand, place, hosts=2, samples=4, **others):
    """Servers of 2 vCPUs and 4 GiB that want as many cores all the time, of hosts with ten."""
    count = len(place)
    return scenario.Scenario(**{
        'name': 'small', 'hosts': hosts, 'cores': 10, 'memory_mb': 65536,
        'vcpus': np.full(count, 2), 'vm_memory_mb': np.full(count, 4096),
        'demand': np.tile(np.array(demand, dtype=np.float32), (samples, 1)),
        'born': np.zeros(count, dtype=int), 'dies': np.full(count, samples),
        'place': np.array(place), **others})


class Scripted(rivals._Mover):
    """Wants the moves that the test sets for each sample."""

    def __init__(self, wanted):
        self._script = wanted

    def evaluate(self):
        if self.world.sample in self._script:
            self.want(self._script[self.world.sample])


def lived(found, strategy):
    ended = world.live(found, strategy, THRESHOLD)
    return dict(zip(tally.COLUMNS, ended.row(), strict=True))


class WorldTest(testtools.TestCase):
    def test_what_a_host_lacks_is_counted_by_host_and_by_server(self):
        row = lived(scene([6, 6, 1], [0, 0, 1]), rivals.NoMoves())
        self.assertEqual((20, 40), (row['hot host minutes'], row['contention minutes']))
        self.assertAlmostEqual(1.1, row['mean imbalance'], 5)
        self.assertEqual(1.0, row['time above threshold'])

    def test_a_migration_takes_time_and_a_core_of_both_hosts(self):
        row = lived(scene([4, 1], [0, 1]), Scripted({1: [(1, 0)]}))
        seconds = world.SECONDS + 4 * world.SECONDS_PER_GIB
        self.assertEqual((1, 4.0, seconds / 60), (
            row['moves'], row['GiB'], row['VM minutes in migration']))
        before, after = (300 + seconds) * .3, (900 - seconds) * .5
        self.assertAlmostEqual((before + after) / 1200, row['mean imbalance'], 5)

    def test_to_come_back_within_a_day_is_a_return(self):
        row = lived(scene([4, 1], [0, 1]), Scripted({0: [(1, 0)], 2: [(1, 1)]}))
        self.assertEqual((2, 2, 1), (row['moves'], row['most moves of a VM'],
                                     row['returns in 24 h']))

    def test_of_one_host_one_leaves_at_a_time_and_nothing_goes_where_there_is_no_room(self):
        found = scene([1] * 4, [0, 0, 0, 1], memory_mb=12288)
        mover = Scripted({0: [(0, 1), (1, 1), (2, 1)]})
        mover.begin(world.World(found, THRESHOLD))
        mover.evaluate()
        mover.tick()
        self.assertEqual([0], list(mover.world.migrations))
        self.assertEqual(2, lived(found, Scripted({0: [(0, 1), (1, 1), (2, 1)]}))['moves'])

    def test_a_host_that_dies_loses_its_servers_to_others_and_takes_none(self):
        events = (scenario.Event(at=1, host=0, state=scenario.DOWN),)
        found = world.World(scene([1, 1, 1], [0, 0, 1], events=events), THRESHOLD)
        found.turn(1)
        self.assertEqual([1, 1, 1], found.place.tolist())
        self.assertFalse(found.may_start(0, 0))

    def test_a_server_that_is_deployed_goes_where_memory_is_free(self):
        found = world.World(scene([1, 1, 1, 1], [0, 0, 1, -1], born=np.array([0, 0, 0, 2]),
                                  dies=np.array([4, 4, 4, 3])), THRESHOLD)
        found.turn(2)
        self.assertEqual(1, found.place[3])
        found.turn(3)
        self.assertEqual(-1, found.place[3])


class StrategiesTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.scene = scene([2, 2, 2, 2, 1, 1], [0, 0, 0, 0, 1, 2], hosts=3, samples=6)

    def test_kronos_evens_the_hosts_by_its_own_pipeline_and_again_the_same(self):
        rows = [lived(self.scene, pipeline.Kronos(
            'greedy', THRESHOLD, spread_planner='greedy', restraint=0.0)) for _time in range(2)]
        self.assertEqual(2, rows[0]['moves'])
        self.assertLess(rows[0]['time above threshold'], 0.2)
        self.assertEqual(*rows)

    def test_a_forecast_moves_before_it_hurts(self):
        days, hour = scenario.DAYS_KNOWN * scenario.DAY, 3600 // scenario.STEP
        load = np.tile(np.array([2, 2, 2, 2, 1, 1], dtype=np.float32), (4 * hour, 1))
        load[2 * hour:, :4] = 3.0
        day = np.concatenate([load, np.tile(load[:1], (scenario.DAY - len(load), 1))])
        found = dataclasses.replace(
            self.scene, demand=load, before=np.tile(day, (days // scenario.DAY, 1)),
            dies=np.full(6, len(load)))
        late, early = (world.live(found, pipeline.Kronos(
            name, .9, policies, restraint=1.0), .9).row()
            for name, policies in (('late', pipeline.POLICIES), ('early', pipeline.AHEAD)))
        hot = tally.COLUMNS.index('hot host minutes')
        self.assertGreater(late[hot], 0)
        self.assertEqual(0, early[hot])

    def test_the_oracle_moves_before_it_hurts(self):
        self.scene.demand[3:, :4] = 3.0
        still, warned = (lived(self.scene, each) for each in (rivals.NoMoves(), rivals.Oracle()))
        self.assertEqual(15, still['hot host minutes'])
        self.assertEqual(0, warned['hot host minutes'])

    def test_who_knows_what_servers_are_like_parts_those_that_are_busy(self):
        scene_ = scene([1, 1, .1, .1], [0, 0, 1, 1], hosts=2, samples=40)
        cores = scene_.cores
        scene_.demand[::2, :2] = .6 * cores
        still, parted = (lived(scene_, each) for each in (rivals.NoMoves(), bounds.HabitsKnown()))
        self.assertEqual((100, 0), (still['hot host minutes'], parted['hot host minutes']))
        self.assertEqual(0.0, bounds.unavoidable(scene_))
        scene_.demand[3, 0] = .95 * cores
        self.assertEqual(5.0, bounds.unavoidable(scene_))


class BudgetTest(testtools.TestCase):
    def test_a_larger_budget_lets_greedy_make_more_moves_of_one_plan(self):
        found = scene([2] * 4, [0] * 4, hosts=4, samples=3)
        moves = [lived(found, pipeline.Kronos(
            'greedy', THRESHOLD, pipeline.with_budget(budget), spread_planner='greedy',
            restraint=0.0))['moves'] for budget in (1, 3)]
        self.assertLess(*moves)


class LeastGibTest(testtools.TestCase):
    """No strategy copies less, whatever it knows."""

    def random(self, rng, hosts=2, vms=6, samples=6):
        found = scene([0] * vms, rng.integers(0, hosts, vms), hosts=hosts, samples=samples,
                      vm_memory_mb=rng.choice([1024, 2048, 4096], vms))
        return dataclasses.replace(
            found, demand=rng.uniform(0, 7, (samples, vms)).astype(np.float32))

    def test_it_is_the_least_memory_of_all_ends_that_leave_few_enough_hot_minutes(self):
        found = scene([4, 4, 3, 1], [0, 0, 0, 1], vm_memory_mb=np.array([8192, 4096, 2048, 1024]))
        least = bounds.LeastGib(found)
        self.assertEqual(20, least.minutes)
        self.assertEqual([2.0, 1.0, 0.0], [least.gib(minutes) for minutes in (0, 10, 20)])

    def test_no_placement_from_the_first_sample_on_copies_less(self):
        rng = np.random.default_rng(0)
        spared = 0
        for _case in range(20):
            found = self.random(rng)
            least, share = bounds.LeastGib(found), found.demand.astype(float) / found.cores
            for place in itertools.product(range(2), repeat=6):
                gone = np.array(place) != found.place
                loads = np.stack([share[:, np.array(place) == host].sum(axis=1)
                                  for host in range(2)])
                minutes = float((loads > tally.HOT).sum() * 5)
                copied = float(found.vm_memory_mb[gone].sum()) / 1024
                self.assertLessEqual(least.gib(minutes), copied + 1e-9)
                spared += minutes < least.minutes
        self.assertGreater(spared, 0)

    def test_servers_beyond_those_that_are_rated_leave_for_nothing(self):
        found = self.random(np.random.default_rng(1), vms=8)
        exact = bounds.LeastGib(found).gib(0)
        self.useFixture(fixtures.MonkeyPatch('bench.days.bounds.SUBSETS', 3))
        self.assertLess(0, bounds.LeastGib(found).gib(0))
        self.assertLess(bounds.LeastGib(found).gib(0), exact)

    def test_subsets_in_several_arrays_are_those_in_one(self):
        found = self.random(np.random.default_rng(2))
        one = [bounds.LeastGib(found).gib(minutes) for minutes in (0, 10, 20)]
        self.useFixture(fixtures.MonkeyPatch('bench.days.bounds.INNER', 1))
        several = bounds.LeastGib(found)
        self.assertEqual(one, [several.gib(minutes) for minutes in (0, 10, 20)])

    def test_where_servers_leave_without_a_copy_there_is_no_bound(self):
        events = (scenario.Event(at=1, host=0, state=scenario.DOWN),)
        self.assertRaises(ValueError, bounds.LeastGib, scene([1], [0], events=events))


class DayKnownTest(testtools.TestCase):
    """An upper bound: few hot minutes for little memory, by moves that are possible."""

    def test_the_smallest_servers_leave_and_hosts_stay_cool(self):
        found = scene([4, 4, 3, 1], [0, 0, 0, 1], samples=40,
                      vm_memory_mb=np.array([8192, 4096, 2048, 1024]))
        row = lived(found, day_known.DayKnown())
        self.assertEqual((1, 2.0), (row['moves'], row['GiB']))
        self.assertLessEqual(row['hot host minutes'], .25 * 200)

    def test_no_move_goes_to_a_host_that_becomes_hot_or_has_no_room(self):
        found = scene([6, 6, 8, 1], [0, 0, 1, 2], hosts=3, samples=40, memory_mb=8192)
        row = lived(found, day_known.DayKnown())
        self.assertEqual((1, 4.0), (row['moves'], row['GiB']))
        full = scene([6, 6, 8, 1], [0, 0, 1, 2], hosts=3, samples=40, memory_mb=4096)
        self.assertEqual(0, lived(full, day_known.DayKnown())['moves'])

    def test_servers_that_need_not_have_left_are_taken_back(self):
        found = scene([5, 4.5, .5, .5], [0, 0, 1, 1], samples=40,
                      vm_memory_mb=np.array([8192, 4096, 1024, 1024]))
        search = day_known._Search(world.World(found, THRESHOLD))
        search.run(0.0)
        search._order.append(2)
        search._move(2, 0)
        search.take_back(0.0)
        self.assertEqual([(1, 1)], search.moves())

    def test_it_copies_no_less_than_the_lower_bound(self):
        rng = np.random.default_rng(3)
        for _case in range(5):
            found = scene([0] * 24, rng.integers(0, 4, 24), hosts=4, samples=60,
                          vm_memory_mb=rng.choice([1024, 2048, 4096], 24))
            found = dataclasses.replace(
                found, demand=rng.uniform(0, 2.4, (60, 24)).astype(np.float32))
            row = lived(found, day_known.DayKnown())
            self.assertLessEqual(bounds.LeastGib(found).gib(row['hot host minutes']), row['GiB'])


class ScenarioTest(testtools.TestCase):
    def test_a_week_is_the_same_every_time_and_fits_into_its_hosts(self):
        one, other = (scenario.week(4, 30, .3, days=1) for _time in range(2))
        for field in dataclasses.fields(one):
            np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name))
        there = one.place >= 0
        used = np.bincount(one.place[there], weights=one.vm_memory_mb[there])
        self.assertTrue((used <= one.memory_mb).all())

    def test_where_more_servers_are_asked_for_than_a_day_has_they_are_shifted_in_time(self):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'days.npz')
        np.savez(path, **{'20110303': np.arange(3 * 288).reshape(3, 288) % 101})
        few, many = (scenario.planetlab(path, '20110303', 2, vms, .5) for vms in (3, 9))
        self.assertEqual(((288, 3), (288, 9)), (few.demand.shape, many.demand.shape))
        share = np.sort(many.demand / many.vcpus, axis=0)
        np.testing.assert_allclose(np.sort(share[:, :3]), np.sort(share[:, 3:6]))
        self.assertFalse(np.allclose(many.demand[:, :3], many.demand[:, 3:6]))

    def test_noise_is_around_means_that_are_even(self):
        still, noisy = (scenario.constant(20, 200, .5, is_noisy=noisy) for noisy in (False, True))
        self.assertTrue((still.demand == still.demand[0]).all())
        def imbalance(found, demand):
            return np.ptp(np.bincount(found.place, weights=demand) / found.cores)
        self.assertGreater(imbalance(still, still.demand[0]), .25)
        self.assertLess(imbalance(noisy, noisy.demand.mean(axis=0)), .05)
        self.assertGreater(imbalance(noisy, noisy.demand[0]), .15)

    def test_jobs_begin_suddenly_at_the_same_time_every_day_or_week(self):
        found = scenario.ordinary(4, 40, .5, kind='jobs')
        days = np.concatenate([found.before, found.demand])[1:] / found.vcpus
        risen = np.diff(days, axis=0) > .2
        again = risen[7 * scenario.DAY:9 * scenario.DAY] & risen[:2 * scenario.DAY]
        self.assertGreater(again.any(axis=0).sum(), 10)
        noise = scenario.ordinary(4, 40, .5, kind='none')
        self.assertEqual(len(found.demand), len(noise.demand))
        risen = np.diff(noise.before / noise.vcpus, axis=0) > .2
        again = risen[7 * scenario.DAY:9 * scenario.DAY - 1] & risen[:2 * scenario.DAY - 1]
        self.assertLess(again.any(axis=0).sum(), 5)


class ArgumentsTest(testtools.TestCase):
    def strategies(self, *arguments):
        parser = argparse.ArgumentParser()
        days.register(parser.add_subparsers())
        args = parser.parse_args(['days', *arguments])
        return {each.name: each for each in days._strategies(args, 100)}

    def test_each_amount_of_restraint_is_a_strategy_in_addition_to_those_that_are_named(self):
        found = self.strategies('--strategies', 'Kronos', '--restraint', '2', '3.5')
        self.assertEqual({'Kronos', 'Kronos, restraint 2', 'Kronos, restraint 3.5'}, set(found))
        self.assertEqual([2.0, 3.5], [found[f'Kronos, restraint {amount}']._conf().kronos.restraint
                                      for amount in ('2', '3.5')])

    def test_strategies_that_take_hours_are_left_out_of_large_clusters(self):
        found = self.strategies()
        self.assertIn('day known', found)
        self.assertNotIn('oracle', found)


class SummaryTest(testtools.TestCase):
    def test_ratios_are_geometric_means_over_days(self):
        columns = ('scenario', 'size', 'strategy', *tally.COLUMNS, 'CPU s')
        def row(day, strategy, moves):
            return (day, 's', strategy, moves, 9.0, .5, 9, 0, .1, .2, 1, 0, 0, 1.0, 1.0)
        found = summary.rows(columns, [row('a', 'greedy', 9), row('b', 'greedy', 9),
                                       row('a', 'x', 0), row('b', 'x', 39)])
        self.assertEqual(['greedy', 'x'], [values[0] for values in found])
        self.assertAlmostEqual((.1 * 4) ** .5, found[1][1])
        self.assertIsNone(found[1][4])

    def test_each_strategy_is_beside_the_least_gib_for_its_hot_minutes(self):
        columns = ('scenario', 'size', 'strategy', *tally.COLUMNS, 'CPU s')
        least = bounds.LeastGib(scene([4, 4, 3, 1], [0, 0, 0, 1]))
        def row(strategy, moves, gib, hot):
            return ('a', '2x4', strategy, moves, gib, .5, hot, 0, .1, .2, 1, 0, 0, 1.0, 1.0)
        found = summary.least_rows(columns, [row('no moves', 0, 0.0, 20), row('x', 3, 12.0, 10),
                                             row('greedy', 5, 20.0, 0)], least)
        self.assertEqual([('a', '2x4', 'x', .5, 12.0, 2.0), ('a', '2x4', 'greedy', 0.0, 20.0, 4.0),
                          ('a', '2x4', 'goal', .25, 6.0, 3.0)], found)
