"""Automation: levels, pauses and stops of aggregates, and who set them."""

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
"""In the place of an aggregate's name: every aggregate."""

LEVELS = ('off', 'observe', 'approve', 'auto')
"""Each permits what the one before permits, and more."""


class Level(Response):
    """The level in force. ``set_by`` is null where nova.conf sets it. ``paused`` names every pause
    and stop that holds, or is null. ``repairs`` is the level of repairs of violated rules;
    ``repairs_set_by`` is null where it is nova.conf's or that of the aggregate."""

    aggregate: str
    level: str
    set_by: str | None
    set_at: Maybe
    reason: str
    paused: str | None
    repairs: str = ''
    repairs_set_by: str | None = None


class Pause(Response):
    """A pause or a stop. ``value`` is ``pause`` or ``stop``, ``aggregate`` a name or ``*``."""

    aggregate: str
    value: str
    set_by: str
    set_at: Time
    reason: str


class Automation(Response):
    """``ceiling`` is the highest level that nova.conf permits, ``pauses`` are the oldest first."""

    ceiling: str
    levels: list[Level]
    pauses: list[Pause]


class Resumed(Automation):
    """``ended`` are the pauses that ended, ``pauses`` those that still hold."""

    ended: list[Pause]


class SwitchEvent(Response):
    """A change of a switch; an empty ``value`` ended the switch."""

    kind: str
    aggregate: str
    value: str
    set_at: Time
    set_by: str
    reason: str


class SwitchEvents(Response):
    events: list[SwitchEvent]


class SetLevel(Request):
    """``aggregate`` is a name, or ``*`` for every aggregate. With ``repairs`` the level is that of
    repairs of violated rules alone."""

    aggregate: str
    level: Literal['off', 'observe', 'approve', 'auto']
    reason: Reason = ''
    repairs: bool = False


class Scope(Request):
    """One aggregate, or ``*`` for every aggregate."""

    aggregate: Name = EVERY
    reason: Reason = ''


class Resume(Scope):
    """End the caller's pauses and stops; with ``everyone`` those of others too. ``*`` includes
    those of single aggregates."""

    everyone: bool = False


class Stop(Scope):
    """``let_finish``: do not abort moves that Nova was asked for already."""

    let_finish: bool = False


class Stopped(Response):
    """The number of moves that were given up before they began, and of those in progress."""

    abandoned: int
    under_way: int


class ListEvents(Request):
    limit: Limit = 50


SHOW = Operation(
    name='automation:show', command='automation show', method='GET', path='/v1/automation',
    response=Automation, summary='Levels and pauses, and who set them.')
HISTORY = Operation(
    name='automation:history', command='automation history', method='GET',
    path='/v1/automation/history', request=ListEvents, response=SwitchEvents,
    summary='Who set which level or pause, the newest first.')
SET = Operation(
    name='automation:set', command='automation set', method='PUT',
    path='/v1/aggregates/{aggregate}/automation', request=SetLevel, response=Automation,
    audience=ADMIN, refusals=(404,),
    summary='Set the level of an aggregate, or with "*" of every aggregate.')
PAUSE = Operation(
    name='automation:pause', command='pause', method='POST', path='/v1/pause', request=Scope,
    response=Automation, audience=OPERATOR, refusals=(404,),
    summary='Start no move; those in progress continue to their end.')
RESUME = Operation(
    name='automation:resume', command='resume', method='POST', path='/v1/resume', request=Resume,
    response=Resumed, audience=OPERATOR, refusals=(404,),
    summary="End the caller's pauses and stops, or everyone's.")
STOP = Operation(
    name='automation:stop', command='stop', method='POST', path='/v1/stop', request=Stop,
    response=Stopped, audience=OPERATOR, refusals=(404,),
    summary='Start no move, give up those that wait, and abort those in progress.')

OPERATIONS = (SHOW, HISTORY, SET, PAUSE, RESUME, STOP)
