"""Substitutions lead to plans that are better, as long, and possible."""

import testtools
from hypothesis import given
from hypothesis import settings

from kronos_nova.planners.base import Limits
from kronos_nova.planners.beam import Beam
from kronos_nova.planners.beam import End
from kronos_nova.planners.greedy import Greedy
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
        beam, first = Beam(space, limits), space.plan_of(trial)
        beam.keep(End(trial.objective(), first))
        substitute(beam, beam.best)
        self.assertLessEqual(beam.best.cost, trial.objective())
        self.assertEqual(sorted(zip(space.home[[vm for vm, _ in first]], [h for _, h in first],
                                    strict=True)),
                         sorted(zip(space.home[[vm for vm, _ in beam.best.plan]],
                                    [h for _, h in beam.best.plan], strict=True)))
        for end in beam.kept:
            self.assertAlmostEqual(end.cost, cost_of(space, end.plan), places=9)
        planned = {vm for vm, _host in beam.best.plan}
        for slot, (vm, host) in enumerate(beam.best.plan):
            for other in space.residents[space.home[vm]].tolist():
                plan = [*beam.best.plan[:slot], (other, host), *beam.best.plan[slot + 1:]]
                if other not in planned and space.permitted(other)[host] and not problem.groups:
                    self.assertGreaterEqual(cost_of(space, plan), beam.best.cost - 2e-9)
