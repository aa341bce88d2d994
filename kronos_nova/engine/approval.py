"""A plan that waited for approval, looked at again before it runs."""

import dataclasses
from collections.abc import Mapping
from dataclasses import field

from kronos_nova.engine.build import PlanningCase
from kronos_nova.engine.phases import rules_of
from kronos_nova.engine.prices import still_gains
from kronos_nova.model import Model
from kronos_nova.model import State
from kronos_nova.objects.plan import PACK
from kronos_nova.objects.plan import SPREAD
from kronos_nova.objects.plan import AggregateReport
from kronos_nova.planners.base import Step

NO_GAIN = 'with the load of now, what is left of the plan gains too little for what it costs'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What has become of a plan.

    wrong : order to why not, of the moves that may not be made any more; one that depends on such a
        move is among them
    waits_for : why that is not known now; '' if it is
    void : why none of it is to be started; '' if it may be
    """

    wrong: Mapping[int, str] = field(default_factory=dict)
    waits_for: str = ''
    void: str = ''


def check_again(case: PlanningCase, state: State, capped: Model,
                report: AggregateReport) -> Checked:
    """Which moves may not be made any more, taken one after the other, and whether those that may
    still gain what they should.

    :param state: before any move; it is moved about
    :param capped: its model with the overload ceiling
    """
    wrong, steps = replay(case, state, capped, report)
    moves = sorted(report.moves, key=lambda move: move.order)
    hosts = {name: index for index, name in enumerate(case.problem.hosts)}
    of_phase = {move.order: move.phase for move in moves}
    spread = {order: step for order, step in steps.items() if of_phase[order] == SPREAD}
    emptied = {hosts[name] for name in report.hosts_emptied if name in hosts}
    wrong |= {order: 'its host would not become empty any more' for order, step in steps.items()
              if of_phase[order] == PACK and step.source in emptied and state.guests[step.source]}
    wrong |= dict.fromkeys(_needless(state, spread), NO_GAIN)
    return Checked(wrong=_with_dependants(wrong, moves))


def replay(case: PlanningCase, state: State, capped: Model,
           report: AggregateReport) -> tuple[dict[int, str], dict[int, Step]]:
    """Make the moves of a plan that are still permitted, one after the other.

    :param state: before any move; it is moved about
    :param capped: its model with the overload ceiling
    :returns: (order to why not, of those that are not; order to Step, of the others)
    """
    wrong, steps = {}, {}
    vms = {uuid: index for index, uuid in enumerate(case.problem.vms)}
    hosts = {name: index for index, name in enumerate(case.problem.hosts)}
    for move in sorted(report.moves, key=lambda move: move.order):
        vm, destination = vms.get(move.instance_uuid), hosts.get(move.destination)
        why = _why_not(case, state, capped, move, vm, destination)
        missed = wrong.keys() & set(move.depends_on)
        if missed and not why:
            why = f'move {min(missed)}, on which it depends, is left out'
        if why:
            wrong[move.order] = why
        else:
            steps[move.order] = Step(vm=vm, source=state.move(vm, destination),
                                     destination=destination, combined_after=0.0, reason='')
    return wrong, steps


def _why_not(case, state, capped, move, vm, destination):
    if vm is None:
        return 'the instance is not in the aggregate any more'
    if vm in case.held:
        return f'the instance is {case.held[vm] or "on a host that is down"}'
    if case.problem.hosts[state.vm_host[vm]] != move.source:
        return f'the instance is on {case.problem.hosts[state.vm_host[vm]]} now'
    if destination is None:
        return f'{move.destination} is not in the aggregate any more'
    model = rules_of(move.phase, state.model, capped)
    against = int(state.delta((vm, destination), model=model).against)
    return '' if against < 0 else model.rules[against].why(state, vm, destination)


def _needless(after, steps):
    """Orders of the moves that spread the load and do not gain what they cost: all, or the last
    ones."""
    before = after.copy()
    for step in reversed(steps.values()):
        before.move(step.vm, step.source)
    return list(steps)[len(still_gains(before, list(steps.values()))):]


def _with_dependants(wrong, moves):
    for move in moves:
        missed = wrong.keys() & set(move.depends_on)
        if missed and move.order not in wrong:
            wrong[move.order] = f'move {min(missed)}, on which it depends, is left out'
    return wrong
