"""Operations on servers: list servers, and explain why a server was moved or stays on its host."""

from collections.abc import Collection

from kronos_client.contract import reasons
from kronos_client.contract import servers as contract
from kronos_client.contract.moves import Move
from kronos_nova.cycle import aggregates
from kronos_nova.db import cooldowns as db_cooldowns
from kronos_nova.db import cycles
from kronos_nova.db import move_queries
from kronos_nova.db import refusals
from kronos_nova.db import server_names
from kronos_nova.objects import plan as plans
from kronos_nova.objects.move import MoveRecord
from kronos_nova.objects.snapshot import LIVE
from kronos_nova.operations import overview
from kronos_nova.services import moves
from kronos_nova.services import names as known_names
from kronos_nova.services import pages
from kronos_nova.services import plans as plan_service
from kronos_nova.services.context import Context

MOST_MOVES = 20
"""Maximum number of past moves that the explanation of a server lists. Raised, the explanation is
longer; lowered, operators are less likely to see that a server is moved too often. Chosen so that
the moves fit on a screen."""


def list_servers(context: Context, request: contract.ListServers) -> contract.Servers:
    """Return a page of servers.

    :raises ServerNotFound: the marker is not the uuid of a known server
    """
    found = server_names.ServerNames(context.database).page(
        request.limit + 1, request.marker, request.name or '')
    page, following = pages.first_page(found, request, lambda each: each[0])
    return contract.Servers(
        servers=[contract.Server(uuid=uuid, name=name, seen_at=at) for uuid, name, at in page],
        next=following)


def explain(context: Context, request: contract.ExplainServer) -> contract.Explanation:
    """Return the reasons why a server was moved or stays on its host, and its past moves.

    :raises ServerNotFound: no server with this name or uuid is known
    :raises ServerAmbiguous: several servers have this name
    """
    uuid, now = known_names.uuid_of(context, request.server), context.utcnow()
    stay = known_names.stay_of(context, uuid) or _stay_of_all(context, uuid)
    immovable = known_names.immovable(context.database, uuid)
    planned, planned_in = _planned(context, uuid)
    cooldowns = db_cooldowns.Cooldowns(context.database)
    until, because = next(((until, reason) for each, until, reason, _since
                           in cooldowns.quarantines(now) if each == uuid), (None, None))
    refusal = next((each for each, _until, _at in refusals.Refusals(context.database).list(now)
                    if each.instance_uuid == uuid), None)
    found = move_queries.moves(context.database, MOST_MOVES, instance_uuid=uuid,
                               begun_by=request.at)
    names = context.names_of([uuid, *plans.servers_of(filter(None, [planned]))])
    return contract.Explanation(
        instance_uuid=uuid, instance_name=names.get(uuid), stays_because=stay and stay.reason,
        stays_in=stay and stay.aggregate,
        stays_means=stay and (stay.detail or reasons.WHY_SERVERS_STAY.get(stay.reason)),
        planned=None if planned is None else plan_service.planned(planned, names),
        planned_in=planned_in,
        quarantined_until=until, quarantined_because=because,
        cooling_seconds=cooldowns.cooling(now)[db_cooldowns.INSTANCE].get(uuid),
        refused_because=None if refusal is None else refusal.reason,
        refused_hosts=list(refusal.hosts) if refusal else [],
        moves=_explained(context, found), movable=immovable.can if immovable else LIVE,
        immovable_because=immovable.why if immovable else '')


def _stay_of_all(context: Context, uuid: str) -> known_names.Stay | None:
    """Return the reason why the last evaluation of a server's aggregate made no plan. The reason
    applies to all servers of the aggregate. Return None if the evaluation made a plan, if there was
    no evaluation, or if Kronos does not plan the aggregate any more."""
    aggregate = server_names.ServerNames(context.database).aggregate(uuid)
    if aggregate is None or aggregate not in aggregates.aggregates_in_scope(context.conf):
        return None
    last = cycles.Cycles(context.database).of_aggregate(aggregate)
    if last is None or last.outcome in (None, plans.PLANNED):
        return None
    return known_names.Stay(last.outcome, aggregate, overview.reason(overview.report_of(last)))


def _planned(context: Context, uuid: str) -> tuple[plans.PlannedMove | None, str | None]:
    """Return (planned move of a server, uuid of its plan), from the plans that wait or run; (None,
    None) if no such plan moves the server."""
    for plan in context.journal().open_plans():
        if plan.report and uuid in plan.report:
            for move in _moves_of(plan):
                if move.instance_uuid == uuid:
                    return move, plan.uuid
    return None, None


def _explained(context: Context, found: Collection[MoveRecord]) -> list[contract.ExplainedMove]:
    """Return moves as structs of the contract. A struct has, in addition to the data of the move,
    the imbalances that the plan expected, and the best alternative to the move."""
    journal = context.journal()
    of_moves = {uuid: journal.plan(uuid) for uuid in {move.plan_uuid for move in found}}
    as_planned = {uuid: {move.order: move for move in _moves_of(plan)}
                  for uuid, plan in of_moves.items()}
    planned = [as_planned[move.plan_uuid].get(move.ordinal) for move in found]
    names = context.names_of(plans.servers_of(filter(None, planned)))
    return [contract.ExplainedMove.made_from(
        move, next_best=as_it_was and plan_service.next_best(as_it_was, names),
        plan_imbalance_before=of_moves[move.plan_uuid].combined_before,
        plan_imbalance_after=of_moves[move.plan_uuid].combined_after)
        for move, as_it_was in zip(
            moves.views(context.database, found, Move), planned, strict=True)]


def _moves_of(plan: plans.PlanRecord) -> tuple[plans.PlannedMove, ...]:
    """Return the moves of a plan as planned; empty if the report of the plan is no longer kept."""
    return plans.AggregateReport.from_json(plan.report).moves if plan.report else ()


FUNCTIONS = {contract.LIST.name: list_servers, contract.EXPLAIN.name: explain}
