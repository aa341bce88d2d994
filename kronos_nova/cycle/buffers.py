"""The room that buffers keep free for new servers, in one evaluation. No move is planned into this
room. If a buffer has lost room, moves that make the room again are planned."""

import dataclasses
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Protocol

from oslo_log import log as logging

from kronos_nova import exception
from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.cooldown import PlanningHistory
from kronos_nova.cooldown import left
from kronos_nova.cycle import loss_rule
from kronos_nova.cycle import move_limits
from kronos_nova.cycle import room_requests
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.inputs import room_rules
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.cycle.rule_holds import rule_holds
from kronos_nova.objects import automation
from kronos_nova.objects import plan as plans
from kronos_nova.objects.plan import AggregateReport
from kronos_nova.objects.plan import BufferRoom
from kronos_nova.objects.plan import PlannedMove
from kronos_nova.objects.shape import Shape
from kronos_nova.objects.snapshot import UNASSIGNED
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.policies import Buffer
from kronos_nova.policies import PolicySet
from kronos_nova.room import buffers
from kronos_nova.room import making
from kronos_nova.room import shapes
from kronos_nova.room.buffers import BufferState
from kronos_nova.room.making import RoomPlan

LOG = logging.getLogger(__name__)

AT_REST = 'room is made once the aggregate is at rest'
SEARCHES = 3
"""Maximum number of searches for a plan that makes room and obeys the limits on moves of projects
and on returns of servers. Each further search leaves out the servers whose moves a limit forbids.
Raised, evaluations with such limits take longer; lowered, room is not made in this evaluation
although other servers could make it. Not measured."""


class FlavorSource(Protocol):
    """The protocol of sources of flavors, such as Nova or a snapshot."""

    def read_flavors(self) -> tuple[Shape, ...]:
        """Return all flavors."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KeptBuffers:
    """The buffers of the evaluated aggregates. A buffer is room that is always kept free for new
    servers.

    snapshot : the cloud, in which the room of buffers counts as used
    states : the buffers, each with the number of wanted servers and the number that fits
    warnings : {aggregate: texts for an operator about buffers for which no room can be kept}
    maker : planner of moves that restore room that buffers have lost
    """

    snapshot: Snapshot
    states: tuple[BufferState, ...] = ()
    warnings: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    maker: '_RoomMaker | None' = None

    def applied(self, reports: Iterable[AggregateReport]) -> tuple[AggregateReport, ...]:
        """Return the reports with the moves and warnings of each aggregate's buffers. If a buffer
        has lost room, moves that make the room again replace a plan whose moves are chosen by load.
        """
        found = list(reports)
        for number, report in enumerate(found):
            found[number] = self._with_buffers(report, found)
        return tuple(found)

    def _with_buffers(self, report: AggregateReport,
                      reports: Iterable[AggregateReport]) -> AggregateReport:
        states = [each for each in self.states if each.buffer.aggregate == report.name]
        moves: tuple[PlannedMove, ...] = ()
        warnings = [*report.warnings, *self.warnings.get(report.name, ())]
        for state in states:
            if self.maker is not None and state.is_lost:
                waits = AT_REST if moves else self.maker.waits_for(report, reports)
                found = () if waits else self.maker.after(report, reports).moves(
                    state, self.states, report)
                warnings.append(_said(state, bool(found), waits))
                moves = moves or found
        report = dataclasses.replace(report, warnings=tuple(warnings), buffers=tuple(
            BufferRoom(name=each.buffer.name, flavor=each.shape.name, wanted=each.wanted,
                       found=each.found) for each in states))
        return with_room_moves(report, moves) if moves else report


def gives_way(report: AggregateReport) -> bool:
    """Return True if a plan that makes room may replace the plan of the report. This is permitted
    if the report has no moves, or only moves that are chosen by load. Return False otherwise."""
    return all(move.phase in plans.BY_LOAD for move in report.moves)


def other_moves(name: str, reports: Iterable[AggregateReport], snapshot: Snapshot) -> bool:
    """Return True if this evaluation has planned moves for another aggregate that has hosts in
    common with an aggregate; False otherwise. Moves that make room are planned without these
    moves.

    :param name: name of the aggregate
    """
    hosts = {*snapshot.hosts_of(name)}
    return any(report.moves and report.name != name
               and not hosts.isdisjoint(snapshot.hosts_of(report.name)) for report in reports)


def waits_for(report: AggregateReport, reports: Iterable[AggregateReport], snapshot: Snapshot,
              options: EngineOptions, history: PlanningHistory, now: float) -> str:
    """Return a text about the time when room can be made in an aggregate without an order of an
    operator; '' if it can be made now. It cannot be made now in these cases:

    * Hosts of the aggregate could not be read. They may have the room.
    * A plan is in progress, or a cooldown has not ended.
    * The report has a plan that must not be replaced.
    * This evaluation has planned moves for another aggregate with hosts in common.
    * The aggregate is outside its maintenance windows.

    :param reports: reports of all aggregates
    :param now: Unix seconds
    """
    if report.name in snapshot.unread:
        return 'room is made once all hosts of the aggregate can be read'
    if not options.windows.is_open(report.name, now):
        return 'room is made in the next maintenance window'
    is_busy = (report.name in history.under_way or not gives_way(report)
               or history.aggregates.get(report.name, 0.0) > 0
               or other_moves(report.name, reports, snapshot))
    return AT_REST if is_busy else ''


def with_room_moves(report: AggregateReport, moves: tuple[PlannedMove, ...]) -> AggregateReport:
    """Return a copy of the report with ``moves`` in place of the moves of its plan. The purpose of
    ``moves`` is to make room for a buffer or for the servers of a lost host."""
    return dataclasses.replace(
        report, outcome=plans.PLANNED, moves=moves, planner=automation.MAKE_ROOM,
        combined_after=report.combined_before, hosts_emptied=(), not_moved=(), policies=tuple(
            dataclasses.replace(each, imbalance_after=each.imbalance_before)
            for each in report.policies))


def keep_buffers(snapshot: Snapshot, policies: PolicySet, options: EngineOptions,
                 planner_ports: PlannerPorts, history: PlanningHistory,
                 inventory: FlavorSource, source: str = 'Nova') -> KeptBuffers:
    """Return the KeptBuffers of the evaluated aggregates. A buffer of an aggregate that does not
    exist is logged, and no room is kept for this buffer.

    :param snapshot: the cloud, in which room held for new servers counts as used
    :param source: name of the source of flavors, for warnings
    """
    names = {*options.scopes(tuple(each.name for each in snapshot.aggregates))}
    wanted = [each for each in policies.buffers if each.aggregate in names]
    for each in policies.buffers:
        if each.aggregate not in {UNASSIGNED, *(known.name for known in snapshot.aggregates)}:
            LOG.warning('Buffer %s of the policies file: there is no aggregate %s; no room is kept '
                        'for it. Correct the name, or create the aggregate.', each.name,
                        each.aggregate)
    if not wanted:
        return KeptBuffers(snapshot=snapshot)
    rules = room_rules(options, policies, snapshot)
    known, warnings = _shaped(wanted, inventory, source)
    whole, states = _reserve(snapshot, rules, known, options, policies)
    return KeptBuffers(
        snapshot=whole, states=tuple(states),
        warnings={name: tuple(said) for name, said in warnings.items()},
        maker=_RoomMaker(snapshot=snapshot, rules=rules, policies=policies, options=options,
                         planner_ports=planner_ports, history=history))


def _reserve(snapshot: Snapshot, rules: ConstraintRules, known: Iterable[tuple[Buffer, Shape]],
             options: EngineOptions, policies: PolicySet) -> tuple[Snapshot, list[BufferState]]:
    """Return the snapshot in which the room of buffers counts as used, and the state of each
    buffer. If the mode of the policies is ``pack``, buffers keep room on the hosts with most free
    room. Otherwise, buffers keep an equal fraction of the room of many hosts."""
    return buffers.reserve(snapshot, rules, known, options.packs_numa_cells,
                           policies.mode == 'pack')


def pinned(snapshot: Snapshot, aggregate: str, rules: ConstraintRules, options: EngineOptions,
           history: PlanningHistory, now: float) -> set[str]:
    """Return the uuids of the servers of an aggregate that must not be moved now to make room,
    without an order of an operator.

    :param now: Unix seconds
    """
    held = rule_holds(rules.selections, aggregate, {each.uuid for each in snapshot.instances}, now,
                      history.instances_moved_today) if rules.selections else {}
    return {*making.pinned(snapshot, rules, options.opt_out), *held,
            *(each.uuid for each in snapshot.instances if history.hold_on(each.uuid)),
            *move_limits.used_up(options.move_limits, snapshot.instances, history)}


def permitted(find: Callable[[set[str]], RoomPlan | None], held: Collection[str],
              snapshot: Snapshot, options: EngineOptions, history: PlanningHistory,
              now: float) -> RoomPlan | None:
    """Return a plan that makes room, whose moves obey the limits of projects and do not return
    servers to hosts that they left not long ago. Return None if no such plan is found.

    :param find: function that returns a plan, without moves of the given servers
    :param held: uuids of servers that must not be moved
    :param now: Unix seconds
    """
    left_lately = left(history.moves, now - options.no_return_window)
    instances = {each.uuid: each for each in snapshot.instances}
    held = {*held}
    for _search in range(SEARCHES):
        found = find(held)
        if found is None:
            return None
        against = {move.instance_uuid for move in found.moves
                   if (move.instance_uuid, move.destination) in left_lately}
        against |= move_limits.beyond(
            options.move_limits, [instances[move.instance_uuid] for move in found.moves], history)
        if not against:
            return found
        held |= against
    return None


def _shaped(wanted: Iterable[Buffer], inventory: FlavorSource, source: str
            ) -> tuple[list[tuple[Buffer, Shape]], dict[str, list[str]]]:
    """Return the buffers with the shapes of their flavors (the resources of one server), and
    warnings about buffers whose flavor does not exist or cannot be read.

    :returns: ([(buffer, shape)], {aggregate: warnings})
    """
    found, warnings = [], dict[str, list[str]]()
    flavors, problem = dict[str, Shape](), ''
    if any(not shapes.TEXT.fullmatch(each.flavor) for each in wanted):
        try:
            flavors = {each.name: each for each in inventory.read_flavors()}
        except exception.InventoryError as error:
            problem = f'the flavors cannot be read ({error})'
    for each in wanted:
        try:
            found.append((each, flavors.get(each.flavor) or shapes.parse(each.flavor)))
        except exception.RequestRefused:
            warnings.setdefault(each.aggregate, []).append(
                f'buffer {each.name}: {problem or f"{source} has no flavor {each.flavor}"}; '
                'nothing is kept for it')
    return found, warnings


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _RoomMaker:
    """A planner of moves for buffers that have lost room. The moves make this room again.

    snapshot : the cloud without the room of buffers
    """

    snapshot: Snapshot
    rules: ConstraintRules
    policies: PolicySet
    options: EngineOptions
    planner_ports: PlannerPorts
    history: PlanningHistory

    def after(self, report: AggregateReport, reports: Iterable[AggregateReport]) -> '_RoomMaker':
        """Return the planner for one aggregate. Moves of the other aggregates' plans of this
        evaluation count towards the limits on moves."""
        return dataclasses.replace(self, history=move_limits.with_other_plans(
            self.history, report.name, reports, self.options.automatic))

    def waits_for(self, report: AggregateReport, reports: Iterable[AggregateReport]) -> str:
        """Return the result of the function :func:`waits_for`."""
        return waits_for(report, reports, self.snapshot, self.options, self.history,
                         self.planner_ports.now)

    def moves(self, state: BufferState, states: Iterable[BufferState],
              report: AggregateReport) -> tuple[PlannedMove, ...]:
        """Return moves after which more servers of a buffer fit. The moves replace the plan of the
        report. The result is empty in three cases:

        * No such moves are found.
        * Nova's scheduler refuses one of the moves.
        * After the moves, the servers of some host could no longer restart elsewhere if the host
          failed.

        If the report has a plan, moves are searched twice. The second search permits only moves off
        the source hosts of this plan, so that the moves also relieve these hosts. The result of the
        second search is used if it meets two conditions:

        * It makes at least as much room as the first result.
        * It copies at most as much memory as the first result and the replaced plan together.

        :param states: all buffers
        :param report: the report of the aggregate, with the plan that would be replaced
        """
        others = [(each.buffer, each.shape) for each in states if each is not state]
        cloud, _states = _reserve(self.snapshot, self.rules, others, self.options, self.policies)
        held = pinned(self.snapshot, report.name, self.rules, self.options, self.history,
                      self.planner_ports.now)
        loads: dict[str, float] = {}
        for each in report.host_scores:
            loads[each.host] = max(each.value, loads.get(each.host, 0.0))
        found = self._plan(cloud, state, held, loads)
        leaving = {move.source for move in report.moves}
        if found is not None and leaving:
            elsewhere = {each.uuid for each in cloud.instances if each.host not in leaving}
            other = self._plan(cloud, state, held | elsewhere, loads)
            copied = sum(move.memory_mb for move in report.moves)
            if (other is not None and len(other.hosts) >= len(found.hosts)
                    and other.memory_mb <= found.memory_mb + copied):
                found = other
        if found is None or room_requests.refused(found.moves, cloud, self.planner_ports):
            return ()
        moves = room_requests.planned(found.moves, f'makes room for buffer {state.buffer.name}',
                                      cloud.instances)
        rule = loss_rule.rule_of(self.snapshot, self.policies, self.options, self.planner_ports)
        return () if loss_rule.lowering(rule, moves) else moves

    def _plan(self, cloud: Snapshot, state: BufferState, held: Collection[str],
              loads: Mapping[str, float]) -> RoomPlan | None:
        limits = self.planner_ports.limits(self.options, self.options.moves(self.policies.budget))
        return permitted(
            lambda also: buffers.plan(cloud, self.rules, state, limits, also, loads), held,
            cloud, self.options, self.history, self.planner_ports.now)


def _said(state: BufferState, is_planned: bool, waits: str) -> str:
    """Return the text for an operator about a buffer that has less room than it should.

    :param waits: text about the time when room can be made; '' if it can be made now
    """
    said = (f'buffer {state.buffer.name}: {state.found} of {state.wanted} servers of '
            f'{state.shape.name} fit')
    if is_planned:
        return f'{said}; moves make room for more'
    return f'{said}; ' + (waits or 'no moves within the budget were found that make room for more')
