"""One evaluation: observe, carry out requests, start approved plans, plan, persist."""

import dataclasses
import datetime
import functools
import time
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence

from oslo_log import log as logging

from kronos_nova import exception
from kronos_nova.cooldown import PlanningHistory
from kronos_nova.cycle import buffers
from kronos_nova.cycle import covering
from kronos_nova.cycle import observe
from kronos_nova.cycle import persist
from kronos_nova.cycle import refused_boots
from kronos_nova.cycle import schedule
from kronos_nova.cycle import steps
from kronos_nova.cycle.broken_rules import broken_rules
from kronos_nova.cycle.held_allocations import SettledAllocations
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.losses import RoomFigures
from kronos_nova.cycle.metrics import Measurements
from kronos_nova.cycle.observe import Observation
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.cycle.persist import ResultWriter
from kronos_nova.cycle.ports import CyclePorts
from kronos_nova.cycle.ports import CycleRules
from kronos_nova.cycle.requests import Requester
from kronos_nova.cycle.room_requests import RoomRequests
from kronos_nova.objects import automation
from kronos_nova.objects import hold
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from kronos_nova.objects.hold import Hold
from kronos_nova.objects.snapshot import UNASSIGNED
from kronos_nova.objects.snapshot import MoveUnderWay
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.policies import PolicySet
from kronos_nova.policies.selection import Selections
from kronos_nova.room import holding

LOG = logging.getLogger(__name__)


NO_FILTER = ('some nova-scheduler has no KronosFilter, or none reports, so that Nova may give the '
             'room to any server: enable the filter, or release the room and make it again')
"""Text for an operator about room held for new servers that no KronosFilter keeps free."""


class Cycle:
    """The evaluation of aggregates.

    :param policies: PolicySet
    :param options: EngineOptions, which name the aggregates to evaluate
    :param may_write: called before each write; returns False if nothing may be written. A cycle may
        not write once the process that ordered the cycle has ended
    """

    def __init__(self, cycle_ports: CyclePorts, policies: PolicySet,
                 options: EngineOptions, rules: CycleRules,
                 utcnow: Callable[[], datetime.datetime],
                 may_write: Callable[[], bool] = lambda: True):
        self.cycle_ports = cycle_ports
        self.policies = policies
        self.options = options
        self.rules = rules
        self.utcnow = utcnow
        self.may_write = may_write

    def run(self) -> plans.CycleReport:
        """Evaluate every aggregate of the options, and start the approved plans of these
        aggregates.

        An aggregate that does not exist is reported; all other aggregates are evaluated.

        :returns: CycleReport
        :raises InventoryError: Nova or placement could not be read; nothing was planned
        """
        now, begun = self.utcnow(), time.monotonic()
        seen = observe.observe(self.cycle_ports, self.options, self.rules)
        writer = ResultWriter(cycle_ports=self.cycle_ports, options=self.options,
                              rules=self.rules, utcnow=self.utcnow, seen=seen)
        options = self._with_levels(
            self._whole_units(self._existing(seen, writer), seen.units))
        planner_ports = PlannerPorts(
            source=self.cycle_ports.metrics, clock=time.monotonic, dry_run=self.cycle_ports.dry_run,
            now=now.timestamp(), names_elsewhere=self.cycle_ports.inventory.names_elsewhere,
            learn=writer.learnt.__setitem__, look_ahead=writer.outlooks.__setitem__,
            forecast_cache=self.cycle_ports.forecast_cache,
            loss_memory=self.cycle_ports.loss_judge.rule_memory)
        measurements = planner_ports.measurements(seen.snapshot, options)
        seen = self._give_up_broken(seen, now)
        self._settle_holds(seen.snapshot, options, now)
        allocations = self._settle_allocations(seen.snapshot, options)
        self._note_problems(seen.snapshot, options, allocations.problems)
        self._choose_aggregates(seen.snapshot, options, planner_ports)
        options = self._carry_out_requests(seen.snapshot, options, planner_ports, measurements)
        settled = self._with_held(seen.read.after_moves(), allocations.held)
        seen = dataclasses.replace(seen, snapshot=self._with_held(seen.snapshot,
                                                                  allocations.held))
        seen = self._start_approved(seen.with_moves(self.cycle_ports), writer, options,
                                    planner_ports, measurements)
        history = self._with_endless(dataclasses.replace(
            self._planning_history(seen, now),
            homes=observe.homes(self.cycle_ports, seen, now)), seen.snapshot, options, measurements)
        kept = self._keep_buffers(seen.snapshot, options, planner_ports, history)
        report = steps.plan_cycle(kept.snapshot if kept else seen.snapshot, self.policies, options,
                                  planner_ports, history, measurements)
        if kept:
            report = dataclasses.replace(report, aggregates=kept.applied(report.aggregates))
        if options.failover_hosts or options.failover_domains:
            report = self._with_covering_plans(
                report, seen.snapshot, kept.snapshot if kept else seen.snapshot, options,
                planner_ports, history)
        report = self._with_losses(report, settled, options, planner_ports, begun)
        self._make_sure_of_our_turn()
        return writer.persist(report, seen.snapshot)

    def _give_up_broken(self, seen: Observation, now: datetime.datetime) -> Observation:
        """Give up the moves that violate the present rules and have not begun.

        :returns: the Observation without these moves
        """
        waiting = self.cycle_ports.journal.moves(states=(moves.PLANNED,)) if (
            self.policies.rules) else ()
        here = [move for move in waiting if seen.scopes is None or move.aggregate in seen.scopes]
        broken = broken_rules(Selections(self.policies.rules, seen.snapshot), here,
                              now.timestamp()) if here else {}
        if not broken:
            return seen
        self._make_sure_of_our_turn()
        given_up = self.cycle_ports.journal.give_up(broken, now)
        for move in given_up:
            LOG.info('Move %s of instance %s from %s to %s is abandoned: %s', move.uuid,
                     move.instance_uuid, move.source, move.destination, broken[move.uuid])
        return seen.without(MoveUnderWay(
            instance_uuid=move.instance_uuid, source=move.source, destination=move.destination)
            for move in given_up)

    def _settle_holds(self, snapshot: Snapshot, options: EngineOptions,
                      now: datetime.datetime) -> None:
        """End the holds (records of room that is kept for new servers) that have expired or whose
        room is used up. For each other hold, record the servers that use its room."""
        holds = self.cycle_ports.holds
        for each in holds.expire(now):
            LOG.info('Room %s for servers of flavor %s has expired, and is no longer kept',
                     each.uuid, each.shape.name)
        for each in self._kept_here(snapshot, options):
            used = holding.used_by(each, snapshot)
            if len(used) >= each.count:
                holds.enter(each, hold.USED, used=used, finished_at=now, problem='')
            elif used != each.used:
                holds.note(each, used=used)

    def _kept_here(self, snapshot: Snapshot, options: EngineOptions) -> list[Hold]:
        """Return the holds (records of room that is kept for new servers) in the evaluated
        aggregates, and the holds in aggregates that no longer exist. Holds in other aggregates are
        left out, because the hosts of these aggregates were not read."""
        known = {each.name for each in snapshot.aggregates}
        elsewhere = known - {*options.scopes(tuple(known))}
        return [each for each in self.cycle_ports.holds.in_states(hold.KEPT)
                if each.aggregate not in elsewhere]

    def _note_problems(self, snapshot: Snapshot, options: EngineOptions,
                       lost: Mapping[str, str]) -> None:
        """Record the present problem of each hold (record of room that is kept for new servers); ''
        if there is none. A problem is a reason why the expected servers cannot use the room, or a
        reason why other servers can use the room.

        :param lost: {uuid of a hold: reason why placement has no allocation for its room}
        """
        kept = self._kept_here(snapshot, options)
        is_filtered = (all(each.keeper != hold.FILTER for each in kept)
                       or self.cycle_ports.schedulers.all_filter())
        for each in kept:
            problem = '; '.join(filter(None, (
                holding.problem_of(each, snapshot), lost.get(each.uuid),
                NO_FILTER if each.keeper == hold.FILTER and not is_filtered else '')))
            if problem != each.problem:
                self.cycle_ports.holds.note(each, problem=problem)

    def _keep_buffers(self, snapshot: Snapshot, options: EngineOptions,
                      planner_ports: PlannerPorts,
                      history: PlanningHistory) -> buffers.KeptBuffers | None:
        if not self.policies.buffers:
            return None
        return buffers.keep_buffers(snapshot, self.policies, options, planner_ports, history,
                                    self.cycle_ports.inventory)

    def _with_endless(self, history: PlanningHistory, snapshot: Snapshot, options: EngineOptions,
                      measurements: Measurements) -> PlanningHistory:
        """Return the history with the servers whose live migration is not expected to end, if
        moves that make room may be planned."""
        if not (self.policies.buffers or options.failover_hosts or options.failover_domains):
            return history
        pace = schedule.Pace(options.pace, history.tries, snapshot,
                             measurements.of_moves(self.policies.migration))
        return dataclasses.replace(history, endless=pace.endless())

    def _with_covering_plans(self, report: plans.CycleReport, snapshot: Snapshot, taken: Snapshot,
                             options: EngineOptions, planner_ports: PlannerPorts,
                             history: PlanningHistory) -> plans.CycleReport:
        """Plan moves that make room, so that the servers of a host or failure domain could restart
        elsewhere if it failed. Return the CycleReport with these plans. If the planning fails,
        return ``report`` unchanged."""
        found = [report]
        persist.alone('planning moves after which a host may be lost', lambda: found.append(
            covering.with_covering_plans(report, snapshot, taken, self.policies, options,
                                         planner_ports, history)))
        return found[-1]

    def _with_losses(self, report: plans.CycleReport, snapshot: Snapshot, options: EngineOptions,
                     planner_ports: PlannerPorts, begun: float) -> plans.CycleReport:
        """Return the CycleReport with two more figures for each aggregate: slots (how many more
        servers fit), and the number of hosts whose loss is covered. The loss of a host is covered
        if all its servers could restart elsewhere. An error in this step does not affect plans.

        :param snapshot: the cloud after the migrations in progress. During a migration, the server
            has allocations on two hosts, so losses would seem not to be covered for some minutes
        """
        found: dict[str, RoomFigures] = {}

        def judge_losses() -> None:
            found.update(self.cycle_ports.loss_judge.reports(
                snapshot, [each.name for each in report.aggregates], self.policies, options,
                planner_ports, planner_ports.clock() - begun, self.cycle_ports.inventory))
        persist.alone('judging the loss of hosts', judge_losses)
        return dataclasses.replace(report, aggregates=tuple(
            dataclasses.replace(each, losses=figures.losses, slots=figures.slots)
            for each in report.aggregates
            for figures in [found.get(each.name, RoomFigures())]))

    def _with_held(self, snapshot: Snapshot, allocated: Collection[str]) -> Snapshot:
        """Return the snapshot, in which room held for new servers counts as used.

        :param allocated: consumers that had allocations when the cloud was read
        """
        kept = self.cycle_ports.holds.in_states(hold.KEPT)
        if not kept:
            return snapshot
        return holding.with_held(snapshot, kept, self.options.packs_numa_cells, allocated)

    def _settle_allocations(self, snapshot: Snapshot, options: EngineOptions
                            ) -> SettledAllocations:
        """Correct the allocations in placement that keep room for new servers, so that they agree
        with the holds. A hold is the record of such room. Return the SettledAllocations: the
        allocations that placement has afterwards, and the holds for which allocations could not be
        made."""
        found = [SettledAllocations()]
        if not self.cycle_ports.room_allocations or not self.cycle_ports.holds.with_consumers():
            return found[-1]
        requests = RoomRequests(self.cycle_ports, self.policies, options, self.rules, self.utcnow)
        names = options.scopes(tuple(each.name for each in snapshot.aggregates))
        persist.alone('checking allocations that keep room', lambda: found.append(
            requests.settle_allocations(snapshot, names)))
        return found[-1]

    def _with_levels(self, options: EngineOptions) -> EngineOptions:
        """Return the options with ``repair_order`` and ``automatic``, which follow from the
        automation levels of the aggregates: whether rules are repaired before, after or together
        with other moves, and which plans start without approval."""
        switches, defaults = self.cycle_ports.switches.read(), self.rules.automation
        names = (*(options.aggregates or ()), UNASSIGNED)
        return dataclasses.replace(
            options,
            repair_order={name: switches.repair_order(name, defaults) for name in names},
            automatic=frozenset(
                (name, purpose) for name in names
                for purpose in (automation.BALANCE, automation.REPAIR)
                if switches.planning_level(name, defaults, purpose) == automation.AUTO))

    @staticmethod
    def _whole_units(options: EngineOptions,
                     units: Mapping[str, frozenset[str]]) -> EngineOptions:
        """Return the options without some of their aggregates. An aggregate is removed if it shares
        hosts with another aggregate that the options do not name. A second worker may be planning
        that other aggregate, and both plans would use the same hosts."""
        names = options.aggregates
        if names is None:
            return options
        for name in names:
            others = sorted(units[name] - set(names))
            if others:
                LOG.warning('Aggregate %s is not planned in this cycle: it now has hosts in common '
                            'with aggregate %s. These aggregates are planned together when they '
                            'are next due.', name, ', '.join(others))
        return dataclasses.replace(options, aggregates=tuple(
            name for name in names if units[name] <= set(names)))

    def _choose_aggregates(self, snapshot: Snapshot, options: EngineOptions,
                           planner_ports: PlannerPorts) -> None:
        """Choose an aggregate for each new server for which Nova found no host. Moves make room for
        the server in this aggregate."""
        wanted = [each for each in self.cycle_ports.holds.in_states((hold.REQUESTED,))
                  if each.aggregate == hold.ANY]
        if not wanted:
            return
        requests = RoomRequests(self.cycle_ports, self.policies, options, self.rules, self.utcnow)
        names = options.scopes(tuple(each.name for each in snapshot.aggregates))
        persist.alone('making room for servers that found no host', lambda: (
            refused_boots.choose_aggregates(requests, wanted, self.rules.automation, names,
                                            snapshot, planner_ports)))

    def _carry_out_requests(self, snapshot: Snapshot, options: EngineOptions,
                            planner_ports: PlannerPorts,
                            measurements: Measurements) -> EngineOptions:
        """Plan the requests of operators, such as drains, and record their plans. Return the
        options without the aggregates that have such requests."""
        known = tuple(aggregate.name for aggregate in snapshot.aggregates)
        missing = {*(self.options.aggregates or ())}.difference(known)
        for make in self.cycle_ports.requesters:
            requester = make(self.cycle_ports, self.policies, options, self.rules, self.utcnow)
            if missing:
                requester.note_missing(missing)
            found = requester.wanted(options.scopes(known))
            for aggregate, wanted in sorted(found.items()):
                persist.alone(f'a request for aggregate {aggregate}', functools.partial(
                    self._carry_out, requester, snapshot, planner_ports, measurements, aggregate,
                    wanted))
            options = options.without(found)
        return options

    def _carry_out(self, requester: Requester, snapshot: Snapshot, planner_ports: PlannerPorts,
                   measurements: Measurements, aggregate: str, wanted: Sequence) -> None:
        outcome = requester.plan(snapshot, planner_ports, measurements, aggregate, wanted)
        self._make_sure_of_our_turn()
        requester.persist(snapshot, aggregate, wanted, outcome)

    def _existing(self, seen: Observation, writer: ResultWriter) -> EngineOptions:
        """Return the options without the aggregates that do not exist. A result is recorded for
        each missing aggregate."""
        names = self.options.aggregates
        known = {aggregate.name for aggregate in seen.snapshot.aggregates}
        for name in sorted(set(names or ()) - known):
            writer.missing(name, self.policies.mode)
        return self.options.existing(known)

    def _make_sure_of_our_turn(self) -> None:
        if not self.may_write():
            raise exception.JournalError('The service that began this cycle has ended, so that '
                                         'the cycle ends without a plan.')

    def _start_approved(self, seen: Observation, writer: ResultWriter, options: EngineOptions,
                        planner_ports: PlannerPorts, measurements: Measurements) -> Observation:
        """Start the approved plans, without the moves that are no longer valid.

        :returns: the Observation, with the moves that were started
        """
        scopes = options.scopes(tuple(aggregate.name for aggregate in seen.snapshot.aggregates))
        for record in self.cycle_ports.journal.approved_plans():
            if record.aggregate not in scopes or not self._may_run(record):
                continue
            start = functools.partial(self._start, record, seen, writer, options, planner_ports,
                                      measurements)
            persist.alone(f'starting plan {record.uuid} for aggregate {record.aggregate}', start)
            seen = seen.with_moves(self.cycle_ports)
        return seen

    def _start(self, record: plans.PlanRecord, seen: Observation, writer: ResultWriter,
               options: EngineOptions, planner_ports: PlannerPorts,
               measurements: Measurements) -> None:
        assert record.report is not None, 'retention keeps the reports of approved plans'
        report = plans.AggregateReport.from_json(record.report)
        # Read for each plan, because the moves of the plan started before begin cooldowns.
        history = self._planning_history(seen, self.utcnow())
        found = steps.still_valid(seen.snapshot, self.policies, options, planner_ports, history,
                                  report, measurements)
        self._make_sure_of_our_turn()
        writer.start(record, report, found)

    def _may_run(self, record: plans.PlanRecord) -> bool:
        switches = self.cycle_ports.switches.read()
        return not (switches.hold(record.aggregate) or switches.refusal(
            record.aggregate, self.rules.automation, record.purpose, is_approved=True))

    def _planning_history(self, seen: Observation, now: datetime.datetime) -> PlanningHistory:
        return observe.planning_history(
            self.cycle_ports, self.options, self.rules, now, seen.scopes, seen.units,
            {name: plans.AggregateReport.from_json(record.report)
             for name, record in seen.proposed.items() if record.report}, self.policies)
