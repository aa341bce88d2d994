"""The planner ``ffd``: first fit decreasing (Johnson 1973), a simple method to free hosts."""

import numpy as np

from kronos_nova.model import State
from kronos_nova.objects.plan import PACK
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import Step
from kronos_nova.planners.base import StepRecorder


class FirstFitDecreasing:
    """A planner that empties hosts, the least loaded host first. The instances of a host are moved
    in the order of their loads, the heaviest first. Each instance goes to the most loaded host that
    may take the instance. A host that took an instance is not emptied later. A host that is empty
    or is being emptied takes no instance. A host is left out if the number of moves of its
    instances would exceed a limit, such as that of the moves of a project."""

    phase = PACK

    def plan(self, state: State, limits: Limits) -> list[Step]:
        begin, moves = state.copy(), self._moves(state.copy(), limits)
        empty, names = begin.after(moves).guests == 0, state.problem.hosts
        recorder = StepRecorder(state)
        return [recorder.record(vm, host, _why(names[source], bool(empty[source])))
                for vm, host in moves for source in [int(begin.vm_host[vm])]]

    def _moves(self, state: State, limits: Limits) -> list[tuple[int, int]]:
        """Make the moves of the plan on ``state``, and return them as (instance, destination)."""
        problem = state.problem
        moves: list[tuple[int, int]] = []
        weights = problem.policy_weights
        drained, took = np.zeros((2, len(problem.hosts)), dtype=bool)
        empty, every = state.guests == 0, np.arange(len(problem.hosts))
        for host in np.argsort(state.scores @ weights, kind='stable'):
            if took[host] or empty[host] or not problem.available[host]:
                continue
            if limits.is_over:
                break
            vms = np.flatnonzero((state.vm_host == host) & problem.movable)
            if not limits.permit(state, vms):
                continue
            drained[host] = True
            for vm in vms[np.argsort(-problem.weights[vms] @ weights, kind='stable')]:
                if len(moves) >= limits.budget:
                    return moves
                permitted = state.delta((vm, every)).feasible & ~drained & ~empty
                if permitted.any():
                    load = np.where(permitted, state.scores @ weights, -np.inf)
                    target = int(load.argmax())
                    took[target] = True
                    state.move(int(vm), target)
                    moves.append((int(vm), target))
        return moves


def _why(host: str, is_emptied: bool) -> str:
    """Return the reason of moves off a host.

    :param is_emptied: whether the host has no instances after the plan
    """
    return f'empties {host}' if is_emptied else f'takes servers off {host}, which is not emptied'
