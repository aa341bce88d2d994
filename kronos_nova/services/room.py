"""Operations on room for new servers: count the servers that fit, evaluate losses of hosts and
other hypothetical changes, and request or release room."""

import collections
import dataclasses
import datetime
import functools
import time
import typing
from collections.abc import Callable
from collections.abc import Sequence

from oslo_config import cfg
from oslo_utils import uuidutils

from kronos_client.contract import room as contract
from kronos_nova import boundary
from kronos_nova import exception
from kronos_nova.db import cooldowns
from kronos_nova.db import cycles
from kronos_nova.db import evaluations
from kronos_nova.db import holds
from kronos_nova.db.schedulers import Schedulers
from kronos_nova.objects import hold
from kronos_nova.objects.host_checks import MOVING_CHECKS
from kronos_nova.objects.shape import Shape
from kronos_nova.objects.snapshot import UNASSIGNED
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.services import names as known_names
from kronos_nova.services.context import Context

if typing.TYPE_CHECKING:    # pydantic and planning are slow to load
    from kronos_nova.constraints.base import ConstraintRules
    from kronos_nova.cycle.options import EngineOptions
    from kronos_nova.objects.plan import PlannedMove
    from kronos_nova.planners.base import Limits
    from kronos_nova.policies.rules import OperatorRule
    from kronos_nova.room.making import RoomMove
    from kronos_nova.room.slots import Slots
    from kronos_nova.room.trend import Trend
    from kronos_nova.room.whatif import Changed

AboutCloud = (contract.ShowCapacity | contract.CheckFailover | contract.CheckRoom
              | contract.ShowFragments | contract.ShowChangedLoad)
"""A request about the cloud, or about the cloud after hypothetical changes."""
HISTORY = datetime.timedelta(days=28)
"""Time (28 days) from which slot counts are used for a trend. A slot is room for one more server of
a flavor. Each evaluation counts the slots, and the trend estimates when none will be left. Raised,
a change of the trend is seen later; lowered, single weeks count more. Chosen because four weeks
have every weekday equally often."""


def capacity(context: Context, request: contract.ShowCapacity) -> contract.Capacity:
    """Return the number of new servers that fit into the cloud, for each flavor separately. As in
    evaluations, migrations in progress count as completed.

    :raises NotInScope: there is no such aggregate
    :raises HostNotFound: a hypothetical change names an unknown host
    :raises RequestRefused: there is no such flavor, or a change or the policies file cannot be read
    """
    # Imported late: planning takes half a second to load, which the other operations do not need.
    from kronos_nova.room import failover
    from kronos_nova.room import shapes
    from kronos_nova.room import slots
    asked = _cloud(context, request, settled=True)
    snapshot, rules = asked.snapshot, _rules(context, asked.operator_rules, asked.snapshot)
    flavors = sorted(asked.flavors(), key=lambda each: each.name)
    wanted = shapes.named(request.flavors, flavors) if request.flavors else flavors
    counter = slots.SlotCounter(snapshot, rules, wanted, project_id=request.project or '')
    verdicts = []
    if request.loss:
        judge = failover.failover_of(snapshot, rules)
        verdicts = [judge.judge((host,)) for host in judge.hosts_with_servers()]
    left = slots.after_losses(counter, verdicts) if request.loss else [None] * len(wanted)
    trends = _trends(context, request)
    moved = _after_moves(context, request, asked, wanted)
    return contract.Capacity(
        slots=[_slots(counter.slots(number), after, trends.get(wanted[number].name),
                      moved.get(number)) for number, after in enumerate(left)],
        not_restarting=[name for verdict in verdicts if verdict.verdict != failover.FITS
                        for name in verdict.lost], outcome=asked.outcome)


def _after_moves(context: Context, request: contract.ShowCapacity, asked: '_Asked',
                 wanted: Sequence[Shape]) -> dict[int, int]:
    """Return the number of new servers of each shape that would fit if moves made room. The number
    for a shape is computed as if all new servers had this shape.

    :param wanted: shapes; a shape is the resources of one server
    :returns: {position of a shape in ``wanted``: number of servers}; empty if the request permits
        no moves
    """
    from kronos_nova.room import defragmenting  # imported late, as above
    if request.moves is None:
        return {}
    rules = _rules(context, asked.operator_rules, asked.snapshot, moves=True)
    pinned = _pinned(context, asked.snapshot, rules)
    found = {}
    for number, shape in enumerate(wanted):
        limits = _limits(context, request.moves, len(wanted))
        found[number] = defragmenting.plan(asked.snapshot, rules, shape, limits, pinned,
                                           request.project or '').after.total
    return found


def check_failover(context: Context, request: contract.CheckFailover) -> contract.Failover:
    """Return, for each host, whether all its servers would restart on other hosts if the host were
    lost. As in evaluations, migrations in progress count as completed.

    :raises NotInScope: there is no such aggregate
    :raises HostNotFound: a host does not exist, or is not in the aggregate
    :raises RequestRefused: a hypothetical change or the policies file cannot be read
    """
    from kronos_nova.room import failover  # imported late, as above
    asked = _cloud(context, request, settled=True)
    snapshot = asked.snapshot
    judge = failover.failover_of(snapshot, _rules(context, asked.operator_rules, snapshot))
    hosts = [judge.index(name) for name in request.hosts] or judge.hosts_with_servers()
    names = known_names.of_cloud(snapshot)
    return contract.Failover(outcome=asked.outcome, hosts=[
        contract.HostLoss(
            host=verdict.lost[0], verdict=verdict.verdict, servers=judge.servers(host),
            in_novas_order=verdict.verdict == failover.FITS and judge.fits_in_novas_order((host,)),
            left=dict(verdict.left), names={uuid: names[uuid] for uuid in verdict.left})
        for host in hosts for verdict in [judge.judge((host,))]])


def check(context: Context, request: contract.CheckRoom) -> contract.Room:
    """Return whether there is room for new servers, and the moves that would make room for them.

    :raises NotInScope: there is no such aggregate
    :raises HostNotFound: a hypothetical change names an unknown host
    :raises RequestRefused: there is no such flavor, or a change or the policies file cannot be read
    """
    room, _shape, _asked = _checked(context, request)
    return room


def _checked(context: Context,
             request: contract.CheckRoom) -> tuple[contract.Room, Shape, '_Asked']:
    """Return a tuple of three items: the result of :func:`check`, the shape of the new servers, and
    the cloud that was checked. A shape is the resources of one server."""
    from kronos_nova.room import making  # imported late, as above
    asked, shape, rules = _wanted(context, request)
    plan = making.plan(
        asked.snapshot, rules, shape, request.count, _limits(context, making.MOVES),
        _pinned(context, asked.snapshot, rules), request.project or '')
    return contract.Room(
        moves=_named_moves(plan.moves, asked.snapshot), memory_mb=plan.memory_mb,
        hosts=dict(sorted(collections.Counter(plan.hosts).items())),
        missing=list(plan.missing), is_proven=plan.is_proven, outcome=asked.outcome), shape, asked


def show_fragments(context: Context, request: contract.ShowFragments) -> contract.Fragments:
    """Return moves after which more servers of a flavor fit. The moves join free room that is
    spread in small amounts over several hosts. The result also has the numbers of servers that fit
    before and after the moves.

    :raises NotInScope: there is no such aggregate
    :raises HostNotFound: a hypothetical change names an unknown host
    :raises RequestRefused: there is no such flavor, or a change or the policies file cannot be read
    """
    from kronos_nova.room import defragmenting  # imported late, as above
    asked, shape, rules = _wanted(context, request)
    plan = defragmenting.plan(
        asked.snapshot, rules, shape, _limits(context, request.moves),
        _pinned(context, asked.snapshot, rules), request.project or '')
    return contract.Fragments(
        moves=_named_moves(plan.moves, asked.snapshot), before=plan.before.total,
        memory_mb=sum(move.memory_mb for move in plan.moves), after=plan.after.total,
        rate_before=plan.before.fragment_rate, rate_after=plan.after.fragment_rate,
        outcome=asked.outcome)


def what_if(context: Context, request: contract.ShowChangedLoad) -> contract.ChangedLoad:
    """Return the load after hypothetical changes, and the moves that an evaluation would then plan.

    :raises NotInScope: there is no such aggregate
    :raises HostNotFound: there is no such host
    :raises RequestRefused: a change or the policies file cannot be read
    """
    from kronos_nova import policies  # imported late, as above
    from kronos_nova.cooldown import PlanningHistory
    from kronos_nova.cycle import supposed
    from kronos_nova.db import load_stats
    asked = _cloud(context, request)
    chosen, options = policies.load_for_request(
        context.conf.kronos.policies_file), _scope(context, request.aggregate)
    found = supposed.evaluate(
        asked.before, asked.changed, chosen, options, context.planner_ports(), PlanningHistory(
            quarantines=cooldowns.Cooldowns(context.database).quarantined(context.utcnow()),
            load_stats=(load_stats.LoadStatsStore(context.database).read(None)
                        if options.restraint else {})))
    return contract.ChangedLoad(
        loads=[contract.SupposedLoad.made_from(each) for each in found.loads],
        restarts=[contract.RoomMove(
            instance_uuid=each.uuid, instance_name=boundary.shown(each.display_name),
            source=each.host, destination=asked.changed.restarted[each.uuid],
            memory_mb=each.memory_mb)
            for each in asked.before.instances if each.uuid in asked.changed.restarted],
        moves=_named_moves([move for report in found.report.aggregates for move in report.moves],
                           asked.snapshot),
        problems=found.problems(), outcome=asked.outcome)


def _scope(context: Context, aggregate: str | None) -> 'EngineOptions':
    """Return the options of planning. If ``aggregate`` is not None, they are changed so that only
    this aggregate is planned."""
    from kronos_nova.cycle import options as engine_options  # imported late, as above
    options = engine_options.from_conf(context.conf)
    if aggregate is None:
        return options
    is_pool = aggregate == UNASSIGNED
    return dataclasses.replace(options, aggregates=() if is_pool else (aggregate,),
                               include_unassigned_hosts=is_pool)


def _wanted(context: Context, request: contract.CheckRoom | contract.ShowFragments
            ) -> tuple['_Asked', Shape, 'ConstraintRules']:
    """Return a tuple of three items: the cloud, the shape (resources) of one new server, and the
    rules for moves that make room.

    :raises NotInScope: there is no such aggregate
    :raises HostNotFound: a hypothetical change names an unknown host
    :raises RequestRefused: there is no such flavor, or a change or the policies file cannot be read
    """
    from kronos_nova.room import shapes  # imported late, as above
    asked = _cloud(context, request)
    [shape] = shapes.named([request.flavor], asked.flavors())
    return asked, shape, _rules(context, asked.operator_rules, asked.snapshot, moves=True)


def _limits(context: Context, moves: int, parts: int = 1) -> 'Limits':
    """Return the Limits of a plan with at most ``moves`` moves. The time limit counts from the time
    of this call.

    :param parts: number of plans that the caller makes one after the other; the time limit of one
        plan is divided among these plans
    """
    from kronos_nova.cycle import options as engine_options  # imported late, as above
    from kronos_nova.planners.base import Limits
    seconds = engine_options.from_conf(context.conf).planning_time_limit
    return Limits(budget=moves, clock=time.monotonic,
                  deadline=time.monotonic() + seconds / parts)


def _pinned(context: Context, snapshot: Snapshot, rules: 'ConstraintRules') -> list[str]:
    """Return the uuids of the servers that may not be moved in order to make room."""
    from kronos_nova.cycle import options as engine_options  # imported late, as above
    from kronos_nova.room import making
    return making.pinned(snapshot, rules, engine_options.from_conf(context.conf).opt_out)


def _named_moves(moves: Sequence['RoomMove | PlannedMove'],
                 snapshot: Snapshot) -> list[contract.RoomMove]:
    names = known_names.of_cloud(snapshot)
    return [contract.RoomMove.made_from(move, instance_name=names[move.instance_uuid])
            for move in moves]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """The cloud for which a request is evaluated.

    snapshot : the cloud after the hypothetical changes of the request
    before : the cloud before these changes
    whole : the cloud before these changes, also with the hosts outside the named aggregate
    changed : the result of :func:`kronos_nova.room.whatif.changed`
    outcome : the part of this result that the response shows, as a struct of the contract
    operator_rules : rules of operators in the policies file
    flavors : function that returns Nova's flavors; it reads the flavors only once
    """

    snapshot: Snapshot
    before: Snapshot
    whole: Snapshot
    changed: 'Changed'
    outcome: contract.Outcome
    operator_rules: Sequence['OperatorRule']
    flavors: Callable[[], tuple[Shape, ...]]


def _cloud(context: Context, request: AboutCloud, settled: bool = False) -> _Asked:
    """Return the cloud for which a request is evaluated, after the hypothetical changes of the
    request. If the request names an aggregate, the cloud has only the hosts of this aggregate.

    :param settled: True if migrations in progress count as completed
    :raises NotInScope: there is no such aggregate
    :raises HostNotFound: there is no such host
    :raises RequestRefused: a change or the policies file cannot be read
    :raises InventoryError: hosts of the aggregate, or of the cloud, could not be read
    """
    from kronos_nova import policies  # as above
    from kronos_nova.cycle import options as engine_options
    from kronos_nova.room import holding
    from kronos_nova.room import making
    from kronos_nova.room import whatif
    cloud = context.read_cloud()
    snapshot = whole = holding.with_held(
        cloud.after_moves() if settled else cloud, holds.Holds(context.database).in_force(),
        engine_options.packs_numa_cells(context.conf))
    snapshot.refuse_unread(request.aggregate)
    flavors = functools.cache(context.read_flavors)
    if request.aggregate is not None:
        snapshot = making.within(whole, request.aggregate)
    operator_rules = policies.load_for_request(context.conf.kronos.policies_file).rules
    found = whatif.changed(
        snapshot, _rules(context, operator_rules, snapshot), whatif.Changes(
            ratio=request.ratio, add=request.add, lose=request.lose, boot=request.boot),
        flavors, getattr(request, 'project', None) or '')
    names = known_names.of_cloud(snapshot)
    return _Asked(
        snapshot=found.snapshot, before=snapshot, whole=whole, changed=found,
        operator_rules=operator_rules, flavors=flavors,
        outcome=contract.Outcome(
            left=found.left, names={uuid: names[uuid] for uuid in found.left},
            not_booted=found.not_booted))


def _rules(context: Context, operator_rules: Sequence['OperatorRule'], snapshot: Snapshot,
           moves: bool = False) -> 'ConstraintRules':
    """Return the rules that decide which servers fit on which hosts.

    :param moves: True to include the checks for servers that are moved to a host; False for servers
        that start on a host
    """
    from kronos_nova.constraints.base import ConstraintRules  # imported late, as above
    from kronos_nova.cycle.options import packs_numa_cells
    from kronos_nova.policies.selection import Selections
    group = context.conf.kronos
    checks = frozenset(group.host_checks)
    return ConstraintRules(
        restrict_to_az=group.restrict_to_az, selections=Selections(operator_rules, snapshot),
        packs_numa_cells=packs_numa_cells(context.conf),
        host_checks=checks if moves else checks - MOVING_CHECKS)


def _trends(context: Context, request: contract.ShowCapacity) -> dict[str, 'Trend']:
    """Return {flavor: Trend}. A Trend estimates when no further server of the flavor will fit into
    the request's aggregate. The result is empty for a request without an aggregate, with a project,
    or with hypothetical changes."""
    from kronos_nova.room import trend  # imported late, as above
    if request.aggregate is None or request.project or any(
            (request.ratio, request.add, request.lose, request.boot)):
        return {}
    counted = evaluations.Evaluations(context.database).slots_since(
        request.aggregate, context.utcnow() - HISTORY)
    found = {flavor: trend.full_in((at.timestamp() / 86400, slots) for at, slots in points)
             for flavor, points in counted.items()}
    return {flavor: each for flavor, each in found.items() if each is not None}


def _slots(found: 'Slots', after: int | None, trend: 'Trend | None',
           after_moves: int | None) -> contract.FlavorSlots:
    return contract.FlavorSlots(
        after_moves=after_moves,
        full_in_days=trend.days if trend else None,
        full_in_days_error=trend.error if trend else None,
        flavor=found.shape.name, now=found.total, after_loss=after, short=found.short or None,
        unusable=dict(found.unusable),
        hosts={name: count for name, count in found.by_host.items() if count})


def make(context: Context, request: contract.MakeRoom) -> contract.RoomMade:
    """Request room for new servers. Moves make the room if necessary. The room is then kept for
    these servers.

    :raises NotInScope: the aggregate does not exist, or Kronos does not plan for it
    :raises RequestRefused: there is no such flavor; or no aggregate is named and several are in
        scope; or the room could not be kept; or some servers could no longer restart elsewhere
        after the loss of a host or failure domain; or the policies file cannot be read
    """
    from kronos_nova.room import keeping  # imported late, as above
    aggregate = _aggregate(context.conf, request.aggregate)
    room, shape, asked = _checked(context, contract.CheckRoom(
        flavor=request.flavor, count=request.count, aggregate=aggregate, project=request.project))
    if shape not in asked.flavors():
        raise exception.RequestRefused(
            what=f'flavor {request.flavor}', problem='there is no flavor of that name',
            remedy='Give the name of a flavor: room is kept for its servers.')
    keeper = keeping.keeper_of(shape, Schedulers(context.database).all_filter())
    if keeper.problem:
        raise exception.RequestRefused(what='room', problem=keeper.problem, remedy=keeper.remedy)
    if room.missing:
        return contract.RoomMade(room=room, hold=None)
    if not request.force:
        _refuse_lowering(context, room.moves, asked.whole)
    now = context.utcnow()
    wanted = hold.Hold(
        uuid=uuidutils.generate_uuid(), aggregate=aggregate, shape=shape, count=request.count,
        state=hold.PROPOSED if room.moves and not request.approve else hold.REQUESTED,
        project_id=request.project or '', requested_by=context.who, requested_at=now,
        reason=request.reason, hold_seconds=request.hold_seconds, is_forced=request.force,
        expires_at=now + datetime.timedelta(seconds=hold.WAIT_SECONDS), moves=len(room.moves),
        memory_mb=room.memory_mb)
    holds.Holds(context.database).request(wanted)
    if wanted.state == hold.REQUESTED:
        cycles.Cycles(context.database).expedite(aggregate)
    return contract.RoomMade(room=room, hold=_view(wanted))


def _refuse_lowering(context: Context, moves: Sequence[contract.RoomMove],
                     snapshot: Snapshot) -> None:
    """Raise an error if, because of moves, the servers of lost hosts could no longer all restart
    elsewhere. The options ``failover_hosts`` and ``failover_domains`` set how many hosts, or how
    many failure domains, are assumed to fail together. Losses after which not all servers could
    restart even before the moves are ignored.

    :raises RequestRefused: after the moves, the servers of a lost host or failure domain could not
        all restart elsewhere
    """
    from kronos_nova import policies  # imported late, as above
    from kronos_nova.cycle import loss_rule
    from kronos_nova.cycle import options as engine_options
    from kronos_nova.cycle import room_requests
    from kronos_nova.room.making import RoomMove
    if not moves:
        return
    options = engine_options.from_conf(context.conf)
    chosen = policies.load_for_request(context.conf.kronos.policies_file)
    rule = loss_rule.rule_of(snapshot, chosen, options, context.planner_ports())
    lowering = loss_rule.lowering(rule, room_requests.planned([RoomMove(
        instance_uuid=each.instance_uuid, source=each.source, destination=each.destination,
        memory_mb=each.memory_mb) for each in moves], ''))
    for why in lowering.values():
        raise exception.RequestRefused(
            what='the request for room', problem=f'after the moves that make the room, {why}',
            remedy='"--force" makes the room nevertheless.')


def _aggregate(conf: cfg.ConfigOpts, name: str | None) -> str:
    """Return the aggregate in which room is made: the named aggregate, or the only aggregate in
    scope.

    :raises ConfigurationError: no aggregate is in scope
    :raises NotInScope: Kronos does not plan for the named aggregate
    :raises RequestRefused: no aggregate is named, and several are in scope
    """
    from kronos_nova.cycle import aggregates  # imported late, as above
    from kronos_nova.operations import switching
    aggregates.refuse_empty_scope(conf)
    in_scope = aggregates.aggregates_in_scope(conf)
    if name is None and len(in_scope) > 1:
        raise exception.RequestRefused(
            what='the request for room', problem='names no aggregate, and several are in scope',
            remedy=f'Name one of {", ".join(in_scope)}.')
    name = in_scope[0] if name is None else name
    switching.refuse_unknown(conf, name, is_single=True)
    return name


def list_rooms(context: Context, request: contract.ListRooms) -> contract.Holds:
    states = hold.HOLD_TRANSITIONS if request.all else hold.OPEN
    return contract.Holds(rooms=[_view(each) for each in
                                 holds.Holds(context.database).in_states(states)])


def show(context: Context, request: contract.OneRoom) -> contract.Hold:
    """Return a hold by its uuid. A hold is a request for room, together with the room that is kept
    for the request.

    :raises HoldNotFound: there is no such hold
    """
    return _view(holds.Holds(context.database).get(request.room))


def approve(context: Context, request: contract.OneRoom) -> contract.Hold:
    """Approve the moves of a request for room.

    :raises HoldNotFound: there is no such hold
    :raises HoldNotWaiting: the hold does not wait for approval
    """
    store = holds.Holds(context.database)
    found = store.get(request.room)
    if found.state != hold.PROPOSED or not store.enter(found, hold.REQUESTED, problem=''):
        raise exception.HoldNotWaiting(hold=request.room, state=store.get(request.room).state,
                                       problem='only a proposed request can be approved')
    cycles.Cycles(context.database).expedite(found.aggregate)
    return _view(store.get(request.room))


def release(context: Context, request: contract.OneRoom) -> contract.Hold:
    """Release room that is kept or requested, so that other servers may use it.

    :raises HoldNotFound: there is no such hold
    :raises HoldNotWaiting: the hold has ended
    """
    store = holds.Holds(context.database)
    found = _open(store, request.room)
    # An evaluation may change the state of the room at the same time.
    while not store.enter(found, hold.RELEASED, finished_at=context.utcnow()):
        found = _open(store, request.room)
    _give_back(context, store.get(request.room))
    return _view(store.get(request.room))


def _open(store: holds.Holds, uuid: str) -> hold.Hold:
    """Return a hold that has not ended.

    :raises HoldNotFound: there is no such hold
    :raises HoldNotWaiting: the hold has ended
    """
    found = store.get(uuid)
    if found.state not in hold.OPEN:
        raise exception.HoldNotWaiting(hold=uuid, state=found.state,
                                       problem='a request that has ended cannot be released')
    return found


def _give_back(context: Context, found: hold.Hold) -> None:
    """Remove from placement the allocations of a hold that has ended. The uuids of their consumers
    stay recorded in the hold, because the next evaluation checks that no allocation is left."""
    if not found.consumers:
        return
    try:
        context.room_allocations().give_back(found.consumers)
    except exception.PlacementError as error:
        holds.Holds(context.database).note(found, problem=(
            f'its allocations are removed by the next evaluation, for placement refuses: {error}'))


def _view(found: hold.Hold) -> contract.Hold:
    return contract.Hold.made_from(
        found, flavor=found.shape.name, project_id=found.project_id or None,
        keeper=found.keeper or None, consumers=dict(found.consumers),
        plan=found.plan_uuid or None, hosts=dict(found.hosts), used=dict(found.used))


FUNCTIONS = {contract.CAPACITY.name: capacity, contract.FAILOVER.name: check_failover,
             contract.CHECK.name: check, contract.FRAGMENTS.name: show_fragments,
             contract.WHAT_IF.name: what_if,
             contract.MAKE.name: make, contract.LIST.name: list_rooms, contract.SHOW.name: show,
             contract.APPROVE.name: approve, contract.RELEASE.name: release}
