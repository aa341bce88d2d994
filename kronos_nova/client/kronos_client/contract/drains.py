"""Drains: hosts that operators empty, and open again."""

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
    """A host that is being emptied, and its progress. ``blocked`` has of each server that stays
    the reason, ``waits_for`` names all else that has to happen first. ``stopped`` has the servers
    that the drain has stopped, with their states: ``stopping``, ``stopped`` or ``starting``."""

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


class Drains(Response):
    drains: list[Drain]


class CheckedHost(Response):
    """The servers that can leave a host, ``cold`` of them by a cold migration, where to, and which
    cannot and why. ``interrupted`` has the running servers that are migrated cold, ``stopped``
    those that are stopped until the host is released, each with Nova's reason. ``names`` has the
    names of all these."""

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
    """``drains`` is empty where it was only checked; ``expected_seconds`` is null where nothing can
    leave. ``down`` are hosts whose nova-compute is down, with servers on them. ``refusal`` is the
    reason why the hosts that were checked are drained with ``force`` only; null for none."""

    checked: list[CheckedHost]
    down: list[str]
    expected_seconds: float | None
    drains: list[Drain]
    refusal: str | None = None


class ListDrains(Request):
    """By default released drains are left out."""

    all: bool = False


class OneDrain(Request):
    """``drain`` is the uuid of a drain."""

    drain: str


class BeginDrains(Request):
    """Hosts to empty, all or none: those that are named, and those of ``domain``, a failure domain
    such as ``rack=r3``. With ``check`` nothing is changed. ``force`` drains hosts that nothing can
    leave, and the last hosts of an aggregate. Running servers that Nova does not migrate live stay;
    with ``unmovable`` ``cold`` they are migrated cold, with ``stop`` they are stopped until the
    host is released."""

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
    """The nova-compute of a host: ``state`` up or down, ``status`` enabled or disabled."""

    state: str
    status: str
    forced_down: bool
    disabled_reason: str | None


class ServerOnHost(Response):
    """A server on a host. ``is_unsettled``: it was migrated or resized off the host, which is
    neither confirmed nor reverted."""

    uuid: str
    name: str
    status: str
    task_state: str | None
    is_unsettled: bool


class Occupancy(Response):
    """The servers on a host, and its newest drain.

    state : one of :data:`OCCUPANCY`
    is_over : whether waiting for the host to be empty changes nothing any more
    """

    host: str
    state: str
    is_over: bool
    service: ComputeService
    servers: list[ServerOnHost]
    drain: Drain | None


EMPTY, NOT_EMPTY, BLOCKED, DOWN = OCCUPANCY = ('empty', 'not empty', 'blocked', 'down')
"""States of a host: nothing is on it, and its drain is over if there is one; servers are on it, or
its drain is not over; all that is left has to stay; its nova-compute is down, with servers on
it."""


LIST = Operation(
    name='drains:list', method='GET', path='/v1/drains', request=ListDrains, response=Drains,
    summary='Hosts that are being emptied, or wait for release.')
SHOW = Operation(
    name='drains:show', method='GET', path='/v1/drains/{drain}', request=OneDrain, response=Drain,
    refusals=(404,), summary='The progress of a drain, and what stays and why.')
BEGIN = Operation(
    name='drains:begin', method='POST', path='/v1/drains', request=BeginDrains,
    response=DrainsBegun, audience=OPERATOR, status=202, is_slow=True, refusals=(404, 409),
    command='host drain',
    summary='Empty hosts, or only check whether and where everything fits.')
RELEASE = Operation(
    name='drains:release', method='POST', path='/v1/hosts/{host}/release', request=OneHost,
    response=Drain, audience=OPERATOR, status=202, refusals=(404, 409), command='host release',
    summary='Enable a host that a drain disabled; a drain in progress ends.')
OCCUPIED = Operation(
    name='drains:host', method='GET', path='/v1/hosts/{host}/occupancy', request=OneHost,
    response=Occupancy, refusals=(404,), command='host status', is_slow=True,
    summary='Whether a host is empty, what is on it, and what stays and why.')

OPERATIONS = (LIST, SHOW, BEGIN, RELEASE, OCCUPIED)
