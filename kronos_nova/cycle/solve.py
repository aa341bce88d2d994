"""The planning of one aggregate. The planners of all due phases run one after the other, within one
budget of moves."""

import collections
import dataclasses
import datetime
import math
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np

from kronos_nova.cycle.inputs import Inputs
from kronos_nova.cycle.metrics import Load
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.cycle.prices import CopyPrices
from kronos_nova.cycle.prices import copy_prices
from kronos_nova.cycle.prices import is_restrained
from kronos_nova.cycle.prices import still_gains
from kronos_nova.cycle.prices import worthwhile
from kronos_nova.cycle.problem import PlanningCase
from kronos_nova.model import TOLERANCE
from kronos_nova.model import Model
from kronos_nova.model import Problem
from kronos_nova.model import State
from kronos_nova.model.rules import AllowedHosts
from kronos_nova.model.rules import ForbiddenPairs
from kronos_nova.objects import automation
from kronos_nova.objects.plan import AFFINITY
from kronos_nova.objects.plan import EVACUATE
from kronos_nova.objects.plan import HOT_SCORE
from kronos_nova.objects.plan import PACK
from kronos_nova.objects.plan import RELIEVE
from kronos_nova.objects.plan import SPREAD
from kronos_nova.objects.plan import PlannedMove
from kronos_nova.planners import base as planners
from kronos_nova.planners import hot_hosts
from kronos_nova.planners import rule_repair
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import NoPlace
from kronos_nova.planners.base import Planner
from kronos_nova.planners.base import Step
from kronos_nova.planners.base import StepRecorder
from kronos_nova.planners.evacuate import waiting
from kronos_nova.planners.hot_hosts import Marks
from kronos_nova.planners.order import WAITS
from kronos_nova.planners.order import Prefixes
from kronos_nova.planners.order import dependencies
from kronos_nova.planners.relieve import Relieve
from kronos_nova.planners.risk import LowerRisk
from kronos_nova.planners.rule_repair import RuleRepair


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DuePhases:
    """The phases of planning that are due in an aggregate. The planners of these phases run.

    relieve : the loads above which hosts count as hot (too loaded); None if no host is hot
    lower_risk : True if restraint is set, and a host is full now or in a forecast hour
    copy_prices : the function that returns the prices of optional moves; None without restraint
    may_balance : False while an imbalance has not lasted long enough, or load was spread recently
    why_no_more : reason why only emptying hosts is due; '' if other phases may be due
    is_own_heat : True if imbalances exceed their thresholds only because of hosts whose high load
        is not caused by their servers. Moves would then not help
    """

    evacuate: bool
    repair: bool
    balance: bool
    repair_rules: bool = False
    relieve: Marks | None = None
    lower_risk: bool = False
    copy_prices: CopyPrices | None = None
    may_balance: bool = True
    why_no_more: str = ''
    is_own_heat: bool = False

    def only_evacuating(self, why: str) -> 'DuePhases':
        """Return a copy in which only one phase is due: emptying hosts.

        :param why: the reason, a word of :data:`~kronos_nova.objects.plan.SKIP_REASONS`
        """
        return dataclasses.replace(
            self, repair=False, repair_rules=False, balance=False, relieve=None, lower_risk=False,
            may_balance=False, why_no_more=why)

    def parts(self, order: str) -> tuple[tuple[str, 'DuePhases'], ...]:
        """Return (purpose, due phases) for each plan to try. The plans are tried in the order of
        the result, and the first plan that has moves is used.

        :param order: order of rule repairs, a constant of :mod:`kronos_nova.objects.automation`
        """
        rest = dataclasses.replace(self, repair_rules=False)
        if order == automation.NEVER:
            return ((automation.BALANCE, rest),)
        if order == automation.TOGETHER or not self.repair_rules:
            return ((automation.BALANCE, self),)
        repair = dataclasses.replace(self, evacuate=False, repair=False, balance=False,
                                     relieve=None, lower_risk=False, may_balance=False)
        if rest.is_idle:
            return ((automation.REPAIR, repair),)
        found = (automation.REPAIR, repair), (automation.BALANCE, rest)
        return found if order == automation.FIRST else found[::-1]

    @property
    def is_idle(self) -> bool:
        """Return True if no phase is due; False if a phase is due."""
        return not (self.evacuate or self.repair or self.repair_rules or self.goes_by_load)

    @property
    def goes_by_load(self) -> bool:
        """Return True if a phase is due because of load; False if there is no such phase."""
        return bool(self.balance or self.relieve or self.lower_risk)

    @property
    def must_wait(self) -> bool:
        """Return True if balancing is the only due phase and may not run yet; False otherwise."""
        return self.balance and not (
            self.may_balance or self.evacuate or self.repair or self.repair_rules
            or self.relieve or self.lower_risk)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The result of planning. ``steps`` are (phase, step) of all phases; ``state`` is the state
    after these steps."""

    state: State
    steps: tuple[tuple[str, Step], ...]
    budget_left: int

    @property
    def emptied(self) -> tuple[str, ...]:
        """The names of the hosts that have instances before the steps and none after them.
        Instances that are migrating to a host count there."""
        state = self.state
        return tuple(state.problem.hosts[host] for host in np.flatnonzero(
            (state.model.guests > 0) & (state.guests == 0)))

    def end_in(self, model: Model) -> State:
        """Return the state after the steps, in another model. The other model has the same hosts
        and instances."""
        state = State(model)
        for _phase, step in self.steps:
            state.move(step.vm, step.destination)
        return state

    def moves(self) -> tuple[PlannedMove, ...]:
        """Return the steps as moves with the names of instances and hosts."""
        problem, groups = self.state.problem, collections.defaultdict(list)
        served = {position for _phase, step in self.steps for position in step.depends_on}
        for order, (_phase, step) in enumerate(self.steps, start=1):
            groups[step.joint].append(order)
        return tuple(PlannedMove(
            order=order, phase=phase, instance_uuid=problem.vms[step.vm],
            source=problem.hosts[step.source], destination=problem.hosts[step.destination],
            memory_mb=int(problem.memory_mb[step.vm]), combined_after=step.combined_after,
            reason=f'{step.reason}{_together(order, step, groups)}; '
                   f'{problem.memory_mb[step.vm]} MiB to copy',
            depends_on=tuple(earlier + 1 for earlier in step.depends_on), group=step.joint,
            only_makes_room=order - 1 in served and only_makes_room(self.state, phase, step))
            for order, (phase, step) in enumerate(self.steps, start=1))


def _together(order: int, step: Step, groups: Mapping[int | None, list[int]]) -> str:
    """Return a text that names the other moves that a step needs in order to help; '' if the step
    helps alone."""
    if step.joint is None:
        return ''
    others = [other for other in groups[step.joint] if other != order]
    named = f'{", ".join(map(str, others[:-1]))} and {others[-1]}' if others[1:] else others[0]
    return f'; helps only together with move{"s" if others[1:] else ""} {named}'


def due_phases(given: Inputs, name: str, load: Load, case: PlanningCase,
               before: State) -> DuePhases:
    """Return the phases that are due in an aggregate. If load is not known, only emptying disabled
    hosts is due.

    :param name: name of the aggregate
    :param before: the state before any move, with columns for the measured load and for forecast
        hours
    """
    options, mode, model = given.options, given.policies.mode, before.model
    found = DuePhases(
        evacuate=options.evacuate_disabled_hosts and len(waiting(before)) > 0,
        repair=bool(model.broken(before, options.enforce_hard_affinity,
                                 options.enforce_soft_affinity).any()),
        repair_rules=options.repair_rules != 'off' and rule_repair.is_due(
            before, options.repair_rules == 'all'),
        relieve=case.marks if case.marks.hot(before).any() else None,
        balance=mode == 'pack' or not before.is_balanced,
        lower_risk=given.is_restrained and _is_full(before),
        copy_prices=copy_prices(model.problem, given.pace, options.restraint.amount,
                                case.load_stats) if given.is_restrained else None,
        may_balance=not given.request.planner and (
            mode == 'pack' or mode == 'spread' and not too_early(given, name)),
        is_own_heat=mode == 'spread' and hot_hosts.is_even_but_for(
            before, hot_hosts.own_heat(before, hot_hosts.uneven_excess(before))))
    is_known = load.policies and not (mode == 'pack' and load.no_data)
    return found if is_known else found.only_evacuating('no_profile')


def waits_for(given: Inputs, name: str, due: DuePhases) -> str:
    """Return the reason why the due phases of an aggregate have to wait; '' if they may run."""
    history, windows, now = given.history, given.options.windows, given.planner_ports.now
    if name in history.under_way:
        return history.under_way[name]
    if history.is_cooling(name):
        return f'cooling for {math.ceil(history.aggregates[name])} s more'
    if not windows.is_open(name, now):
        opens = datetime.datetime.fromtimestamp(windows.opens_at(name, now), datetime.UTC)
        return f'outside its maintenance windows; the next opens at {opens.isoformat()}'
    return too_early(given, name) if due.must_wait else ''


def too_early(given: Inputs, name: str) -> str:
    """Return the reason why load may not be spread in an aggregate yet; '' if it may be."""
    cycles = given.history.imbalanced.get(name, 0) + 1
    wanted = given.options.stabilization_cycles
    if cycles < wanted:
        return f'imbalanced for {cycles} of {wanted} cycles that it must last'
    if given.history.spread.get(name, 0) > 0:
        return f'load is spread again in {math.ceil(given.history.spread[name])} s'
    return ''


def _is_full(state: State) -> bool:
    return bool((state.scores[state.problem.available] > HOT_SCORE).any())


def run(model: Model, due: DuePhases, planner: str, options: EngineOptions, limits: Limits,
        so_far: Chosen | None = None) -> Chosen:
    """Run the planners of all due phases, one after the other. Each planner begins with the end
    state of the planner before.

    :param so_far: an earlier result for the same problem, from which planning continues
    """
    state, steps = State(model), list[tuple[str, Step]]()
    if so_far is not None:
        state, steps = so_far.state.under(model), list(so_far.steps)
    line = _PhaseLine(model=model, options=options, limits=limits, first=state.copy(),
                      begin=len(steps))
    planners = [*_planners(state.problem, due, planner, options)]
    state, steps = _corrected(line, planners, state, steps)
    state, steps = line.run([each for each in planners if each.phase not in CORRECTIVE], state,
                            steps)
    return _in_order(state.under(model), steps, limits)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _PhaseLine:
    """The planners of one plan, which run one after the other.

    first : the state before the steps of these planners
    begin : number of steps before the steps of these planners
    """

    model: Model
    options: EngineOptions
    limits: Limits
    first: State
    begin: int

    def run(self, planners: Sequence[Planner], state: State,
            steps: Sequence[tuple[str, Step]]) -> tuple[State, list[tuple[str, Step]]]:
        """Run some planners, and return two results: the state after their steps, and all steps.

        :param state: the state after ``steps``
        :param steps: (phase, step) of the planners before
        """
        model, begin, steps = self.model, self.begin, list(steps)
        for runner in planners:
            left = dataclasses.replace(self.limits, budget=self.limits.budget - len(steps))
            before = state.under(_as_from_now(model, state))
            before.settle()
            state, more = _planned(runner, before, left, self.options)
            if _moved_twice(steps, more):
                together = _without_detours(self.first.under(model), steps[begin:], more,
                                            self.limits)
                if together is None:
                    once = before.under(_that_moves_once(before.model, before))
                    state, more = _planned(runner, once, left, self.options)
                else:
                    steps, more = steps[:begin], together
            steps += more
        return state, steps


CORRECTIVE = (EVACUATE, AFFINITY)
"""Phases that correct what must not stay: servers on disabled hosts, and violations of server
groups and rules."""


def _corrected(line: _PhaseLine, planners: Sequence[Planner], state: State,
               steps: list[tuple[str, Step]]) -> tuple[State, list[tuple[str, Step]]]:
    """Run the planners of the corrective phases. Hosts are emptied first. If violations remain, the
    servers that left the hosts may have taken the only room by which these can be repaired. Hosts
    are then emptied once more, into other room than that. This result is used if it leaves fewer
    violations, and no more servers on the hosts that are emptied.

    :returns: as :meth:`_PhaseLine.run`
    """
    emptying, repairs = ([each for each in planners if each.phase == phase]
                         for phase in CORRECTIVE)
    limits, begin = line.limits, len(steps)
    found = line.run([*emptying, *repairs], state, steps)
    has_emptied = any(phase == EVACUATE for phase, _step in found[1][begin:])
    if not (repairs and has_emptied and any(_violations(found[0]))) or (
            len(found[1]) >= limits.budget or limits.is_over):
        return found
    repaired, _steps = line.run(repairs, state, steps)
    kept = [(vm, int(repaired.vm_host[vm]))
            for vm in np.flatnonzero(repaired.vm_host != state.vm_host).tolist()]
    if not kept:
        return found
    unplaced = dict[int, NoPlace]()
    other = dataclasses.replace(line, limits=dataclasses.replace(limits, unplaced=unplaced)).run(
        [*(_EmptyingBeside(each, kept) for each in emptying), *repairs], state, steps)
    if _left_undone(other[0]) >= _left_undone(found[0]):
        return found
    limits.unplaced.clear()
    limits.unplaced.update(unplaced)
    return other


class _EmptyingBeside:
    """A planner that empties hosts, and keeps room for later moves.

    :param planner: the planner that empties hosts
    :param kept: (instance, destination) of the later moves. Each of these instances counts on its
        host and on its destination
    """

    phase = EVACUATE

    def __init__(self, planner: Planner, kept: Sequence[tuple[int, int]]):
        self._planner, self._kept = planner, kept

    def plan(self, state: State, limits: Limits) -> list[Step]:
        """Choose the moves and make them on ``state``. If a rule forbids one of the moves while the
        other instances are still on their hosts, make no moves and return none."""
        crowded, trial = state.copy(), state.copy()
        for vm, host in self._kept:
            crowded.arrive(vm, host)
        steps = self._planner.plan(crowded, limits)
        for step in steps:
            if not trial.delta((step.vm, step.destination),
                               model=trial.model.for_emptying).feasible:
                return []
            trial.move(step.vm, step.destination)
        recorder = StepRecorder(state)
        return [recorder.record(step.vm, step.destination, step.why) for step in steps]


def _left_undone(state: State) -> tuple[int, ...]:
    """Return the number of servers that stay on hosts that are emptied, and the violations."""
    return len(waiting(state)), *_violations(state)


def _planned(runner: Planner, before: State, limits: Limits,
             options: EngineOptions) -> tuple[State, list[tuple[str, Step]]]:
    """Return two results: the state after the steps of one planner, and these steps with their
    phase. Steps that spread load are returned only if they are worth their price.

    :param before: the state before the steps, which does not change
    """
    if runner.phase == SPREAD:
        state = _without_own_heat(before.copy())
        chosen = worthwhile(before, state, options.restraint.plan(runner, state, limits))
    else:
        state = before.copy()
        chosen = runner.plan(state, limits)
    return state, [(runner.phase, step) for step in chosen]


def _moved_twice(steps: Sequence[tuple[str, Step]], more: Sequence[tuple[str, Step]]) -> set[int]:
    """Return the instances that are moved by ``steps``, and again by the later steps ``more``."""
    return {step.vm for _phase, step in steps} & {step.vm for _phase, step in more}


def _without_detours(state: State, steps: Sequence[tuple[str, Step]],
                     more: Sequence[tuple[str, Step]],
                     limits: Limits) -> list[tuple[str, Step]] | None:
    """Return the steps of two phases without detours: an instance that both phases move goes to its
    last host at once, by a step of the first of these phases. The step is made where the first
    phase moves the instance, or else where the later phase moves it. Return None if a rule forbids
    one of the moves then.

    :param state: the state before ``steps``
    :param steps: (phase, step) of the earlier phases
    :param more: (phase, step) of the later phase
    """
    twice = _moved_twice(steps, more)
    later = {step.vm: (phase, step) for phase, step in more}
    last = {step.vm: (n, phase, step) for n, (phase, step) in enumerate(steps)}
    direct = {vm: (last[vm][1], dataclasses.replace(
        later[vm][1], why=_both(last[vm][2], *later[vm]))) for vm in twice}
    early = [direct[step.vm] if step.vm in twice and last[step.vm][0] == n else (phase, step)
             for n, (phase, step) in enumerate(steps)]
    early += [(phase, step) for phase, step in more if step.vm not in twice]
    late = [(phase, step) for phase, step in steps if step.vm not in twice]
    late += [direct[step.vm] if step.vm in twice else (phase, step) for phase, step in more
             if step.vm not in twice or later[step.vm][1] is step]
    return _made(state, early, limits) or _made(state, late, limits)


OFF_THE_SOURCE = (EVACUATE, RELIEVE, PACK)
"""Phases whose moves have purposes that are about the host which the instance leaves: the host is
emptied, relieved, or gets room."""


def _both(first: Step, phase: str, second: Step) -> str:
    """Return the purpose of one move that replaces two moves of an instance. The purpose of the
    second move is left out if it is about the host between the two moves.

    :param phase: phase of the second move
    """
    if phase in OFF_THE_SOURCE or second.why in ('', first.why):
        return first.why
    return second.why if first.why == WAITS else f'{first.why}, and {second.why}'


def _made(state: State, steps: Sequence[tuple[str, Step]],
          limits: Limits) -> list[tuple[str, Step]] | None:
    """Return the steps as they are if each begins where the steps before end. Return None if a rule
    forbids one of the moves.

    :param state: the state before the steps
    """
    capped = _before(state.model, limits).model
    recorder, found = StepRecorder(state.copy()), list[tuple[str, Step]]()
    for phase, step in steps:
        model = rules_of(phase, state.model, capped)
        if not recorder.state.delta((step.vm, step.destination), model=model).feasible:
            return None
        found.append((phase, dataclasses.replace(
            recorder.record(step.vm, step.destination, step.why), joint=step.joint)))
    return found


def sorted_by_prefixes(chosen: Chosen, model: Model, limits: Limits) -> Chosen:
    """Return the plan with another order of the moves that spread load. In this order, the first
    moves already lower the imbalance, so that the plan helps even if it is stopped early.

    :param model: the model of the planning, without the rules that forbid refused moves
    """
    before, steps = _before(model, limits), list(chosen.steps)
    first = next((n for n, (phase, _step) in enumerate(steps) if phase == SPREAD), len(steps))
    spread = [step for phase, step in steps[first:] if phase == SPREAD]
    if len(spread) < 2 or len(spread) < len(steps) - first:
        return chosen
    recorder = StepRecorder(State(model))
    for _phase, step in steps[:first]:
        before.move(step.vm, step.destination)
        recorder.record(step.vm, step.destination, step.why)
    found = Prefixes(before, spread)
    order = found.order()
    joints = found.joint_moves(order)
    # A plan that lowers the excess of hosts may end with a higher combined imbalance. If only the
    # last move raises it, this move needs no other move.
    joints = [joint if joints.count(joint) > 1 else None for joint in joints]
    if order == sorted(order) and not any(joints):
        return chosen
    again = [(SPREAD, dataclasses.replace(
        recorder.record(spread[n].vm, spread[n].destination, spread[n].why), joint=joint))
        for n, joint in zip(order, joints, strict=True)]
    # The state ends at the same hosts, and has the rules by which other instances stayed.
    return dataclasses.replace(_in_order(recorder.state, (*steps[:first], *again), limits),
                               state=chosen.state)


def _as_from_now(model: Model, state: State) -> Model:
    """Return the model for the next phase. Instances that an earlier phase has moved do not return
    to the hosts that they left. If restraint is on, they are not moved again at all. Without these
    rules, the phase that spreads load could undo moves of the phases before, such as those that
    relieve hosts."""
    problem, moved = model.problem, state.vm_host != model.problem.vm_host
    if not moved.any():
        return model
    if not is_restrained(problem):
        return model.with_rules(ForbiddenPairs(
            problem, ((problem.vms[vm], problem.hosts[problem.vm_host[vm]])
                      for vm in np.flatnonzero(moved).tolist()),
            reason='cap', why=lambda state, vm, host: 'the plan moves it off this host',
            is_provisional=True))
    return _that_moves_once(model, state)


def _that_moves_once(model: Model, state: State) -> Model:
    """Return the model with one more rule: instances that the plan has moved are not moved again.

    :param state: the state after the moves
    """
    moved = state.vm_host != model.problem.vm_host
    allowed = np.repeat([[True], [False]], len(model.problem.hosts), axis=1)
    return model.with_rules(AllowedHosts(reason='cap', kind=moved.astype(np.intp), allowed=allowed,
                                         why=lambda state, vm, host: 'the plan moves it already',
                                         is_provisional=True))


def _without_own_heat(state: State) -> State:
    """Return the state with one more rule: instances stay on hosts whose high load is not caused by
    their servers. If there are no such hosts, return ``state`` itself."""
    kept = hot_hosts.instances_to_keep(state)
    if not kept.any():
        return state
    allowed = np.repeat([[True], [False]], len(state.problem.hosts), axis=1)
    return state.under(state.model.with_rules(AllowedHosts(
        reason='no_gain', kind=kept.astype(np.intp), allowed=allowed,
        why=lambda state, vm, host: 'its host is hot by itself')))


def _in_order(state: State, steps: Sequence[tuple[str, Step]], limits: Limits) -> Chosen:
    """Return the steps as a Chosen plan, in which each step names the earlier steps on which it
    depends."""
    needed = dependencies([step for _, step in steps], _before(state.model, limits))
    steps = [(phase, dataclasses.replace(step, depends_on=earlier))
             for (phase, step), earlier in zip(steps, needed, strict=True)]
    return Chosen(state=state, steps=tuple(steps), budget_left=limits.budget - len(steps))


def _before(model: Model, limits: Limits) -> State:
    """Return the state before any move. The model of the state has the rules of ``model`` and one
    more rule: no move may load a host above the overload ceiling of ``limits``."""
    start = State(model)
    return start.under(model.with_ceiling(start, limits.overload_ceiling))


def rules_of(phase: str, model: Model, capped: Model) -> Model:
    """Return the model whose rules apply to the moves of a phase:

    * Moves that empty hosts ignore the overload ceiling, the load above which no move may bring a
      host. They also ignore the rules that may be broken to empty hosts.
    * Packing moves ignore the ceiling, because each policy has its own limit for packed hosts.
    * All other moves obey the ceiling.

    :param capped: the model with the overload ceiling
    """
    return {EVACUATE: model.for_emptying, PACK: model}.get(phase, capped)


def without(chosen: Chosen, refused: Collection[int], limits: Limits) -> Chosen:
    """Return the plan without the ``refused`` moves, and without moves that are impossible or
    useless if the refused moves are not made:

    * moves that depend on a move that is left out, or have no room without such a move
    * moves that only make room for moves that are left out
    * packing moves whose source host no longer becomes empty
    * moves that spread load, the last one first, until the remaining moves that spread load gain at
      least their price

    :param refused: numbers (``order``) of the refused moves, counted from 1
    """
    model, gone = chosen.state.model, frozenset(refused)
    while True:
        state = _before(model, limits)
        kept = _that_hold(chosen, gone, state)
        dropped = chosen.steps[:0] + tuple(
            step for order, step in enumerate(chosen.steps, 1) if order not in kept)
        sources = {step.source for phase, step in dropped if phase == PACK}
        more = gone.union(order for order, (phase, step) in enumerate(chosen.steps, 1)
                          if phase == PACK and step.source in sources)
        more |= _needless(chosen, kept, state)
        if more == gone:
            break
        gone = more
    steps = _that_gain(model, [chosen.steps[order - 1] for order in kept])
    recorder = StepRecorder(State(model))
    again = [(phase, recorder.record(step.vm, step.destination, step.why)) for phase, step in steps]
    return _in_order(recorder.state, again, limits)


def _needless(chosen: Chosen, kept: Sequence[int], after: State) -> set[int]:
    """Return the numbers (``order``) of the moves in ``kept`` whose only purpose is to make room
    for moves that are not kept.

    :param after: the state after the moves in ``kept``
    """
    served = {position + 1 for order in kept for position in chosen.steps[order - 1][1].depends_on}
    return {order for order in kept
            if order not in served and only_makes_room(after, *chosen.steps[order - 1])}


def only_makes_room(after: State, phase: str, step: Step) -> bool:
    """Return True if a step serves nothing but other moves. There are two kinds of these steps:
    steps of the phase that empties hosts, but from other hosts; and steps of the phase that repairs
    rules and server groups, without which no rule or group is violated more.

    :param after: the state after all steps
    """
    if phase == EVACUATE:
        return not after.problem.draining[step.source]
    return phase == AFFINITY and (
        _violations(after.after([(step.vm, step.source)])) <= _violations(after))


def _violations(state: State) -> tuple[int, ...]:
    """Return what repairs lower, the most important first: the number of violations of rules, the
    numbers of members that violate hard and soft server groups, and the sum of the penalties of
    violated preferences in units of the tolerance."""
    model, preferences = state.model, state.model.prices.preferences
    wishes = 0.0 if preferences is None else preferences.at(
        np.arange(len(state.vm_host)), state.vm_host).sum()
    return (model.violations(state), *model.misplaced(state, ~model.memberships.by_rule),
            round(wishes / TOLERANCE))


def _that_hold(chosen: Chosen, gone: Collection[int], state: State) -> list[int]:
    """Return the numbers (``order``) of the steps that can still be made, one after the other, if
    the steps ``gone`` are left out."""
    kept: list[int] = []
    for order, (phase, step) in enumerate(chosen.steps, 1):
        model = rules_of(phase, chosen.state.model, state.model)
        waits_for = {position + 1 for position in step.depends_on}
        if (order not in gone and waits_for <= set(kept) and state.vm_host[step.vm] == step.source
                and state.delta((step.vm, step.destination), model=model).feasible):
            state.move(step.vm, step.destination)
            kept.append(order)
    return kept


def _that_gain(model: Model, steps: Sequence[tuple[str, Step]]) -> list[tuple[str, Step]]:
    """Return the steps of a plan that are worth their price. Steps that spread load are removed,
    the last step first, until the remaining steps that spread load together gain at least their
    price. All other steps are kept."""
    before = State(model)
    for phase, step in steps:
        if phase != SPREAD:
            before.move(step.vm, step.destination)
    spread = [step for phase, step in steps if phase == SPREAD]
    dropped = spread[len(still_gains(before, spread)):]
    return [pair for pair in steps if pair[1] not in dropped]


def _may_spread(problem: Problem, due: DuePhases) -> bool:
    if due.balance and due.is_own_heat:
        return False
    # With restraint the imbalance of the expected load ends below the one that starts a plan.
    return due.may_balance and (due.balance or not is_restrained(problem))


def _relieving(due: DuePhases, _name: str, options: EngineOptions) -> Relieve:
    assert due.relieve is not None, 'the phase is due'
    return Relieve(due.relieve, options.min_gain.per_move)


@dataclasses.dataclass(frozen=True, slots=True)
class Method:
    """A planner of one phase, and the condition under which it runs.

    applies_to : called with (problem, due phases); returns True if the planner has anything to do
    planner : makes the planner from (due phases, name of the planner that balances, options)
    """

    applies_to: Callable[[Problem, DuePhases], bool]
    planner: Callable[[DuePhases, str, EngineOptions], Planner]


METHODS = (
    # Servers leave the hosts that are disabled or drained.
    Method(lambda _problem, due: due.evacuate,
           lambda _due, _name, _options: planners.load('evacuate', (EVACUATE,))),
    # Members of broken server groups move, so that the groups hold again.
    Method(lambda _problem, due: due.repair,
           lambda _due, _name, options: planners.load(
               'affinity', (AFFINITY,), hard=options.enforce_hard_affinity,
               soft=options.enforce_soft_affinity)),
    # Servers move so that the rules of operators hold.
    Method(lambda _problem, due: due.repair_rules,
           lambda _due, _name, options: RuleRepair(
               options.repair_rules == 'all', options.max_rule_repairs_per_cycle)),
    # Servers leave the hosts that are hot.
    Method(lambda _problem, due: due.relieve is not None, _relieving),
    # Hosts become less likely to be full, where this saves more than the copies cost.
    Method(lambda problem, due: is_restrained(problem) and (
               _may_spread(problem, due) or due.lower_risk),
           lambda due, _name, _options: LowerRisk(due.copy_prices)),
    # Load is spread evenly, or packed on few hosts.
    Method(_may_spread, lambda _due, name, _options: planners.load(name, (SPREAD, PACK))),
)
"""The planners that make one plan, in the order in which they run. They share one budget of
moves."""


def _planners(problem: Problem, due: DuePhases, name: str,
              options: EngineOptions) -> Iterator[Planner]:
    for method in METHODS:
        if method.applies_to(problem, due):
            yield method.planner(due, name, options)
