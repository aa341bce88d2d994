"""Repairs server groups whose members are where their policy does not want them: steepest descent
on the number of misplaced members."""

from kronos_nova.objects.plan import AFFINITY
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import Step
from kronos_nova.planners.best_move import Ties
from kronos_nova.planners.best_move import least_harmful
from kronos_nova.planners.steps import StepRecorder
from kronos_nova.simulation import State


class AffinityEnforcer:
    """Of all moves that mend something, the one that leaves the lowest combined imbalance, again
    and again.

    :param hard: mend affinity and anti-affinity
    :param soft: mend soft-affinity and soft-anti-affinity
    """

    phase = AFFINITY

    def __init__(self, hard: bool = True, soft: bool = True):
        self._hard, self._soft = hard, soft

    def plan(self, state: State, limits: Limits) -> list[Step]:
        steps, ties = [], Ties(state.problem)
        while len(steps) < limits.budget and not limits.is_over:
            step = self._mend(state, ties)
            if step is None:
                break
            steps.append(step)
        return steps

    def _mend(self, state, ties):
        model = state.model
        broken = model.broken(state, self._hard, self._soft)
        pair = least_harmful(state, model.movable_members(broken), ties,
                             wanted=lambda delta: delta.mends(broken))
        if pair is None:
            return None
        names = model.names_of(broken, pair[0])
        return StepRecorder(state).take(*pair, f'repairs server group {names}')
