"""Versioned notifications about plans, moves, automation and drains, in the form of Nova's
notifications.

A new field makes a new minor version of a payload. A removed field, or a field with a new meaning,
makes a new major version. Tests check that each payload matches its version.
"""

import dataclasses
import datetime
from collections.abc import Mapping
from dataclasses import field
from typing import Any
from typing import ClassVar

from kronos_nova import clock
from kronos_nova.objects.move import request_id

PLAN_PROPOSED = 'plan.proposed'
PLAN_APPROVED = 'plan.approved'
PLAN_VOID = 'plan.void'
PLAN_FINISHED = 'plan.finished'
MOVE_START = 'move.start'
MOVE_END = 'move.end'
MOVE_ERROR = 'move.error'
MOVE_ABORT = 'move.abort'
AUTOMATION_CHANGED = 'automation.changed'
DRAIN_START = 'drain.start'
DRAIN_END = 'drain.end'
DRAIN_BLOCKED = 'drain.blocked'

EVENTS = (PLAN_PROPOSED, PLAN_APPROVED, PLAN_VOID, PLAN_FINISHED, MOVE_START, MOVE_END, MOVE_ERROR,
          MOVE_ABORT, AUTOMATION_CHANGED, DRAIN_START, DRAIN_END, DRAIN_BLOCKED)

LONGEST = 2000
"""Maximum number of characters of one text in a notification's payload. A longer text is cut. A
plan may have one reason for each of hundreds of moves. Raised, payloads are larger; lowered, more
reasons are cut off. Not measured."""

MOST_BLOCKED = 20
"""Maximum number of servers that a notification lists as unable to leave a host. The notification
has the total number of such servers as well. Raised, payloads are larger; lowered, fewer servers
are listed. Not measured."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlanPayload:
    """The payload of a notification about a plan. ``purpose`` is ``balance``, ``repair``, ``drain``
    or ``make_room``. ``moves`` is {state: number of the plan's moves in this state}; it is empty
    before the plan starts. ``reason`` is the reason why the plan ended, or a text about moves that
    were left out."""

    VERSION: ClassVar[str] = '1.0'

    plan_uuid: str
    aggregate: str
    purpose: str
    state: str
    mode: str
    planner: str
    created_at: datetime.datetime
    expires_at: datetime.datetime
    approved_at: datetime.datetime | None
    approved_by: str | None
    finished_at: datetime.datetime | None
    combined_before: float | None
    combined_after: float | None
    move_count: int
    moves: Mapping[str, int] = field(default_factory=dict)
    reason: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MovePayload:
    """The payload of a notification about a move. ``final`` is True if the move is not tried again.
    ``detail`` is the reason for the state of the move. ``request_id`` is the global request id of
    the requests to Nova."""

    VERSION: ClassVar[str] = '1.0'

    move_uuid: str
    plan_uuid: str
    aggregate: str
    instance_uuid: str
    instance_name: str | None
    source: str
    destination: str
    phase: str
    kind: str
    memory_mb: int
    reason: str
    request_id: str
    migration_uuid: str | None
    state: str
    final: bool
    retry_count: int
    error_type: str | None
    error: str | None
    detail: str
    dispatched_at: datetime.datetime | None
    requested_at: datetime.datetime | None
    finished_at: datetime.datetime | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AutomationPayload:
    """The payload of a notification about an automation level or a pause that an operator has set
    or ended.

    kind : ``level``, ``repair_level`` (level of rule repairs) or ``pause``
    aggregate : name of the aggregate; ``*`` stands for all aggregates
    value : for a level, the name of the new level. For a pause, the command that set the pause:
        ``pause`` or ``stop``. '' if the level or pause has ended
    """

    VERSION: ClassVar[str] = '1.0'

    kind: str
    aggregate: str
    value: str
    set_at: datetime.datetime
    set_by: str
    reason: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DrainPayload:
    """The payload of a notification about the drain of a host. ``blocked`` is {uuid: reason} for up
    to 20 servers that cannot leave the host; ``blocked_count`` is the total number of these
    servers."""

    VERSION: ClassVar[str] = '1.0'

    drain_uuid: str
    host: str
    aggregate: str
    state: str
    requested_by: str
    requested_at: datetime.datetime
    reason: str
    deadline: datetime.datetime | None
    with_stopped: bool
    servers: int | None
    left: int | None
    blocked_count: int
    blocked: Mapping[str, str]
    problem: str
    finished_at: datetime.datetime | None


PAYLOADS = (PlanPayload, MovePayload, AutomationPayload, DrainPayload)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """A notification about an event, before or after it is sent.

    ``sequence`` counts from 1 without a gap, in the order of sending. A notification that is sent
    twice has the same ``sequence`` and ``uuid`` both times. ``at`` is the time of the event.
    """

    uuid: str
    sequence: int
    event_type: str
    at: datetime.datetime
    body: Mapping

    @property
    def priority(self) -> str:
        """The priority for oslo.messaging, which selects the queue: ``error`` for a failed move,
        else ``info``."""
        return 'error' if self.event_type == MOVE_ERROR else 'info'

    @property
    def payload(self) -> dict:
        """The payload as it is sent, with the uuid and sequence number of the notification."""
        data = {'notification_uuid': self.uuid, 'sequence': self.sequence,
                **self.body['kronos_object.data']}
        return {**self.body, 'kronos_object.data': data}


def move_payload(move: Any, instance_name: str | None = None, detail: str = '') -> MovePayload:
    """Return the payload of a notification about a move.

    :param move: a MoveRecord, or an object with the same attributes
    """
    own = {'move_uuid', 'instance_name', 'request_id', 'final', 'detail'}
    return MovePayload(
        move_uuid=move.uuid, instance_name=instance_name, detail=detail,
        request_id=request_id(move.uuid), final=move.finished_at is not None,
        **{name: getattr(move, name) for name in names(MovePayload) if name not in own})


def names(payload: Any) -> list[str]:
    """Return the names of the fields of a payload.

    :param payload: a payload, or the class of a payload
    """
    return [each.name for each in dataclasses.fields(payload)]


def primitive(payload: Any) -> dict:
    """Return a payload in the form of Nova's payloads. Its keys begin with ``kronos`` instead of
    ``nova``."""
    return {'kronos_object.name': type(payload).__name__, 'kronos_object.namespace': 'kronos',
            'kronos_object.version': payload.VERSION, 'kronos_object.data': data(payload)}


def data(payload: Any) -> dict:
    """Return the fields of a payload as values that JSON can represent."""
    return {name: _plain(getattr(payload, name)) for name in names(payload)}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return clock.stamp(value)
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return value[:LONGEST] if isinstance(value, str) else value
