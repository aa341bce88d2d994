"""One planner on one problem: how long, how many moves, how it ends; and every step is checked."""

import dataclasses
import itertools
import time

import numpy as np

from bench import installation
from bench import operation
from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.constraints.capacity import Capacity
from kronos_nova.constraints.headroom import Headroom
from kronos_nova.model import Model
from kronos_nova.model import Problem
from kronos_nova.model import State
from kronos_nova.planners.base import Limits


@dataclasses.dataclass(frozen=True, slots=True)
class Trial:
    """The result of a plan. ``seconds`` are of the processor, on one core; ``memory_gib`` is to
    copy."""

    seconds: float
    moves: int
    memory_gib: float
    combined: float
    imbalances: tuple[float, ...]
    hosts: int
    refused: int
    overfull: int


def model_of(problem: Problem, *kinds) -> Model:
    """Return the Model of a problem with the constraints that need no data except the problem."""
    rules = (kind.compile(problem, None, ConstraintRules()) for kind in kinds or (Capacity,
                                                                                Headroom))
    return Model(problem, tuple(itertools.chain.from_iterable(rules)))


def plan(planner, problem: Problem, budget: int, seconds: float = float('inf')) -> Trial:
    """Let a planner of Kronos plan, and judge its plan.

    :param seconds: of the processor, after which it shall stop with the best plan so far
    """
    state = State(model_of(problem))
    start = time.process_time()
    steps = planner.plan(state, Limits(
        budget=budget, clock=time.process_time, deadline=start + seconds))
    used = time.process_time() - start
    return judge(problem, [(step.vm, step.destination) for step in steps], used)


def installed(problem: Problem, mode: str, budget: int, **overrides) -> Trial:
    """Run one cycle with the options of an installation, and judge its plan.

    ``seconds`` are those of the whole cycle.

    :param overrides: options of ``[kronos]`` with other values
    """
    return judge(problem, *cycle(problem, mode, budget, **overrides))


def cycle(problem: Problem, mode: str, budget: int,
          marks: tuple[float, float] = installation.MARKS,
          **overrides) -> tuple[list[tuple[int, int]], float]:
    """Run one cycle with the options of an installation.

    :param marks: ``high`` and ``target`` of mode ``relieve``
    :param overrides: options of ``[kronos]`` with other values
    :returns: the moves (instance, destination), and seconds of the processor
    """
    case = operation.Installation(
        installation.Cloud(problem),
        installation.policies(problem, mode, float(problem.thresholds[0]), budget, marks),
        installation.conf(**overrides))
    [found] = case.evaluate()
    vms, hosts = ({name: n for n, name in enumerate(names)}
                  for names in (problem.vms, problem.hosts))
    return [(vms[move.instance_uuid], hosts[move.destination])
            for move in found.moves], case.cpu_seconds


def judge(problem: Problem, moves: list[tuple[int, int]], seconds: float) -> Trial:
    """Make the moves one after the other.

    ``refused`` are moves for which placement would have no room at that point; they are made all
    the same. ``overfull`` are hosts that end above 100 % in some policy.
    """
    state, refused = State(model_of(problem, Capacity)), 0
    for vm, host in moves:
        refused += not state.delta((vm, host)).feasible
        state.move(vm, host)
    memory = sum(int(problem.memory_mb[vm]) for vm, _ in moves)
    return Trial(
        seconds=seconds, moves=len(moves), memory_gib=memory / 1024, combined=state.combined(),
        imbalances=tuple(float(value) for value in state.imbalances()),
        hosts=len(np.unique(state.vm_host)), refused=refused,
        overfull=int((state.scores > 1 + 1e-9).any(axis=1).sum()))
