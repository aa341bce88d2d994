"""Empties hosts that an operator disabled."""

import dataclasses

import numpy as np

from kronos_nova.constraints.base import Constraints
from kronos_nova.objects.plan import EVACUATE
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import Step
from kronos_nova.planners.outcome import Outlook
from kronos_nova.planners.outcome import Teller
from kronos_nova.planners.search import Ties
from kronos_nova.planners.search import gentlest
from kronos_nova.simulation import State


class Evacuator:
    """Of all moves off the draining hosts, the one that leaves the lowest combined imbalance, again
    and again."""

    phase = EVACUATE

    def plan(self, state: State, constraints: Constraints, limits: Limits) -> list[Step]:
        steps, teller, ties = [], Teller(state), Ties(state.problem)
        while len(steps) < limits.budget and not limits.is_over:
            outlook = Outlook(state)
            pair = gentlest(outlook, waiting(state), lambda vm: constraints.mask(state, vm),
                            ties)
            if pair is None:
                break
            source = state.problem.hosts[state.vm_host[pair[0]]]
            steps.append(teller.take(*pair, f'empties {source}, which is disabled'))
        return steps


def waiting(state: State) -> np.ndarray:
    """intp: the instances that the evacuator may still move."""
    problem = state.problem
    if problem.draining is None:
        return np.zeros(0, dtype=np.intp)
    may = problem.movable if problem.evacuable is None else problem.evacuable
    return np.flatnonzero(problem.draining[state.vm_host] & may)


def obstacle(outlook: Outlook, constraints: Constraints, vm: int) -> tuple[str, str] | None:
    """What keeps an instance on its draining host: a word of
    :data:`~kronos_nova.objects.plan.SKIP_REASONS` and a line for a person; None if it may go."""
    state = outlook.state
    hosts = np.flatnonzero(constraints.mask(state, vm))
    if len(hosts):
        if outlook.accepts(outlook.row(vm)[hosts]).any():
            return None
        return 'threshold', 'every host that may take it would push a policy past its threshold'
    # The host that comes nearest to taking it is the one that fails the latest constraint.
    rank = {constraint: number for number, constraint in enumerate(constraints.constraints)}
    against = [(found, int(host)) for host in np.flatnonzero(state.problem.available)
               if (found := constraints.first_against(state, vm, int(host))) is not None]
    if not against:
        return 'capacity', 'no other host is up and enabled'
    found, host = max(against, key=lambda pair: (rank[pair[0]], -pair[1]))
    return found.reason, found.why(state, vm, host)


@dataclasses.dataclass(frozen=True, slots=True)
class Preflight:
    """Whether a disabled host can be emptied.

    ``instances`` is how many are on it; ``blocked`` maps the uuid of each that has nowhere to go
    now to what blocks it.
    """

    host: str
    instances: int
    blocked: dict[str, str]


def preflight(state: State, constraints: Constraints, held: dict[int, str]) -> list[Preflight]:
    """Look at every draining host before the first move.

    :param held: instance index to why it may not be moved at all
    """
    outlook = Outlook(state)
    return [_preflight(outlook, constraints, held, int(host))
            for host in np.flatnonzero(state.problem.draining)]


def _preflight(outlook, constraints, held, host):
    problem, blocked = outlook.problem, {}
    vms = [int(vm) for vm in np.flatnonzero(outlook.state.vm_host == host)]
    for vm in vms:
        if vm in held:
            blocked[problem.vms[vm]] = held[vm]
        elif found := obstacle(outlook, constraints, vm):
            blocked[problem.vms[vm]] = found[1]
    return Preflight(host=problem.hosts[host], instances=len(vms), blocked=blocked)
