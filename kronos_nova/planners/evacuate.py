"""Empties hosts that an operator disabled."""

import dataclasses

import numpy as np

from kronos_nova.constraints.base import Constraints
from kronos_nova.objects.plan import EVACUATE
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import Step
from kronos_nova.planners.outcome import Outlook
from kronos_nova.planners.outcome import gentlest
from kronos_nova.planners.outcome import take
from kronos_nova.simulation import State


class Evacuator:
    """Of all moves off the draining hosts, the one that leaves the lowest combined imbalance, again
    and again."""

    phase = EVACUATE

    def plan(self, state: State, constraints: Constraints, limits: Limits) -> list[Step]:
        steps = []
        while len(steps) < limits.budget and not limits.is_over:
            outlook = Outlook(state)
            pair = gentlest(outlook, waiting(state), lambda vm: constraints.mask(state, vm))
            if pair is None:
                break
            source = state.problem.hosts[state.vm_host[pair[0]]]
            steps.append(take(outlook, *pair, f'empties {source}, which is disabled'))
        return steps


def waiting(state: State) -> np.ndarray:
    """intp: the instances that the evacuator may still move."""
    problem = state.problem
    if problem.draining is None:
        return np.zeros(0, dtype=np.intp)
    may = problem.movable if problem.evacuable is None else problem.evacuable
    return np.flatnonzero(problem.draining[state.vm_host] & may)


@dataclasses.dataclass(frozen=True, slots=True)
class Preflight:
    """Whether a disabled host can be emptied.

    ``instances`` is how many are on it, ``movable`` how many of them have somewhere to go now;
    ``blocked`` maps the uuid of each other one to what blocks it.
    """

    host: str
    instances: int
    movable: int
    blocked: dict[str, str]


def preflight(state: State, constraints: Constraints, held: dict[int, str]) -> list[Preflight]:
    """Look at every draining host before the first move.

    :param held: instance index to why it may not be moved at all
    """
    draining = state.problem.draining
    hosts = [] if draining is None else np.flatnonzero(draining)
    return [_preflight(state, constraints, held, int(host)) for host in hosts]


def _preflight(state, constraints, held, host):
    vms = [int(vm) for vm in np.flatnonzero(state.vm_host == host)]
    blocked = {}
    for vm in vms:
        if vm in held:
            blocked[state.problem.vms[vm]] = held[vm]
        elif not constraints.mask(state, vm).any():
            blocked[state.problem.vms[vm]] = _blocker(state, constraints, vm)
    return Preflight(host=state.problem.hosts[host], instances=len(vms),
                     movable=len(vms) - len(blocked), blocked=blocked)


def _blocker(state, constraints, vm):
    """What stands between the instance and the host that comes nearest to taking it."""
    order = {constraint: rank for rank, constraint in enumerate(constraints.constraints)}
    against = [(order[found], host) for host in np.flatnonzero(state.problem.available)
               if (found := constraints.first_against(state, vm, host)) is not None]
    if not against:
        return 'no other host is up and enabled'
    rank, host = max(against, key=lambda pair: (pair[0], -pair[1]))
    return constraints.constraints[rank].why(state, vm, int(host))
