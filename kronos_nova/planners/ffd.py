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
        problem, recorder = state.problem, StepRecorder(state)
        steps: list[Step] = []
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
                if len(steps) >= limits.budget:
                    return steps
                permitted = state.delta((vm, every)).feasible & ~drained & ~empty
                if permitted.any():
                    load = np.where(permitted, state.scores @ weights, -np.inf)
                    target = int(load.argmax())
                    took[target] = True
                    steps.append(recorder.record(int(vm), target, f'empties {problem.hosts[host]}'))
        return steps
