"""The use of the :class:`LossRule` in an evaluation. The loss of a host or failure domain is
covered if all its servers can restart elsewhere. A LossRule forbids moves after which a covered
loss would no longer be covered."""

import dataclasses
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping

from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.inputs import restart_rules
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.cycle.schedule import Pace
from kronos_nova.cycle.schedule import TimelyPlan
from kronos_nova.cycle.schedule import highest
from kronos_nova.cycle.solve import without
from kronos_nova.objects.plan import PlannedMove
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.planners.base import Limits
from kronos_nova.policies import PolicySet
from kronos_nova.room import loss_rule
from kronos_nova.room.loss_rule import LossRule

SHARE = 0.5
"""Share of ``planning_time_limit`` that the check of a plan against losses of hosts may take. The
check finds out whether the servers of a lost host could still restart elsewhere after the plan. A
plan is dropped if its check takes longer than this share. By default, a check may take 5 seconds.
Raised, evaluations may take longer; lowered, more plans of large clouds are dropped. Chosen because
the check of 1,000 hosts takes 2.4 seconds the first time, and 0.8 seconds if it reuses results of
an earlier check (``python -m bench failover``)."""


def rule_of(snapshot: Snapshot, policies: PolicySet, options: EngineOptions,
            planner_ports: PlannerPorts) -> LossRule | None:
    """Return the LossRule for one plan. Return None if neither ``failover_hosts`` nor
    ``failover_domains`` is set. The time limit for the checks of the rule starts with this
    call."""
    return LossRules(snapshot, policies, options, planner_ports).begin()


class LossRules:
    """The LossRules of an evaluation, one for each plan. The rule for a plan counts the moves of
    all earlier plans as made."""

    def __init__(self, snapshot: Snapshot, policies: PolicySet, options: EngineOptions,
                 planner_ports: PlannerPorts):
        self._snapshot, self._policies = snapshot, policies
        self._options, self._planner_ports = options, planner_ports
        self._rule: LossRule | None = None
        self._moves: list[PlannedMove] = []

    def begin(self) -> LossRule | None:
        """Return the LossRule for the next plan. Return None if neither ``failover_hosts`` nor
        ``failover_domains`` is set. The time limit for the checks of the rule starts with this
        call."""
        options, clock = self._options, self._planner_ports.clock
        if not (options.failover_hosts or options.failover_domains):
            return None
        deadline = clock() + SHARE * options.planning_time_limit

        def left() -> float:
            return deadline - clock()

        if self._rule is None:
            self._rule = LossRule(
                self._snapshot, restart_rules(options, self._policies, self._snapshot),
                options.failover_hosts, options.failover_domains,
                self._planner_ports.loss_memory, left)
        self._rule, self._moves = self._rule.after(self._moves, left), []
        return self._rule

    def add(self, moves: Iterable[PlannedMove]) -> None:
        """Add the moves of a plan. The rules for later plans count these moves as made."""
        self._moves += moves


def lowering(rule: LossRule | None, moves: Iterable[PlannedMove]) -> dict[int, str]:
    """Return the moves to leave out so that the other moves obey the rule, as {order of a move:
    reason}. The result is empty if there is no rule."""
    moves = sorted(moves, key=lambda move: move.order)
    return loss_rule.cut(rule, moves) if rule is not None and moves else {}


def cut_plan(rule: LossRule | None, timely: TimelyPlan, pace: Pace,
             limits: Limits) -> TimelyPlan:
    """Return the plan without the moves that violate the rule, and without the moves that only help
    together with such a move."""
    kept_back: dict[int, str] = {}
    while True:
        gone = lowering(rule, timely.moves)
        if not gone:
            return dataclasses.replace(timely, kept_back=_still(timely, kept_back))
        steps = timely.chosen.steps
        kept_back |= {steps[order - 1][1].vm: why for order, why in gone.items()}
        chosen = without(timely.chosen, gone, limits)
        timely = dataclasses.replace(timely, chosen=chosen, moves=pace.paced(
            chosen.moves(), highest(chosen.state.problem)))


def lost_by_emptying(snapshot: Snapshot, hosts: Collection[str], moves: Iterable[PlannedMove],
                     policies: PolicySet, options: EngineOptions,
                     planner_ports: PlannerPorts) -> list[str]:
    """Return the names of the hosts and failure domains whose loss is covered now, but would not be
    once ``hosts`` are empty and take no servers. A loss is covered if all servers of the lost hosts
    could restart elsewhere. The result is empty if neither ``failover_hosts`` nor
    ``failover_domains`` is set.

    :param hosts: names of the hosts that are emptied
    :param moves: the moves that empty ``hosts``
    """
    closed = dataclasses.replace(snapshot, hosts=tuple(
        dataclasses.replace(host, service=dataclasses.replace(host.service, status='disabled'))
        if host.name in hosts else host for host in snapshot.hosts))
    before = rule_of(snapshot, policies, options, planner_ports)
    after = rule_of(closed, policies, options, planner_ports)
    if before is None or after is None:
        return []
    others = [loss for loss in before.losses if not {*loss.hosts} & {*hosts}]
    fitting = before.fitting((), others)
    still = {*after.fitting(moves, fitting)}
    return [loss.name for loss in fitting if loss not in still]


def _still(timely: TimelyPlan, kept_back: Mapping[int, str]) -> dict[int, str]:
    """Return ``kept_back`` without the instances that the plan moves.

    :param kept_back: {instance index: reason why its move was left out of an earlier form of the
        plan}
    """
    moved = {step.vm for _phase, step in timely.chosen.steps}
    return {vm: why for vm, why in kept_back.items() if vm not in moved}
