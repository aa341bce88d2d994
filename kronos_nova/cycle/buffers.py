"""The room that buffers keep free for new servers, in one evaluation. No move is planned into this
room. If a buffer has lost room, moves that make the room again are planned."""

import dataclasses
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping

from oslo_log import log as logging

from kronos_nova import exception
from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.cooldown import PlanningHistory
from kronos_nova.cycle import loss_rule
from kronos_nova.cycle import room_requests
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.inputs import room_rules
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.cycle.rule_holds import rule_holds
from kronos_nova.inventory.base import InventorySource
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
        return tuple(map(self._with_buffers, reports))

    def _with_buffers(self, report: AggregateReport) -> AggregateReport:
        states = [each for each in self.states if each.buffer.aggregate == report.name]
        moves: tuple[PlannedMove, ...] = ()
        warnings = [*report.warnings, *self.warnings.get(report.name, ())]
        for state in states:
            if self.maker is not None and state.is_lost:
                is_busy = bool(moves) or self.maker.must_wait(report)
                found = () if is_busy else self.maker.moves(state, self.states, report)
                warnings.append(_said(state, bool(found), is_busy))
                moves = moves or found
        report = dataclasses.replace(report, warnings=tuple(warnings), buffers=tuple(
            BufferRoom(name=each.buffer.name, flavor=each.shape.name, wanted=each.wanted,
                       found=each.found) for each in states))
        return with_room_moves(report, moves) if moves else report


def gives_way(report: AggregateReport) -> bool:
    """Return True if a plan that makes room may replace the plan of the report. This is permitted
    if the report has no moves, or only moves that are chosen by load. Return False otherwise."""
    return all(move.phase in plans.BY_LOAD for move in report.moves)


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
                 inventory: InventorySource) -> KeptBuffers:
    """Return the KeptBuffers of the evaluated aggregates. A buffer of an aggregate that does not
    exist is logged, and no room is kept for this buffer.

    :param snapshot: the cloud, in which room held for new servers counts as used
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
    known, warnings = _shaped(wanted, inventory)
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
    """Return the uuids of the servers of an aggregate that must not be moved now to make room.

    :param now: Unix seconds
    """
    held = rule_holds(rules.selections, aggregate, {each.uuid for each in snapshot.instances}, now,
                      history.instances_moved_today) if rules.selections else {}
    return {*making.pinned(snapshot, rules, options.opt_out), *history.quarantines,
            *history.instances, *held}


def _shaped(wanted: Iterable[Buffer], inventory: InventorySource
            ) -> tuple[list[tuple[Buffer, Shape]], dict[str, list[str]]]:
    """Return the buffers with the shapes of their flavors (the resources of one server), and
    warnings about buffers whose flavor Nova does not have.

    :returns: ([(buffer, shape)], {aggregate: warnings})
    """
    found, warnings = [], dict[str, list[str]]()
    flavors = {each.name: each for each in inventory.read_flavors()} if any(
        not shapes.TEXT.fullmatch(each.flavor) for each in wanted) else {}
    for each in wanted:
        try:
            found.append((each, flavors.get(each.flavor) or shapes.parse(each.flavor)))
        except exception.RequestRefused:
            warnings.setdefault(each.aggregate, []).append(
                f'buffer {each.name}: Nova has no flavor {each.flavor}; nothing is kept for it')
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

    def must_wait(self, report: AggregateReport) -> bool:
        """Return True if no room can be made in an aggregate now, because a plan is in progress, a
        cooldown has not ended, or the report has a plan that must not be replaced. Return False
        otherwise."""
        return (report.name in self.history.under_way or not gives_way(report)
                or self.history.aggregates.get(report.name, 0.0) > 0)

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
        moves = room_requests.planned(found.moves, f'makes room for buffer {state.buffer.name}')
        rule = loss_rule.rule_of(self.snapshot, self.policies, self.options, self.planner_ports)
        return () if loss_rule.lowering(rule, moves) else moves

    def _plan(self, cloud: Snapshot, state: BufferState, held: Collection[str],
              loads: Mapping[str, float]) -> RoomPlan | None:
        limits = self.planner_ports.limits(self.options, self.options.moves(self.policies.budget))
        return buffers.plan(cloud, self.rules, state, limits, held, loads)


def _said(state: BufferState, is_planned: bool, is_busy: bool) -> str:
    """Return the text for an operator about a buffer that has less room than it should."""
    said = (f'buffer {state.buffer.name}: {state.found} of {state.wanted} servers of '
            f'{state.shape.name} fit')
    if is_planned:
        return f'{said}; moves make room for more'
    return f'{said}; ' + ('room is made once the aggregate is at rest' if is_busy else
                          'no moves within the budget were found that make room for more')
