"""From moves to steps: each is made, and tells what it does to every policy."""

from collections.abc import Callable

import numpy as np

from kronos_nova.model import Problem
from kronos_nova.model import State
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import Step

Choice = tuple[int, int, str]
"""(instance, destination, what the move is for)"""
DIGITS = range(3, 7)
"""A change of less than a millionth is nothing that anybody wants to read."""


class StepRecorder:
    """Makes moves one after the other, and keeps of each what it does."""

    def __init__(self, state: State):
        self.state = state
        self.imbalances = state.imbalances()

    def record(self, vm: int, destination: int, why: str) -> Step:
        """Make a move, and return the step with what it does."""
        problem, before = self.state.problem, self.imbalances
        ends = [int(self.state.vm_host[vm]), destination]
        loads = self.state.scores[ends].copy()
        source = self.state.move(vm, destination)
        self.imbalances = self.state.imbalances()
        effects = [_effect(problem, 'imbalance', before, self.imbalances)]
        for host, old in zip(ends, loads, strict=True):
            effects.append(_effect(
                problem, f'load of {problem.hosts[host]}', old, self.state.scores[host]))
        return Step(vm=vm, source=source, destination=destination,
                    combined_after=float(self.imbalances @ problem.policy_weights), why=why,
                    reason=': '.join(filter(None, (why, '; '.join(filter(None, effects))))))


def one_by_one(state: State, limits: Limits,
               choose: Callable[[], Choice | None]) -> list[Step]:
    """Make the move (instance, destination, what it is for) that is chosen, again and again, until
    none is or the limits are reached."""
    steps: list[Step] = []
    recorder = StepRecorder(state)
    while len(steps) < limits.budget and not limits.is_over:
        chosen = choose()
        if chosen is None:
            break
        steps.append(recorder.record(*chosen))
    return steps


def _effect(problem: Problem, what: str, old: np.ndarray, new: np.ndarray) -> str:
    """What a move does to a figure that every policy has."""
    changes = ', '.join(filter(None, map(change, problem.policies, old, new)))
    return f'{what} {changes}' if changes else ''


def change(name: str, old: float, new: float) -> str | None:
    """Such as ``cpu 0.412 to 0.398``, with as many digits as it takes to see that they differ; None
    where they are the same."""
    for digits in DIGITS:
        before, after = f'{old:.{digits}f}', f'{new:.{digits}f}'
        if before != after:
            return f'{name} {before} to {after}'
    return None
