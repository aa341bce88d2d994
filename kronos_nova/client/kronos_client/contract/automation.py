"""Operations on automation: the levels, pauses and stops of aggregates."""

from typing import Literal

from kronos_client.contract.base import Limit
from kronos_client.contract.base import Maybe
from kronos_client.contract.base import Name
from kronos_client.contract.base import Reason
from kronos_client.contract.base import Request
from kronos_client.contract.base import Response
from kronos_client.contract.base import Time
from kronos_client.contract.operation import ADMIN
from kronos_client.contract.operation import OPERATOR
from kronos_client.contract.operation import Operation

EVERY = '*'
"""Name that stands for every aggregate, in place of an aggregate's name."""

LEVELS = ('off', 'observe', 'approve', 'auto')
"""Automation levels, in ascending order: each level permits more than the level before it."""


class Level(Response):
    """The automation level that is in force for an aggregate. ``set_by`` is null if the level is
    from nova.conf. ``paused`` is a text about all pauses and stops that apply to the aggregate;
    null for none. ``repairs`` is the level of repairs of violated rules. ``repairs_set_by`` is null
    if this level is from nova.conf. Repairs without a level of their own have the level of the
    aggregate, and ``repairs_set_by`` then equals ``set_by``."""

    aggregate: str
    level: str
    set_by: str | None
    set_at: Maybe
    reason: str
    paused: str | None
    repairs: str = ''
    repairs_set_by: str | None = None


class Pause(Response):
    """An operator's order to pause or to stop moves. ``value`` is ``pause`` or ``stop``.
    ``aggregate`` is a name, or ``*`` for every aggregate."""

    aggregate: str
    value: str
    set_by: str
    set_at: Time
    reason: str


class Automation(Response):
    """The levels, pauses and stops in force. ``ceiling`` is the highest level that nova.conf
    permits. ``pauses`` are sorted by time, the oldest first."""

    ceiling: str
    levels: list[Level]
    pauses: list[Pause]


class Resumed(Automation):
    """The result of a request to end pauses and stops. ``ended`` are the pauses and stops that were
    ended, and ``pauses`` the pauses and stops that are still in force."""

    ended: list[Pause]


class SwitchEvent(Response):
    """A change of a level, a pause or a stop. ``value`` is the new level, ``pause`` or ``stop``;
    empty if the level, pause or stop was ended."""

    kind: str
    aggregate: str
    value: str
    set_at: Time
    set_by: str
    reason: str


class SwitchEvents(Response):
    events: list[SwitchEvent]


class SetLevel(Request):
    """A request to set an automation level. ``aggregate`` is a name, or ``*`` for every aggregate.
    With ``repairs``, only the level of repairs of violated rules is set."""

    aggregate: str
    level: Literal['off', 'observe', 'approve', 'auto']
    reason: Reason = ''
    repairs: bool = False


class Scope(Request):
    """A request about one aggregate, or about every aggregate (``*``), with the reason of the
    change."""

    aggregate: Name = EVERY
    reason: Reason = ''


class Resume(Scope):
    """A request to end the caller's pauses and stops of an aggregate. With ``everyone``, the pauses
    and stops of all users are ended. If the aggregate is ``*``, the pauses and stops of single
    aggregates are ended as well."""

    everyone: bool = False


class Stop(Scope):
    """A request to stop moves. With ``let_finish``, moves that were already requested from Nova are
    not aborted."""

    let_finish: bool = False


class Stopped(Response):
    """The result of a stop. ``abandoned`` is the number of moves that had not begun, and will not
    be made. ``under_way`` is the number of moves in progress."""

    abandoned: int
    under_way: int


class ListEvents(Request):
    limit: Limit = 50


SHOW = Operation(
    name='automation:show', command='automation show', method='GET', path='/v1/automation',
    response=Automation, summary='The levels, pauses and stops in force, with their authors.')
HISTORY = Operation(
    name='automation:history', command='automation history', method='GET',
    path='/v1/automation/history', request=ListEvents, response=SwitchEvents,
    summary='Changes of levels, pauses and stops with their authors, the newest first.')
SET = Operation(
    name='automation:set', command='automation set', method='PUT',
    path='/v1/aggregates/{aggregate}/automation', request=SetLevel, response=Automation,
    audience=ADMIN, refusals=(404,),
    summary='Set the level of an aggregate, or with "*" of every aggregate.')
PAUSE = Operation(
    name='automation:pause', command='pause', method='POST', path='/v1/pause', request=Scope,
    response=Automation, audience=OPERATOR, refusals=(404,),
    summary='Start no further move; moves in progress continue to their end.')
RESUME = Operation(
    name='automation:resume', command='resume', method='POST', path='/v1/resume', request=Resume,
    response=Resumed, audience=OPERATOR, refusals=(404,),
    summary="End the caller's pauses and stops, or those of all users.")
STOP = Operation(
    name='automation:stop', command='stop', method='POST', path='/v1/stop', request=Stop,
    response=Stopped, audience=OPERATOR, refusals=(404,),
    summary='Start no move, abandon the moves that wait, and abort the moves in progress.')

OPERATIONS = (SHOW, HISTORY, SET, PAUSE, RESUME, STOP)
