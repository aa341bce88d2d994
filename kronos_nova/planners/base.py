"""The protocol of planners, those that are installed, and the steps that they make."""

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
    """A record of whether the deadline has stopped a search."""

    happened: bool = False


class NoPlace(NamedTuple):
    """The reason why an instance stays where it must not; ``is_proven`` if there is no plan that
    moves it and all others, False if none was found."""

    why: str
    is_proven: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a planner.

    budget : moves that may still be planned
    clock : monotonic seconds; the kernel has no clock of its own
    deadline : on that clock; a planner stops there with the best plan so far. Before it, no choice
        depends on the time
    overload_ceiling : no host may pass this score in any policy on the way, unless it already was
        above
    cut : set once a planner stops at the deadline; copies of the limits share the record
    unplaced : instance to why it finds no place, of those that had to leave their hosts; filled by
        planners, shared by copies
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
        """Return whether a search has to stop at the deadline. Ask only where the search would
        continue otherwise, because the answer yes is recorded as a cut."""
        if self.is_past:
            self.cut.happened = True
            return True
        return False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A planned move in indexes of the problem. ``why`` is what it is for, ``reason`` that and what
    it does; ``depends_on`` are positions of earlier steps of the same list; ``joint`` is a number
    that it shares with the steps without which it does not help, None where it helps alone."""

    vm: int
    source: int
    destination: int
    combined_after: float
    reason: str
    why: str = ''
    depends_on: tuple[int, ...] = ()
    joint: int | None = None


class Planner(Protocol):
    """Chooses moves. Stateless; the same input always gives the same plan."""

    phase: str

    def plan(self, state: State, limits: Limits) -> list[Step]:
        """Choose moves and apply them to ``state``, so that the next pass starts from where this
        one ended.

        The steps are in an order in which every rule of the model holds after every one of them.
        """


def load(name: str, **arguments: Any) -> Planner:
    """Return the planner called ``name``.

    :param arguments: of its class, as the entry point has it

    :raises ConfigurationError: none of that name is installed, or one that is cannot be imported
    """
    found = extensions.installed(NAMESPACE)
    if name not in found:
        raise exception.ConfigurationError(
            what=f'planner "{name}"', problem='no planner of that name is installed',
            remedy=f'Choose one of: {", ".join(sorted(found.names()))}')
    return found[name].plugin(**arguments)


Choice = tuple[int, int, str]
"""(instance, destination, what the move is for)"""
DIGITS = range(3, 7)
"""Decimal digits of a figure in a reason: the fewest of these that show its change. Raised, reasons
show changes that do not matter; lowered, small changes are not shown. A change of less than a
millionth of a host is of no use to a reader."""


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
    """Make the chosen move (instance, destination, purpose) repeatedly, until none is chosen or the
    limits are reached."""
    steps: list[Step] = []
    recorder = StepRecorder(state)
    while len(steps) < limits.budget and not limits.is_over:
        chosen = choose()
        if chosen is None:
            break
        steps.append(recorder.record(*chosen))
    return steps


def _effect(problem: Problem, what: str, old: np.ndarray, new: np.ndarray) -> str:
    """Return the effect of a move on the figure of a policy."""
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
