"""A plan that waited for approval, looked at again before it runs."""

from collections.abc import Sequence

from kronos_nova.engine.build import PlanningCase
from kronos_nova.objects.plan import Move
from kronos_nova.simulation import Model
from kronos_nova.simulation import State


def check_again(case: PlanningCase, model: Model, moves: Sequence[Move]) -> dict[int, str]:
    """Which moves may not be made any more, taken one after the other.

    :returns: order -> why not; a move that depends on one of these is among them
    """
    state, wrong = State(model), {}
    vms = {uuid: index for index, uuid in enumerate(case.problem.vms)}
    hosts = {name: index for index, name in enumerate(case.problem.hosts)}
    for move in sorted(moves, key=lambda move: move.order):
        vm, destination = vms.get(move.instance_uuid), hosts.get(move.destination)
        why = _why_not(case, state, move, vm, destination)
        missed = wrong.keys() & set(move.depends_on)
        if missed and not why:
            why = f'move {min(missed)}, on which it depends, is left out'
        if why:
            wrong[move.order] = why
        else:
            state.move(vm, destination)
    return wrong


def _why_not(case, state, move, vm, destination):
    if vm is None:
        return 'the instance is not in the aggregate any more'
    if vm in case.held:
        return f'the instance is {case.held[vm] or "on a host that is down"}'
    if case.problem.hosts[state.vm_host[vm]] != move.source:
        return f'the instance is on {case.problem.hosts[state.vm_host[vm]]} now'
    if destination is None:
        return f'{move.destination} is not in the aggregate any more'
    against = int(state.delta((vm, destination)).against)
    return '' if against < 0 else state.model.rules[against].why(state, vm, destination)
