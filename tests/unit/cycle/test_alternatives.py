"""Alternatives to a move, compared with trying every one."""

import numpy as np
import testtools
from hypothesis import given
from hypothesis import settings

from kronos_nova.cycle.explain import alternatives
from kronos_nova.model import TOLERANCE
from kronos_nova.model import State
from kronos_nova.objects.plan import EVACUATE
from kronos_nova.objects.plan import SPREAD
from kronos_nova.planners.base import Limits
from kronos_nova.planners.greedy import Greedy
from tests.unit.planners import clouds

CEILING = 0.6


def combined_instead(start, state, phase, step):
    """Ends of all other moves that would have been permitted."""
    most = np.maximum(CEILING, start.scores) + TOLERANCE
    vms = np.flatnonzero((state.vm_host == step.source) & state.problem.movable)
    for vm in vms if phase == SPREAD else [step.vm]:
        for host in np.flatnonzero(state.problem.available):
            if (vm, host) == (step.vm, step.destination):
                continue
            model = state.model.for_emptying if phase == EVACUATE else state.model
            delta = state.delta((int(vm), int(host)), model=model)
            within = (state.after([(int(vm), int(host))]).scores[host] <= most[host]).all()
            if delta.feasible and (delta.accepted and within or phase == EVACUATE):
                yield state.combined() - float(delta.decrease)


class RunnersUpTest(testtools.TestCase):
    @clouds.judges(4)
    @settings(max_examples=60 * clouds.MANY, deadline=None)
    @given(clouds.problems())
    def test_it_is_the_best_of_all_that_were_left(self, problem):
        for phase in (SPREAD, EVACUATE):
            start = State(clouds.model(problem))
            steps = [(phase, step) for step in Greedy().plan(start.copy(), Limits(budget=5))]
            before, again = start.copy(), start.copy()
            for (_phase, step), found in zip(
                    steps, alternatives(start, steps, CEILING), strict=True):
                others = list(combined_instead(before, again, phase, step))
                self.assertEqual(bool(others), found is not None)
                self.judged += bool(others)
                if others:
                    self.assertAlmostEqual(min(others), found.combined_after,
                                           delta=2 * TOLERANCE)
                again.move(step.vm, step.destination)
