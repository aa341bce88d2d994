"""Operations on moves: list, show and abort moves."""

import datetime
import functools
from collections.abc import Collection
from typing import TypeVar

from kronos_client.contract import moves as contract
from kronos_nova.db import journal
from kronos_nova.db import move_queries
from kronos_nova.db import server_names
from kronos_nova.db.engine import Database
from kronos_nova.executor import progress
from kronos_nova.objects import move as moves
from kronos_nova.operations import switching
from kronos_nova.services import names
from kronos_nova.services import pages
from kronos_nova.services.context import Context

AnyMove = TypeVar('AnyMove', bound=contract.Move)


def list_moves(context: Context, request: contract.ListMoves) -> contract.Moves:
    """Return a page of moves. The request may select moves, for example those of one server, plan
    or aggregate.

    :raises MoveNotFound: the marker is not the uuid of a move
    :raises ServerNotFound: no server with this name or uuid is known
    :raises ServerAmbiguous: several servers have this name
    :raises NotInScope: no move is found, and Kronos does not plan for this aggregate
    """
    named = request.server or request.instance
    found = move_queries.moves(
        context.database, request.limit + 1, request.marker, states=request.state,
        host=request.host, since=request.since, until=request.until, plan_uuid=request.plan,
        instance_uuid=named and names.uuid_of(context, named), project_id=request.project,
        aggregate=request.aggregate)
    if request.aggregate and not found:
        switching.refuse_unknown(context.conf, request.aggregate)
    page, following = pages.first_page(found, request, lambda each: each.uuid)
    return contract.Moves(moves=views(context.database, page, contract.Move), next=following)


def show(context: Context, request: contract.OneMove) -> contract.MoveDetail:
    """Return a move with the history of its states.

    :raises MoveNotFound: there is no such move
    """
    known = context.journal()
    found = known.move(request.move)
    [shown] = views(context.database, [found], contract.MoveDetail, worker=found.owner, events=[
        contract.MoveEvent(at=at, old_state=old, new_state=new, worker=worker, detail=detail)
        for at, old, new, worker, detail in known.events(found.uuid)])
    return shown


def abort(context: Context, request: contract.OneMove) -> None:
    """Request that a move be aborted. The worker of the move aborts the move later.

    :raises MoveNotFound: there is no such move
    :raises MoveEnded: the move has ended
    """
    context.journal().request_abort(request.move, context.who, context.utcnow())


def views(database: Database, found: Collection[moves.MoveRecord],
          cls: type[AnyMove], **more: object) -> list[AnyMove]:
    """Return moves as structs of the type ``cls`` of the contract. Each struct has, in addition to
    the data of the move, the name of the server, the progress and the estimated end of the move.

    :param more: further fields of ``cls``; each has the same value for all moves
    """
    observed = functools.cache(journal.Journal(database, 'observer').durations)
    now = database.utcnow()
    names = server_names.ServerNames(database).read(move.instance_uuid for move in found)
    return [cls.made_from(move, instance_name=names.get(move.instance_uuid),
                          progress=progress.percent(move),
                          estimated_end=_future(progress.estimated_end(move, observed), now),
                          **more)
            for move in found]


def _future(end: datetime.datetime | None,
            now: datetime.datetime) -> datetime.datetime | None:
    """Return ``end``, the estimated end of a move, if this time is in the future. Return None if
    the time has passed, because the estimate was then too early."""
    return end if end is not None and end > now else None


FUNCTIONS = {contract.LIST.name: list_moves, contract.SHOW.name: show,
             contract.ABORT.name: abort}
