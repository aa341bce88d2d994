"""Runs the planners over one aggregate, one budget for all of them."""

import dataclasses

from kronos_nova.engine.options import EngineOptions
from kronos_nova.engine.worth import spoils_nothing
from kronos_nova.engine.worth import worthwhile
from kronos_nova.objects.plan import SPREAD
from kronos_nova.objects.plan import Move
from kronos_nova.planners import registry as planners
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import Step
from kronos_nova.planners.evacuate import waiting
from kronos_nova.planners.order import dependencies
from kronos_nova.simulation import Model
from kronos_nova.simulation import State


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """What is wrong in an aggregate, and so which planners have something to do.

    ``may_balance`` is False while an imbalance has not lasted long enough yet.
    """

    evacuate: bool
    repair: bool
    balance: bool
    may_balance: bool = True

    @property
    def is_idle(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.evacuate or self.repair or self.balance)

    @property
    def must_wait(self) -> bool:
        """Whether something is wrong, but nothing may be done about it yet."""
        return self.balance and not (self.may_balance or self.evacuate or self.repair)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Where planning ended: ``steps`` are (phase, step) of all passes, ``state`` is after them."""

    state: State
    steps: tuple[tuple[str, Step], ...]
    budget_left: int

    def moves(self) -> tuple[Move, ...]:
        """The steps by name."""
        problem = self.state.problem
        return tuple(Move(
            order=order, phase=phase, instance_uuid=problem.vms[step.vm],
            source=problem.hosts[step.source], destination=problem.hosts[step.destination],
            memory_mb=int(problem.memory_mb[step.vm]), combined_after=step.combined_after,
            reason=f'{step.reason}; {problem.memory_mb[step.vm]} MiB to copy',
            depends_on=tuple(earlier + 1 for earlier in step.depends_on))
            for order, (phase, step) in enumerate(self.steps, start=1))


def needed(model: Model, mode: str, options: EngineOptions, cycles: int) -> Passes:
    """Look at an aggregate before any move.

    :param cycles: how many in a row found it imbalanced before this one
    """
    state = State(model)
    return Passes(
        evacuate=options.evacuate_disabled_hosts and len(waiting(state)) > 0,
        repair=bool(model.broken(state, options.enforce_hard_affinity,
                                 options.enforce_soft_affinity).any()),
        balance=mode == 'pack' or not state.is_balanced,
        may_balance=mode == 'pack' or cycles + 1 >= options.hold_cycles)


def run(model: Model, passes: Passes, planner: str, options: EngineOptions,
        limits: Limits) -> Chosen:
    """Evacuate, repair, balance: each from where the one before ended."""
    state, steps = State(model), []
    for runner in _runners(passes, planner, options):
        left = dataclasses.replace(limits, budget=limits.budget - len(steps))
        state.settle()
        before = state.copy()
        chosen = runner.plan(state, left)
        if runner.phase == SPREAD:
            chosen = worthwhile(before, state, chosen)
        steps += [(runner.phase, step) for step in chosen]
    start = State(model)
    needed = dependencies([step for _, step in steps],
                          start.under(model.with_ceiling(start, limits.overload_ceiling)))
    steps = [(phase, dataclasses.replace(step, depends_on=earlier))
             for (phase, step), earlier in zip(steps, needed, strict=True)]
    return Chosen(state=state, steps=tuple(steps), budget_left=limits.budget - len(steps))


def beginning(chosen: Chosen, count: int) -> Chosen:
    """The first ``count`` steps of a plan, or fewer if those alone would spoil a policy."""
    state = State(chosen.state.model)
    for _phase, step in chosen.steps[:count]:
        state.move(step.vm, step.destination)
    while count and not spoils_nothing(State(state.model), state):
        count -= 1
        _phase, step = chosen.steps[count]
        state.move(step.vm, step.source)
    left = chosen.budget_left + len(chosen.steps) - count
    return Chosen(state=state, steps=chosen.steps[:count], budget_left=left)


def _runners(passes, planner, options):
    if passes.evacuate:
        yield planners.load('evacuate')
    if passes.repair:
        yield planners.load('affinity', hard=options.enforce_hard_affinity,
                            soft=options.enforce_soft_affinity)
    if passes.may_balance:
        yield planners.load(planner)
