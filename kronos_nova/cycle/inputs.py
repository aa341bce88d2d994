"""The input of all steps of an evaluation."""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING
from typing import Any

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.cooldown import PlanningHistory
from kronos_nova.cooldown import left
from kronos_nova.cycle.aggregates import ScopeIndex
from kronos_nova.cycle.forecast_columns import ForecastCache
from kronos_nova.cycle.metrics import Measurements
from kronos_nova.cycle.metrics import NamesElsewhere
from kronos_nova.cycle.metrics import nowhere_else
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.cycle.requests import BALANCING
from kronos_nova.cycle.requests import PlanRequest
from kronos_nova.metrics.base import MetricsSource
from kronos_nova.objects.dry_run import DryRun
from kronos_nova.objects.dry_run import not_asked
from kronos_nova.objects.host_checks import MOVING_CHECKS
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.planners.base import Limits
from kronos_nova.policies import PolicySet
from kronos_nova.policies.selection import Selections
from kronos_nova.room.losses import LossMemory

if TYPE_CHECKING:
    from kronos_nova.cycle.schedule import Pace


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlannerPorts:
    """The sources and callbacks that the steps of an evaluation use to plan.

    source : metrics source for the policies' queries
    clock : returns monotonic seconds, for time limits and durations
    now : Unix seconds of the cycle, by which the age of samples and migrations is measured
    dry_run : asks Nova or placement, once for each chosen move, whether the move would be permitted
    names_elsewhere : called with (attribute of instances, values); returns those of the values that
        also occur in instances which the snapshot does not contain
    learn : called with an aggregate and the updated statistics of its instances, {policy:
        LoadStats}
    look_ahead : called if a plan waits for approval and a newer plan was made for the same
        aggregate. The arguments are the aggregate and the ProposalOutlook of the waiting plan
    forecast_cache : past loads read in earlier cycles, for forecasts
    loss_memory : results of earlier cycles: for each loss of a host, the hosts on which its servers
        could restart
    """

    source: MetricsSource
    clock: Callable[[], float]
    now: float
    dry_run: DryRun = not_asked
    names_elsewhere: NamesElsewhere = nowhere_else
    learn: Callable[[str, dict], None] = lambda aggregate, stats: None
    look_ahead: Callable[[str, Any], None] = lambda aggregate, outlook: None
    forecast_cache: ForecastCache = dataclasses.field(default_factory=ForecastCache)
    loss_memory: LossMemory = dataclasses.field(default_factory=LossMemory)

    def limits(self, options: EngineOptions, budget: int) -> Limits:
        """Return the Limits of a plan. The time limit for planning starts with this call.

        :param budget: maximum number of moves
        """
        return Limits(budget=budget, clock=self.clock,
                      deadline=self.clock() + options.planning_time_limit)

    def measurements(self, snapshot: Snapshot, options: EngineOptions) -> Measurements:
        """Return the Measurements (answers to queries, and loads) that one evaluation shares."""
        return Measurements.of_cloud(self.source, snapshot, options.accept_partial_metrics,
                                     self.names_elsewhere)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The input for all aggregates of an evaluation.

    history : the planning history; it names the instances whose live migration is not expected to
        end
    pace : estimates the durations of moves
    scopes : index of the hosts and instances of each aggregate
    rules : facts, in addition to the snapshot, from which constraints are made
    request : the request for which the aggregates are planned
    """

    snapshot: Snapshot
    policies: PolicySet
    options: EngineOptions
    planner_ports: PlannerPorts
    history: PlanningHistory
    measurements: Measurements
    pace: 'Pace'
    scopes: ScopeIndex
    rules: ConstraintRules
    request: PlanRequest = BALANCING

    @classmethod
    def gather(cls, snapshot: Snapshot, policies: PolicySet, options: EngineOptions,
               planner_ports: PlannerPorts, history: PlanningHistory,
               measurements: Measurements, pace: 'Pace',
               request: PlanRequest = BALANCING) -> 'Inputs':
        """Make the inputs, with the index of aggregates and the rules for constraints."""
        return cls(
            snapshot=snapshot, policies=policies, options=options, planner_ports=planner_ports,
            history=dataclasses.replace(history, endless=pace.endless()),
            measurements=measurements, pace=pace, scopes=ScopeIndex(snapshot, request),
            request=request,
            rules=ConstraintRules(
                restrict_to_az=options.restrict_to_az, reserve_hosts=options.reserve_hosts,
                soft_group_cost=options.soft_group_cost,
                soft_groups_yield=options.soft_groups_yield, host_checks=options.host_checks,
                packs_numa_cells=options.packs_numa_cells,
                closed_hosts=frozenset(host.name for host in snapshot.hosts
                                       if host.service.is_available and not request.takes(host)),
                selections=Selections(policies.rules, snapshot),
                returns=left(history.moves, planner_ports.now - options.no_return_window)))

    @property
    def planner(self) -> str:
        """The name of the planner that reports name: the only planner that the request permits, or
        else the planner that balances load."""
        return self.request.planner or self.options.planner(self.policies.mode)

    @property
    def is_restrained(self) -> bool:
        """Return True if moves are chosen by the load that is likely to last; False if they are
        chosen by the measured load."""
        return bool(self.options.restraint) and self.policies.mode == 'spread'

    def limits(self) -> Limits:
        """Return the Limits of the plan for one aggregate. The time limit for planning starts with
        this call."""
        options = self.options
        return dataclasses.replace(
            self.planner_ports.limits(options, options.moves(self.policies.budget)),
            overload_ceiling=options.overload_ceiling)


def room_rules(options: EngineOptions, policies: PolicySet,
               snapshot: Snapshot) -> ConstraintRules:
    """Return the ConstraintRules for moves that make room."""
    return ConstraintRules(
        restrict_to_az=options.restrict_to_az, host_checks=options.host_checks,
        packs_numa_cells=options.packs_numa_cells,
        selections=Selections(policies.rules, snapshot))


def restart_rules(options: EngineOptions, policies: PolicySet,
                  snapshot: Snapshot) -> ConstraintRules:
    """Return the ConstraintRules for servers that restart on another host. Checks that only concern
    live migrations are left out."""
    rules = room_rules(options, policies, snapshot)
    return dataclasses.replace(rules, host_checks=options.host_checks - MOVING_CHECKS)
