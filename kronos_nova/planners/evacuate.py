"""Empties hosts that an operator disabled: greedy construction, the least harmful move first."""

import dataclasses

import numpy as np

from kronos_nova.objects.plan import EVACUATE
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import Step
from kronos_nova.planners.best_move import Ties
from kronos_nova.planners.best_move import least_harmful
from kronos_nova.planners.steps import StepRecorder
from kronos_nova.simulation import State


class Evacuator:
    """Of all moves off the draining hosts, the one that leaves the lowest combined imbalance, again
    and again."""

    phase = EVACUATE

    def plan(self, state: State, limits: Limits) -> list[Step]:
        steps, recorder, ties = [], StepRecorder(state), Ties(state.problem)
        while len(steps) < limits.budget and not limits.is_over:
            pair = least_harmful(state, waiting(state), ties)
            if pair is None:
                break
            source = state.problem.hosts[state.vm_host[pair[0]]]
            steps.append(recorder.take(*pair, f'empties {source}, which is disabled'))
        return steps


def waiting(state: State) -> np.ndarray:
    """intp: the instances that the evacuator may still move."""
    problem = state.problem
    if problem.draining is None:
        return np.zeros(0, dtype=np.intp)
    may = problem.movable if problem.evacuable is None else problem.evacuable
    return np.flatnonzero(problem.draining[state.vm_host] & may)


def obstacle(state: State, vm: int) -> tuple[str, str] | None:
    """What keeps an instance on its draining host: a word of
    :data:`~kronos_nova.objects.plan.SKIP_REASONS` and a line for a person; None if it may go."""
    hosts = np.flatnonzero(state.problem.available & (
        np.arange(len(state.problem.hosts)) != state.vm_host[vm]))
    if not len(hosts):
        return 'capacity', 'no other host is up and enabled'
    delta = state.delta((vm, hosts))
    if delta.feasible.any():
        if delta.accepted[delta.feasible].any():
            return None
        return 'threshold', 'every host that may take it would push a policy past its threshold'
    # The host that comes nearest to taking it is the one that fails the latest rule.
    nearest = int(delta.against.argmax())
    rule = state.model.rules[delta.against[nearest]]
    return rule.reason, rule.why(state, vm, int(hosts[nearest]))


@dataclasses.dataclass(frozen=True, slots=True)
class Preflight:
    """Whether a disabled host can be emptied.

    ``instances`` is how many are on it; ``blocked`` maps the uuid of each that has nowhere to go
    now to what blocks it.
    """

    host: str
    instances: int
    blocked: dict[str, str]


def preflight(state: State, held: dict[int, str]) -> list[Preflight]:
    """Look at every draining host before the first move.

    :param held: instance index to why it may not be moved at all
    """
    return [_preflight(state, held, int(host)) for host in np.flatnonzero(state.problem.draining)]


def _preflight(state, held, host):
    problem, blocked = state.problem, {}
    vms = [int(vm) for vm in np.flatnonzero(state.vm_host == host)]
    for vm in vms:
        if vm in held:
            blocked[problem.vms[vm]] = held[vm]
        elif found := obstacle(state, vm):
            blocked[problem.vms[vm]] = found[1]
    return Preflight(host=problem.hosts[host], instances=len(vms), blocked=blocked)
