"""Room: the number of further servers that fit, the hosts that may fail, and the moves that make
room."""

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
"""Results of judging the loss of a host: its servers can all restart elsewhere; they cannot; it is
not known, because no way was found and none was excluded."""

Several = Annotated[list[Name], msgspec.Meta(max_length=100)]
"""The changes of one kind in a request, at most 100. Chosen because every change takes time in
proportion to the size of the cloud."""

MoveCount = Annotated[int, msgspec.Meta(ge=1, le=1000)]
"""Maximum number of moves that may be made so that more servers fit, up to 1000. Chosen because
every move takes time to find."""


class Changes(Request):
    """The base of requests about the cloud as it would be after hypothetical changes. The changes
    are made in this order.

    ratio : texts such as ``VCPU=8``: a new allocation ratio of a resource class on all hosts
    add : texts such as ``2:like=compute1``: a number of new empty hosts like an existing one
    lose : names of hosts that fail together, or failure domains such as ``rack=r3``
    boot : texts such as ``3:m1.large``: a number of new servers of a flavor
    """

    ratio: Several = []
    add: Several = []
    lose: Names = []
    boot: Several = []


class Outcome(Response):
    """The outcome of hypothetical changes. All fields are empty where none was asked for.

    left : {uuid of a server of a lost host that does not restart: reason}
    names : {uuid of a server in ``left``: its name}
    not_booted : {flavor: number of its new servers that find no room}
    """

    left: dict[str, str]
    names: dict[str, str]
    not_booted: dict[str, int]


class FlavorSlots(Response):
    """The number of further servers of a flavor that fit.

    flavor : its name, or the size that was asked for
    now : number that fits without any move
    after_loss : number that still fits after the failure of any one host, once the servers of this
        host have restarted; null where the request does not ask for it, or where the servers of
        some host do not all restart
    hosts : {name of a host that takes at least one more server: number that it takes}
    unusable : {resource class: amount that is free, but not enough for one more server}, on the
        hosts that may take such servers
    short : resource class of which too little is left for the next server; null where no host may
        take such servers
    full_in_days : predicted number of days until no further server fits, from the counts of past
        evaluations; null where no aggregate was named, or where there is no clear trend
    full_in_days_error : twice the standard error of ``full_in_days``, in days
    after_moves : least number that fits after the moves that the request permits; null where the
        request permits no moves
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
    """The number of further servers that fit, by flavor. ``not_restarting`` has the hosts whose
    servers do not all restart after a loss, or of which it is not known; empty where loss was not
    asked for."""

    slots: list[FlavorSlots]
    not_restarting: list[str]
    outcome: Outcome


class ShowCapacity(Changes):
    """A request to count the further servers that fit. ``flavors`` are names of flavors, or sizes
    such as 4:8192:40 (VCPUs, MiB, GiB); without any, all flavors are counted. With ``loss`` servers
    are also counted after the loss of any one host. With ``moves`` they are also counted after at
    most that many moves, for each flavor by itself."""

    flavors: Names = []
    aggregate: Name | None = None
    project: Name | None = None
    loss: bool = False
    moves: MoveCount | None = None


class HostLoss(Response):
    """The servers of a host that fails, and whether they restart elsewhere.

    verdict : one of :data:`VERDICTS`
    in_novas_order : whether all servers restart if Nova's scheduler chooses their hosts one after
        the other
    servers : number of servers on the host
    left : {uuid of a server that does not restart: reason}
    names : {uuid of a server in ``left``: its name}
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
    """A request to judge whether the servers of ``hosts`` restart elsewhere if their host fails.
    Without ``hosts`` all hosts with servers are judged."""

    hosts: Names = []
    aggregate: Name | None = None


class RoomMove(Response):
    """A server's move to another host, or its restart there after the loss of its host."""

    instance_uuid: str
    instance_name: str
    source: str
    destination: str
    memory_mb: int


class Room(Response):
    """The moves after which new servers fit, in an order in which they may run.

    hosts : {name of a host: number of new servers that find room on it}
    missing : reasons why the rest of the new servers find no room
    is_proven : whether it is proven that no moves make room for more of the new servers
    """

    moves: list[RoomMove]
    memory_mb: int
    hosts: dict[str, int]
    missing: list[str]
    is_proven: bool
    outcome: Outcome


class CheckRoom(Changes, kw_only=True):
    """A request to find moves that make room for ``count`` servers. ``flavor`` is the name of a
    flavor, or a size such as 4:8192:40 (VCPUs, MiB, GiB)."""

    flavor: Name
    count: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1
    aggregate: Name | None = None
    project: Name | None = None


class Hold(Response):
    """Room that is made for new servers and kept for them.

    state : one of :data:`HOLD_STATES`
    project_id : project whose servers may use the room; null for any project
    moves, memory_mb : number of moves, and MiB to copy, that were shown before the approval; the
        moves may not exceed them
    hosts : {name of a host: number of new servers that find room on it}
    used : {uuid of a server that uses the room: its host}
    keeper : means that keeps other servers out of the room, one of :data:`KEEPERS`; null while the
        room is not kept
    consumers : {uuid of a consumer in placement whose allocation keeps room for one server: its
        host}
    plan : uuid of the newest plan with moves for the room; null for none
    problem : reason why the room is not there, or its moves have not begun
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
"""States of a room, in this order: its moves wait for approval; they are approved and not yet
started; they are in progress; it is kept; servers use all of it; an operator released it; its time
is over; no moves make it."""


KEEPERS = ('filter', 'allocations')
"""Means that keep other servers out of a room: KronosFilter in nova-scheduler, or allocations in
placement."""


class Holds(Response):
    rooms: list[Hold]


class RoomMade(Response):
    """The moves that make the room, and the recorded request; ``hold`` is null where there is no
    room for all servers."""

    room: Room
    hold: Hold | None


class ListRooms(Request):
    """A request to list rooms (room that is made or kept for new servers). Without ``all``, rooms
    that have ended are left out."""

    all: bool = False


class OneRoom(Request):
    """A request about one room. ``room`` is its uuid."""

    room: str


class MakeRoom(Request, kw_only=True):
    """A request to make room for ``count`` servers of a flavor, of one project or of any project.
    Once the room is free, it is kept for these servers for ``hold_seconds``. Where servers have to
    move, the moves begin after an operator has approved them, or at once with ``approve``.

    The request is refused if a host whose servers would all restart elsewhere now would no longer
    be such a host after the moves. With ``force`` it is not refused for this reason."""

    flavor: Name
    count: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1
    aggregate: Name | None = None
    project: Name | None = None
    hold_seconds: Annotated[int, msgspec.Meta(ge=60, le=604_800)] = 1800
    reason: Reason = ''
    approve: bool = False
    force: bool = False


class Fragments(Response):
    """The moves after which the most new servers of a flavor fit, in an order in which they can
    run.

    before, after : number of servers that fit without the moves, and after them
    rate_before, rate_after : part (0 to 1) of the free CPUs of hosts that may take such servers
        which no such server can use
    """

    moves: list[RoomMove]
    memory_mb: int
    before: int
    after: int
    rate_before: float
    rate_after: float
    outcome: Outcome


class ShowFragments(Changes, kw_only=True):
    """A request to find the moves after which the most new servers fit. ``flavor`` is the name of a
    flavor, or a size such as 4:8192:40 (VCPUs, MiB, GiB). ``moves`` is the maximum number of
    moves."""

    flavor: Name
    moves: MoveCount = 50
    aggregate: Name | None = None
    project: Name | None = None


class SupposedLoad(Response):
    """A load in a policy: ``now``, ``changed`` by the hypothetical changes, and ``planned`` after
    the moves of the plan that would follow. Each is null where it is not known.

    host : name of the host with this load; null where it is the imbalance of the aggregate
    """

    aggregate: str
    policy: str
    host: str | None
    now: float | None
    changed: float | None
    planned: float | None


class ChangedLoad(Response):
    """The loads in a cloud after hypothetical changes.

    restarts : restarts of the servers of lost hosts, as moves to the host on which each restarts
    moves : moves of the plans that would follow, in order
    problems : reasons why the load in an aggregate or policy is not known
    """

    loads: list[SupposedLoad]
    restarts: list[RoomMove]
    moves: list[RoomMove]
    problems: list[str]
    outcome: Outcome


class ShowChangedLoad(Changes):
    """A request for the load after hypothetical changes. Without ``aggregate``, all aggregates in
    scope are shown."""

    aggregate: Name | None = None


CAPACITY = Operation(
    name='room:capacity', command='capacity', method='GET', path='/v1/capacity',
    request=ShowCapacity, response=Capacity, is_slow=True, refusals=(404,),
    summary='The number of further servers that fit, by flavor, now and after the loss of a host.')
FAILOVER = Operation(
    name='room:failover', command='failover', method='GET', path='/v1/failover',
    request=CheckFailover, response=Failover, is_slow=True, refusals=(404,),
    summary='Whether all servers of each host can restart on other hosts if that host fails.')
CHECK = Operation(
    name='room:check', command='room check', method='GET', path='/v1/room', request=CheckRoom,
    response=Room, is_slow=True, refusals=(404,),
    summary='The moves after which new servers of a flavor fit.')
FRAGMENTS = Operation(
    name='room:fragments', command='room fragments', method='GET', path='/v1/fragments',
    request=ShowFragments, response=Fragments, is_slow=True, refusals=(404,),
    summary='The moves after which the most new servers of a flavor fit.')
WHAT_IF = Operation(
    name='room:what_if', command='room what-if', method='GET', path='/v1/what-if',
    request=ShowChangedLoad, response=ChangedLoad, is_slow=True, refusals=(404,),
    summary='The load after hypothetical changes of the cloud, and the moves that would follow.')

MAKE = Operation(
    name='room:make', command='room make', method='POST', path='/v1/rooms', request=MakeRoom,
    response=RoomMade, audience=OPERATOR, status=202, is_slow=True, refusals=(404,),
    summary='Make room for new servers by moving other servers, and keep the room for them.')
LIST = Operation(
    name='room:list', command='room list', method='GET', path='/v1/rooms', request=ListRooms,
    response=Holds, summary='The rooms that are being made or kept for new servers.')
SHOW = Operation(
    name='room:show', command='room show', method='GET', path='/v1/rooms/{room}', request=OneRoom,
    response=Hold, refusals=(404,),
    summary='A room for new servers, with the progress of making it.')
APPROVE = Operation(
    name='room:approve', command='room approve', method='POST', path='/v1/rooms/{room}/approve',
    request=OneRoom, response=Hold, audience=OPERATOR, status=202, refusals=(404, 409),
    summary='Approve the moves that make a room, so that they begin.')
RELEASE = Operation(
    name='room:release', command='room release', method='POST', path='/v1/rooms/{room}/release',
    request=OneRoom, response=Hold, audience=OPERATOR, refusals=(404, 409),
    summary='Release a room. Moves for it that have not begun are abandoned.')

OPERATIONS = (CAPACITY, FAILOVER, CHECK, FRAGMENTS, WHAT_IF, MAKE, LIST, SHOW, APPROVE, RELEASE)
