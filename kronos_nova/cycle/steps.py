"""One cycle: from what was read to what is to be moved, and why."""

import dataclasses
import datetime
import functools
import math
from collections.abc import Callable
from collections.abc import Iterator
from types import MappingProxyType

import numpy as np
from oslo_log import log as logging

from kronos_nova import boundary
from kronos_nova import exception
from kronos_nova.constraints import registry
from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.constraints.veto import SchedulerVeto
from kronos_nova.cooldown import PlanningHistory
from kronos_nova.cooldown import left
from kronos_nova.cycle import approval
from kronos_nova.cycle import explain
from kronos_nova.cycle import forecast_columns
from kronos_nova.cycle import restraint
from kronos_nova.cycle import schedule
from kronos_nova.cycle import solve
from kronos_nova.cycle.aggregates import Scope
from kronos_nova.cycle.aggregates import ScopeIndex
from kronos_nova.cycle.approval import Checked
from kronos_nova.cycle.approval import check_again
from kronos_nova.cycle.approval import replay
from kronos_nova.cycle.forecast_columns import ForecastCache
from kronos_nova.cycle.metrics import Answered
from kronos_nova.cycle.metrics import Load
from kronos_nova.cycle.metrics import Measurements
from kronos_nova.cycle.metrics import NamesElsewhere
from kronos_nova.cycle.metrics import Occupied
from kronos_nova.cycle.metrics import measure
from kronos_nova.cycle.metrics import nowhere_else
from kronos_nova.cycle.metrics import weigh
from kronos_nova.cycle.move_limits import RemainingMoveLimits
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.cycle.precheck import Precheck
from kronos_nova.cycle.prices import copy_prices
from kronos_nova.cycle.prices import prices
from kronos_nova.cycle.problem import MovesInFlight
from kronos_nova.cycle.problem import build
from kronos_nova.cycle.problem import marks
from kronos_nova.cycle.requests import BALANCING
from kronos_nova.cycle.requests import PlanRequest
from kronos_nova.load import host_readings
from kronos_nova.metrics.base import MetricsSource
from kronos_nova.model import State
from kronos_nova.objects import plan
from kronos_nova.objects.dry_run import DryRun
from kronos_nova.objects.dry_run import not_asked
from kronos_nova.objects.plan import AggregateReport
from kronos_nova.objects.plan import CycleReport
from kronos_nova.objects.plan import HostScore
from kronos_nova.objects.plan import PolicyReport
from kronos_nova.objects.snapshot import UNASSIGNED
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.planners.base import Limits
from kronos_nova.policies import PolicySet

LOG = logging.getLogger(__name__)

PLANNING_SHARE = 0.6
"""Of planning_time_limit: the rest is for asking about the moves, each some 50 ms, and for planning
on without those that are refused."""
NEEDS_RESTRAINT = ('[kronos] restraint is 0, and without it every cycle would move servers for '
                   'hours that cannot be made even')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlannerPorts:
    """What a cycle reaches out to.

    source : answers the policies' queries
    clock : monotonic seconds, for the time limit and the time taken
    now : Unix seconds of the cycle, against which samples and migrations are old or new
    dry_run : asks beforehand whether moves would be let happen; asked once for every move that was
        chosen, never for others
    names_elsewhere : of names of instances of the snapshot, those that others of the cloud have too
    learn : called with an aggregate and what is known of its instances, {policy: LoadStats}
    look_ahead : called with an aggregate and the ProposalOutlook of the plan that waits there,
        where a new one was made
    forecast_cache : what was read for the forecasts of earlier cycles
    """

    source: MetricsSource
    clock: Callable[[], float]
    now: float
    dry_run: DryRun = not_asked
    names_elsewhere: NamesElsewhere = nowhere_else
    learn: Callable[[str, dict], None] = lambda aggregate, stats: None
    look_ahead: Callable[[str, approval.ProposalOutlook], None] = lambda aggregate, outlook: None
    forecast_cache: ForecastCache = dataclasses.field(default_factory=ForecastCache)


@dataclasses.dataclass(frozen=True, slots=True)
class Checks:
    """What a finished plan of one aggregate has to pass."""

    precheck: Precheck
    move_limits: RemainingMoveLimits


def plan_cycle(snapshot: Snapshot, policies: PolicySet, options: EngineOptions,
               planner_ports: PlannerPorts, history: PlanningHistory | None = None,
               measurements: Measurements | None = None,
               request: PlanRequest = BALANCING) -> CycleReport:
    """Plan every aggregate in scope. Nothing is changed anywhere.

    How the rest of Kronos gets in:

    * ``history`` tells what is cooling or quarantined (seconds left); an aggregate that cools is
      reported and not planned, an instance that does stays where it is.
    * Which aggregates are planned is ``options.aggregates``: whoever calls leaves out those whose
      automation is ``off``, or that another worker holds, with ``dataclasses.replace``. What may be
      done with a plan is not decided here.
    * ``planner_ports.dry_run`` is Nova's scheduler, or placement. It is asked about every move of a
      finished plan, in order; a refusal masks that pair of instance and host and planning goes on,
      until nothing is refused.

    ``measurements`` are those of the evaluation that this is a part of; by default new ones.
    ``request`` says which hosts are emptied, and which servers may be moved.

    An aggregate that cannot be planned has the outcome ``failed`` with the reason, and the others
    are planned as if it were not there.

    Aggregates that share hosts are planned one from where the other ends. The answer does not
    depend on the order in which anything was read, nor on the clock, unless the time limit is
    reached.

    :raises ConfigurationError: an aggregate or a planner of that name does not exist
    """
    started = planner_ports.clock()
    cycle = _Cycle(snapshot, policies, options, planner_ports, history or PlanningHistory(),
                   measurements, request)
    names = options.scopes(tuple(aggregate.name for aggregate in snapshot.aggregates))
    reports = tuple(cycle.plan_alone(scope) for scope in map(cycle.scope, names)
                    if scope.hosts or scope.name != UNASSIGNED)
    return CycleReport(planning_seconds=planner_ports.clock() - started, aggregates=reports)


def measured(snapshot: Snapshot, policies: PolicySet, options: EngineOptions,
             planner_ports: PlannerPorts) -> Iterator[tuple[str, Load]]:
    """Measure every aggregate in scope, as a cycle without a history does, and plan nothing.

    :raises ConfigurationError: an aggregate of that name does not exist
    """
    cycle = _Cycle(snapshot, policies, options, planner_ports, PlanningHistory())
    for name in options.scopes(tuple(aggregate.name for aggregate in snapshot.aggregates)):
        scope = cycle.scope(name)
        if scope.available.any():
            yield name, cycle.measure(scope)


def still_valid(snapshot: Snapshot, policies: PolicySet, options: EngineOptions,
                planner_ports: PlannerPorts, history: PlanningHistory,
                report: AggregateReport, measurements: Measurements | None = None) -> Checked:
    """Check an older plan with the cloud as it is now, by all that planning uses.

    :param measurements: as :func:`plan_cycle`
    """
    cycle = _Cycle(snapshot, policies, options, planner_ports, history, measurements)
    scope = cycle.scope(report.name)
    load = cycle.measure(scope)
    if load.no_data and any(move.phase in plan.BY_LOAD for move in report.moves):
        return Checked(waits_for='; '.join(
            f'policy {policy} has no data: {why}' for policy, why in sorted(load.no_data.items())))
    around = cycle.scopes.around(scope)
    case = build(scope, load, cycle.reader, around, cycle.in_flight, history, options)
    ahead = cycle.ahead(case, cycle.forecasts(scope, load, case))
    if cycle.is_restrained:
        ahead = cycle.outlook(scope, case, ahead).problem
    model = cycle.compiled(ahead, around, load)
    start = State(model)
    capped = model.with_ceiling(start, options.overload_ceiling)
    present = State(cycle.compiled(case.problem, around, load))
    before = _combined(present, load.policies)
    replay(case, present, present.model.with_ceiling(present, options.overload_ceiling), report)
    found = check_again(case, start, capped, report)
    if before is None or found.wrong.keys() >= {move.order for move in report.moves}:
        return found
    return dataclasses.replace(found, void=approval.not_worth_starting(
        report, before, _combined(present, load.policies)))


def measurements_of(snapshot: Snapshot, options: EngineOptions,
                    planner_ports: PlannerPorts) -> Measurements:
    """Make the Measurements of an evaluation."""
    return Measurements.of_cloud(planner_ports.source, snapshot, options.accept_partial_metrics,
                                 planner_ports.names_elsewhere)


class _Cycle:
    """The aggregates of one evaluation. To make one reads nothing."""

    def __init__(self, snapshot, policies, options, planner_ports, history, measurements=None,
                 request=BALANCING):
        self.snapshot, self.policies, self.options = snapshot, policies, options
        self.planner_ports = planner_ports
        self.measurements = measurements or measurements_of(snapshot, options, planner_ports)
        self.reader = self.measurements.reader
        self.in_flight = MovesInFlight()
        self.load_stats, self.noise = {}, {}
        self._history = history
        self.scopes = ScopeIndex(snapshot, request)
        self.rules = ConstraintRules(
            restrict_to_az=options.restrict_to_az, reserve_hosts=options.reserve_hosts,
            soft_group_cost=options.soft_group_cost,
            soft_groups_yield=options.soft_groups_yield,
            closed_hosts=frozenset(host.name for host in snapshot.hosts
                                   if host.service.is_available and not request.takes(host)),
            returns=left(history.moves, planner_ports.now - options.no_return_window))

    @functools.cached_property
    def measured_moves(self):
        return self.measurements.of_moves(self.policies.migration)

    @functools.cached_property
    def pace(self):
        return schedule.Pace(self.options.pace, self._history.tries, self.snapshot,
                             self.measured_moves)

    @functools.cached_property
    def history(self):
        return dataclasses.replace(self._history, endless=self.pace.endless())

    def scope(self, name) -> Scope:
        """:raises ConfigurationError: there is no aggregate of that name"""
        return self.scopes.scope(name, self.in_flight)

    def plan_alone(self, scope: Scope) -> AggregateReport:
        """Whatever is wrong with one aggregate is its own."""
        try:
            return self.plan(scope)
        except exception.ConfigurationError:
            raise  # an option, and so every aggregate's
        except Exception as error:
            LOG.exception('Aggregate %s could not be planned', boundary.shown(scope.name))
            return AggregateReport(
                name=scope.name, outcome=plan.FAILED, mode=self.policies.mode,
                planner=self.planner,
                warnings=(f'could not be planned: {type(error).__name__}: '
                          f'{boundary.shown(error)}',))

    def plan(self, scope: Scope) -> AggregateReport:
        load = self.measure(scope)
        if not load.policies and not self.options.evacuate_disabled_hosts:
            return self.report(scope, load, plan.NO_DATA, notes=tuple(explain.stranded(scope)))
        around = self.scopes.around(scope)
        case = build(scope, load, self.reader, around, self.in_flight, self.history, self.options)
        forecasts = self.forecasts(scope, load, case)
        ahead = self.ahead(case, forecasts)
        expected = self.outlook(scope, case, ahead) if self.is_restrained else None
        model = self.compiled(ahead, around, load)
        needed = self.needed(scope, load, model, forecasts)
        before = State(model)
        self.noise = noise_of(load.policies, expected)
        notes = (*forecast_columns.warnings(forecasts), *explain.stranded(scope),
                 *self.measured_moves.warnings,
                 *explain.other_balancer(self.history, scope),
                 *explain.below_noise(load.policies, self.noise))
        if needed.relieve:
            notes += tuple(explain.own_heat(before, needed.relieve, len(load.policies)))
        if needed.is_idle:  # what is not known is not balanced
            outcome = plan.NO_DATA if load.no_data else plan.BALANCED
            return self.report(scope, load, outcome, before, before,
                               (*self.blocked(case, before), *notes), forecasts)
        waiting = self.waiting(scope, needed)
        if waiting:
            return self.report(scope, load, plan.COOLING, before, before,
                               (waiting, *self.blocked(case, before), *notes), forecasts)
        limits = self.limits()
        precheck = Precheck(self.planner_ports.dry_run, around, case.problem.hosts,
                            lambda: limits.is_past)
        move_limits = RemainingMoveLimits(self.options.move_limits, case.problem, around.instances,
                                          self.history)
        planned = model
        if needed.goes_by_load and expected:
            planned = self.compiled(expected.problem, around, load)
        timely = schedule.timely(
            self.pace,
            lambda limits: solve.sorted_by_prefixes(
                self.choose(planned, needed, limits, Checks(precheck, move_limits)), planned,
                limits),
            schedule.highest(case.problem), limits)
        chosen, moves = timely.chosen, timely.moves
        after = chosen.state if planned is model else _after(model, chosen.steps)
        self.in_flight.add(after, [step for _phase, step in chosen.steps])
        notes = (*self.blocked(case, chosen.state, limits.unplaced), *notes)
        reasons = case.held | self.stayed(chosen, needed, limits.unplaced)
        refused = {refusal.instance_uuid for refusal in precheck.refusals()}
        reasons |= {vm: 'refused' for vm, uuid in enumerate(case.problem.vms)
                    if uuid in refused and chosen.state.vm_host[vm] == case.problem.vm_host[vm]}
        if timely.is_short:
            reasons = {vm: 'late' if reason == 'budget' else reason
                       for vm, reason in reasons.items()}
        if limits.cut.happened:
            notes = (*notes, explain.stopped(self.options.planning_time_limit))
        waits = self.history.proposals.get(scope.name)
        if waits is not None and chosen.steps:
            self.planner_ports.look_ahead(scope.name, approval.outlook(
                waits, case, before, model.with_ceiling(before, self.options.overload_ceiling),
                after, marks(forecast_columns.policy_of_columns(load.policies, forecasts)),
                np.array([policy.weight for policy in load.policies])))
        outcome = plan.NO_DATA if needed.why_no_more else plan.NO_MOVE
        report = self.report(scope, load, plan.PLANNED if chosen.steps else outcome, before,
                             after, (*notes, *self.broken(chosen.state)), forecasts)
        moves = explain.with_next_best(State(planned), chosen.steps, moves,
                                       self.options.overload_ceiling)
        return dataclasses.replace(
            report, notes=self.notes(timely, limits, expected, before, State(planned)),
            moves=self.pace.mark_endless(move_limits.add_owners(precheck.mark_unasked(moves))),
            refusals=precheck.refusals(), unplaced=tuple(
                plan.Unplaced(instance_uuid=case.problem.vms[vm], why=each.why,
                              is_proven=each.is_proven)
                for vm, each in sorted(limits.unplaced.items())),
            not_moved=explain.skips(reasons, case.problem.vms),
            hosts_emptied=_emptied(before, chosen.state))

    def notes(self, timely, limits, outlook, before, planned):
        """What is said of a plan in addition; by ``before`` it is measured, by ``planned`` made."""
        found = explain.about(timely, limits.budget, self.options.pace)
        if outlook is None:
            return tuple(found)
        if timely.moves:
            return (*found, *explain.more_plans(planned, timely, self.options.cooldown))
        return tuple(explain.left_above(before, outlook))

    @property
    def is_restrained(self):
        return bool(self.options.restraint) and self.policies.mode == 'spread'

    def compiled(self, problem, around, load):
        model = registry.compile_model(
            problem, around, self.rules,
            prices(problem, self.options.min_gain, self.history.tries, self.pace,
                   self.options.soft_group_cost))
        return model.with_rules(*(
            guard.rule(self.options.overload_ceiling) for guard in load.guards))

    def forecasts(self, scope, load, case):
        """What is expected of the policies with a forecast, {policy: ForecastColumns}."""
        planner_ports = self.planner_ports
        if self.policies.mode == 'spread' and not self.is_restrained:
            return forecast_columns.unused(load.policies, NEEDS_RESTRAINT)
        return planner_ports.forecast_cache.forecasts(
            planner_ports.source, self.reader, load.policies, scope, case.problem, load.units,
            planner_ports.now)

    def ahead(self, case, forecasts):
        """The problem of the present and the hours to come."""
        return forecast_columns.expanded(case.problem, forecasts, self.is_restrained)

    def outlook(self, scope, case, ahead):
        """What moves are chosen by with restraint: the load that is likely to last."""
        return restraint.outlook(ahead, self.learn(scope, case), self.options.restraint.amount)

    def learn(self, scope, case):
        """{policy: LoadStats} of the instances, after this look at them."""
        if scope.name not in self.load_stats:
            self.load_stats[scope.name] = restraint.learnt(
                self.history.load_stats.get(scope.name, {}), case.problem, self.planner_ports.now)
            self.planner_ports.learn(scope.name, self.load_stats[scope.name])
        return self.load_stats[scope.name]

    def needed(self, scope, load, model, forecasts):
        """What is wrong, of what may be put right: where load is not known, only that disabled
        hosts are not empty."""
        found = solve.needed(model, self.policies.mode, self.options,
                             marks(forecast_columns.policy_of_columns(load.policies, forecasts)),
                             not self.too_early(scope.name))
        if self.is_restrained:
            found = dataclasses.replace(found, copy_prices=copy_prices(
                model.problem, self.pace, self.options.restraint.amount,
                self.load_stats[scope.name]))
        is_known = load.policies and not (self.policies.mode == 'pack' and load.no_data)
        return found if is_known else found.only_evacuating('no_profile')

    def stayed(self, chosen, needed, unplaced):
        """Instance index to why no planner moved it."""
        if needed.why_no_more:
            problem = chosen.state.problem
            reasons = dict.fromkeys(np.flatnonzero(problem.movable).tolist(), needed.why_no_more)
        else:
            reasons = explain.stayed(chosen.state, chosen.budget_left,
                                     self.policies.mode == 'pack')
        if needed.evacuate:
            reasons |= explain.not_evacuated(chosen.state, chosen.budget_left, unplaced)
        return reasons

    def waiting(self, scope, needed):
        """Why nothing is done about what is wrong; '' if something may be."""
        name, windows, now = scope.name, self.options.windows, self.planner_ports.now
        if name in self.history.under_way:
            return self.history.under_way[name]
        if self.history.is_cooling(name):
            return f'cooling for {math.ceil(self.history.aggregates[name])} s more'
        if not windows.is_open(name, now):
            opens = datetime.datetime.fromtimestamp(windows.opens_at(name, now), datetime.UTC)
            return f'outside its maintenance windows; the next opens at {opens.isoformat()}'
        return self.too_early(name) if needed.must_wait else ''

    def too_early(self, name):
        """Why load is not spread yet; '' if it may be."""
        cycles = self.history.imbalanced.get(name, 0) + 1
        needed = self.options.stabilization_cycles
        if cycles < needed:
            return f'imbalanced for {cycles} of {needed} cycles that it must last'
        if self.history.spread.get(name, 0) > 0:
            return f'load is spread again in {math.ceil(self.history.spread[name])} s'
        return ''

    def measure(self, scope) -> Load:
        age = self.options.max_sample_age
        rules = host_readings.ScoringRules(
            min_coverage=self.options.min_coverage,
            oldest=float('-inf') if age is None else self.planner_ports.now - age)
        occupied = self.occupied(scope)
        return self.measurements.load(scope.name, occupied, lambda: weigh(
            measure(self.reader, self.policies.active, scope.host_names, scope.available, rules),
            self.reader, occupied, self.options.belief))

    def occupied(self, scope) -> Occupied:
        """The hosts of a scope as belief needs them."""
        moved = {move.instance_uuid for move in self.history.moves
                 if move.ended_at > self.planner_ports.now - self.options.server_grace}
        moved |= {move.instance_uuid for move in self.snapshot.moves_under_way}
        new = self.planner_ports.now - self.options.server_grace
        return Occupied(
            hosts=scope.hosts, instances=scope.instances, vm_host=scope.vm_host,
            available=scope.available,
            resting=np.array([each.uuid in moved or self.history.hold_on(each.uuid) is not None
                              for each in scope.instances], dtype=bool),
            is_new=np.array([each.launched_at is not None and each.launched_at > new
                             for each in scope.instances], dtype=bool),
            doubted=self.history.doubted.get(scope.name, frozenset()))

    def choose(self, model, needed, limits, checks):
        """Plan, check the plan, and go on without what is refused until nothing is. One deadline
        holds for all rounds and all questions."""
        chosen = None
        while True:
            chosen = solve.run(self.masked(model, checks, chosen), needed, self.planner,
                               self.options, self.to_plan(limits), chosen)
            # Not asked about is what there will be no move of.
            refused = (checks.move_limits.passed(chosen.moves())
                       or checks.precheck.refused(chosen.moves()))
            if not refused:
                return chosen
            # By the masked model nothing may be moved that is in the plan since an earlier round.
            unmasked = dataclasses.replace(chosen, state=chosen.state.under(model))
            chosen = solve.without(unmasked, refused, limits)
            if limits.is_over:
                return chosen

    def masked(self, model, checks, chosen):
        """The model without the pairs that were refused; what is in the plan stays as it is."""
        problem, vetoes = model.problem, dict(checks.precheck.vetoes())
        for _phase, step in chosen.steps if chosen else ():
            vetoes |= {(problem.vms[step.vm], host): 'it is in the plan already'
                       for host in problem.hosts}
        rules = dataclasses.replace(self.rules, vetoes=vetoes)
        return model.with_rules(*SchedulerVeto.compile(problem, self.snapshot, rules),
                                *checks.move_limits.compile())

    def to_plan(self, limits):
        """The limits of one round: of the time that is left, a part is for questions."""
        if self.planner_ports.dry_run is not_asked:
            return limits
        now = limits.clock()
        return dataclasses.replace(
            limits, deadline=now + PLANNING_SHARE * (limits.deadline - now))

    @property
    def planner(self):
        return self.options.planner(self.policies.mode)

    def limits(self) -> Limits:
        clock = self.planner_ports.clock
        return Limits(
            budget=self.policies.budget if self.options.budget is None else self.options.budget,
            clock=clock, deadline=clock() + self.options.planning_time_limit,
            overload_ceiling=self.options.overload_ceiling)

    def blocked(self, case, state, unplaced=MappingProxyType({})):
        """What an operator must know of hosts that are not emptied, given where the plan ends."""
        if not self.options.evacuate_disabled_hosts:
            return
        held = {vm: f'it is left alone ({reason})' for vm, reason in case.held.items()}
        problem = state.problem
        for host in np.flatnonzero(problem.draining):
            blocked = explain.blocked(state, host, held, unplaced)
            if blocked:
                first = min(blocked)
                can = all(each.is_proven for vm, each in unplaced.items()
                          if state.vm_host[vm] == host)
                yield (f'{problem.hosts[host]} {"cannot be" if can else "is not"} emptied: '
                       f'{len(blocked)} of {np.count_nonzero(problem.vm_host == host)} instances '
                       f'are blocked, such as {first}: {blocked[first]}')

    def broken(self, state):
        """What an operator must know of server groups that could not be repaired."""
        broken = state.model.broken(state, self.options.enforce_hard_affinity,
                                    self.options.enforce_soft_affinity)
        for number in np.flatnonzero(broken):
            yield (f'server group {state.problem.groups[number].name} stays broken: '
                   f'{state.groups.misplaced[number]} of its members would have to move')

    def unread(self, scope):
        if scope.name in self.snapshot.unread:
            yield self.snapshot.unread[scope.name]

    def answered(self, load, name):
        """How good the answer for a policy was, as a PolicyReport has it."""
        found = load.answered.get(name, Answered())
        age = self.planner_ports.now - found.oldest
        return {'coverage': found.coverage, 'sample_age': None if math.isnan(age) else age}

    def report(self, scope, load, outcome, before=None, after=None, notes=(),
               forecasts=MappingProxyType({})) -> AggregateReport:
        rows = {name: PolicyReport(name=name, state='no_data', detail=detail, weight=policy.weight,
                                   threshold=policy.threshold, **self.answered(load, name))
                for policy in self.policies.active for name, detail in load.no_data.items()
                if policy.name == name}
        if before is not None:
            imbalances = before.imbalances()
            for number, policy in enumerate(load.policies):
                rows[policy.name] = PolicyReport(
                    name=policy.name, state='ok', weight=policy.weight, threshold=policy.threshold,
                    imbalance_before=float(imbalances[number]),
                    imbalance_after=float(after.imbalances()[number]),
                    forecast=forecast_columns.report(policy.name, forecasts, before.problem,
                                                   imbalances),
                    noise=self.noise.get(policy.name),
                    **self.answered(load, policy.name))
        return AggregateReport(
            name=scope.name, outcome=outcome, mode=self.policies.mode, planner=self.planner,
            policies=tuple(rows[name] for name in sorted(rows)),
            combined_before=_combined(before, load.policies),
            combined_after=_combined(after, load.policies), unbelieved=load.unbelieved,
            warnings=(*self.unread(scope), *load.warnings, *notes),
            host_scores=tuple(_host_scores(scope, load, after)),
            broken_groups=0 if before is None else int(
                before.model.broken(before, hard=True, soft=False).sum()))


def noise_of(policies, outlook):
    """{policy: what noise makes of its imbalance}, of those of which that is known."""
    return {} if outlook is None else {
        policy.name: float(noise) for policy, noise in zip(policies, outlook.noise, strict=False)
        if noise > 0}


def _combined(state, policies):
    """The combined imbalance of the present; None where nothing is known of it."""
    if state is None or not policies:
        return None
    return float(state.imbalances()[:len(policies)] @ [policy.weight for policy in policies])


def _host_scores(scope, load, after):
    scores = load.scores if after is None else after.scores
    for row, host in enumerate(scope.host_names):
        for column, policy in enumerate(load.policies):
            if not np.isnan(load.scores[row, column]):
                yield HostScore(host, policy.name, float(load.scores[row, column]),
                                float(scores[row, column]))


def _after(model, steps):
    """Where the steps lead, with the load as it was measured."""
    state = State(model)
    for _phase, step in steps:
        state.move(step.vm, step.destination)
    return state


def _emptied(before, after):
    """Names of the hosts that have instances before and none after."""
    size = len(before.problem.hosts)
    emptied = (np.bincount(before.vm_host, minlength=size) > 0) & (
        np.bincount(after.vm_host, minlength=size) == 0)
    return tuple(before.problem.hosts[host] for host in np.flatnonzero(emptied))
