"""The protocol of planners with its input and output, and the function that loads an installed
planner."""

import dataclasses
from collections.abc import Callable
from typing import Any
from typing import NamedTuple
from typing import Protocol

import numpy as np

from kronos_nova import exception
from kronos_nova import extensions
from kronos_nova.model import Problem
from kronos_nova.model import State

NAMESPACE = 'kronos_nova.planners'


@dataclasses.dataclass(slots=True)
class Cut:
    """A record that says whether the deadline has stopped a search."""

    happened: bool = False


class NoPlace(NamedTuple):
    """The reason why an instance stays on a host that it has to leave. ``is_proven`` is true if it
    is proven that no plan could move all instances that have to leave; otherwise no such plan was
    found."""

    why: str
    is_proven: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a planner.

    budget : number of moves that may still be planned
    clock : returns monotonic seconds; planners read no other clock
    deadline : seconds of ``clock`` at which a planner stops with the best plan so far. Before the
        deadline no choice depends on the time
    overload_ceiling : score that no host may exceed in any policy after any move, unless the host
        exceeded it before the plan
    cut : set once a planner stops at the deadline; copies of the limits share the record
    unplaced : {instance: NoPlace} for each instance that had to leave its host and stays; planners
        fill it, and copies of the limits share it
    """

    budget: int
    clock: Callable[[], float] = lambda: 0.0
    deadline: float = float('inf')
    overload_ceiling: float = 0.95
    cut: Cut = dataclasses.field(default_factory=Cut, compare=False)
    unplaced: dict[int, 'NoPlace'] = dataclasses.field(default_factory=dict, compare=False)

    @property
    def is_past(self) -> bool:
        """Return whether the deadline has passed."""
        return self.clock() >= self.deadline

    @property
    def is_over(self) -> bool:
        """Return whether a search has to stop at the deadline. Read this only where the search
        would continue otherwise, because True is recorded in ``cut``."""
        if self.is_past:
            self.cut.happened = True
            return True
        return False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A planned move, in indexes of the problem.

    combined_after : the combined imbalance after the move
    why : the purpose of the move
    reason : the purpose, and the effect on imbalances and loads
    depends_on : positions of the earlier steps in the same list that must be made before this step
    joint : a number that is equal for steps that help only together; None where the step helps
        alone
    """

    vm: int
    source: int
    destination: int
    combined_after: float
    reason: str
    why: str = ''
    depends_on: tuple[int, ...] = ()
    joint: int | None = None


class Planner(Protocol):
    """The protocol of a planner, which chooses moves. A planner has no state: the same input always
    gives the same plan."""

    phase: str

    def plan(self, state: State, limits: Limits) -> list[Step]:
        """Choose moves and apply them to ``state``, from which the next planner continues.

        Every rule of the model holds after each of the returned steps, in their order.
        """


def load(name: str, **arguments: Any) -> Planner:
    """Return the planner called ``name``.

    :param arguments: arguments of the planner's class

    :raises ConfigurationError: no planner of that name is installed, or it cannot be imported
    """
    found = extensions.installed(NAMESPACE)
    if name not in found:
        raise exception.ConfigurationError(
            what=f'planner "{name}"', problem='no planner of that name is installed',
            remedy=f'Choose one of: {", ".join(sorted(found.names()))}')
    return found[name].plugin(**arguments)


Choice = tuple[int, int, str]
"""(instance, destination, text about the purpose of the move)"""
DIGITS = range(3, 7)
"""Numbers of decimal digits with which the reason of a move shows a load or imbalance. The smallest
number is used with which the change is visible. Raised, reasons show changes that do not matter;
lowered, small changes are not shown. Chosen because a change of less than a millionth of a host is
of no use to a reader."""


class StepRecorder:
    """A recorder that applies moves to a state one after the other, and describes the effect of
    each."""

    def __init__(self, state: State):
        self.state = state
        self.imbalances = state.imbalances()

    def record(self, vm: int, destination: int, why: str) -> Step:
        """Apply a move to the state, and return it as a step that describes its effect."""
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
    """Call ``choose`` and make the move that it returns, repeatedly, until it returns None or the
    limits are reached. Returns the steps."""
    steps: list[Step] = []
    recorder = StepRecorder(state)
    while len(steps) < limits.budget and not limits.is_over:
        chosen = choose()
        if chosen is None:
            break
        steps.append(recorder.record(*chosen))
    return steps


def _effect(problem: Problem, what: str, old: np.ndarray, new: np.ndarray) -> str:
    """Return a text about the changes of a figure, such as the imbalance, in all policies; '' if
    none changes."""
    changes = ', '.join(filter(None, map(change, problem.policies, old, new)))
    return f'{what} {changes}' if changes else ''


def change(name: str, old: float, new: float) -> str | None:
    """Return a text such as ``cpu 0.412 to 0.398``, with enough digits to show the difference; None
    where there is none."""
    for digits in DIGITS:
        before, after = f'{old:.{digits}f}', f'{new:.{digits}f}'
        if before != after:
            return f'{name} {before} to {after}'
    return None
