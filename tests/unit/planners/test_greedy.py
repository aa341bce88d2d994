"""greedy gives the plan that trying every pair gives."""

import numpy as np
import testtools
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from kronos_nova.planners.base import Limits
from kronos_nova.planners.greedy import Greedy
from tests.unit.model.referee import Referee
from tests.unit.planners import clouds


def try_everything(problem, budget, ceiling):
    """The definition of greedy, word for word and slow."""
    state, moves, referee = clouds.start(problem), [], Referee(problem, ceiling=ceiling)
    while len(moves) < budget:
        before = state.imbalances()
        if (before <= problem.thresholds + 1e-9).all():
            break
        combined, candidates = state.combined(), []
        for vm in np.flatnonzero(problem.movable):
            for host in range(len(problem.hosts)):
                if not referee.allows(state.vm_host, vm, host):
                    continue
                source = state.move(vm, host)
                after, decrease = state.imbalances(), combined - state.combined()
                state.move(vm, source)
                state.scores[[source, host]] = np.array([  # what was there, to the last bit
                    *[scores_of(problem, moves)[h] for h in (source, host)]])
                spoils = (after > before + 1e-9) & (after > problem.thresholds + 1e-9)
                if decrease > 1e-9 and not spoils.any():
                    candidates.append((decrease, int(problem.memory_mb[vm]), problem.vms[vm],
                                       problem.hosts[host], int(vm), host))
        if not candidates:
            break
        most = max(candidates)[0]
        chosen = min(c[1:] for c in candidates if c[0] >= most - 1e-9)
        state.move(*chosen[-2:])
        moves.append(chosen[-2:])
    return moves


def scores_of(problem, moves):
    state = clouds.start(problem)
    for vm, host in moves:
        state.move(vm, host)
    return state.scores


class GreedyTest(testtools.TestCase):
    @settings(max_examples=150 * clouds.MANY, deadline=None)
    @given(clouds.problems(), st.sampled_from([0.4, 0.95]))
    def test_the_plan_is_that_of_trying_every_pair(self, problem, ceiling):
        steps = Greedy().plan(clouds.start(problem), Limits(budget=6, overload_ceiling=ceiling))
        self.assertEqual(try_everything(problem, 6, ceiling),
                         [(step.vm, step.destination) for step in steps])

    @clouds.judges(4)
    @settings(max_examples=40 * clouds.MANY, deadline=None)
    @given(clouds.problems())
    def test_no_host_passes_the_ceiling(self, problem):
        steps = Greedy().plan(clouds.start(problem), Limits(budget=6, overload_ceiling=0.4))
        ceiling = np.maximum(0.4, problem.scores) + 1e-9
        for step, state in clouds.replayed(self, problem, steps, ceiling=0.4):
            self.assertTrue((state.scores[step.destination] <= ceiling[step.destination]).all())

    @settings(max_examples=60 * clouds.MANY, deadline=None)
    @given(clouds.problems())
    def test_what_a_step_says_is_what_the_state_shows(self, problem):
        state = clouds.start(problem)
        steps = Greedy().plan(state, Limits(budget=6))
        replayed = clouds.start(problem)
        for step in steps:
            self.assertEqual(step.source, replayed.move(step.vm, step.destination))
            self.assertAlmostEqual(step.combined_after, replayed.combined(), places=12)
        self.assertTrue(np.array_equal(state.vm_host, replayed.vm_host))
