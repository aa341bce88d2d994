"""The room of buffers in an evaluation. No other moves are planned into this room, and room that
was lost is made again by moves."""

import collections
import dataclasses
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

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

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KeptBuffers:
    """The buffers of the evaluated aggregates, and the moves that make their lost room again.

    snapshot : the cloud, in which the room of buffers counts as used
    moves : aggregate to moves that make room for its buffers, where such were found
    warnings : aggregate to texts for an operator about its buffers
    rooms : aggregate to its buffers, with the servers wanted and found to fit
    """

    snapshot: Snapshot
    moves: Mapping[str, tuple[PlannedMove, ...]] = dataclasses.field(default_factory=dict)
    warnings: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    rooms: Mapping[str, tuple[BufferRoom, ...]] = dataclasses.field(default_factory=dict)

    def applied(self, reports: Iterable[AggregateReport]) -> tuple[AggregateReport, ...]:
        """Return the reports of aggregates with the moves and warnings of their buffers. Moves that
        make lost room again replace a plan that only spreads load."""
        return tuple(map(self._with_buffers, reports))

    def _with_buffers(self, report: AggregateReport) -> AggregateReport:
        report = dataclasses.replace(
            report, warnings=(*report.warnings, *self.warnings.get(report.name, ())),
            buffers=self.rooms.get(report.name, ()))
        moves = self.moves.get(report.name, ())
        return with_room_moves(report, moves) if moves and gives_way(report) else report


def gives_way(report: AggregateReport) -> bool:
    """Return whether a plan that makes room may replace the plan of a report, because that plan
    only spreads load, or has no moves."""
    return all(move.phase in plans.BY_LOAD for move in report.moves)


def with_room_moves(report: AggregateReport, moves: tuple[PlannedMove, ...]) -> AggregateReport:
    """Return the report with a plan that makes room, in place of its own plan."""
    return dataclasses.replace(
        report, outcome=plans.PLANNED, moves=moves, planner=automation.MAKE_ROOM,
        combined_after=report.combined_before, hosts_emptied=(), not_moved=(), policies=tuple(
            dataclasses.replace(each, imbalance_after=each.imbalance_before)
            for each in report.policies))


def keep_buffers(snapshot: Snapshot, policies: PolicySet, options: EngineOptions,
                 planner_ports: PlannerPorts, history: PlanningHistory,
                 inventory: InventorySource) -> KeptBuffers:
    """Find the room of all buffers of the evaluated aggregates, and plan moves that make lost room
    again, at most one plan for each aggregate.

    :param snapshot: the cloud, in which held room counts as used
    """
    names = {*options.scopes(tuple(each.name for each in snapshot.aggregates))}
    wanted = [each for each in policies.buffers if each.aggregate in names]
    for each in policies.buffers:
        if each.aggregate not in {UNASSIGNED, *(known.name for known in snapshot.aggregates)}:
            LOG.warning('Buffer %s of the policies file: there is no aggregate %s; nothing is kept '
                        'for it. Correct the name, or create the aggregate.', each.name,
                        each.aggregate)
    if not wanted:
        return KeptBuffers(snapshot=snapshot)
    rules = room_rules(options, policies, snapshot)
    known, warnings = _shaped(wanted, inventory)
    whole, states = _reserve(snapshot, rules, known, options, policies)
    moves = {}
    for state in states:
        name = state.buffer.aggregate
        if not state.is_lost:
            continue
        busy = name in moves or name in history.under_way or history.aggregates.get(name, 0.0) > 0
        found = () if busy else _plan(
            snapshot, rules, state, states, options, policies, planner_ports,
            pinned(snapshot, name, rules, options, history, planner_ports.now))
        if found:
            moves[name] = found
        warnings.setdefault(name, []).append(_said(state, bool(found), busy))
    rooms = collections.defaultdict[str, tuple[BufferRoom, ...]](tuple)
    for state in states:
        rooms[state.buffer.aggregate] += (BufferRoom(
            name=state.buffer.name, flavor=state.shape.name, wanted=state.wanted,
            found=state.found),)
    return KeptBuffers(snapshot=whole, moves=moves, rooms=rooms, warnings={
        name: tuple(said) for name, said in warnings.items()})


def _reserve(snapshot: Snapshot, rules: ConstraintRules, known: Iterable[tuple[Buffer, Shape]],
             options: EngineOptions, policies: PolicySet) -> tuple[Snapshot, list[BufferState]]:
    """Find the room of buffers, where the mode of the policies needs it least."""
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
    """Return the buffers with the shapes of their flavors, and warnings about buffers whose flavor
    Nova does not have."""
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


def _plan(snapshot: Snapshot, rules: ConstraintRules, state: BufferState,
          states: Sequence[BufferState], options: EngineOptions, policies: PolicySet,
          planner_ports: PlannerPorts, pinned: Collection[str]) -> tuple[PlannedMove, ...]:
    """Return moves after which more servers of a buffer fit; an empty tuple where none were
    found."""
    others = [(each.buffer, each.shape) for each in states if each is not state]
    cloud, _states = _reserve(snapshot, rules, others, options, policies)
    found = buffers.plan(cloud, rules, state,
                         planner_ports.limits(options, options.moves(policies.budget)), pinned)
    if found is None or room_requests.refused(found.moves, cloud, planner_ports):
        return ()
    moves = room_requests.planned(found.moves, f'makes room for buffer {state.buffer.name}')
    rule = loss_rule.rule_of(snapshot, policies, options, planner_ports)
    return () if loss_rule.lowering(rule, moves) else moves


def _said(state: BufferState, is_planned: bool, is_busy: bool) -> str:
    """Return the text for an operator about a buffer that has less room than it should."""
    said = (f'buffer {state.buffer.name}: {state.found} of {state.wanted} servers of '
            f'{state.shape.name} fit')
    if is_planned:
        return f'{said}; moves make room for more'
    return f'{said}; ' + ('room is made once the aggregate is at rest' if is_busy else
                          'no moves within the budget were found that make room for more')
