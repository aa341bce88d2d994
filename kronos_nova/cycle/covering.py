"""Plans by which one more loss of a host or failure domain is covered. The loss of a host or
failure domain is covered if all servers there could restart elsewhere. The moves of a plan make
room for these servers."""

import dataclasses
import functools
from collections.abc import Collection
from collections.abc import Iterator

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.cooldown import PlanningHistory
from kronos_nova.cycle import buffers
from kronos_nova.cycle import loss_rule
from kronos_nova.cycle import move_limits
from kronos_nova.cycle import room_requests
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.inputs import room_rules
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.objects import automation
from kronos_nova.objects.plan import AggregateReport
from kronos_nova.objects.plan import CycleReport
from kronos_nova.objects.plan import PlannedMove
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.planners.base import Limits
from kronos_nova.policies import PolicySet
from kronos_nova.room import covering
from kronos_nova.room import making
from kronos_nova.room.loss_rule import LossRule
from kronos_nova.room.losses import Loss
from kronos_nova.room.making import RoomPlan

TRIED = 3
"""Maximum number of losses in an aggregate for which one evaluation searches moves. A loss is the
failure of a host or of a failure domain. The moves make room on other hosts, in which all servers
of the lost hosts could restart. Raised, evaluations of full clouds take longer; lowered, the moves
for some losses are found only in later evaluations. Not measured: the limit bounds the time that
evaluations of full clouds take."""


def with_covering_plans(report: CycleReport, snapshot: Snapshot, taken: Snapshot,
                        policies: PolicySet, options: EngineOptions, planner_ports: PlannerPorts,
                        history: PlanningHistory) -> CycleReport:
    """Plan moves that cover one more loss of a host or failure domain, in each aggregate where this
    is possible. Return the CycleReport with these plans.

    A loss is covered if all servers of the host or domain could restart elsewhere. The options
    ``failover_hosts`` and ``failover_domains`` demand that losses are covered. No plan is made for
    a loss that is covered once the moves in progress have completed. A plan that covers a loss
    replaces a plan whose moves are chosen by load. The new plan counts as a repair, and has
    the automation level of repairs.

    :param snapshot: the cloud, for judging whether servers restart elsewhere. Room that is held for
        new servers counts as used in it. The room of buffers counts as free, because restarts may
        use it
    :param taken: the same cloud, for the search of moves. Here the room of buffers counts as used
        as well, because moves may use neither
    """
    rule = loss_rule.rule_of(snapshot, policies, options, planner_ports)
    wanted = [each for each in report.aggregates if _may_repair(each, options)
              and not buffers.waits_for(each, report.aggregates, snapshot, options, history,
                                        planner_ports.now)]
    open_losses = rule.uncovered() if rule is not None and wanted else []
    settled = snapshot.after_moves()
    if open_losses and settled is not snapshot:
        later = loss_rule.rule_of(settled, policies, options, planner_ports)
        covered_soon = later.fitting((), open_losses) if later is not None else []
        open_losses = [loss for loss in open_losses if loss not in covered_soon]
    if rule is None or not open_losses:
        return report
    found = {each.name: each for each in report.aggregates}
    for each in wanted:
        if buffers.other_moves(each.name, found.values(), snapshot):
            continue
        moves = _plan(each.name, rule, open_losses, taken, policies, options, planner_ports,
                      move_limits.with_other_plans(history, each.name, found.values(),
                                                   options.automatic))
        if moves:
            found[each.name] = dataclasses.replace(
                buffers.with_room_moves(each, moves), purpose=automation.REPAIR)
    return dataclasses.replace(report, aggregates=tuple(found.values()))


def _may_repair(report: AggregateReport, options: EngineOptions) -> bool:
    """Return True if repairs may be planned for an aggregate: they are not off, and they are not to
    be planned after moves that the report has. A plan that covers a loss counts as a repair."""
    order = options.repair_order.get(report.name, automation.TOGETHER)
    return order != automation.NEVER and not (order == automation.LAST and report.moves)


def _plan(aggregate: str, rule: LossRule, open_losses: list[Loss], taken: Snapshot,
          policies: PolicySet, options: EngineOptions, planner_ports: PlannerPorts,
          history: PlanningHistory) -> tuple[PlannedMove, ...]:
    """Return moves that cover one more loss of a host or failure domain; an empty tuple if no such
    moves are found. A loss is covered if all servers of the lost host or domain could restart
    elsewhere. After the moves, all losses that are covered now are still covered."""
    inside = making.within(taken, aggregate)
    rules = room_rules(options, policies, taken)
    pinned = buffers.pinned(taken, aggregate, rules, options, history, planner_ports.now)
    limits = planner_ports.limits(options, options.moves(policies.budget))
    for loss in _first_losses(inside, open_losses):
        if limits.is_past:
            break
        found = buffers.permitted(functools.partial(
            _room_plan, inside, rules, loss, limits), pinned, inside, options, history,
            planner_ports.now)
        if found is None or not found.moves or len(found.moves) > limits.budget:
            continue
        moves = room_requests.planned(
            found.moves,
            f'all servers of {loss.name} restart elsewhere after it if {loss.name} is lost',
            taken.instances)
        if (rule.fitting(moves, [loss]) and not loss_rule.lowering(rule, moves)
                and not room_requests.refused(found.moves, taken, planner_ports)):
            return moves
    return ()


def _room_plan(inside: Snapshot, rules: ConstraintRules, loss: Loss, limits: Limits,
               pinned: Collection[str]) -> RoomPlan:
    return RoomPlan(moves=covering.plan(inside, rules, loss, limits, pinned), hosts=(),
                    missing=(), is_proven=False)


def _first_losses(inside: Snapshot, open_losses: list[Loss]) -> Iterator[Loss]:
    """Yield the first :data:`TRIED` losses of those whose hosts are all in the aggregate and in
    service."""
    there = {host.name for host in inside.hosts if host.service.is_available}
    yield from [loss for loss in open_losses if there.issuperset(loss.hosts)][:TRIED]
