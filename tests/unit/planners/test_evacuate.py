"""The evacuator empties disabled hosts: host after host, and others give way if they must."""

import dataclasses
import itertools

import numpy as np
import testtools
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.constraints.base import compile_model
from kronos_nova.cycle.explain import blocked
from kronos_nova.model import Group
from kronos_nova.model import State
from kronos_nova.planners.base import Limits
from kronos_nova.planners.evacuate import Evacuator
from kronos_nova.planners.evacuate import waiting
from tests.unit.model.referee import Referee
from tests.unit.planners import clouds

YIELDING = {'headroom', 'returns'}
CEILING = 0.6


def one_by_one(problem):
    """Evacuate as the evacuator does where that leaves no instance behind, word for word and slow:
    (moves, instances that stay)."""
    state, moves, stay = clouds.start(problem), [], []
    referee = Referee(problem, ceiling=CEILING)
    for vm in in_turn(problem, state):
        for yielding in (set(), YIELDING, YIELDING | {'overload'}):
            candidates = [*_candidates(problem, state, referee, yielding, vm)]
            if candidates:
                break
        if not candidates:
            stay.append(vm)
            continue
        least = min(candidates)[0]
        host = min(host for combined, host in candidates if combined <= least + 1e-9)
        state.move(vm, host)
        moves.append((vm, host))
    return moves, stay


def in_turn(problem, state):
    """Host after host, the one with the least memory to copy first; on each the instance that needs
    the largest part of what is free, then the one with most memory."""
    vms = waiting(state).tolist()
    free, hosts = np.maximum(problem.limits - problem.used, 0), np.flatnonzero(problem.available)
    free = np.array([max(1, sum(free[row, c] for row in {problem.row(host, c) for host in hosts}))
                     for c in range(free.shape[1])])

    def turn(vm):
        host = problem.vm_host[vm]
        memory = sum(problem.memory_mb[other] for other in vms if problem.vm_host[other] == host)
        return (problem.doubtful[vm], memory, host, -(problem.demands[vm] / free).max(),
                -problem.memory_mb[vm], vm)

    return sorted(vms, key=turn)


def _candidates(problem, state, referee, yielding, vm):
    before = state.imbalances()
    for host in range(len(problem.hosts)):
        against = set(referee.against(state.vm_host, vm, host))
        if host == state.vm_host[vm] or against - yielding:
            continue
        trial = state.copy()
        trial.move(vm, host)
        after = trial.imbalances()
        worse = (after > before + 1e-9) & (after > problem.thresholds + 1e-9)
        if yielding or not worse.any():
            yield trial.combined(), host


def fewest_that_stay(problem):
    """The fewest instances that stay after any sequence of moves that the rules allow."""
    referee = Referee(problem)
    begin = tuple(problem.vm_host.tolist())
    leaving = waiting(clouds.start(problem)).tolist()
    free = [vm for vm in range(len(problem.vms))
            if vm in leaving or problem.movable[vm] and not problem.draining[problem.vm_host[vm]]]
    seen, todo, fewest = {begin}, [begin], len(leaving)
    while todo and fewest:
        place = todo.pop()
        fewest = min(fewest, sum(problem.draining[place[vm]] for vm in leaving))
        for vm in free:
            for host in range(len(problem.hosts)):
                after = (*place[:vm], host, *place[vm + 1:])
                if after not in seen and host != place[vm] and not (
                        set(referee.against(np.array(place), vm, host)) - YIELDING):
                    seen.add(after)
                    todo.append(after)
    return fewest


@st.composite
def disabled(draw, **sizes):
    """Clouds of which some hosts are disabled, and some instances are only to be evacuated."""
    problem = draw(clouds.problems(**sizes))
    chance = np.random.default_rng(draw(st.integers(0, 1000)))
    draining = ~problem.available & (chance.random(len(problem.hosts)) < 0.8)
    return dataclasses.replace(
        problem, draining=draining, evacuable=chance.random(len(problem.vms)) < 0.9,
        thresholds=problem.thresholds + draw(st.sampled_from((0.0, 0.3))))


@st.composite
def small(draw):
    """Small clouds with a disabled host, little room, and groups that are kept apart."""
    problem = draw(disabled(max_hosts=4, max_vms=7, max_policies=1, least=(3, 4, 1)))
    draining = np.arange(len(problem.hosts)) == 0
    limits = problem.limits.copy()
    count = len(problem.hosts)
    limits[:count] = np.maximum(problem.used[:count], limits[:count] - draw(st.integers(0, 2)))
    return dataclasses.replace(
        problem, draining=draining, available=~draining, limits=limits,
        movable=problem.movable & ~draining[problem.vm_host],
        groups=tuple(group for group in problem.groups if group.anti))


def cloud(vm_host, demands, limits, disabled=2, **what):
    """Hosts with little room, the first of which are disabled."""
    count = np.arange(len(limits))
    demands = np.array(demands, dtype=float)[:, None]
    used = np.bincount(vm_host, demands[:, 0], len(limits))[:, None]
    problem = clouds.idle(vm_host, hosts=len(limits))
    return dataclasses.replace(
        problem, **{'demands': demands, 'used': used, 'available': count >= disabled,
                    'limits': np.array(limits, dtype=float)[:, None], 'draining': count < disabled,
                    'evacuable': np.ones(len(vm_host), dtype=bool), **what})


@st.composite
def scattered(draw):
    """Clouds of which one host is disabled, and each other one has room for a single unit: who has
    two units can only leave where another gives way."""
    leaving = draw(st.lists(st.integers(1, 2), min_size=1, max_size=2))
    staying = [draw(st.sampled_from(((1, 1, 1), (1, 2), (2, 1)))) for _ in range(3)]
    vm_host = [0] * len(leaving) + [
        host for host, sizes in enumerate(staying, 1) for _ in sizes]
    return cloud(vm_host, [*leaving, *itertools.chain(*staying)], [4] * 4, disabled=1)


@st.composite
def crowded(draw):
    """Clouds of three or four hosts, some of which have less room than their instances take."""
    problem = draw(disabled(max_hosts=4, max_vms=5, max_policies=1, least=(3, 3, 1)))
    chance = np.random.default_rng(draw(st.integers(0, 1000)))
    limits = np.maximum(problem.used - (chance.random(problem.used.shape) < 0.2),
                        problem.limits - chance.integers(0, 4))
    draining = np.arange(len(problem.hosts)) == chance.integers(len(problem.hosts))
    available = problem.available & ~draining
    return dataclasses.replace(
        problem, limits=limits, draining=draining, available=available,
        movable=problem.movable & available[problem.vm_host])


class EvacuatorTest(testtools.TestCase):
    @clouds.judges(4)
    @settings(max_examples=150 * clouds.MANY, deadline=None)
    @given(disabled())
    def test_each_goes_to_where_it_does_least_harm_if_all_find_a_place_so(self, problem):
        steps = Evacuator().plan(clouds.start(problem),
                                 Limits(budget=100, overload_ceiling=CEILING))
        moves, stay = one_by_one(problem)
        made = [(step.vm, step.destination) for step in steps]
        self.judged += bool(made)
        if stay:
            self.assertLessEqual(len(moves), len({vm for vm, _host in made
                                                  if problem.draining[problem.vm_host[vm]]}))
        else:
            self.assertEqual(moves, made)

    def test_a_host_that_has_too_much_takes_nothing_before_enough_has_left(self):
        """Host 2 has 4 of 2 units. If one unit leaves, it still takes nothing."""
        state = clouds.start(cloud([0, 0, 2, 2, 2, 3, 3], [3, 4, 1, 1, 2, 1, 2], [20, 2, 2, 4],
                                   disabled=1))
        Evacuator().plan(state, Limits(budget=100))
        self.assertEqual([1], waiting(state).tolist())

    @settings(max_examples=60 * clouds.MANY, deadline=None)
    @given(small())
    def test_no_more_stay_than_must(self, problem):
        state = clouds.start(problem)
        Evacuator().plan(state, Limits(budget=100))
        self.assertEqual(fewest_that_stay(problem), len(waiting(state)))

    @clouds.judges(4)
    @settings(max_examples=60 * clouds.MANY, deadline=None)
    @given(scattered())
    def test_no_other_gives_way_for_nothing(self, problem):
        steps = Evacuator().plan(clouds.start(problem), Limits(budget=100))
        for vm in {step.vm for step in steps if not problem.draining[problem.vm_host[step.vm]]}:
            state = clouds.start(problem)
            state = state.under(state.model.for_emptying)
            possible = True
            for step in steps:
                if step.vm != vm:
                    possible &= bool(state.delta((step.vm, step.destination)).feasible)
                    state.move(step.vm, step.destination)
            self.judged += 1
            self.assertFalse(possible)

    @clouds.judges(4)
    @settings(max_examples=60 * clouds.MANY, deadline=None)
    @given(disabled())
    def test_what_is_not_called_blocked_can_leave_alone(self, problem):
        state = clouds.start(problem)
        held = {vm: 'held' for vm in range(len(problem.vms)) if not problem.evacuable[vm]}
        for host in np.flatnonzero(problem.draining):
            free = (problem.vm_host == host).sum() - len(blocked(state, host, held, {}))
            mine = [vm for vm in waiting(state) if problem.vm_host[vm] == host]
            alone = [vm for vm in mine if Evacuator().plan(
                clouds.start(dataclasses.replace(
                    problem, evacuable=np.arange(len(problem.vms)) == vm)), Limits(budget=1))]
            # Others may give way besides.
            self.judged += bool(mine)
            self.assertLessEqual(free, len(alone))

    def test_a_host_passes_the_ceiling_only_if_every_other_would(self):
        problem = dataclasses.replace(
            clouds.idle([0], hosts=3), policies=('p', 'q'), policy_weights=np.array([.9, .1]),
            thresholds=np.full(2, .1), weights=np.full((1, 2), .1), host_scale=np.ones((3, 2)),
            scores=np.array([[.1, .1], [.1, .9], [.5, .1]]),
            capacity_scores=np.full((3, 2), np.nan), capacity_thresholds=np.full(2, np.inf),
            available=np.array([False, True, True]), draining=np.array([True, False, False]))
        for ceiling, destination in ((.95, 2), (1.0, 1), (.3, 1)):
            step, = Evacuator().plan(clouds.start(problem),
                                     Limits(budget=5, overload_ceiling=ceiling))
            self.assertEqual(destination, step.destination)

    def test_others_give_way_so_that_no_host_passes_the_ceiling(self):
        # v0 has room on h1 once v1 has left. The load of v2 would then be too much.
        problem = dataclasses.replace(
            cloud([0, 1, 1, 1], [4, 2, 1, 3], [9, 8, 3], disabled=1),
            weights=np.array([[.5], [0], [.3], [.3]]), scores=np.array([[.5], [.6], [.1]]),
            movable=np.arange(4) != 3)
        state = clouds.start(problem)
        Evacuator().plan(state, Limits(budget=9, overload_ceiling=.9))
        self.assertEqual([1, 2, 2, 1], state.vm_host.tolist())

    def test_a_doubtful_instance_is_not_ordered_in_the_place_of_another(self):
        # Only if v3 leaves h2 is there room for v2.
        problem = dataclasses.replace(
            cloud([0, 0, 1, 2], [1, 1, 4, 1], [9, 9, 4, 3]), doubtful=np.arange(4) == 1,
            memory_mb=np.array([512, 512, 4096, 512]))
        steps = Evacuator().plan(clouds.start(problem), Limits(budget=9))
        self.assertEqual([0, 1, 2, 3], sorted(step.vm for step in steps))

    def test_what_hosts_share_is_not_what_an_instance_lacks(self):
        # h0 has a disk; h1 has a part of the pool in row 2, where there is room.
        problem = dataclasses.replace(
            cloud([0], [5], [9, 4], disabled=1), resource_classes=('DISK_GB', 'VCPU'),
            demands=np.array([[2.0, 5.0]]), used=np.array([[2.0, 5], [0, 0], [0, 0]]),
            limits=np.array([[9.0, 9], [0, 4], [9, 0]]), provider=np.array([[0, 0], [2, 1]]),
            shared=('pool',))
        limits = Limits(budget=9)
        self.assertEqual([], Evacuator().plan(clouds.start(problem), limits))
        self.assertIn('it needs 5 VCPU', limits.unplaced[0].why)

    def test_room_is_kept_in_reserve_by_what_is_chosen_together(self):
        # 13 are free and 10 have to stay so: three small ones may leave, or the large one.
        problem = dataclasses.replace(
            cloud([0, 0, 0, 0, 1, 2], [3, 1, 1, 1, 3, 4], [10, 10, 10], disabled=1),
            movable=np.zeros(6, dtype=bool))
        state = clouds.start(problem, rules=ConstraintRules(reserve_hosts=1))
        steps = Evacuator().plan(state, Limits(budget=9))
        self.assertEqual([1, 2, 3], sorted(step.vm for step in steps))

    def test_what_fits_behind_what_does_not_leaves(self):
        # v3 of 3 and v4 of 2 are on h1, v5 of 2 on h0. Only without v3 do both others fit.
        problem = dataclasses.replace(
            cloud([3, 2, 2, 1, 1, 0], [3, 1, 2, 3, 2, 2], [6, 6, 6, 5]),
            movable=np.arange(6) == 0, used=np.array([[3.0], [6], [3], [4]]))
        state = clouds.start(problem)
        Evacuator().plan(state, Limits(budget=9))
        self.assertEqual([3], waiting(state).tolist())

    def test_what_has_no_place_in_its_turn_is_tried_again_after_others_have_left(self):
        # The group may be on two hosts. v2 only fits on h1, once v0 has left h0 for h2.
        group = Group(uuid='g', name='g', rule='g', members=np.arange(3), anti=False, hard=True,
                      most_places=2)
        state = clouds.start(cloud([0, 2, 0], [1, 1, 2], [3, 4, 2], disabled=1, groups=(group,)))
        Evacuator().plan(state, Limits(budget=9))
        self.assertEqual([], waiting(state).tolist())

    def test_of_equally_many_that_stay_those_stay_that_leave_more_hosts_empty(self):
        # One may leave. If v0 leaves, h0 is empty. h1 comes first, with less memory to copy.
        state = clouds.start(cloud([0, 1, 1], [2, 2, 2], [2, 4, 2],
                                   memory_mb=np.array([4096, 512, 512])))
        steps = Evacuator().plan(state, Limits(budget=9))
        self.assertEqual([(0, 2)], [(step.vm, step.destination) for step in steps])

    def test_others_give_way_so_that_a_host_becomes_empty(self):
        # One may leave. v0 can leave h0 once v5 gives way; v3 could leave h1 without that.
        state = clouds.start(cloud([0, 1, 1, 1, 2, 3], [2, 2, 3, 1, 3, 1], [2, 6, 4, 2]))
        Evacuator().plan(state, Limits(budget=9))
        self.assertEqual([1, 2, 3], waiting(state).tolist())

    def test_nothing_is_proven_where_a_group_that_is_kept_together_is_apart(self):
        # v2 may go to h1 alone, which is full, until v3 goes from there to v0 on h2.
        group = Group(uuid='g', name='g', members=np.arange(4), anti=False, hard=True)
        problem = cloud([2, 1, 0, 1, 1, 2], [2, 3, 2, 1, 3, 2], [6, 7, 7], disabled=1,
                        groups=(group,), movable=np.arange(6) == 3)
        limits = Limits(budget=9)
        Evacuator().plan(clouds.start(problem), limits)
        self.assertEqual([False], [each.is_proven for each in limits.unplaced.values()])

    def test_nothing_is_proven_by_refusals_of_other_moves_of_the_plan(self):
        problem = cloud([0], [1], [9, 9, 9], disabled=1)
        for hosts, proven in ((('h1', 'h2'), [False]), (('h1',), [])):
            limits = Limits(budget=9)
            Evacuator().plan(clouds.start(problem, rules=ConstraintRules(
                vetoes={('v0', host): 'refused' for host in hosts})), limits)
            self.assertEqual(proven, [each.is_proven for each in limits.unplaced.values()])

    def test_nothing_makes_room_for_a_move_that_the_budget_leaves_to_a_later_plan(self):
        """v1 has room on h1 only after v2 has gone to h2. v0 can leave at once."""
        problem = cloud([0, 0, 1, 2], [1, 3, 2, 2], [9, 4, 4], disabled=1)
        whole = Evacuator().plan(clouds.start(problem), Limits(budget=9))
        self.assertEqual({0, 1, 2}, {step.vm for step in whole})
        for budget, moved in ((1, {0}), (2, {0}), (3, {0, 1, 2})):
            state = clouds.start(problem)
            steps = Evacuator().plan(state, Limits(budget=budget))
            self.assertEqual((moved, len(moved)), ({step.vm for step in steps}, len(steps)))

    def test_what_hosts_share_is_not_taken_by_a_move_between_them(self):
        """The pool of h1 and h2 has more than it should. v1 goes from h1 to h2 all the same, which
        makes room for v0."""
        problem = dataclasses.replace(
            cloud([0, 1, 1, 2, 2], [2, 1, 1, 1, 1], [9, 3, 3], disabled=1),
            resource_classes=('VCPU', 'DISK_GB'), shared=('pool',),
            demands=np.array([[2.0, 0], [1, 1], [1, 1], [1, 1], [1, 1]]),
            used=np.array([[2.0, 0], [2, 0], [2, 0], [0, 4]]),
            limits=np.array([[9.0, 0], [3, 0], [3, 0], [0, 2]]),
            provider=np.array([[0, 3], [1, 3], [2, 3]]))
        state = clouds.start(problem)
        Evacuator().plan(state, Limits(budget=9))
        self.assertEqual([], waiting(state).tolist())

    @clouds.judges(4)
    @settings(max_examples=150 * clouds.MANY, deadline=None, derandomize=True)
    @given(crowded())
    def test_what_is_proven_is_true(self, problem):
        state, limits = clouds.start(problem), Limits(budget=100)
        Evacuator().plan(state, limits)
        if any(each.is_proven for each in limits.unplaced.values()):
            self.judged += 1
            self.assertEqual(fewest_that_stay(problem), len(waiting(state)))

    def test_nothing_is_disabled(self):
        problem = clouds.idle([0, 0, 1])
        self.assertEqual([], Evacuator().plan(clouds.start(problem), Limits(budget=5)))


class PlacesTest(testtools.TestCase):
    def test_all_that_leave_may_stay_in_a_domain_that_has_too_many(self):
        """v0 and v1 leave h0 for other hosts of the same rack, in which one member may be. v1 has
        room on h1 once v2 gives way to h2."""
        group = Group(uuid='g', name='g', anti=True, hard=True, members=np.array([0, 1]),
                      places=np.zeros(4, dtype=np.intp))
        problem = cloud([0, 0, 1, 1, 2, 2, 3, 3], [1, 2, 1, 1, 1, 1, 1, 1], [9, 3, 3, 3],
                        disabled=1, groups=(group,))
        state, limits = clouds.start(problem), Limits(budget=9)
        Evacuator().plan(state, limits)
        self.assertEqual(([], {}), (waiting(state).tolist(), limits.unplaced))

    def test_what_leaves_a_host_may_stay_in_a_domain_that_has_too_many(self):
        """v0 leaves h0 for h1 of the same rack, where v1 and v2 of its group are; there is room
        once v3 gives way to h2, which has a member as well."""
        group = Group(uuid='g', name='g', rule='g', anti=True, hard=True,
                      members=np.array([0, 1, 2, 4]), places=np.array([0, 0, 1]))
        problem = clouds.idle([0, 1, 1, 1, 2], hosts=3, groups=(group,))
        draining = np.arange(3) == 0
        problem = dataclasses.replace(
            problem, draining=draining, available=~draining, evacuable=np.ones(5, dtype=bool),
            movable=problem.movable & ~draining[problem.vm_host],
            used=np.array([[1.0], [3.0], [1.0]]), limits=np.array([[3.0], [3.0], [2.0]]))
        state = State(compile_model(problem, clouds.snapshot_of(problem), ConstraintRules()))
        steps = Evacuator().plan(state, Limits(budget=9))
        self.assertEqual([(3, 2), (0, 1)], [(step.vm, step.destination) for step in steps])
