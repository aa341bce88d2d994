"""Every policy within its target, with the least memory to copy."""

import dataclasses
import itertools
import warnings

import fixtures
import numpy as np
import testtools

from bench import inputs
from bench import trial
from kronos_nova.model import Group
from kronos_nova.model import Prices
from kronos_nova.model import State
from kronos_nova.model.rules import AllowedHosts
from kronos_nova.model.space import SearchSpace
from kronos_nova.planners import level
from kronos_nova.planners.base import Limits
from kronos_nova.planners.level import Band
from kronos_nova.planners.level import Level
from kronos_nova.planners.level import Leveling
from kronos_nova.planners.level import band_of
from kronos_nova.planners.spread import hosts_that_matter
from tests.unit.planners import clouds

ANYWHERE = Limits(budget=1000, overload_ceiling=9.0)


def cloud(loads, place, hosts, threshold, memory_mb=None):
    """Hosts of one size with nothing on them but instances of these loads."""
    problem = clouds.idle(list(place), hosts=hosts)
    weights, scores = np.array(loads, dtype=float)[:, None], np.zeros((hosts, 1))
    np.add.at(scores, np.array(place), weights)
    return dataclasses.replace(
        problem, weights=weights, scores=scores, thresholds=np.array([threshold]),
        memory_mb=problem.memory_mb if memory_mb is None else np.array(memory_mb))


def drawn(seed, hosts=3, vms=6):
    rng = np.random.default_rng(seed)
    return cloud(rng.choice([.05, .1, .15, .2], vms), rng.integers(0, hosts, vms), hosts, .15,
                 1024 * rng.choice([1, 2, 4, 8], vms))


def imbalance(problem, scores):
    left_out = 0 if problem.left_out is None else int(problem.left_out[0])
    return np.ptp(np.sort(scores)[left_out:len(scores) - left_out])


def least_memory(problem, allowed=None):
    """MiB to copy for the cheapest end within the threshold, by trying all; None for none."""
    hosts, vms = len(problem.hosts), len(problem.vms)
    places = np.indices((hosts,) * vms, dtype=np.int8).reshape(vms, -1)
    scores = np.stack([problem.weights[:, 0] @ (places == host) for host in range(hosts)])
    moved = places != problem.vm_host[:, None]
    fits = np.ptp(scores, axis=0) <= problem.thresholds[0] + 1e-9
    if allowed is not None:
        fits &= (allowed[places] | ~moved).all(axis=0)
    return int((problem.memory_mb @ moved)[fits].min()) if fits.any() else None


def copied(problem, steps):
    return sum(int(problem.memory_mb[step.vm]) for step in steps)


def no_program():
    """Clusters of every size count as too large for the integer program."""
    return fixtures.MonkeyPatch('kronos_nova.planners.level.BUDGET',
                                dataclasses.replace(level.BUDGET, pairs=(0,)))


class BandTest(testtools.TestCase):
    def test_as_much_is_missing_below_as_is_too_much_above(self):
        scores = np.random.default_rng(0).random((30, 2))
        band = Band.around(scores, np.array([.2, .4]), np.ones(2))
        for n in (0, 1):
            self.assertAlmostEqual(np.maximum(scores[:, n] - band.high[n], 0).sum(),
                                   np.maximum(band.low[n] - scores[:, n], 0).sum())

    def test_where_all_hosts_are_within_it_nothing_is_outside(self):
        scores = np.array([[.2], [.3], [.25]])
        band = Band.around(scores, np.array([.1]), np.ones(1))
        self.assertEqual([0, 0, 0], band.excess(scores.T).round(12).tolist())


class LevelTest(testtools.TestCase):
    def test_one_host_far_off_gets_no_more_than_it_needs_in_a_large_cluster(self):
        # Here the band is not tried elsewhere, and every other host is a little above it.
        self.useFixture(fixtures.MonkeyPatch('kronos_nova.planners.level.SHORT', 0))
        for empty in (0, 19):
            place = np.repeat([host for host in range(20) if host != empty], 15)
            problem = cloud([.025] * len(place), place, 20, .25)
            steps = Level().plan(clouds.start(problem), ANYWHERE)
            self.assertEqual(5, len(steps))

    def test_in_a_small_cluster_no_other_plan_copies_less_memory(self):
        reached = 0
        for seed in range(40):
            problem = drawn(seed, vms=7)
            least, state = least_memory(problem), clouds.start(problem)
            steps = Level().plan(state, ANYWHERE)
            if least and state.is_balanced:
                self.assertEqual(least, copied(problem, steps))
                reached += 1
        self.assertGreater(reached, 20)

    def test_nor_in_one_with_a_host_to_which_no_server_may_go(self):
        allowed = np.array([True, True, True, False])
        rule = AllowedHosts(reason='rule', kind=np.zeros(8, dtype=np.intp), allowed=allowed[None],
                            why=lambda state, vm, host: 'closed')
        reached = 0
        for seed in range(8, 18):
            rng = np.random.default_rng(seed)
            problem = cloud(np.round(rng.random(8) / 5, 2), rng.integers(0, 4, 8), 4, .1,
                            1024 * rng.choice([1, 2, 4, 8, 16], 8))
            least, state = least_memory(problem, allowed), clouds.start(problem)
            state = state.under(state.model.with_rules(rule))
            steps = Level().plan(state, ANYWHERE)
            if least is not None:
                self.assertEqual(least, copied(problem, steps), seed)
                reached += 1
        self.assertGreater(reached, 5)

    def test_an_end_that_no_order_of_moves_reaches_is_given_up_for_another(self):
        """The cheapest end exchanges servers of two full hosts."""
        problem = cloud([.5, .4, .1, .05, .55], [0, 0, 1, 1, 2], 3, .2,
                        [1024, 8192, 1024, 4096, 1024])
        demands = np.array([2., 1., 2., 1., 2.])[:, None]
        used = np.array([3., 3., 2.])[:, None]
        problem = dataclasses.replace(problem, demands=demands, used=used,
                                      limits=np.full((3, 1), 3.0))
        state = clouds.start(problem)
        steps = Level().plan(state, ANYWHERE)
        self.assertEqual([(3, 2), (1, 1)], [(step.vm, step.destination) for step in steps])
        self.assertTrue(state.is_balanced)

    def test_without_a_program_it_copies_about_the_least_memory_there_is(self):
        self.useFixture(no_program())
        best, own, reached = 0, 0, 0
        for seed in range(60):
            problem = drawn(seed)
            least = least_memory(problem)
            if not least:
                continue
            state = clouds.start(problem)
            steps = Level().plan(state, ANYWHERE)
            if state.is_balanced:
                best, own, reached = best + least, own + copied(problem, steps), reached + 1
        self.assertGreater(reached, 25)
        self.assertLessEqual(own, 1.1 * best)

    def test_the_same_pair_of_hosts_has_the_same_moves_among_many(self):
        loads, place = [.3, .2, .2, .1, .1], [0, 0, 0, 0, 1]
        for pairs in (1, 40):
            problem = cloud(loads * pairs, [2 * pair + host for pair in range(pairs)
                                            for host in place], 2 * pairs, .4)
            state = clouds.start(problem)
            self.assertEqual(pairs, len(Level().plan(state, ANYWHERE)))
            self.assertTrue(state.is_balanced)

    def test_plans_one_after_the_other_take_no_longer_a_way_than_one(self):
        rng = np.random.default_rng(5)
        problem = cloud(rng.choice([.02, .05, .1], 120), rng.integers(0, 6, 120), 15, .1,
                        1024 * rng.choice([1, 2, 4, 8], 120))
        whole = clouds.start(problem)
        steps = Level().plan(whole, ANYWHERE)
        self.assertTrue(whole.is_balanced)
        state, memory, plans = clouds.start(problem), 0, 0
        while not state.is_balanced:
            some = Level().plan(state, Limits(budget=10, overload_ceiling=9.0))
            self.assertTrue(0 < len(some) <= 10)
            memory, plans = memory + copied(problem, some), plans + 1
        self.assertLessEqual(memory, 1.05 * copied(problem, steps))
        self.assertLessEqual(plans, len(steps) // 10 + 2)

    def test_a_way_of_one_plan_is_preferred_for_a_little_more_memory(self):
        # Ten small ones, or five of twice the load that have a tenth more memory together.
        problem = cloud([.04] * 10 + [.08] * 5, [0] * 15, 2, .05, [1000] * 10 + [2200] * 5)
        for _ in range(2):
            many = Level().plan(clouds.start(problem), ANYWHERE)
            few = Level().plan(clouds.start(problem), Limits(budget=5, overload_ceiling=9.0))
            self.assertLessEqual(copied(problem, many), 10200)
            self.assertEqual((5, 11000), (len(few), copied(problem, few)))
            self.useFixture(no_program())

    def test_moves_to_the_most_even_loads_are_replaced_by_cheaper_ones(self):
        problem = cloud([.04] * 10 + [.08] * 5, [0] * 15, 2, .05, [1000] * 10 + [2200] * 5)
        best = self.searched(clouds.start(problem))
        self.assertGreater(best.count, 5)
        limits = Limits(budget=5, overload_ceiling=9.0)
        # No solution is built with a higher cost of a move.
        *_, even, _solved = level._with_fewer_moves(
            best, lambda band, part: best.with_moves(best.plan), limits)
        self.assertEqual((5, 11000), (even.count, even.gib() * 1024))

    def test_full_hosts_are_levelled_by_moves_that_only_help_together(self):
        problem = inputs.random_cluster(7103, 12, 118, fill=.8)
        state = State(trial.model_of(problem))
        steps = Level().plan(state, Limits(budget=50))
        self.assertTrue(state.is_balanced)
        self.assertLess(copied(problem, steps), 400 * 1024)
        self.assertLess(len(steps), 40)

    def test_integer_programs_make_moves_to_even_loads_cheaper(self):
        # Only the search of spread reaches the threshold; its moves copy 678 GiB.
        problem = inputs.cluster(inputs.random_name(9705), threshold=.05)
        state = State(trial.model_of(problem))
        steps = Level().plan(state, Limits(budget=1000))
        self.assertTrue(state.is_balanced)
        self.assertLess(copied(problem, steps), 560 * 1024)

    def test_needless_moves_are_undone_above_the_threshold_too(self):
        # The server of 0.9 fits within the threshold on no host.
        state = clouds.start(cloud([.9, .2, .2, .2, .2, 0], [0, 1, 1, 2, 2, 2], 3, .05))
        leveling = Leveling(SearchSpace(state, 10, hosts_that_matter(state, 10)), band_of(state))
        leveling.move(leveling.space.vms.tolist().index(5), 1)
        leveling.trim()
        self.assertEqual([], leveling.plan)

    def test_the_search_goes_on_from_the_moves_of_a_solution_that_has_no_order(self):
        state = clouds.start(clouds.crowded(0, hosts=5, free=1, threshold=.1))
        steps = Level().plan(state, Limits(budget=20, overload_ceiling=9.0))
        self.assertTrue(state.is_balanced)
        self.assertLess(len({step.vm for step in steps}), len(steps))

    def test_the_search_ends_with_the_budget(self):
        for seed, budget in itertools.product((0, 1), (1, 2, 5)):
            state = clouds.start(clouds.crowded(seed, hosts=5, free=1, threshold=.1))
            steps = Level().plan(state, Limits(budget=budget, overload_ceiling=9.0))
            self.assertLessEqual(len(steps), budget)

    def test_a_search_may_undo_every_move(self):
        with warnings.catch_warnings():
            warnings.simplefilter('error')
            problem = clouds.crowded(9, hosts=2, free=1, threshold=.1)
            self.assertEqual([], Level().plan(clouds.start(problem), ANYWHERE))

    def test_a_move_that_takes_away_less_than_its_price_is_not_made(self):
        problem = cloud([.3, .2, .2, .1, .1], [0, 0, 0, 0, 1], 2, .1)
        free = Level().plan(clouds.start(problem), ANYWHERE)
        self.assertNotEqual([], free)
        for price, some in ((.05, True), (.9, False)):
            steps = Level().plan(clouds.start(problem, prices=Prices(vms=np.full(5, price))),
                                 ANYWHERE)
            self.assertEqual(some, bool(steps))

    def test_it_copies_less_where_hosts_are_left_out(self):
        for seed in range(3):
            rng = np.random.default_rng(seed)
            problem = cloud(rng.choice([.02, .05, .1], 240), rng.integers(0, 60, 240), 60, .1,
                            1024 * rng.choice([1, 2, 4, 8], 240))
            memory = []
            for left_out in (None, np.array([3])):
                state = clouds.start(dataclasses.replace(problem, left_out=left_out))
                memory.append(copied(problem, Level().plan(state, ANYWHERE)))
                self.assertTrue(state.is_balanced)
                self.assertLessEqual(imbalance(state.problem, state.scores[:, 0]), .1 + 1e-9)
            self.assertLess(memory[1], .9 * memory[0])

    def test_it_ends_at_the_threshold_of_the_hosts_that_count(self):
        # 40 hosts in pairs that are .3 apart; two at each end do not count.
        loads, place = [.3, .2, .2, .1, .1], [0, 0, 0, 0, 1]
        problem = cloud(loads * 20, [2 * pair + host for pair in range(20) for host in place], 40,
                        .4)
        scores = problem.scores.copy()
        scores[[0, 2]] += 2.0    # a load that cannot leave
        steps = {}
        for left_out in (None, np.array([2])):
            state = clouds.start(dataclasses.replace(problem, scores=scores, left_out=left_out))
            steps[left_out is None] = Level().plan(state, ANYWHERE)
            self.assertEqual(left_out is not None, state.is_balanced)
        self.assertLessEqual(len(steps[False]), 18)
        self.assertEqual(set(), {0, 2} & {step.source for step in steps[False]})
        self.assertEqual(set(), {0, 2} & {step.destination for step in steps[False]})

    def test_the_instances_of_each_host_are_known_at_any_time_of_a_search(self):
        for seed in range(3):
            state = clouds.start(drawn(seed, hosts=8, vms=20))
            leveling = Leveling(SearchSpace(state, 20, hosts_that_matter(state, 20)),
                                band_of(state))
            leveling.charge(1.0)
            leveling.build(20, ANYWHERE)
            leveling.shorten((1.0,), ANYWHERE)
            self.assertGreater(leveling.count, 0)
            self.assertEqual([np.flatnonzero(leveling.place == host).tolist()
                              for host in range(len(leveling.excess))], leveling.residents)

    def leveled(self, problem, fewer):
        """A solution that is to have so many moves less than the search has found."""
        leveling = self.searched(State(trial.model_of(problem)))
        leveling.purpose.fewer = leveling.count - fewer
        return leveling

    def searched(self, state):
        """The solution that the search finds."""
        leveling = Leveling(SearchSpace(state, 200, hosts_that_matter(state, 200)), band_of(state))
        leveling.charge(.5)
        leveling.build(200, ANYWHERE)
        leveling.shorten((.5, .1), ANYWHERE)
        return leveling

    def test_integer_programs_for_a_few_hosts_each_need_fewer_moves(self):
        for seed in (0, 2, 3):
            leveling = self.leveled(inputs.random_cluster(seed, 16, 160, fill=.6), fewer=2)
            space = leveling.space
            leveling.solve_parts(ANYWHERE, np.inf)
            self.assertLessEqual(leveling.count, leveling.purpose.fewer)
            self.assertTrue(space.state.after([(int(space.vms[vm]), int(space.hosts[host])) for
                                               vm, host in leveling.sequence()]).is_balanced)

    def test_integer_programs_copy_less_memory(self):
        leveling = self.leveled(inputs.random_cluster(7, 20, 200, fill=.7), fewer=0)
        before = leveling.gib()
        leveling.solve_parts(ANYWHERE)
        self.assertLess(leveling.gib(), .95 * before)
        self.assertEqual(0.0, leveling.left())

    def test_no_host_gets_more_than_its_room(self):
        for seed in (5, 6, 12):
            leveling = self.leveled(inputs.random_cluster(seed, 12, 120, fill=.88), fewer=0)
            self.assertLessEqual(-1e-6, leveling.free.min())

    def test_no_instance_goes_back_to_a_member_of_its_group(self):
        group = Group(uuid='g', name='g', members=np.array([0, 1]), anti=True, hard=True)
        state = clouds.start(clouds.idle([0, 1], hosts=3, groups=(group,)))
        leveling = Leveling(SearchSpace(state, 2), band_of(state))
        leveling.move(0, 2)
        leveling.move(1, 0)
        self.assertFalse(leveling.undo(0))
        self.assertEqual([2, 0], leveling.place.tolist())
        self.assertTrue(leveling.undo(1))
        self.assertTrue(leveling.undo(0))

    def test_the_members_of_a_group_stay_apart_in_a_search(self):
        problem = inputs.random_cluster(0, 6, 48, fill=.6)
        on = [np.flatnonzero(problem.vm_host == host) for host in range(6)]
        groups = tuple(Group(
            uuid=f'g{n}', name=f'g{n}', anti=True, hard=True,
            members=np.sort([vms[n] for vms in on[n % 2:][:5] if len(vms) > n])) for n in range(6))
        state = clouds.start(dataclasses.replace(problem, groups=groups))
        leveling = self.searched(state)
        for group in groups:
            places = leveling.place[group.members].tolist()
            self.assertEqual(len(places), len(set(places)))

    def test_integer_programs_end_once_there_are_few_enough_moves(self):
        leveling = self.leveled(inputs.random_cluster(0, 16, 160, fill=.6), fewer=2)
        best = leveling._best_places

        def spy(hosts, limits):
            self.assertGreater(leveling.count, leveling.purpose.fewer)
            return best(hosts, limits)

        leveling._best_places = spy
        leveling.solve_parts(ANYWHERE, np.inf)
        self.assertLessEqual(leveling.count, leveling.purpose.fewer)

    def test_no_integer_program_is_solved_again_for_hosts_that_are_at_their_best(self):
        leveling = self.leveled(inputs.random_cluster(1, 4, 32, fill=.6), fewer=100)
        solved, best = [], leveling._best_places

        def spy(hosts, limits):
            solved.append((leveling.place.tobytes(), set(hosts.tolist())))
            return best(hosts, limits)

        leveling._best_places = spy
        leveling.solve_parts(ANYWHERE, np.inf)
        self.assertGreater(len(solved), 0)
        for number, (place, hosts) in enumerate(solved):
            self.assertFalse([each for each in solved[:number]
                              if each[0] == place and hosts <= each[1]])

    def test_after_the_deadline_only_the_first_steps_are_made(self):
        self.useFixture(fixtures.MonkeyPatch('kronos_nova.planners.ruin_recreate.SURE', 3))
        state = clouds.start(drawn(0, hosts=8, vms=20))
        built = {}
        for deadline in (0.0, 1.0):
            limits = Limits(budget=20, deadline=deadline)
            leveling = Leveling(SearchSpace(state, 20, hosts_that_matter(state, 20)),
                                band_of(state))
            leveling.charge(1.0)
            leveling.build(20, limits)
            built[limits.is_past] = leveling.count
            self.assertEqual(limits.is_past, limits.cut.happened)
        self.assertLess(3, built[False])
        self.assertIn(built[True], range(1, 7))    # a step is one move, or the two of a swap

    def test_what_is_level_stays(self):
        self.assertEqual([], Level().plan(clouds.start(cloud([.1, .1], [0, 1], 2, .05)), ANYWHERE))

    def test_two_hosts_exchange_where_no_single_move_is_of_use(self):
        problem = cloud([.35, .35, .2, .1], [0, 0, 1, 1], 2, .25)
        state = clouds.start(problem)
        self.assertEqual(2, len(Level().plan(state, ANYWHERE)))
        self.assertTrue(state.is_balanced)
