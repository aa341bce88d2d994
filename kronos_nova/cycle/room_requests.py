"""Requests for room for new servers. Each evaluation plans moves that make the room, and records
the progress of the requests."""

import collections
import dataclasses
import datetime
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from oslo_log import log as logging
from oslo_utils import uuidutils

from kronos_nova import exception
from kronos_nova import plural
from kronos_nova.cycle import loss_rule
from kronos_nova.cycle.held_allocations import HeldAllocations
from kronos_nova.cycle.held_allocations import SettledAllocations
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.inputs import room_rules
from kronos_nova.cycle.metrics import Measurements
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.cycle.ports import CyclePorts
from kronos_nova.cycle.ports import CycleRules
from kronos_nova.db import drains
from kronos_nova.objects import automation
from kronos_nova.objects import hold as states
from kronos_nova.objects import plan as plans
from kronos_nova.objects.dry_run import Before
from kronos_nova.objects.hold import Hold
from kronos_nova.objects.plan import PlannedMove
from kronos_nova.objects.snapshot import DEFAULT_ZONE
from kronos_nova.objects.snapshot import Instance
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.policies import PolicySet
from kronos_nova.room import holding
from kronos_nova.room import keeping
from kronos_nova.room import making
from kronos_nova.room.making import RoomMove
from kronos_nova.room.making import RoomPlan

LOG = logging.getLogger(__name__)

REFUSALS = 5
"""Maximum number of plans that one evaluation makes for one request for room for new servers. If
Nova's scheduler refuses moves of a plan, another plan is made without the refused moves. Raised,
room is found more often where few hosts take a server, but the scheduler gets more requests;
lowered, more requests for room have to wait for the next evaluation. Chosen equal to the maximum
number of plans for balancing load; not measured."""


class RoomRequests:
    """The Requester that plans moves for requested room. The record of a request is a hold. Plans
    and progress are recorded in the hold. In each aggregate one hold is planned at a time."""

    def __init__(self, cycle_ports: CyclePorts, policies: PolicySet, options: EngineOptions,
                 rules: CycleRules, utcnow: Callable[[], datetime.datetime]):
        self.cycle_ports = cycle_ports
        self.policies = policies
        self.options = options
        self.utcnow = utcnow

    def wanted(self, aggregates: Collection[str]) -> dict[str, list[Hold]]:
        """Return {aggregate: holds whose room is to be made there}. A hold is the record of a
        request. Holds are left out if no plan may begin in their aggregate now, or if nothing could
        keep their room."""
        found = collections.defaultdict(list)
        holds = [each for each in self.cycle_ports.holds.in_states(states.WANTED)
                 if not each.consumers]     # no allocations to settle
        drained = self._drained() if holds else {}
        # Aggregates with drains are not in ``aggregates``.
        holds = [each for each in holds if each.aggregate in {*aggregates, *drained}]
        if holds:
            switches = self.cycle_ports.switches.read()
            busy = {plan.aggregate: f'waits for the end of plan {plan.uuid}'
                    for plan in self.cycle_ports.journal.running_plans()}
            for each in holds:
                why = (switches.hold(each.aggregate) or drained.get(each.aggregate)
                       or busy.get(each.aggregate)
                       or self._keeper_of(each).why_none or None)
                if why is None:
                    found[each.aggregate].append(each)
                elif each.state == states.REQUESTED and each.problem != why:
                    self.cycle_ports.holds.note(each, problem=why)
        return dict(found)

    def note_missing(self, aggregates: Collection[str]) -> None:
        for each in self.cycle_ports.holds.in_states((states.REQUESTED,)):
            why = (f'Nova does not have aggregate {each.aggregate} any more; "room release" ends '
                   'the request')
            if each.aggregate in aggregates and each.problem != why:
                self.cycle_ports.holds.note(each, problem=why)

    def _drained(self) -> dict[str, str]:
        """Return {aggregate with a host that is being drained: text about the drain for which
        requests for room in the aggregate wait}."""
        with self.cycle_ports.journal.database.reader() as session:
            return {each.aggregate: f'waits for the drain of {each.host}'
                    for each in drains.read(session)}

    def plan(self, snapshot: Snapshot, planner_ports: PlannerPorts, measurements: Measurements,
             aggregate: str, wanted: Sequence[Hold]) -> RoomPlan:
        """Return the moves that make the room of the oldest request in an aggregate.

        :param wanted: the holds (records of the requests), the oldest first
        """
        return self.planned_room(wanted[0], snapshot, planner_ports)

    def planned_room(self, hold: Hold, snapshot: Snapshot, planner_ports: PlannerPorts) -> RoomPlan:
        """Return the moves that make the room of a request, without moves that Nova's scheduler
        refuses. If the room cannot be made, ``missing`` of the result has the reason.

        :param hold: the record of the request
        """
        keeper = self._keeper_of(hold)
        if keeper.problem:
            return RoomPlan(moves=(), hosts=(), missing=(keeper.why_none,), is_proven=False)
        others = [each for each in self.cycle_ports.holds.in_force() if each.uuid != hold.uuid]
        cloud = holding.with_held(_within(snapshot, hold), others, self.options.packs_numa_cells)
        rules = room_rules(self.options, self.policies, cloud)
        pinned = {*making.pinned(cloud, rules, self.options.opt_out),
                  *self.cycle_ports.cooldowns.quarantined(self.utcnow())}
        for _round in range(REFUSALS):
            found = making.plan(cloud, rules, hold.shape, hold.count - len(hold.used),
                                planner_ports.limits(self.options, making.MOVES), pinned,
                                hold.project_id)
            against = refused(found.moves, cloud, planner_ports)
            if not against:
                return self._unless_lowering(hold, found, snapshot, planner_ports)
            pinned |= against
        return dataclasses.replace(
            found, moves=(), hosts=(), is_proven=False,
            missing=("Nova's scheduler refuses moves that would make the room",))

    def _unless_lowering(self, hold: Hold, found: RoomPlan, snapshot: Snapshot,
                         planner_ports: PlannerPorts) -> RoomPlan:
        """Check the plan that makes room for a request, and return it. A loss of hosts is covered
        if all servers of the lost hosts could restart elsewhere. If the moves of the plan would
        make a covered loss uncovered, the returned plan has no moves, and has the reason in
        ``missing``. The plan of a forced request is returned unchanged."""
        rule = None if hold.is_forced else loss_rule.rule_of(
            snapshot, self.policies, self.options, planner_ports)
        lowering = loss_rule.lowering(rule, planned(found.moves, ''))
        if not lowering:
            return found
        return dataclasses.replace(found, moves=(), hosts=(), is_proven=False,
                                   missing=tuple(dict.fromkeys(lowering.values())))

    def persist(self, snapshot: Snapshot, aggregate: str, wanted: Sequence[Hold],
                outcome: RoomPlan) -> None:
        """Record the result of planning a request. The result is the plan that makes the room, the
        fact that the room exists already, or the reason why the room cannot be made. If a part of
        the aggregate does not answer, a request whose room cannot be made is not ended: the next
        evaluation plans it again."""
        hold, now, holds = wanted[0], self.utcnow(), self.cycle_ports.holds
        # Servers that arrived while moves were in progress use a part of the room.
        places = dict(sorted((collections.Counter(outcome.hosts)
                              + collections.Counter(hold.used.values())).items()))
        why = '; '.join(outcome.missing)
        if outage := why and _outage(snapshot, aggregate):
            if hold.problem != f'{outage}: {why}':
                holds.note(hold, problem=f'{outage}: {why}')
        elif outcome.missing:
            if holds.enter(hold, states.FAILED, problem=why, finished_at=now):
                LOG.warning('Room %s for %d servers of flavor %s cannot be made in aggregate %s: '
                            '%s', hold.uuid, hold.count, hold.shape.name, aggregate, why)
        elif not outcome.moves:
            self._begin_keeping(hold, outcome.hosts, places, snapshot)
        elif hold.plans >= states.TRIES:
            holds.enter(hold, states.FAILED, finished_at=now, problem=(
                f'after {hold.plans} plans the room does not exist yet; the moves of plan '
                f'{hold.plan_uuid} say what failed'))
        elif len(outcome.moves) > hold.moves or outcome.memory_mb > hold.memory_mb:
            holds.enter(hold, states.PROPOSED, moves=len(outcome.moves),
                        memory_mb=outcome.memory_mb, problem=(
                            'the cloud has changed: it takes '
                            f'{plural.count(len(outcome.moves), "move")} and '
                            f'{outcome.memory_mb} MiB by now, more than was approved'))
        else:
            self._start(hold, aggregate, snapshot, outcome, places, now)

    def _keeper_of(self, hold: Hold) -> keeping.Keeper:
        """Return what keeps the room of a hold free, such as ``allocations``, or the reason why
        nothing can keep the room free."""
        keeper = keeping.keeper_of(hold.shape, self.cycle_ports.schedulers.all_filter())
        if keeper.name == states.ALLOCATIONS and self.cycle_ports.room_allocations is None:
            return keeping.Keeper(problem='no placement is configured where it is planned')
        return keeper

    def _begin_keeping(self, hold: Hold, hosts: Sequence[str], places: Mapping[str, int],
              snapshot: Snapshot) -> None:
        """Begin to keep the room of a request. The room exists now."""
        keeper = self._keeper_of(hold).name
        allocations = self._allocations()
        if keeper != states.ALLOCATIONS or allocations is None:
            self.enter_held(hold, places, snapshot, keeper)
            return
        try:
            taken = allocations.allocate(hold, hosts, snapshot)
            if taken and not self.enter_held(taken, places, snapshot, keeper):
                allocations.give_back(taken)    # the room was released meanwhile
        except exception.PlacementError as error:
            LOG.warning('Room %s: the allocations that keep the room could not be changed in '
                        'placement; the next evaluation tries again: %s', hold.uuid, error)

    def _allocations(self) -> HeldAllocations | None:
        found = self.cycle_ports.room_allocations
        return HeldAllocations(cycle_ports=self.cycle_ports,
                               allocations=found) if found else None

    def settle_allocations(self, snapshot: Snapshot,
                           aggregates: Collection[str]) -> SettledAllocations:
        """Correct the allocations in placement that keep room for new servers, so that they agree
        with the holds. A hold is the record of such room. This is done before moves for new room
        are planned.

        :param aggregates: names of the aggregates that are evaluated now
        """
        allocations = self._allocations()
        return allocations.settle(
            snapshot, lambda each: each.aggregate in aggregates,
            lambda each: self._resume(each, snapshot)) if allocations else SettledAllocations()

    def _resume(self, hold: Hold, snapshot: Snapshot) -> None:
        """Record that a hold's room is kept. An earlier evaluation allocated the room, but was
        interrupted before the room could be recorded as kept."""
        places = collections.Counter(hold.consumers.values()) + collections.Counter(
            hold.used.values())
        self.enter_held(hold, dict(sorted(places.items())), snapshot, states.ALLOCATIONS)

    def enter_held(self, hold: Hold, places: Mapping[str, int], snapshot: Snapshot,
                   keeper: str) -> bool:
        """Record that the room of a hold exists and is kept by ``keeper``.

        :returns: True if this was recorded; False if the hold has ended in the meantime
        """
        is_entered = self.cycle_ports.holds.enter(
            hold, states.HELD, hosts=dict(places), problem='', keeper=keeper,
            consumers=dict(hold.consumers),
            expires_at=self.utcnow() + datetime.timedelta(seconds=hold.hold_seconds),
            known=holding.known_in(hold, places, snapshot))
        if is_entered:
            LOG.info('Room %s for %d servers of flavor %s is free on %s, and is kept for %d s by '
                     '%s', hold.uuid, hold.count, hold.shape.name, ', '.join(places),
                     hold.hold_seconds, keeper)
        return is_entered

    def _start(self, hold: Hold, aggregate: str, snapshot: Snapshot, outcome: RoomPlan,
               places: Mapping[str, int], now: datetime.datetime) -> None:
        journal, what = self.cycle_ports.journal, f'{hold.count} of {hold.shape.name}'
        uuid, holds = uuidutils.generate_uuid(), self.cycle_ports.holds
        # The hold is written first, because moves are started only while their hold names the plan.
        # No move is then started for room that is released in the meantime.
        keeper = self._keeper_of(hold).name
        if not holds.enter(hold, states.MAKING, hosts=dict(places), plan_uuid=uuid,
                           keeper=keeper if keeper == states.FILTER else '', problem='',
                           known=holding.known_in(hold, places, snapshot)):
            return
        journal.end_waiting(aggregate, plans.SUPERSEDED,
                            f'room for {what} is made, which goes first', now)
        moves = planned(outcome.moves, f'makes room for {what}', snapshot.instances)
        named = plans.servers_of(moves)
        self.cycle_ports.names.save({
            each.uuid: each.display_name for each in snapshot.instances if each.uuid in named}, now)
        try:
            journal.record_plan(
                plans.AggregateReport(name=aggregate, outcome=plans.PLANNED,
                                      mode=self.policies.mode, planner=automation.MAKE_ROOM,
                                      moves=moves),
                plans.EXECUTING, now, now + datetime.timedelta(days=1),
                purpose=automation.MAKE_ROOM, uuid=uuid)
        except exception.PlanPending as error:
            LOG.info('Room %s waits for the end of another plan: %s', hold.uuid, error)
            holds.note(dataclasses.replace(hold, state=states.MAKING), plan_uuid=hold.plan_uuid)
            return
        # A plan counts once it is recorded, so that an outage in between is no failed try.
        holds.note(dataclasses.replace(hold, state=states.MAKING), plans=hold.plans + 1)
        LOG.info('Plan %s starts, to free the room of request %s (room for %s). It has %d moves, '
                 'which copy %.1f GiB of memory', uuid, hold.uuid, what, len(moves),
                 outcome.memory_mb / 1024)


def _outage(snapshot: Snapshot, aggregate: str) -> str:
    """Return the reason why hosts of an aggregate are missing in its plans only for a while: they
    could not be read, or their nova-computes do not report. Return '' if there are no such
    hosts."""
    try:
        inside = {*snapshot.hosts_of(aggregate)}
    except KeyError:
        return ''
    silent = sorted(host.name for host in snapshot.hosts
                    if host.name in inside and host.service.is_silent)
    return '; '.join(filter(None, (
        snapshot.unread.get(aggregate),
        f'nova-compute on {", ".join(silent)} does not report' if silent else '')))


def _within(snapshot: Snapshot, hold: Hold) -> Snapshot:
    """Return the part of the snapshot with the hosts on which the room of a request may be."""
    inside = making.within(snapshot, hold.aggregate)
    if not hold.availability_zone:
        return inside
    zones = snapshot.zones()
    return dataclasses.replace(inside, hosts=tuple(
        host for host in inside.hosts
        if zones.get(host.name, DEFAULT_ZONE) == hold.availability_zone))


def planned(moves: Sequence[RoomMove], reason: str,
            instances: Iterable[Instance] = ()) -> tuple[PlannedMove, ...]:
    """Convert moves that make room to moves of a plan.

    :param instances: the instances that are moved, and any others. The moves of a plan that is
        recorded need them, because they count for the limits of the instances' projects
    """
    projects = {each.uuid: each.project_id or '' for each in instances}
    return tuple(PlannedMove(
        order=order, phase=plans.MAKE_ROOM, instance_uuid=move.instance_uuid, source=move.source,
        destination=move.destination, memory_mb=move.memory_mb, combined_after=None,
        reason=f'{reason}; {move.memory_mb} MiB to copy',
        project_id=projects.get(move.instance_uuid, ''),
        depends_on=tuple(earlier + 1 for earlier in move.depends_on))
        for order, move in enumerate(moves, start=1))


def refused(moves: Sequence[RoomMove], cloud: Snapshot, planner_ports: PlannerPorts) -> set[str]:
    """Return the uuids of the servers whose moves the scheduler refuses."""
    instances = {each.uuid: each for each in cloud.instances}
    hosts = {each.name: each for each in cloud.hosts}
    found: set[str] = set()
    earlier: list[PlannedMove] = []
    for move in planned(moves, ''):
        before = Before(
            arriving=tuple(instances[each.instance_uuid] for each in earlier
                           if each.destination == move.destination),
            leaving=tuple(instances[moves[order - 1].instance_uuid] for order in move.depends_on
                          if moves[order - 1].source == move.destination))
        if planner_ports.dry_run(move, instances[move.instance_uuid], hosts[move.destination],
                                 before).refused:
            found.add(move.instance_uuid)
        earlier.append(move)
    return found
