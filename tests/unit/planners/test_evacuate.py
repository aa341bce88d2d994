"""The evacuator empties disabled hosts, the least harmful move first."""

import dataclasses

import numpy as np
import testtools
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from kronos_nova.engine.explain import blocked
from kronos_nova.planners.base import Limits
from kronos_nova.planners.evacuate import Evacuator
from kronos_nova.planners.evacuate import waiting
from tests.unit.model.referee import Referee
from tests.unit.planners import clouds

YIELDING = {'headroom', 'returns'}
CEILING = 0.6


def try_everything(problem, budget):
    """What the evacuator is to do, word for word and slow."""
    state, moves, referee = clouds.start(problem), [], Referee(problem, ceiling=CEILING)
    while len(moves) < budget:
        for yielding in (set(), YIELDING, YIELDING | {'overload'}):
            candidates = [*_candidates(problem, state, referee, yielding)]
            if candidates:
                break
        if not candidates:
            break
        least = min(candidates)[0]
        chosen = min(c[1:] for c in candidates if c[0] <= least + 1e-9)[1:]
        state.move(*chosen)
        moves.append(chosen)
    return moves


def _candidates(problem, state, referee, yielding):
    before = state.imbalances()
    for vm in waiting(state):
        for host in range(len(problem.hosts)):
            against = set(referee.against(state.vm_host, vm, host))
            if host == state.vm_host[vm] or against - yielding:
                continue
            trial = state.copy()
            trial.move(vm, host)
            after = trial.imbalances()
            worse = (after > before + 1e-9) & (after > problem.thresholds + 1e-9)
            if yielding or not worse.any():
                yield trial.combined(), int(problem.memory_mb[vm]), int(vm), host


@st.composite
def disabled(draw):
    """Clouds of which some hosts are disabled, and some instances are only to be evacuated."""
    problem = draw(clouds.problems())
    chance = np.random.default_rng(draw(st.integers(0, 1000)))
    draining = ~problem.available & (chance.random(len(problem.hosts)) < 0.8)
    return dataclasses.replace(
        problem, draining=draining, evacuable=chance.random(len(problem.vms)) < 0.9,
        thresholds=problem.thresholds + draw(st.sampled_from((0.0, 0.3))))


class EvacuatorTest(testtools.TestCase):
    @settings(max_examples=150 * clouds.MANY, deadline=None)
    @given(disabled())
    def test_the_plan_is_that_of_trying_every_pair(self, problem):
        steps = Evacuator().plan(clouds.start(problem),
                                 Limits(budget=6, overload_ceiling=CEILING))
        self.assertEqual(try_everything(problem, 6),
                         [(step.vm, step.destination) for step in steps])

    @settings(max_examples=60 * clouds.MANY, deadline=None)
    @given(disabled())
    def test_what_is_not_called_blocked_has_a_first_move(self, problem):
        state = clouds.start(problem)
        held = {vm: 'held' for vm in range(len(problem.vms)) if not problem.evacuable[vm]}
        for host in np.flatnonzero(problem.draining):
            free = (problem.vm_host == host).sum() - len(blocked(state, host, held))
            mine = [vm for vm in waiting(state) if problem.vm_host[vm] == host]
            alone = [vm for vm in mine if Evacuator().plan(
                clouds.start(dataclasses.replace(
                    problem, evacuable=np.arange(len(problem.vms)) == vm)), Limits(budget=1))]
            self.assertEqual(free, len(alone))

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

    def test_nothing_is_disabled(self):
        problem = clouds.idle([0, 0, 1])
        self.assertEqual([], Evacuator().plan(clouds.start(problem), Limits(budget=5)))
