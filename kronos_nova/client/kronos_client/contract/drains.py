"""Operations on drains: hosts that operators empty and later enable again."""

import datetime
from typing import Annotated
from typing import Literal

import msgspec

from kronos_client.contract.base import Maybe
from kronos_client.contract.base import Name
from kronos_client.contract.base import OneHost
from kronos_client.contract.base import Reason
from kronos_client.contract.base import Request
from kronos_client.contract.base import Response
from kronos_client.contract.base import Time
from kronos_client.contract.operation import OPERATOR
from kronos_client.contract.operation import Operation


class Drain(Response):
    """The drain of a host, and its progress. ``blocked`` is {uuid of a server that cannot leave:
    reason}. ``waits_for`` is a text about other reasons why the drain waits. ``waits_in_vain`` is
    true if no evaluation plans the drain until an operator does something. ``stopped`` is {uuid of
    a server that the drain stops: ``stopping``, ``stopped`` or ``starting``}."""

    uuid: str
    host: str
    aggregate: str
    state: str
    requested_by: str
    requested_at: Time
    reason: str
    with_stopped: bool
    parallel: int | None
    deadline: Maybe
    keep_spare: int
    looked_at: Maybe
    servers: int | None
    left: int | None
    blocked: dict[str, str]
    waits_for: str
    problem: str
    finished_at: Maybe
    unmovable: str = 'leave'
    stopped: dict[str, str] = {}
    waits_in_vain: bool = False


class Drains(Response):
    drains: list[Drain]


class CheckedHost(Response):
    """The result of a check whether a host can be emptied. ``leaving`` is the number of servers
    that can leave the host, and ``cold`` the number of these servers that leave by a cold
    migration. ``destinations`` maps each host to the number of servers that would move there.
    ``blocked`` is {uuid of a server that cannot leave: reason}. ``interrupted`` is {uuid of a
    running server that would be migrated cold: Nova's reason against a live migration}. ``stopped``
    is {uuid of a server that would be stopped until the host is released: Nova's reason against a
    live migration}. ``names`` is {uuid of a server in ``blocked``, ``interrupted`` or ``stopped``:
    its name}."""

    host: str
    servers: int
    leaving: int
    cold: int
    memory_mb: int
    destinations: dict[str, int]
    blocked: dict[str, str]
    names: dict[str, str]
    interrupted: dict[str, str] = {}
    stopped: dict[str, str] = {}


class DrainsBegun(Response):
    """The result of a request to empty hosts. ``drains`` is empty if the hosts were only checked.
    ``expected_seconds`` is null if no server can leave. ``down`` are the hosts that have servers
    and whose nova-compute is down. ``refusal`` is the reason why the hosts can be drained only with
    ``force``; null for none."""

    checked: list[CheckedHost]
    down: list[str]
    expected_seconds: float | None
    drains: list[Drain]
    refusal: str | None = None


class ListDrains(Request):
    """A request to list drains. With ``all``, drains of hosts that were released are listed as
    well."""

    all: bool = False


class OneDrain(Request):
    """A request about one drain. ``drain`` is its uuid."""

    drain: str


class BeginDrains(Request):
    """A request to empty the hosts of ``hosts`` and the hosts of the failure domain ``domain``,
    such as ``rack=r3``. Either all drains begin or none. With ``check``, the hosts are only checked
    and nothing is changed. With ``force``, a host is drained even if none of its servers can leave,
    if its aggregate would have no enabled host left, or if the servers of another host could no
    longer all restart after a failure. ``unmovable`` is the treatment of running servers that Nova
    cannot migrate live: ``leave`` them, migrate them ``cold``, or ``stop`` them until the host is
    released."""

    hosts: Annotated[list[Name], msgspec.Meta(max_length=100)] = []
    domain: Name | None = None
    check: bool = False
    force: bool = False
    reason: Reason = ''
    with_stopped: bool = False
    parallel: Annotated[int, msgspec.Meta(ge=1, le=1000)] | None = None
    deadline: Annotated[datetime.datetime, msgspec.Meta(tz=True)] | None = None
    keep_spare: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0
    unmovable: Literal['leave', 'cold', 'stop'] = 'leave'


class ComputeService(Response):
    """The nova-compute service of a host. ``state`` is up or down; ``status`` is enabled or
    disabled."""

    state: str
    status: str
    forced_down: bool
    disabled_reason: str | None


class ServerOnHost(Response):
    """A server on a host. ``is_unsettled`` is true if the server was migrated or resized to another
    host, and the migration is neither confirmed nor reverted yet."""

    uuid: str
    name: str
    status: str
    task_state: str | None
    is_unsettled: bool


class Occupancy(Response):
    """The servers on a host, and the newest drain of the host.

    state : one of :data:`OCCUPANCY`
    is_over : true if a client has nothing to wait for, because the host is empty or is not being
        drained
    """

    host: str
    state: str
    is_over: bool
    service: ComputeService
    servers: list[ServerOnHost]
    drain: Drain | None


EMPTY, NOT_EMPTY, BLOCKED, DOWN = OCCUPANCY = ('empty', 'not empty', 'blocked', 'down')
"""States of a host in :class:`Occupancy`. ``empty``: the host has no servers, and no drain of the
host is in progress. ``not empty``: the host has servers, or a drain is in progress. ``blocked``:
the servers on the host cannot leave. ``down``: the host has servers, and its nova-compute is
down."""


LIST = Operation(
    name='drains:list', method='GET', path='/v1/drains', request=ListDrains, response=Drains,
    summary='Hosts that are being emptied, or wait for release.')
SHOW = Operation(
    name='drains:show', method='GET', path='/v1/drains/{drain}', request=OneDrain, response=Drain,
    refusals=(404,),
    summary='The progress of a drain, with the servers that stay and their reasons.')
BEGIN = Operation(
    name='drains:begin', method='POST', path='/v1/drains', request=BeginDrains,
    response=DrainsBegun, audience=OPERATOR, status=202, is_slow=True, refusals=(404, 409),
    command='host drain',
    summary='Empty hosts, or only check whether and where their servers fit.')
RELEASE = Operation(
    name='drains:release', method='POST', path='/v1/hosts/{host}/release', request=OneHost,
    response=Drain, audience=OPERATOR, status=202, refusals=(404, 409), command='host release',
    summary='Enable a host that a drain disabled; a drain in progress ends.')
OCCUPIED = Operation(
    name='drains:host', method='GET', path='/v1/hosts/{host}/occupancy', request=OneHost,
    response=Occupancy, refusals=(404,), command='host status', is_slow=True,
    summary='Whether a host is empty, with the servers on it and the reasons for which they stay.')

OPERATIONS = (LIST, SHOW, BEGIN, RELEASE, OCCUPIED)
