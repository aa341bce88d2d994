"""The planner that repairs server groups whose members violate the policy of their group.

The method is heuristic repair: each move reduces the number of violations (Minton, Johnston,
Philips and Laird 1992). If violations remain in a small cluster, an integer program also moves
other instances to make room.
"""

import numpy as np

from kronos_nova.model import Delta
from kronos_nova.model import Model
from kronos_nova.model import State
from kronos_nova.objects.plan import AFFINITY
from kronos_nova.planners import joint_repair
from kronos_nova.planners.base import Choice
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import Step
from kronos_nova.planners.base import choices
from kronos_nova.planners.base import recorded
from kronos_nova.planners.best_move import least_harmful


class AffinityEnforcer:
    """A planner that repairs server groups, one move at a time. Of all moves that repair a group,
    the planner chooses the move after which the combined imbalance is lowest. The plan ends when no
    move repairs a group. If violations remain, the planner searches a plan with fewer violations by
    an integer program. A move does not count as a repair if it violates as many policies as it
    repairs, or a hard policy. Otherwise two soft groups that contradict each other would move a
    server back and forth.

    :param hard: whether groups with affinity and anti-affinity are repaired
    :param soft: whether groups with soft-affinity and soft-anti-affinity are repaired
    """

    phase = AFFINITY

    def __init__(self, hard: bool = True, soft: bool = True):
        self._hard, self._soft = hard, soft

    def plan(self, state: State, limits: Limits) -> list[Step]:
        model = state.model.with_ceiling(state, limits.overload_ceiling)
        begin = state.copy()
        trial = begin.copy()
        moves = choices(trial, limits, lambda: self._choose(trial, model))
        if sum(self._misplaced(begin, moves)) and not limits.is_over:
            start = begin.under(model)
            broken = model.broken(start, self._hard, self._soft)
            for others in joint_repair.plans(start, limits, broken,
                                             why=lambda vm: _why(start, vm, broken)):
                if _is_accepted(start, others):
                    moves = min(moves, others, key=lambda plan: self._misplaced(begin, plan))
        return recorded(state, moves)

    def _misplaced(self, begin: State, moves: list[Choice]) -> tuple[int, int]:
        """Return the numbers of members that violate hard and soft policies after the moves. Only
        policies that are repaired count."""
        state = begin.after((vm, host) for vm, host, _why in moves)
        return state.model.misplaced(state, state.model.broken(state, self._hard, self._soft))

    def _choose(self, state: State, model: Model) -> Choice | None:
        broken = model.broken(state, self._hard, self._soft)
        pair = least_harmful(
            state, model.movable_members(broken),
            wanted=lambda delta: delta.repairs(broken) & self._is_progress(delta), model=model)
        return pair and (*pair, f'repairs server group {model.names_of(broken, pair[0])}')

    def _is_progress(self, delta: Delta) -> np.ndarray:
        """Return bool (...): true for moves after which fewer members violate hard policies, or
        equally many, and fewer violate the soft policies that are repaired."""
        hard = delta.state.model.memberships.hard
        more_hard, more_soft = (delta.misplaced_more(counted) for counted in (
            hard, ~hard & self._soft))
        return (more_hard < 0) | (more_hard == 0) & (more_soft < 0)


def _why(state: State, vm: int, broken: np.ndarray) -> str:
    """Return a text about the reason to move an instance.

    :param state: the state before any move
    :param broken: bool (G,), true for the violated server groups
    """
    model = state.model
    names = model.names_of(model.repaired_without(state, vm, broken), vm)
    return f'repairs server group {names}' if names else joint_repair.GIVES_WAY


def _is_accepted(state: State, moves: list[Choice]) -> bool:
    """Return True if no move raises an imbalance to a value above its threshold; False otherwise.

    :param state: the state before the moves
    """
    after = state.copy()
    for vm, host, _purpose in moves:
        if not after.delta((vm, host)).accepted:
            return False
        after.move(vm, host)
    return True
