"""Room: how many more servers fit, which hosts may fail, and the moves that would make room."""

from typing import Annotated

import msgspec

from kronos_client.contract.base import Maybe
from kronos_client.contract.base import Name
from kronos_client.contract.base import Names
from kronos_client.contract.base import Reason
from kronos_client.contract.base import Request
from kronos_client.contract.base import Response
from kronos_client.contract.base import Time
from kronos_client.contract.operation import OPERATOR
from kronos_client.contract.operation import Operation

FITS, DOES_NOT, NOT_FOUND = VERDICTS = ('fits', 'does_not_fit', 'not_found')
"""Verdicts on the servers of a lost host: a placement is known on which all restart; there is none;
none was found, and none is excluded."""

Several = Annotated[list[Name], msgspec.Meta(max_length=100)]
"""Changes of one kind in a request. Each has the whole cloud looked at."""

MoveCount = Annotated[int, msgspec.Meta(ge=1, le=1000)]
"""Moves that may be made so that more servers fit. Each takes time to find."""


class Changes(Request):
    """The base of questions about the cloud as it would be after changes, made in this order.

    ratio : texts such as ``VCPU=8``: the allocation ratio of a resource class on all hosts
    add : texts such as ``2:like=compute1``: so many empty hosts like one
    lose : names of hosts that fail together, or failure domains such as ``rack=r3``
    boot : texts such as ``3:m1.large``: so many new servers
    """

    ratio: Several = []
    add: Several = []
    lose: Names = []
    boot: Several = []


class Outcome(Response):
    """The outcome of changes; empty where no change was asked for.

    left : uuid of each server of a lost host that does not restart to why
    names : uuid of each of these to its name
    not_booted : flavors of new servers to how many of them find no room
    """

    left: dict[str, str]
    names: dict[str, str]
    not_booted: dict[str, int]


class FlavorSlots(Response):
    """Numbers of further servers of a flavor that fit.

    flavor : its name, or the size that was asked for
    now : without any move
    after_loss : at least, once any one host has failed and its servers have restarted; null where
        that was not asked for, or where the servers of some host do not all restart
    hosts : that take at least one more, by name
    unusable : resource class to what is free on hosts that may take such servers, and too little
        there or in what hosts share for one more
    short : the resource class of which the next one finds too little; null where no host may take
        such servers
    full_in_days : in about how many days none fits any more, by the counts of past evaluations;
        null where no aggregate was named, or where there is no certain trend
    full_in_days_error : by how many days that may be off, twice its standard error
    after_moves : at least, after the moves that were asked for; null where none were
    """

    flavor: str
    now: int
    after_loss: int | None
    hosts: dict[str, int]
    unusable: dict[str, float]
    short: str | None
    full_in_days: float | None = None
    full_in_days_error: float | None = None
    after_moves: int | None = None


class Capacity(Response):
    """``not_restarting`` are the hosts whose servers do not all restart, or of which that is not
    known; empty where loss was not asked for."""

    slots: list[FlavorSlots]
    not_restarting: list[str]
    outcome: Outcome


class ShowCapacity(Changes):
    """``flavors`` are names of flavors, or sizes such as 4:8192:40 (VCPUs, MiB, GiB); without any,
    all flavors count. With ``loss`` slots are also counted after the loss of any one host; with
    ``moves`` after as many moves at most, of each flavor for itself."""

    flavors: Names = []
    aggregate: Name | None = None
    project: Name | None = None
    loss: bool = False
    moves: MoveCount | None = None


class HostLoss(Response):
    """The servers of a host, if it fails.

    verdict : one of :data:`VERDICTS`
    in_novas_order : whether all restart where Nova's scheduler sends them, without named
        destinations
    servers : on the host
    left : uuid of each server that finds no place to why
    names : uuid of each of these to its name
    """

    host: str
    verdict: str
    in_novas_order: bool
    servers: int
    left: dict[str, str]
    names: dict[str, str]


class Failover(Response):
    hosts: list[HostLoss]
    outcome: Outcome


class CheckFailover(Changes):
    """Hosts to judge; without any, all that have servers."""

    hosts: Names = []
    aggregate: Name | None = None


class RoomMove(Response):
    """A move that makes room; the names of its server and hosts."""

    instance_uuid: str
    instance_name: str
    source: str
    destination: str
    memory_mb: int


class Room(Response):
    """The moves after which new servers fit, in an order in which they may run.

    hosts : on which the new servers find room, by name with how many
    missing : why others of them find none
    is_proven : whether no moves make room for more of them
    """

    moves: list[RoomMove]
    memory_mb: int
    hosts: dict[str, int]
    missing: list[str]
    is_proven: bool
    outcome: Outcome


class CheckRoom(Changes, kw_only=True):
    """``flavor`` is the name of a flavor, or a size such as 4:8192:40."""

    flavor: Name
    count: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1
    aggregate: Name | None = None
    project: Name | None = None


class Hold(Response):
    """Room that is made for new servers and kept for them.

    state : one of :data:`HOLD_STATES`
    project_id : whose servers may use it; null for those of any project with the flavor
    moves, memory_mb : the most moves, and MiB to copy, that were shown
    hosts : on which the new servers find room, by name with how many
    used : uuid of each server that has come to its host
    keeper : what keeps it from other servers, one of :data:`KEEPERS`; null while nothing does
    consumers : uuid of each consumer whose allocation in placement keeps room for a server to
        come, to its host
    plan : uuid of the newest plan of its moves; null for none
    problem : why it is not there, or not started
    """

    uuid: str
    aggregate: str
    flavor: str
    count: int
    project_id: str | None
    state: str
    requested_by: str
    requested_at: Time
    reason: str
    moves: int
    memory_mb: int
    hosts: dict[str, int]
    used: dict[str, str]
    keeper: str | None
    consumers: dict[str, str]
    plan: str | None
    problem: str
    expires_at: Time
    finished_at: Maybe


HOLD_STATES = ('proposed', 'requested', 'making', 'held', 'used', 'released', 'expired', 'failed')
"""States of room: waits for approval, waits for its moves, moves are in progress, is kept, all of
it is used, was given up, its time is over, no moves make it."""


KEEPERS = ('filter', 'allocations')
"""Keepers of room from other servers: KronosFilter in nova-scheduler, or allocations."""


class Holds(Response):
    rooms: list[Hold]


class RoomMade(Response):
    """The moves that make the room, and what was written down; null where there is no room for
    all."""

    room: Room
    hold: Hold | None


class ListRooms(Request):
    """By default room that has ended is left out."""

    all: bool = False


class OneRoom(Request):
    """``room`` is the uuid of room."""

    room: str


class MakeRoom(Request, kw_only=True):
    """Make room for ``count`` servers of a flavor, and keep it for them for ``hold_seconds`` once
    it is there: for servers of one project, or of any with the flavor. Where servers have to move
    nothing begins before an operator approves the moves; ``approve`` does so at once.

    Moves after which hosts could not be lost any more that can be lost now are refused, unless
    ``force`` is set."""

    flavor: Name
    count: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1
    aggregate: Name | None = None
    project: Name | None = None
    hold_seconds: Annotated[int, msgspec.Meta(ge=60, le=604_800)] = 1800
    reason: Reason = ''
    approve: bool = False
    force: bool = False


class Fragments(Response):
    """The moves after which most new servers of a flavor fit, in an order in which they may run.

    before, after : how many fit without the moves, and after them
    rate_before, rate_after : the part of the free CPUs that is no room for such a server, on hosts
        that may take them
    """

    moves: list[RoomMove]
    memory_mb: int
    before: int
    after: int
    rate_before: float
    rate_after: float
    outcome: Outcome


class ShowFragments(Changes, kw_only=True):
    """``flavor`` is the name of a flavor, or a size such as 4:8192:40; ``moves`` are made at
    most."""

    flavor: Name
    moves: MoveCount = 50
    aggregate: Name | None = None
    project: Name | None = None


class SupposedLoad(Response):
    """Load as it is, after changes, and after the moves of the plan that would follow; null where
    it is not known.

    host : whose load this is; null for the imbalance of the aggregate
    """

    aggregate: str
    policy: str
    host: str | None
    now: float | None
    changed: float | None
    planned: float | None


class ChangedLoad(Response):
    """The load of a changed cloud.

    restarts : the servers of lost hosts that restart, and where
    moves : of the plans that would follow, in their order
    problems : why the load is not known in an aggregate or policy
    """

    loads: list[SupposedLoad]
    restarts: list[RoomMove]
    moves: list[RoomMove]
    problems: list[str]
    outcome: Outcome


class ShowChangedLoad(Changes):
    """Without ``aggregate`` all aggregates that Kronos looks after count."""

    aggregate: Name | None = None


CAPACITY = Operation(
    name='room:capacity', command='capacity', method='GET', path='/v1/capacity',
    request=ShowCapacity, response=Capacity, is_slow=True, refusals=(404,),
    summary='How many more servers of each flavor fit, now and after the loss of a host.')
FAILOVER = Operation(
    name='room:failover', command='failover', method='GET', path='/v1/failover',
    request=CheckFailover, response=Failover, is_slow=True, refusals=(404,),
    summary='Whether the servers of each host restart on the others if it fails.')
CHECK = Operation(
    name='room:check', command='room check', method='GET', path='/v1/room', request=CheckRoom,
    response=Room, is_slow=True, refusals=(404,),
    summary='The moves after which new servers of a flavor fit.')
FRAGMENTS = Operation(
    name='room:fragments', command='room fragments', method='GET', path='/v1/fragments',
    request=ShowFragments, response=Fragments, is_slow=True, refusals=(404,),
    summary='The moves after which most new servers of a flavor fit.')
WHAT_IF = Operation(
    name='room:what_if', command='room what-if', method='GET', path='/v1/what-if',
    request=ShowChangedLoad, response=ChangedLoad, is_slow=True, refusals=(404,),
    summary='The load after changes that are only thought of, and the moves that would follow.')

MAKE = Operation(
    name='room:make', command='room make', method='POST', path='/v1/rooms', request=MakeRoom,
    response=RoomMade, audience=OPERATOR, status=202, is_slow=True, refusals=(404,),
    summary='Make room for new servers by moving others, and keep it for them.')
LIST = Operation(
    name='room:list', command='room list', method='GET', path='/v1/rooms', request=ListRooms,
    response=Holds, summary='Room that is made or kept for new servers.')
SHOW = Operation(
    name='room:show', command='room show', method='GET', path='/v1/rooms/{room}', request=OneRoom,
    response=Hold, refusals=(404,), summary='Room for new servers, and how far it is.')
APPROVE = Operation(
    name='room:approve', command='room approve', method='POST', path='/v1/rooms/{room}/approve',
    request=OneRoom, response=Hold, audience=OPERATOR, status=202, refusals=(404, 409),
    summary='Let the moves begin that make room.')
RELEASE = Operation(
    name='room:release', command='room release', method='POST', path='/v1/rooms/{room}/release',
    request=OneRoom, response=Hold, audience=OPERATOR, refusals=(404, 409),
    summary='Keep room for new servers no longer; moves that have not begun are given up.')

OPERATIONS = (CAPACITY, FAILOVER, CHECK, FRAGMENTS, WHAT_IF, MAKE, LIST, SHOW, APPROVE, RELEASE)
