"""Substitutions lead to plans that are better, as long, and possible."""

import numpy as np
import testtools
from hypothesis import given
from hypothesis import settings

from kronos_nova.planners.base import Limits
from kronos_nova.planners.greedy import Greedy
from kronos_nova.planners.incumbents import End
from kronos_nova.planners.incumbents import Incumbents
from kronos_nova.planners.substitution import substitute
from kronos_nova.simulation.space import SearchSpace
from tests.unit.planners import clouds


def cost_of(space, plan):
    """The objective after a plan, inf if a policy or a room forbids its end."""
    state = space.state.copy()
    for vm, host in plan:
        state.move(int(space.vms[vm]), int(space.hosts[host]))
    scores, free = space.after([plan])
    legal = space.is_legal(scores.max(axis=0), scores.min(axis=0), free)[0]
    return state.objective() if legal else float('inf')


class SubstitutionTest(testtools.TestCase):
    @settings(max_examples=40, deadline=None)
    @given(clouds.problems(max_hosts=4, max_vms=12))
    def test_it_ends_where_no_other_instance_would_do_better(self, problem):
        state, limits = clouds.start(problem), Limits(budget=3)
        space = SearchSpace(state, limits.budget)
        trial = state.copy()
        if not Greedy().plan(trial, limits):
            return
        found, first = Incumbents(End(space.start, [])), space.plan_of(trial)
        found.keep(End(trial.objective(), first))
        substitute(space, found, found.best, limits)
        self.assertLessEqual(found.best.cost, trial.objective())
        self.assertEqual(sorted(zip(space.home[[vm for vm, _ in first]], [h for _, h in first],
                                    strict=True)),
                         sorted(zip(space.home[[vm for vm, _ in found.best.plan]],
                                    [h for _, h in found.best.plan], strict=True)))
        for end in found.kept:
            self.assertAlmostEqual(end.cost, cost_of(space, end.plan), places=9)
        planned = {vm for vm, _host in found.best.plan}
        for slot, (vm, host) in enumerate(found.best.plan):
            for other in space.residents[space.home[vm]].tolist():
                plan = [*found.best.plan[:slot], (other, host), *found.best.plan[slot + 1:]]
                may_go = space.may_go(np.array([other]), host)[0] and not problem.groups
                if other not in planned and may_go:
                    self.assertGreaterEqual(cost_of(space, plan), found.best.cost - 2e-9)
