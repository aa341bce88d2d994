"""Plans that last: for the load that the next half hour is likely to bring, so that no host is
likely to become full, down to a target and no further, and only with moves that are worth it."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from kronos_nova.engine.worth import Price
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import Planner
from kronos_nova.planners.base import Step
from kronos_nova.planners.risk import EvenOut
from kronos_nova.profiling import Habits
from kronos_nova.simulation import TOLERANCE
from kronos_nova.simulation import Problem
from kronos_nova.simulation import State

TARGET = 0.5
"""Of the threshold, at which a plan has done enough. What is left up to the threshold is room for
what nobody can foresee. Chosen by ``bench days`` on one of its days and one made-up week, others
are still to be tried."""
PER_MOVE, PER_GIB = 0.01, 0.001
"""What each move, and each GiB of it, has to lower the combined imbalance by: a move of 10 GiB a
fiftieth of a host. Chosen as the target was."""


@dataclasses.dataclass(frozen=True, slots=True)
class Restraint:
    """``amount`` 0 is none; what moves have to gain grows with it."""

    amount: float = 0.0

    def __bool__(self):
        return self.amount > 0

    def priced(self, price: Price) -> Price:
        """The price with what restraint asks for, where that is more."""
        return dataclasses.replace(price, per_move=max(price.per_move, self.amount * PER_MOVE),
                                   per_gib=max(price.per_gib, self.amount * PER_GIB))

    def plan(self, planner: Planner, state: State, limits: Limits) -> list[Step]:
        """Even the load out, one move after the other, each of which pays by the imbalance and the
        risk together. Where none does, and a policy is likely to stay above its threshold, the
        planner that was chosen looks for several that do together."""
        if not self:
            return planner.plan(state, limits)
        steps = EvenOut().plan(state, limits)
        thresholds = state.problem.thresholds / TARGET
        if steps or (state.imbalances() <= thresholds + TOLERANCE).all():
            return steps
        return planner.plan(state, limits)


def learnt(known: Mapping[str, Habits], problem: Problem, now: float) -> dict[str, Habits]:
    """What is known of the instances of a problem by policy, after this look at them.

    :param now: Unix seconds
    """
    return {name: known.get(name, Habits()).after(now, problem.vms, loads)
            for name, loads in zip(problem.policies, problem.loads().T, strict=True)}


def lasting(problem: Problem, habits: Mapping[str, Habits]) -> Problem:
    """The problem with the load that instances and hosts are likely to have in the next half hour,
    and the target for a threshold.

    What a host has beside its instances stays as it is, and so does what is forecast, what an
    instance weighs of which that is not known in every policy, and what is under way, whose load
    counts where it goes.
    """
    weights = problem.weights.copy()
    variances = np.zeros(weights.shape) if problem.variances is None else problem.variances.copy()
    for number, (name, loads) in enumerate(
            zip(problem.policies, problem.loads(of_leaving=False).T, strict=True)):
        if name in habits:
            likely = habits[name].expected(problem.vms, loads)
            weights[:, number] = np.where(np.isnan(likely), weights[:, number], likely)
            variances[:, number] = habits[name].variances(problem.vms)
    shift = np.zeros(problem.scores.shape)
    np.add.at(shift, problem.vm_host,
              (weights - problem.weights) * problem.host_scale[problem.vm_host])
    return dataclasses.replace(problem, weights=weights, variances=variances,
                               thresholds=TARGET * problem.thresholds,
                               scores=np.maximum(problem.scores + shift, 0.0))
