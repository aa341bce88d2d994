"""Operations on room for servers: how many new servers fit, whether the servers of a failed host
can restart elsewhere, and which moves make room for new servers."""

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
"""Results of a check of the loss of a host. ``fits``: all servers of the host can restart
elsewhere. ``does_not_fit``: it is proven that some servers cannot restart. ``not_found``: no way to
restart all servers was found, and it is not proven that there is none."""

Several = Annotated[list[Name], msgspec.Meta(max_length=100)]
"""Type of a field with at most 100 hypothetical changes of one kind. Chosen because each change
takes time in proportion to the size of the cloud."""

MoveCount = Annotated[int, msgspec.Meta(ge=1, le=1000)]
"""Type of a field with the maximum number of moves after which servers are counted. The number is
from 1 to 1000. Chosen because the search for each move takes time."""


class Changes(Request):
    """The base class of requests about the cloud after hypothetical changes. The changes are made
    in this order:

    ratio : texts such as ``VCPU=8``: a new allocation ratio of a resource class on all hosts
    add : texts such as ``2:like=compute1``: a number of new empty hosts like an existing host
    lose : names of hosts that fail together, or failure domains such as ``rack=r3``
    boot : texts such as ``3:m1.large``: a number of new servers of a flavor
    """

    ratio: Several = []
    add: Several = []
    lose: Names = []
    boot: Several = []


class Outcome(Response):
    """The outcome of hypothetical changes. All fields are empty if the request has no changes.

    left : {uuid of a server that was on a lost host and cannot restart: reason}
    names : {uuid of a server in ``left``: its name}
    not_booted : {flavor: number of its new servers for which there is no room}
    """

    left: dict[str, str]
    names: dict[str, str]
    not_booted: dict[str, int]


class FlavorSlots(Response):
    """The number of further servers of a flavor that fit.

    flavor : name of the flavor, or the size in the request
    now : number of servers that fit without any move
    after_loss : number of servers that still fit after the failure of any one host, once the
        servers of the failed host have restarted; null if the request does not ask for losses, or
        if some server cannot restart after the failure of some host
    hosts : {name of a host with room for at least one more server: number of servers that fit
        there}
    unusable : {resource class: amount that is free, but too small for one more server}, on the
        hosts that may take such servers
    short : resource class of which too little is left for the next server; null if no host may take
        such servers
    full_in_days : predicted number of days until no further server fits, from the counts of past
        evaluations; null if the request names no aggregate, or if there is no clear trend
    full_in_days_error : twice the standard error of ``full_in_days``, in days
    after_moves : number of servers that are known to fit after the moves that the request permits;
        null if the request permits no moves
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
    """The number of further servers that fit, by flavor. ``not_restarting`` are the hosts after
    whose loss some servers cannot restart, and the hosts for which this is unknown. The list is
    empty if the request does not ask for losses."""

    slots: list[FlavorSlots]
    not_restarting: list[str]
    outcome: Outcome


class ShowCapacity(Changes):
    """A request for the number of further servers that fit. ``flavors`` are names of flavors, or
    sizes such as 4:8192:40 (VCPUs, MiB, GiB); if ``flavors`` is empty, all flavors are counted.
    With ``loss``, servers are also counted after the loss of any one host. With ``moves``, servers
    are also counted after moves that make room, for each flavor separately; ``moves`` is the
    maximum number of these moves."""

    flavors: Names = []
    aggregate: Name | None = None
    project: Name | None = None
    loss: bool = False
    moves: MoveCount | None = None


class HostLoss(Response):
    """The servers of a host that fails, and whether they can restart elsewhere.

    verdict : one of :data:`VERDICTS`
    in_novas_order : whether all servers restart even if Nova's scheduler chooses their hosts one
        after the other
    servers : number of servers on the host
    left : {uuid of a server that cannot restart: reason}
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
    """A request for a check whether the servers of each of ``hosts`` can restart elsewhere if the
    host fails. If ``hosts`` is empty, all hosts with servers are checked."""

    hosts: Names = []
    aggregate: Name | None = None


class RoomMove(Response):
    """A move of a server to another host, or the restart of a server on another host after the loss
    of its host."""

    instance_uuid: str
    instance_name: str
    source: str
    destination: str
    memory_mb: int


class Room(Response):
    """The moves after which new servers fit, in an order in which the moves can run.

    hosts : {name of a host: number of new servers for which there is room}
    missing : reasons why there is no room for the rest of the new servers
    is_proven : whether it is proven that no moves make room for more of the new servers
    """

    moves: list[RoomMove]
    memory_mb: int
    hosts: dict[str, int]
    missing: list[str]
    is_proven: bool
    outcome: Outcome


class CheckRoom(Changes, kw_only=True):
    """A request for the moves that make room for ``count`` servers. ``flavor`` is the name of a
    flavor, or a size such as 4:8192:40 (VCPUs, MiB, GiB)."""

    flavor: Name
    count: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1
    aggregate: Name | None = None
    project: Name | None = None


class Hold(Response):
    """Room that is made for new servers and kept for them.

    state : one of :data:`HOLD_STATES`
    project_id : project whose servers may use the room; null for any project
    moves, memory_mb : number of moves, and MiB of memory to copy, that were shown before the
        approval; the moves that are made do not exceed these numbers
    hosts : {name of a host: number of new servers for which there is room}
    used : {uuid of a server that uses the room: its host}
    keeper : mechanism that keeps other servers out of the room, one of :data:`KEEPERS`; null while
        the room is not kept
    consumers : {uuid of a consumer in placement whose allocation keeps room for one server: its
        host}
    plan : uuid of the newest plan of moves that make the room; null for none
    problem : reason why the room does not exist, or why its moves have not begun
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
"""States of a request for room for new servers. ``proposed``: its moves wait for approval.
``requested``: its moves are approved and not yet started. ``making``: its moves are in progress.
``held``: the room is kept free. ``used``: servers use the whole room. ``released``: an operator
released the room. ``expired``: the time of the request is over. ``failed``: no moves can make the
room."""


KEEPERS = ('filter', 'allocations')
"""Mechanisms that keep the room of a request free from other servers: KronosFilter in
nova-scheduler (``filter``), or allocations in placement (``allocations``)."""


class Holds(Response):
    rooms: list[Hold]


class RoomMade(Response):
    """The result of a request to make room: the moves, and the record of the request in ``hold``.
    ``hold`` is null if no moves make room for all of the servers."""

    room: Room
    hold: Hold | None


class ListRooms(Request):
    """A request to list the room that is being made or kept for new servers, one item for each
    request for room. With ``all``, room that is no longer kept is listed as well."""

    all: bool = False


class OneRoom(Request):
    """The parameters of an operation on one hold. A hold is room for new servers that was requested
    earlier, and that Kronos makes and then keeps free. ``room`` is the uuid of the hold."""

    room: str


class MakeRoom(Request, kw_only=True):
    """A request to make room for ``count`` servers of a flavor, for one project or for any project.
    Once the room is free, it is kept for these servers for ``hold_seconds``. If servers have to
    move, an operator first has to approve the moves; with ``approve``, the moves begin at once.

    The moves may take away room in which the servers of a failed host could restart. The request is
    refused if too little room would be left for the restart of some host's servers, and there was
    enough before the moves. With ``force``, the request is not refused for this reason.
    """

    flavor: Name
    count: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1
    aggregate: Name | None = None
    project: Name | None = None
    hold_seconds: Annotated[int, msgspec.Meta(ge=60, le=604_800)] = 1800
    reason: Reason = ''
    approve: bool = False
    force: bool = False


class Fragments(Response):
    """The moves after which the largest number of new servers of a flavor fits, in an order in
    which the moves can run.

    before, after : number of new servers that fit without the moves, and after them
    rate_before, rate_after : share (0 to 1) of the free CPUs that no server of the flavor can use,
        before and after the moves; only hosts that may take servers of the flavor are counted
    """

    moves: list[RoomMove]
    memory_mb: int
    before: int
    after: int
    rate_before: float
    rate_after: float
    outcome: Outcome


class ShowFragments(Changes, kw_only=True):
    """A request for the moves after which the largest number of new servers fits. ``flavor`` is the
    name of a flavor, or a size such as 4:8192:40 (VCPUs, MiB, GiB). ``moves`` is the maximum number
    of moves."""

    flavor: Name
    moves: MoveCount = 50
    aggregate: Name | None = None
    project: Name | None = None


class SupposedLoad(Response):
    """The load of a host, or the imbalance of an aggregate, in one policy. It has three values:
    ``now`` is the present value. ``changed`` is the value after hypothetical changes. ``planned``
    is the value after the moves of the plan that Kronos would make after these changes. Each value
    is null if it is unknown.

    host : name of the host; null if the values are imbalances of the aggregate
    """

    aggregate: str
    policy: str
    host: str | None
    now: float | None
    changed: float | None
    planned: float | None


class ChangedLoad(Response):
    """The loads in a cloud after hypothetical changes.

    restarts : restarts of the servers of lost hosts, each as a move to the host of the restart
    moves : moves of the plans that Kronos would make after the changes, in their order
    problems : reasons why the load in an aggregate or policy is unknown
    """

    loads: list[SupposedLoad]
    restarts: list[RoomMove]
    moves: list[RoomMove]
    problems: list[str]
    outcome: Outcome


class ShowChangedLoad(Changes):
    """A request for the load after hypothetical changes. Without ``aggregate``, the response has
    all aggregates in scope."""

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
    response=Holds, summary='The room that is being made or kept for new servers.')
SHOW = Operation(
    name='room:show', command='room show', method='GET', path='/v1/rooms/{room}', request=OneRoom,
    response=Hold, refusals=(404,),
    summary='The room of one request, with the progress of making it.')
APPROVE = Operation(
    name='room:approve', command='room approve', method='POST', path='/v1/rooms/{room}/approve',
    request=OneRoom, response=Hold, audience=OPERATOR, status=202, refusals=(404, 409),
    summary='Approve the moves that make the room of a request, so that they begin.')
RELEASE = Operation(
    name='room:release', command='room release', method='POST', path='/v1/rooms/{room}/release',
    request=OneRoom, response=Hold, audience=OPERATOR, refusals=(404, 409),
    summary='Release the room of a request. Its moves that have not begun are abandoned.')

OPERATIONS = (CAPACITY, FAILOVER, CHECK, FRAGMENTS, WHAT_IF, MAKE, LIST, SHOW, APPROVE, RELEASE)
