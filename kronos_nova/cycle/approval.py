"""The check of plans that wait for approval or were approved. The cloud may have changed since a
plan was made."""

import dataclasses
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any

import numpy as np

from kronos_nova.cycle.inputs import Inputs
from kronos_nova.cycle.metrics import Load
from kronos_nova.cycle.move_limits import RemainingMoveLimits
from kronos_nova.cycle.prices import still_gains
from kronos_nova.cycle.problem import PlanningCase
from kronos_nova.cycle.problem import combined
from kronos_nova.cycle.solve import only_makes_room
from kronos_nova.cycle.solve import rules_of
from kronos_nova.model import Model
from kronos_nova.model import State
from kronos_nova.objects import automation
from kronos_nova.objects import plan as plans
from kronos_nova.objects.plan import PACK
from kronos_nova.objects.plan import SPREAD
from kronos_nova.objects.plan import AggregateReport
from kronos_nova.objects.plan import PlannedMove
from kronos_nova.planners.base import Step
from kronos_nova.planners.hot_hosts import Marks

SERVES_NOTHING = 'the moves for which it makes room are left out'
NO_GAIN = 'with the load of now, what is left of the plan gains too little for what it costs'
OVER_LIMIT = 'a limit on moves of its server, of its project or for one load is reached by now'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The result of checking an older plan against the present state.

    wrong : {order of a move: reason why the move may not be made any more}. The moves that depend
        on such a move are included
    waits_for : reason why the plan cannot be checked now; '' if the plan was checked
    void : reason why no move of the plan may be started; '' if moves may be started
    """

    wrong: Mapping[int, str] = field(default_factory=dict)
    waits_for: str = ''
    void: str = ''


def check(given: Inputs, load: Load, case: PlanningCase, report: AggregateReport) -> Checked:
    """Check an older plan against the present state, and return the moves that may not be made any
    more. If the remaining moves gain too little, the result also has a reason not to start the
    plan. The gain is the decrease of the combined imbalance. It is too little below
    :data:`LEAST_GAIN` times the gain that the plan had when it was made."""
    ceiling = given.options.overload_ceiling
    start = State(case.compile(case.expected))
    present = State(case.compile(case.problem))
    before = combined(present, load.policies)
    over = _over_limits(given, case, start.copy(), report)
    replay(case, present, present.model.with_ceiling(present, ceiling), report, over)
    found = check_again(case, start, start.model.with_ceiling(start, ceiling), report, over)
    after = combined(present, load.policies)
    if before is None or after is None or (
            found.wrong.keys() >= {move.order for move in report.moves}):
        return found
    return dataclasses.replace(found, void=not_worth_starting(report, before, after))


def _over_limits(given: Inputs, case: PlanningCase, state: State,
                 report: AggregateReport) -> dict[int, str]:
    """Return the moves of a plan that exceed a limit on the number of moves, as {order: reason}.
    Moves that are not permitted for another reason are not counted.

    :param state: state before any move; the check changes it
    """
    wrong, _steps = replay(case, state, state.model.with_ceiling(
        state, given.options.overload_ceiling), report)
    limits = RemainingMoveLimits(given.options.move_limits, case.problem, case.around.instances,
                                 given.history, given.rules.selections)
    return dict.fromkeys(limits.passed(move for move in report.moves if move.order not in wrong),
                         OVER_LIMIT)


def look_ahead(given: Inputs, load: Load, case: PlanningCase, before: State,
               after: State) -> None:
    """Compute the state that the plan waiting for approval would reach if it began now. Pass the
    result, a ProposalOutlook, to the callback ``look_ahead`` of the planner's ports. The result is
    used to choose between the waiting plan and the new plan. If no plan waits, do nothing.

    :param before: the state before any move of the waiting plan or of the new plan
    :param after: the state at the end of the new plan
    """
    waits = given.history.proposals.get(case.name)
    if waits is not None:
        given.planner_ports.look_ahead(case.name, outlook(
            waits, case, before,
            before.model.with_ceiling(before, given.options.overload_ceiling), after, case.marks,
            np.array([policy.weight for policy in load.policies])))


def check_again(case: PlanningCase, state: State, capped: Model, report: AggregateReport,
                over: Mapping[int, str] = MappingProxyType({})) -> Checked:
    """Find the moves of a plan that may not be made any more, and return them with the reasons as
    Checked. There are six reasons:

    * The move is no longer permitted.
    * The move exceeds a limit on the number of moves.
    * The move was planned to empty its source host, and the host would not become empty.
    * The move spreads load, and no longer gains enough.
    * The move depends on another move that may not be made.
    * The move only makes room for moves that may not be made.

    :param state: state before any move; the check changes it
    :param capped: model of ``state`` with the additional rule that no move may load a host above
        the overload ceiling (``limits.overload_ceiling``)
    :param over: {order: reason} of the moves that exceed a limit on the number of moves
    """
    wrong, steps = replay(case, state, capped, report, over)
    moves = sorted(report.moves, key=lambda move: move.order)
    hosts = {name: index for index, name in enumerate(case.problem.hosts)}
    of_phase = {move.order: move.phase for move in moves}
    spread = {order: step for order, step in steps.items() if of_phase[order] == SPREAD}
    emptied = {hosts[name] for name in report.hosts_emptied if name in hosts}
    wrong |= {order: 'its host would not become empty any more' for order, step in steps.items()
              if of_phase[order] == PACK and step.source in emptied and state.guests[step.source]}
    wrong |= dict.fromkeys(_needless(state, spread), NO_GAIN)
    wrong = _with_dependants(wrong, moves)
    for move in reversed(moves):
        served = {other.order for other in moves if move.order in other.depends_on}
        if served and served <= wrong.keys() and move.order in steps and (
                only_makes_room(state, move.phase, steps[move.order])):
            wrong.setdefault(move.order, SERVES_NOTHING)
    return Checked(wrong=wrong)


def replay(case: PlanningCase, state: State, capped: Model, report: AggregateReport,
           left_out: Mapping[int, str] = MappingProxyType({}),
           ) -> tuple[dict[int, str], dict[int, Step]]:
    """Apply the moves of a plan to a state, in the order of the plan. Moves that are no longer
    permitted are left out.

    :param state: state before any move; the moves are applied to this state
    :param capped: model of ``state`` with the additional rule that no move may load a host above
        the overload ceiling
    :returns: {order: reason} of the moves that are not permitted, and {order: Step} of the moves
        that are permitted
    """
    wrong: dict[int, str] = {}
    steps = {}
    vms = {uuid: index for index, uuid in enumerate(case.problem.vms)}
    hosts = {name: index for index, name in enumerate(case.problem.hosts)}
    for move in sorted(report.moves, key=lambda move: move.order):
        vm, destination = vms.get(move.instance_uuid), hosts.get(move.destination)
        why = left_out.get(move.order) or _why_not(case, state, capped, move, vm, destination)
        missed = wrong.keys() & set(move.depends_on)
        if missed and not why:
            why = f'move {min(missed)}, on which it depends, is left out'
        if why or vm is None or destination is None:
            wrong[move.order] = why
        else:
            steps[move.order] = Step(vm=vm, source=state.move(vm, destination),
                                     destination=destination, combined_after=0.0, reason='')
    return wrong, steps


def _why_not(case: PlanningCase, state: State, capped: Model, move: PlannedMove, vm: int | None,
             destination: int | None) -> str:
    if vm is None:
        return 'the instance is not in the aggregate any more'
    if vm in case.held:
        return f'the instance is {case.held_because(vm) or "on a host that is down"}'
    if case.problem.hosts[state.vm_host[vm]] != move.source:
        return f'the instance is on {case.problem.hosts[state.vm_host[vm]]} now'
    if destination is None:
        return f'{move.destination} is not in the aggregate any more'
    model = rules_of(move.phase, state.model, capped)
    against = int(state.delta((vm, destination), model=model).against)
    if against < 0:
        return ''
    rule: Any = model.rules[against]    # ``why`` is a field of some rules and a method of others
    return rule.why(state, vm, destination)


def _needless(after: State, steps: Mapping[int, Step]) -> list[int]:
    """Return the numbers (``order``) of the moves to leave out because they no longer gain enough.
    These are the last moves of the plan, and as few as possible. The remaining moves together gain
    at least the sum of their prices. The price of a move is the least gain that the move has to
    bring.

    :param after: state after the moves
    :param steps: {order: Step} of the moves that spread load
    """
    before = after.copy()
    for step in reversed([*steps.values()]):
        before.move(step.vm, step.source)
    return list(steps)[len(still_gains(before, list(steps.values()))):]


def _with_dependants(wrong: dict[int, str], moves: Iterable[PlannedMove]) -> dict[int, str]:
    for move in moves:
        missed = wrong.keys() & set(move.depends_on)
        if missed and move.order not in wrong:
            wrong[move.order] = f'move {min(missed)}, on which it depends, is left out'
    return wrong


MARGIN = 0.25
"""Share (0 to 1) of a new plan's gain that decides whether the new plan replaces a plan that waits
for approval. The gain is the amount by which the new plan lowers the combined imbalance. The
combined imbalance after the waiting plan is compared with that after the new plan. If it is higher
by more than this share of the gain, the waiting plan is replaced; otherwise it is kept. Raised,
plans that are much worse than a new plan continue to wait for approval; lowered, small changes of
load replace waiting plans. Chosen so that a waiting plan is replaced when an empty host returns to
service, and is kept when the imbalance changes by about a threshold; not measured."""

LEAST_GAIN = 0.5
"""Share (0 to 1) of its gain that an approved plan must still have when it starts. The gain is the
amount by which the plan lowers the combined imbalance. The gain may have become smaller, because
loads have changed since the plan was made. Plans with a move for another purpose than spreading
load start without this check. Raised, fewer approved plans are started; lowered, plans that copy
memory for little gain are started. Not measured."""


@dataclasses.dataclass(frozen=True, slots=True)
class ProposalOutlook:
    """The state that a plan waiting for approval would reach if it began now.

    combined : combined imbalance after the moves of the plan that are still permitted
    unrelieved : names of hosts that would be hot (too loaded) after the waiting plan, but not
        after a new plan
    """

    combined: float
    unrelieved: tuple[str, ...] = ()


def outlook(report: AggregateReport, case: PlanningCase, start: State, capped: Model, end: State,
            marks: Marks, weights: np.ndarray) -> ProposalOutlook:
    """Return the ProposalOutlook of a plan that waits for approval: the state that it would reach
    if it began in the state ``start``.

    :param report: the report with the waiting plan
    :param case: the aggregate's planning problem
    :param capped: the model of ``start`` with the additional rule that no move may load a host
        above the overload ceiling
    :param end: the state at the end of a new plan, with which the waiting plan is compared
    :param marks: the loads above which hosts are hot (too loaded)
    :param weights: float64 (P,), weights of the policies in the combined imbalance
    """
    state = start.copy()
    replay(case, state, capped, report)
    hot = marks.hot(state).any(axis=1) & ~marks.hot(end).any(axis=1)
    return ProposalOutlook(combined=float(state.imbalances()[:len(weights)] @ weights),
                           unrelieved=tuple(
                               case.problem.hosts[host] for host in np.flatnonzero(hot)))


def superseded_because(found: ProposalOutlook | None, level: str, new: AggregateReport,
                       planner: str) -> str:
    """Return the reason why a new evaluation replaces a plan that waits for approval; '' if the
    waiting plan is kept.

    :param found: the end state of the waiting plan; None if the new evaluation made no plan
    :param level: automation level of the aggregate
    :param planner: planner of the waiting plan
    """
    if new.outcome == plans.BALANCED:
        return 'every policy is at or below its threshold by now'
    if new.outcome == plans.NO_MOVE:
        return 'no move is permitted and of use by now'
    if new.outcome != plans.PLANNED:
        return ''
    makes_room = new.planner == automation.MAKE_ROOM
    if makes_room and planner != automation.MAKE_ROOM:
        return 'room is made first'
    if found is None:
        return ''
    if level == automation.AUTO:
        return 'the level is auto by now, and a new plan starts without approval'
    if makes_room:    # load does not decide which of two such plans is better
        return ''
    if found.unrelieved:
        return f'{found.unrelieved[0]} is hot by now, and the plan does not relieve it'
    if new.combined_before is None or new.combined_after is None:
        return ''
    gain = new.combined_before - new.combined_after
    if found.combined - new.combined_after > MARGIN * gain:
        return (f'it would end at a combined imbalance of {found.combined:.3f} by now, and a new '
                f'plan at {new.combined_after:.3f}')
    return ''


def replaced_because(new: AggregateReport, level: str) -> str:
    """Return the reason why a new evaluation replaces the plan that waits for approval; '' if the
    waiting plan is kept. Used if one of the two is about repairs of violated rules, and the other
    is about all other moves:

    * An evaluation of repairs always replaces a waiting plan of other moves.
    * An evaluation of other moves replaces waiting repairs if its plan starts without approval, or
      if no move was found.

    :param level: automation level of the new evaluation's moves
    """
    if new.purpose == automation.REPAIR:
        return ('rules are repaired first, without approval' if level == automation.AUTO
                else 'only rules are to be repaired by now')
    if new.outcome in (plans.BALANCED, plans.NO_MOVE):
        return 'no move repairs a rule by now'
    is_started = new.outcome == plans.PLANNED and level == automation.AUTO
    return 'other moves are made first, without approval' if is_started else ''


def not_worth_starting(report: AggregateReport, before: float, after: float) -> str:
    """Return the reason why an approved plan is no longer worth starting; '' if it may be started.
    A plan with moves that do not spread load may always be started.

    :param before: combined imbalance now
    :param after: combined imbalance after the moves that are still permitted
    """
    promised_before, promised_after = report.combined_before, report.combined_after
    if promised_before is None or promised_after is None or any(
            move.phase != plans.SPREAD for move in report.moves):
        return ''
    if before - after >= LEAST_GAIN * (promised_before - promised_after):
        return ''
    return (f'it was to bring the combined imbalance from {promised_before:.3f} to '
            f'{promised_after:.3f}, and by now brings it from {before:.3f} to {after:.3f} only')
