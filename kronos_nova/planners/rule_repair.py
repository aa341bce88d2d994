"""The planner that repairs violations of operators' rules.

The method is heuristic repair: each move reduces the violations, as in
:mod:`kronos_nova.planners.affinity`. If violations remain in a small cluster, an integer program
also moves other instances to make room. A violated rule that states a preference has a *penalty*,
which is added to the combined imbalance when plans are compared.
"""

import dataclasses

import numpy as np

from kronos_nova.model import TOLERANCE
from kronos_nova.model import Model
from kronos_nova.model import State
from kronos_nova.model.assignment import parts_of_free_room
from kronos_nova.model.program import STAYS
from kronos_nova.objects.plan import AFFINITY
from kronos_nova.planners import joint_repair
from kronos_nova.planners import order
from kronos_nova.planners.base import Choice
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import Step
from kronos_nova.planners.base import batches
from kronos_nova.planners.base import choices
from kronos_nova.planners.base import recorded
from kronos_nova.planners.best_move import least_harmful


class RuleRepair:
    """A planner that repairs violations of operators' rules. Violations of rules that must hold are
    repaired first. A preference is a rule that should hold. A violated preference is repaired only
    if its penalty is more than the prices of the moves plus the increase of the combined imbalance.

    :param should: whether violations of preferences are repaired
    :param most: maximum number of moves; 0 for as many as the limits permit
    """

    phase = AFFINITY

    def __init__(self, should: bool = True, most: int = 0):
        self._should, self._most = should, most

    def plan(self, state: State, limits: Limits) -> list[Step]:
        model = state.model.with_ceiling(state, limits.overload_ceiling)
        if self._most:
            limits = dataclasses.replace(limits, budget=min(limits.budget, self._most))
        begin, trial = state.copy(), state.copy()
        moves = choices(trial, limits, lambda: self._choose(trial, model))
        moves = order.joined(begin.under(model), moves, _harm)
        after = begin.after((vm, host) for vm, host, _why in moves)
        if is_due(after, self._should) and not limits.is_over:
            moves = _better(begin, moves, _together(begin.under(model), limits, self._should),
                            self._should)
        return recorded(state, moves)

    def _choose(self, state: State, model: Model) -> Choice | None:
        return _must(state, model) or (_should(state, model) if self._should else None)


def _harm(state: State) -> float:
    """Return the cost of a state, with :data:`STAYS` for each violation of an operator's rule."""
    return STAYS * state.model.violations(state) + _cost(state)


def _better(state: State, moves: list[Choice], others: list[Choice],
            should: bool) -> list[Choice]:
    """Return the better of two plans: the plan after which fewer rules are violated.

    If the number of violated rules is equal, ``others`` is returned on two conditions: it has the
    lower cost, and it raises no imbalance to a value above its threshold. Otherwise, ``moves`` is
    returned.

    :param should: whether costs are compared; if False, ``moves`` is returned if equally many rules
        are violated
    """
    before = np.maximum(state.imbalances(), state.problem.thresholds)
    first, second = (state.after((vm, host) for vm, host, _why in plan)
                     for plan in (moves, others))
    spoils = (second.imbalances() > before + TOLERANCE).any()
    fewer = first.model.violations(first) - second.model.violations(second)
    if fewer > 0 or not (fewer or spoils) and should and (
            _cost(second) < _cost(first) - TOLERANCE):
        return others
    return moves


def _cost(state: State) -> float:
    """Return the cost of a state: the combined imbalance, plus the penalties of violated
    preferences, plus the prices of copying all moved instances."""
    preferences, vms = state.model.prices.preferences, np.arange(len(state.problem.vms))
    wishes = 0.0 if preferences is None else float(preferences.at(vms, state.vm_host).sum())
    return state.combined() + wishes + float(state.model.prices.of_copies(
        vms, state.origin, state.vm_host)[state.vm_host != state.origin].sum())


def _together(state: State, limits: Limits, should: bool) -> list[Choice]:
    """Choose the destinations of all instances together by an integer program, and return the
    moves. Return no moves if the cluster is too large or no solution is found.

    :param should: whether preferences count
    """
    best: list[Choice] = []
    broken = state.model.broken_rules(state)
    for moves in joint_repair.plans(state, limits, broken, should, placements=True,
                                    why=lambda vm: _why(state, vm, broken, should)):
        best = _better(state, best, moves, should)
    return best


def _why(state: State, vm: int, broken: np.ndarray, should: bool) -> str:
    """Return a text about the reason to move an instance.

    :param state: the state before any move
    :param broken: bool (G,), true for the violated rules about several servers
    :param should: whether preferences count
    """
    home, model = int(state.vm_host[vm]), state.model
    against = model.rules_against(vm, home)
    if against:
        return f'{against} must have it elsewhere'
    names = model.names_of(model.repaired_without(state, vm, broken), vm)
    if names:
        return f'repairs rule {names}'
    preferences = model.prices.preferences
    if should and preferences is not None and preferences.at(vm, home) > TOLERANCE:
        return f'{preferences.names(vm, home)} should have it elsewhere'
    return joint_repair.GIVES_WAY


def is_due(state: State, should: bool) -> bool:
    """Return True if a movable instance violates a rule that must hold, or would have a lower
    penalty for violated preferences on another host. Return False otherwise.

    :param should: whether preferences count
    """
    return bool(len(_violating(state)[0]) or should and len(_saving(state)))


def _violating(state: State) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return three arrays: intp, the movable instances that violate a rule; bool (V,), true for
    instances on hosts that rules forbid; and bool, one value for each group of servers in the
    model, true if an operator's rule about this group is violated."""
    model = state.model
    broken, astray = model.broken_rules(state), model.astray(state)
    members = model.movable_members(broken)
    return np.union1d(members, np.flatnonzero(astray & model.problem.movable)), astray, broken


def _must(state: State, model: Model) -> Choice | None:
    vms, astray, broken = _violating(state)
    # An instance that violates a rule does not violate it on any host that the rule permits.
    pair = least_harmful(
        state, vms, wanted=lambda delta: astray[delta.moves[0][0]] | delta.repairs(broken),
        is_forced=True, model=model)
    if pair is None:
        return None
    vm, host = pair
    if astray[vm]:
        return vm, host, f'{model.rules_against(vm, int(state.vm_host[vm]))} must have it elsewhere'
    return vm, host, f'repairs rule {model.names_of(broken, vm)}'


def _saving(state: State) -> np.ndarray:
    """Return intp: the movable instances whose penalties for violated preferences would be lower on
    another host. The instances with the largest saving in proportion to their size come first."""
    problem, preferences = state.problem, state.model.prices.preferences
    if preferences is None or not problem.available.any():
        return np.zeros(0, dtype=np.intp)
    saved = preferences.at(np.arange(len(problem.vms)), state.vm_host) - preferences.least(
        problem.available)
    vms = np.flatnonzero(problem.movable & (saved > TOLERANCE))
    size = np.maximum(parts_of_free_room(state, vms), TOLERANCE)
    return vms[np.lexsort((vms, -saved[vms] / size))]


def _should(state: State, model: Model) -> Choice | None:
    preferences, hosts = model.prices.preferences, np.flatnonzero(state.problem.available)
    waiting = _saving(state)
    if preferences is None:
        return None
    for some in batches(len(waiting)):
        vms = waiting[some][:, None]
        delta = state.delta((vms, hosts[None, :]), model=model)
        home = state.vm_host[vms]
        saved = preferences.at(vms, home) - preferences.at(vms, hosts)
        gain = saved + delta.decrease - model.prices.of_copies(
            *np.broadcast_arrays(vms, home, hosts))
        gain = np.where(delta.feasible & delta.accepted & (saved > TOLERANCE), gain, -np.inf)
        rows = np.flatnonzero(gain.max(axis=1, initial=-np.inf) > TOLERANCE)
        if len(rows):
            row = rows[0]
            vm, host = int(vms[row, 0]), int(hosts[gain[row].argmax()])
            return vm, host, (f'{preferences.names(vm, int(state.vm_host[vm]))} should have it '
                              'elsewhere')
    return None
