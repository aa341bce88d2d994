"""Empties hosts that an operator disabled: greedy construction by cheapest insertion (Rosenkrantz,
Stearns and Lewis 1977), the least harmful move first.

That a host becomes empty matters more than how loaded the others are. What no destination takes
without spoiling a policy goes where it spoils least, and makes a host pass the overload ceiling
only if every other would as well. What it is not known of how loaded it or its destinations are
goes by room alone: the largest first, to where most is left (Graham's LPT rule, 1969).
"""

import numpy as np

from kronos_nova.model import Model
from kronos_nova.model import State
from kronos_nova.objects.plan import EVACUATE
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import Step
from kronos_nova.planners.best_move import least_harmful
from kronos_nova.planners.steps import Choice
from kronos_nova.planners.steps import one_by_one

BY_ROOM = '; its load is not known, so room alone decides where it goes'
BY_ROOM_THERE = '; of no host with room is the load known, so room alone decides where it goes'


class Evacuator:
    """Of all moves off the draining hosts, the one that leaves the lowest combined imbalance, again
    and again. Instances of which another try is likely to fail are the last, so that they do not
    keep the others from their turn."""

    phase = EVACUATE

    def plan(self, state: State, limits: Limits) -> list[Step]:
        within = [model.with_ceiling(state, limits.overload_ceiling)
                  for model in (state.model, state.model.for_emptying)]

        def choose() -> Choice | None:
            found = _next(state, *within)
            if found is None:
                return None
            vm, host, addition = found
            source = state.problem.hosts[state.vm_host[vm]]
            return vm, host, f'empties {source}, which is disabled{addition}'

        return one_by_one(state, limits, choose)


def _next(state: State, within: Model, forced_within: Model) -> Choice | None:
    """(instance, destination, what is to be said of the choice), or None.

    :param within, forced_within: the model, and that for emptying, with the overload ceiling
    """
    problem, vms = state.problem, waiting(state)
    doubtful, unweighed = problem.doubtful[vms], problem.unweighed[vms]
    for some in (~doubtful, doubtful):
        weighed = vms[some & ~unweighed]
        pair = (least_harmful(state, weighed, model=within)
                or least_harmful(state, weighed, is_forced=True, model=forced_within)
                or least_harmful(state, weighed, is_forced=True))
        if pair:
            return *pair, ''
        for by_room_alone, words in (vms[some & unweighed], BY_ROOM), (weighed, BY_ROOM_THERE):
            pair = _roomiest(state, by_room_alone)
            if pair:
                return *pair, words
    return None


def _roomiest(state: State, vms: np.ndarray) -> tuple[int, int] | None:
    """The largest of some instances that may go anywhere, and the host that is least full."""
    for vm in vms[np.argsort(state.problem.memory_mb[vms], kind='stable')][::-1]:
        hosts = by_room(state, int(vm))
        if hosts:
            return int(vm), hosts[0]
    return None


def by_room(state: State, vm: int) -> list[int]:
    """The hosts to which an instance may go when its host is to be emptied, the least full
    first."""
    hosts = np.flatnonzero(state.delta((vm, np.arange(len(state.problem.hosts))),
                                       model=state.model.for_emptying).feasible)
    return hosts[np.argsort(state.fill[hosts], kind='stable')].tolist()


def waiting(state: State) -> np.ndarray:
    """intp: the instances that the evacuator may still move."""
    return np.flatnonzero(state.problem.draining[state.vm_host] & state.problem.evacuable)
