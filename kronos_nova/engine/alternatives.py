"""What could have been moved instead: the second best of each move of a plan."""

import dataclasses
from collections.abc import Iterable
from collections.abc import Iterator

import numpy as np

from kronos_nova.engine.phases import rules_of
from kronos_nova.model import State
from kronos_nova.objects.plan import EVACUATE
from kronos_nova.objects.plan import SPREAD
from kronos_nova.planners.base import Step
from kronos_nova.planners.best_move import least_harmful
from kronos_nova.planners.evacuate import by_room


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A single move in indexes of the problem; ``combined_after`` is the combined imbalance had it
    been made and not the other."""

    vm: int
    destination: int
    combined_after: float


def alternatives(state: State, steps: Iterable[tuple[str, Step]],
                 ceiling: float) -> Iterator[Alternative | None]:
    """For each step of a plan the move that would have lowered the combined imbalance most in its
    place, None where the rules and the policies permit no other.

    To spread the load any server of the same host might have left it. Everything else is about the
    one server that is moved, which might have gone to another host; where its load is not known, to
    the next roomiest.

    :param state: before the first of the steps; the steps are made in it
    :param steps: (phase, step)
    :param ceiling: load that no host passes, unless it is to empty another or to pack
    """
    within = state.model.with_ceiling(state, ceiling)
    for phase, step in steps:
        yield _alternative(state, rules_of(phase, state.model, within), phase, step)
        state.move(step.vm, step.destination)


def _alternative(state, model, phase, step):
    def wanted(delta):
        (vms, hosts), = delta.moves
        return (vms != step.vm) | (hosts != step.destination)

    if not state.problem.policies or state.problem.unweighed[step.vm]:
        return _roomiest_but(state, step)
    vms = np.array([step.vm])
    if phase == SPREAD:
        vms = np.flatnonzero((state.vm_host == step.source) & state.problem.movable)
    pair = least_harmful(state, vms, wanted, is_forced=phase == EVACUATE, model=model)
    if pair is None:
        return _roomiest_but(state, step) if phase == EVACUATE else None
    return Alternative(vm=pair[0], destination=pair[1],
                       combined_after=state.combined() - float(state.delta(pair).decrease))


def _roomiest_but(state, step):
    hosts = [host for host in by_room(state, step.vm) if host != step.destination]
    if not hosts:
        return None
    return Alternative(vm=step.vm, destination=hosts[0], combined_after=step.combined_after)
