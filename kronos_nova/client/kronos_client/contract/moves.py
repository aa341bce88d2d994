"""Operations on moves: live and cold migrations of servers, and the states through which each
passes."""

from typing import Annotated
from typing import Literal
from typing import get_args

import msgspec

from kronos_client.contract.base import Maybe
from kronos_client.contract.base import Name
from kronos_client.contract.base import Page
from kronos_client.contract.base import Request
from kronos_client.contract.base import Response
from kronos_client.contract.base import Time
from kronos_client.contract.base import Uuid
from kronos_client.contract.operation import OPERATOR
from kronos_client.contract.operation import Operation

Live = Literal['planned', 'dispatched', 'checking', 'claiming', 'migrating', 'verifying']
LIVE: tuple[Live, ...] = get_args(Live)
"""States of moves that have not ended."""

Ended = Literal['completed', 'failed', 'abandoned']
ENDED: tuple[Ended, ...] = get_args(Ended)
"""States of moves that have ended."""


class Move(Response):
    """A move and its state. ``progress`` is the copied share of the memory in percent; null if the
    hypervisor's driver does not report it. ``expected_seconds`` is the duration that the plan
    predicted. ``reason`` is the reason for which the move was planned. ``group`` is the number of a
    group of moves that help only together; null for a move that helps alone."""

    uuid: str
    plan_uuid: str
    aggregate: str
    ordinal: int
    group: int | None
    phase: str
    kind: str
    instance_uuid: str
    instance_name: str | None
    project_id: str | None
    source: str
    destination: str
    memory_mb: int
    reason: str
    state: str
    abort_requested: bool
    retry_count: int
    progress: float | None
    estimated_end: Maybe
    expected_seconds: float | None
    migration_uuid: str | None
    error_type: str | None
    error: str | None
    created_at: Time
    requested_at: Maybe
    finished_at: Maybe


class Moves(Response):
    """A page of moves. ``next`` is the marker of the next page; null on the last page."""

    moves: list[Move]
    next: str | None


class MoveEvent(Response):
    """A change of the state of a move. ``worker`` is the process that changed the state."""

    at: Time
    old_state: str | None
    new_state: str
    worker: str | None
    detail: str


class MoveDetail(Move):
    """A move with the changes of its state. ``worker`` is the name of the process that carries out
    the move."""

    worker: str | None
    events: list[MoveEvent]


class ListMoves(Page):
    """A request to list moves that meet all conditions. ``server`` is a name or a uuid. ``host`` is
    the source or the destination. With ``since``, moves that had ended before that time are left
    out. With ``until``, moves that were planned after that time are left out. ``instance`` is the
    former name of the field ``server``."""

    plan: Uuid | None = None
    server: Name | None = None
    instance: Uuid | None = None
    host: Name | None = None
    project: Name | None = None
    aggregate: Name | None = None
    state: Annotated[list[Live | Ended], msgspec.Meta(max_length=1000)] = []
    since: Maybe = None
    until: Maybe = None


class OneMove(Request):
    """A request about one move. ``move`` is its uuid."""

    move: str


LIST = Operation(
    name='moves:list', command='move list', method='GET', path='/v1/moves', request=ListMoves,
    response=Moves, refusals=(404, 409), summary='Moves, those of the newest plan first.')
SHOW = Operation(
    name='moves:show', command='move show', method='GET', path='/v1/moves/{move}',
    request=OneMove, response=MoveDetail, refusals=(404,),
    summary='A move with every change of its state.')
ABORT: Operation[None] = Operation(
    name='moves:abort', command='move abort', method='POST', path='/v1/moves/{move}/abort',
    request=OneMove, audience=OPERATOR, status=202, refusals=(404, 409),
    summary='Request the end of a move; its state and events report the result.')

OPERATIONS = (LIST, SHOW, ABORT)
