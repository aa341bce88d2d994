"""Types that describe an operation of the API, the dependencies of operations, and a request to an
operation."""

import dataclasses
import datetime
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

import msgspec
from oslo_config import cfg

from kronos_client.contract import operation as operations
from kronos_client.contract.base import Request
from kronos_nova.api.event_feed import Feed
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.db.engine import Database
from kronos_nova.executor.hosts import HostApi
from kronos_nova.objects.shape import Shape
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.operations.snapshots import SnapshotFolder
from kronos_nova.placement.room_allocations import RoomAllocations
from kronos_nova.services import dispatch
from kronos_nova.services.context import Context


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The dependencies of operations.

    conf : the ConfigOpts
    utcnow : function that returns the time
    read_cloud : function that returns a Snapshot of the present cloud. Only two kinds of operations
        use it: those on drains, and those on room for new servers
    read_flavors : function that returns Nova's flavors. Only operations on room for new servers use
        it
    host_api : function that returns the HostApi. Only the operation that lists the servers on a
        host uses it
    room_allocations : function that returns the RoomAllocations of placement
    planner_ports : function that returns the PlannerPorts: the metrics source, the clock and the
        dry run for planning
    feed : Feed of events for listeners
    snapshots : SnapshotFolder with recorded snapshots
    """

    conf: cfg.ConfigOpts
    database: Database
    utcnow: Callable[[], datetime.datetime]
    read_cloud: Callable[[], Snapshot]
    read_flavors: Callable[[], tuple[Shape, ...]]
    host_api: Callable[[], HostApi]
    planner_ports: Callable[[], PlannerPorts]
    room_allocations: Callable[[], RoomAllocations]
    feed: Feed
    snapshots: SnapshotFolder

    def context(self, who: str) -> Context:
        return Context(conf=self.conf, database=self.database, who=who,
                       read_cloud=self.read_cloud, read_flavors=self.read_flavors,
                       host_api=self.host_api,
                       planner_ports=self.planner_ports,
                       room_allocations=self.room_allocations)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The user of a request according to keystone, and the names of the operations that the policy
    permits to this user."""

    user: str
    project: str | None
    is_system: bool
    roles: tuple[str, ...]
    expires_at: datetime.datetime | None
    may: list[str]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request to the API.

    path : the values in the path, by name
    query, body : the query parameters and the body, as objects of the types ``query`` and ``body``
        of the Operation
    who : name of the user, which is recorded with changes
    expires_at : time until which the token is valid
    identify : function that returns the Identity of the user
    last_event_id : id of the last event that a listener received before it connected again
    request : the request as an object of the request type in :mod:`kronos_client.contract`; None if
        that package does not define the operation
    """

    services: Services
    path: Mapping[str, str]
    query: Any
    body: Any
    who: str
    expires_at: datetime.datetime
    identify: Callable[[], Identity]
    last_event_id: str | None = None
    request: Request | None = None

    @property
    def identity(self) -> Identity:
        return self.identify()


class NoQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The type of ``query`` for operations that have no query parameters."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation of the API.

    name : the name of the operation in its policy rule and in the OpenAPI document
    run : function that carries out a Call, and returns the response
    gives : type of the response; None for an operation without a response, with a stream of events
        or with a file
    query, body : types of the query parameters and of the body; None for no body
    events : {type of an event: type of its data} for an operation that answers with a stream of
        events; ``run`` then returns an iterable
    media : media type for an operation that answers with a file; ``run`` then returns the file,
        open for reading
    is_slow : true if the operation takes seconds; kronos-api runs only a few slow operations at a
        time
    refusals : HTTP statuses with which the operation may be refused, in addition to the statuses
        that every operation can have
    contract : the definition of this operation in :mod:`kronos_client.contract`; None if that
        package does not define the operation. With a definition, ``run`` reads ``request`` of the
        Call, and ``query`` and ``body`` are not used
    """

    method: str
    path: str
    name: str
    summary: str
    run: Callable[[Call], Any]
    gives: type | None = None
    audience: str = operations.READER
    query: type = NoQuery
    body: type | None = None
    events: Mapping[str, type] | None = None
    media: str | None = None
    is_slow: bool = False
    status: int = 200
    refusals: tuple[int, ...] = ()
    contract: operations.Operation | None = None

    @property
    def rule(self) -> str:
        return f'kronos:{self.name}'


def serve(operation: operations.Operation) -> Operation:
    """Make an Operation of the API from its definition in :mod:`kronos_client.contract`."""
    def run(call: Call) -> Any:
        assert call.request is not None
        return dispatch.run(operation, call.services.context(call.who), call.request)

    return Operation(
        contract=operation, method=operation.method, path=operation.path, name=operation.name,
        summary=operation.summary, run=run, gives=operation.response, status=operation.status,
        audience=operation.audience, refusals=operation.refusals, is_slow=operation.is_slow)
