"""The planning of all aggregates in an evaluation. Each aggregate goes through the same steps."""

import dataclasses
import functools
from collections.abc import Iterator

from oslo_log import log as logging

from kronos_nova import boundary
from kronos_nova import exception
from kronos_nova.cooldown import PlanningHistory
from kronos_nova.cycle import approval
from kronos_nova.cycle import explain
from kronos_nova.cycle import loss_rule
from kronos_nova.cycle import metrics
from kronos_nova.cycle import move_limits
from kronos_nova.cycle import precheck
from kronos_nova.cycle import problem
from kronos_nova.cycle import schedule
from kronos_nova.cycle import solve
from kronos_nova.cycle.aggregates import Scope
from kronos_nova.cycle.inputs import Inputs
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.metrics import Load
from kronos_nova.cycle.metrics import Measurements
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.cycle.requests import BALANCING
from kronos_nova.cycle.requests import PlanRequest
from kronos_nova.model import Model
from kronos_nova.model import State
from kronos_nova.objects import automation
from kronos_nova.objects import plan
from kronos_nova.objects.plan import AggregateReport
from kronos_nova.objects.plan import CycleReport
from kronos_nova.objects.plan import PlannedMove
from kronos_nova.objects.snapshot import UNASSIGNED
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.policies import PolicySet

LOG = logging.getLogger(__name__)


def plan_cycle(snapshot: Snapshot, policies: PolicySet, options: EngineOptions,
               planner_ports: PlannerPorts, history: PlanningHistory | None = None,
               measurements: Measurements | None = None,
               request: PlanRequest = BALANCING) -> CycleReport:
    """Plan every aggregate in scope, without changing anything.

    The caller controls planning by these parameters:

    * ``history`` has the cooldowns and quarantines (seconds left). An aggregate in cooldown is
      reported and not planned; an instance in cooldown or quarantine stays on its host.
    * ``options.aggregates`` names the aggregates to plan. The caller leaves out aggregates whose
      automation level is ``off``, and aggregates that another worker has locked.
    * ``planner_ports.dry_run`` asks Nova's scheduler, or placement, about every move of a plan, in
      order. A refused pair of instance and host is forbidden, and planning continues until no move
      is refused.
    * ``measurements`` has the answers of the metrics source and the measured loads. The caller
      passes its own Measurements if other parts of the evaluation need the same figures. By
      default, new Measurements are made.
    * ``request`` determines the hosts that are emptied, and the servers that may be moved.

    An aggregate that cannot be planned has the outcome ``failed`` with the reason; all other
    aggregates are planned.

    If aggregates share hosts, each aggregate is planned from the end state of the aggregate planned
    before. The result does not depend on the order of the input. The result depends on the clock
    only if the time limit is reached.

    :raises ConfigurationError: ``options`` names an aggregate or a planner that does not exist
    """
    started = planner_ports.clock()
    line = Line(snapshot, policies, options, planner_ports, history or PlanningHistory(),
                measurements, request)
    names = options.scopes(tuple(aggregate.name for aggregate in snapshot.aggregates))
    reports = tuple(line.plan_alone(scope) for scope in map(line.scope, names)
                    if scope.hosts or scope.name != UNASSIGNED)
    return CycleReport(planning_seconds=planner_ports.clock() - started, aggregates=reports)


def measured(snapshot: Snapshot, policies: PolicySet, options: EngineOptions,
             planner_ports: PlannerPorts) -> Iterator[tuple[str, Load]]:
    """Yield (aggregate, load) for every aggregate in scope. The load is measured as for planning,
    but without the planning history. Nothing is planned.

    :raises ConfigurationError: ``options`` names an aggregate that does not exist
    """
    line = Line(snapshot, policies, options, planner_ports, PlanningHistory())
    for name in options.scopes(tuple(aggregate.name for aggregate in snapshot.aggregates)):
        scope = line.scope(name)
        if scope.available.any():
            yield name, metrics.measure_aggregate(line.given, scope)


def still_valid(snapshot: Snapshot, policies: PolicySet, options: EngineOptions,
                planner_ports: PlannerPorts, history: PlanningHistory,
                report: AggregateReport,
                measurements: Measurements | None = None) -> approval.Checked:
    """Return the result of checking an older plan against the present cloud. The check uses the
    same rules and loads as planning.

    :param measurements: as for :func:`plan_cycle`
    """
    line = Line(snapshot, policies, options, planner_ports, history, measurements)
    scope = line.scope(report.name)
    load = metrics.measure_aggregate(line.given, scope)
    if load.no_data and any(move.phase in plan.BY_LOAD for move in report.moves):
        return approval.Checked(waits_for='; '.join(
            f'policy {policy} has no data: {why}' for policy, why in sorted(load.no_data.items())))
    case = problem.state_problem(line.given, scope, load, line.in_flight)
    found = approval.check(line.given, load, case, report)
    lowering = loss_rule.lowering(
        loss_rule.rule_of(snapshot, policies, options, planner_ports),
        [move for move in report.moves if move.order not in found.wrong])
    return dataclasses.replace(found, wrong={**found.wrong, **lowering})


class Line:
    """The planning of the aggregates of one evaluation, one after the other. Metrics are read when
    the first aggregate is measured, and not before.

    in_flight : the moves planned so far
    started : the moves planned so far that start without approval. They count towards the limits on
        the number of moves, like moves of the journal
    """

    def __init__(self, snapshot: Snapshot, policies: PolicySet, options: EngineOptions,
                 planner_ports: PlannerPorts, history: PlanningHistory,
                 measurements: Measurements | None = None, request: PlanRequest = BALANCING):
        self._given = snapshot, policies, options, planner_ports, history
        self._measurements, self._request = measurements, request
        self.in_flight = problem.MovesInFlight()
        self.started: list[PlannedMove] = []

    @functools.cached_property
    def given(self) -> Inputs:
        snapshot, policies, options, planner_ports, history = self._given
        measurements = self._measurements or planner_ports.measurements(snapshot, options)
        pace = schedule.Pace(options.pace, history.tries, snapshot,
                             measurements.of_moves(policies.migration))
        return Inputs.gather(*self._given, measurements, pace, self._request)

    @functools.cached_property
    def _loss_rules(self) -> loss_rule.LossRules:
        """The LossRules of the evaluation, one for each plan. The loss of a host is covered if all
        its servers can restart elsewhere. A LossRule forbids moves after which a covered loss would
        no longer be covered."""
        given = self.given
        return loss_rule.LossRules(given.snapshot, given.policies, given.options,
                                   given.planner_ports)

    def scope(self, name: str) -> Scope:
        """Return the hosts and instances of one aggregate, or of the pool of unassigned hosts.

        :raises ConfigurationError: there is no aggregate of that name
        """
        return self.given.scopes.scope(name, self.in_flight)

    def plan_alone(self, scope: Scope) -> AggregateReport:
        """Plan an aggregate, and return the report. An unexpected error fails this aggregate
        only."""
        try:
            return self.plan(scope)
        except exception.ConfigurationError:
            raise  # the cause is an option, which all aggregates share
        except Exception as error:
            LOG.exception('Aggregate %s could not be planned', boundary.shown(scope.name))
            return AggregateReport(
                name=scope.name, outcome=plan.FAILED, mode=self.given.policies.mode,
                planner=self.given.planner,
                warnings=(f'could not be planned: {type(error).__name__}: '
                          f'{boundary.shown(error)}',))

    def plan(self, scope: Scope) -> AggregateReport:
        """Measure and plan an aggregate, and return the report."""
        given, load = self.given, self._measured(scope)
        if not load.policies and not given.options.evacuate_disabled_hosts:
            return explain.unmeasured(given, scope, load)
        case = problem.state_problem(given, scope, load, self.in_flight)
        model = case.compile(case.ahead)
        before = State(model)
        due = solve.due_phases(given, scope.name, load, case, before)
        found = explain.Findings(given=given, scope=scope, load=load, case=case, before=before,
                                 due=due)
        parts = due.parts(given.options.repair_order.get(scope.name, automation.TOGETHER))
        reports = {}
        for purpose, part in parts:
            reports[purpose] = dataclasses.replace(
                self._plan_part(dataclasses.replace(found, due=part), model), purpose=purpose)
            if reports[purpose].moves:
                if (scope.name, purpose) in given.options.automatic:
                    self.started += reports[purpose].moves
                return reports[purpose]
        return reports.get(automation.BALANCE) or reports[automation.REPAIR]

    def _measured(self, scope: Scope) -> Load:
        """Return the load of an aggregate. The metrics show each server on its present host, also
        the servers that this evaluation has planned to move."""
        if not self.in_flight.moved:
            return metrics.measure_aggregate(self.given, scope)
        present = self.given.scopes.scope(scope.name, problem.MovesInFlight())
        return metrics.measure_aggregate(self.given, present).for_instances(
            present.instances, scope.instances)

    def _plan_part(self, found: explain.Findings, model: Model) -> AggregateReport:
        """Plan the phases that are due in an aggregate, and return the report."""
        given, scope, load, case, before, due = (
            found.given, found.scope, found.load, found.case, found.before, found.due)
        if due.is_idle:  # an aggregate without data is not reported as balanced
            return explain.unmoved(found, plan.NO_DATA if load.no_data else plan.BALANCED)
        waits = solve.waits_for(given, scope.name, due)
        if waits:
            return explain.unmoved(found, plan.COOLING, waits)
        limits = given.limits()
        checks = precheck.Checks.from_case(dataclasses.replace(
            given, history=move_limits.counted(given.history, self.started)), case, model, limits)
        planned = case.compile(case.expected) if due.goes_by_load and case.outlook else model
        timely = schedule.timely(
            given.pace,
            lambda limits: solve.sorted_by_prefixes(
                precheck.checked(given, planned, due, limits, checks), planned, limits),
            schedule.highest(case.problem), limits)
        timely = loss_rule.cut_plan(self._loss_rules.begin() if timely.moves else None, timely,
                                    given.pace, limits)
        after = timely.chosen.state if planned is model else timely.chosen.end_in(model)
        self.in_flight.add(after, [step for _phase, step in timely.chosen.steps])
        self._loss_rules.add(timely.moves)
        if timely.chosen.steps:
            approval.look_ahead(given, load, case, before, after)
        return explain.explain(found, timely, after, State(planned), limits, checks)
