"""The states of a drain, the kinds of its moves, and the Drain itself."""

import dataclasses
import datetime
from collections.abc import Mapping
from dataclasses import field

REQUESTED = 'requested'
"""State of a requested drain, before a worker disables the nova-compute service."""
DRAINING = 'draining'
BLOCKED = 'blocked'
"""State of a drain whose remaining servers have no destination or must not be moved. Each
evaluation plans the drain again."""
EMPTY = 'empty'
OVERDUE = 'overdue'
"""State of a drain that was given up because its deadline has passed. The host stays disabled."""
RELEASING = 'releasing'
"""State of a drain whose release was requested, before a worker enables the nova-compute
service."""
RELEASED = 'released'

ACTIVE = (REQUESTED, DRAINING, BLOCKED)
"""States of a drain in which servers are moved off the host."""

OPENED = (RELEASING, RELEASED)
"""States of a drain that was ended by the release of its host."""

OVER = (EMPTY, OVERDUE)
"""States of a drain in which nothing is moved. The host stays disabled until the host is
released."""

DRAIN_TRANSITIONS: Mapping[str, frozenset[str]] = {
    # Overdue: a worker has disabled the host and died, and the deadline has passed since.
    REQUESTED: frozenset((DRAINING, BLOCKED, OVERDUE, RELEASING, RELEASED)),
    DRAINING: frozenset((BLOCKED, EMPTY, OVERDUE, RELEASING, RELEASED)),
    BLOCKED: frozenset((DRAINING, EMPTY, OVERDUE, RELEASING, RELEASED)),
    EMPTY: frozenset((DRAINING, RELEASING, RELEASED)),
    OVERDUE: frozenset((RELEASING, RELEASED)),
    RELEASING: frozenset((RELEASED,)),
    # RELEASING may follow RELEASED, because a worker may have died between the request to Nova and
    # its record.
    RELEASED: frozenset((RELEASING,))}
"""{state of a drain: states that may follow this state}. Only the class ``Drains``, which stores
drains in the control database, changes the state of a drain."""

LIVE = 'live'
COLD = 'cold'
RESTART = 'restart'
"""Kinds of moves. :data:`LIVE` is a live migration. :data:`COLD` is a cold migration of a stopped
server, which Kronos confirms immediately. :data:`RESTART` is a cold migration of a running server,
which Nova stops and starts again at the destination."""

COLD_KINDS = (COLD, RESTART)
"""Kinds of moves that Nova carries out as a cold migration."""

LEAVE = 'leave'
MOVE_COLD = 'cold'
STOP = 'stop'
UNMOVABLE = (LEAVE, MOVE_COLD, STOP)
"""Ways to treat running servers that Nova does not migrate live. Such a server stays (``LEAVE``),
is migrated cold (``MOVE_COLD``), or is stopped until the host is released (``STOP``)."""

STOPPING = 'stopping'
STOPPED = 'stopped'
STARTING = 'starting'
"""States of a server that a drain stops. :data:`STOPPING`: Nova was requested to stop the server.
:data:`STOPPED`: the server is off. :data:`STARTING`: Nova was requested to start the server
again."""

GONE = 'Nova has no nova-compute of that name any more'
"""Reason that is shown if a host was removed from Nova."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """The reason why a drain waits. The two columns of a stored drain are always written together.

    why : text that lists everything for which the drain waits; '' if it waits for nothing
    is_in_vain : True if no evaluation plans the drain until an operator does something
    """

    why: str = ''
    is_in_vain: bool = False


NO_WAIT = Wait()
"""The Wait of a drain that waits for nothing."""


def released_by(host: str) -> str:
    """Return the end of a text about a drain that only an operator ends: the command that ends
    the drain."""
    return f'"host release {host}" ends the drain'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """A request to empty a host, and its progress.

    parallel : maximum number of concurrent moves off this host; None for
        ``max_concurrent_per_source``
    keep_spare : room that is kept free in the aggregate, as a number of hosts. With 2, as much room
        is kept free as the two largest hosts have in total, on any hosts; see ``[kronos]
        reserve_hosts``
    avoid : names of hosts that are to be emptied later. These hosts take servers only if no other
        host can
    servers : number of servers on the host at its first check
    left : number of servers on the host at its last check, which was at ``looked_at``
    blocked : {uuid of a server that stays: reason}
    waits_for : text that lists everything for which the drain waits, without blocked servers; '' if
        the drain waits for nothing
    waits_in_vain : True if no evaluation plans the drain until an operator does something, for
        example because the host has left its aggregate; ``waits_for`` has the reason
    unmovable : treatment of servers that Nova does not migrate live, one of :data:`UNMOVABLE`
    to_stop : uuids of servers to be stopped now, because no other servers are left on the host
    stopped : {uuid of a server that the drain stops: :data:`STOPPING`, :data:`STOPPED` or
        :data:`STARTING`}
    is_ours : True if Kronos disabled the host; False if the host was disabled before for another
        reason
    is_unwatched : True if the service for high availability was asked not to act on the host
    """

    uuid: str
    host: str
    aggregate: str
    state: str
    requested_by: str
    requested_at: datetime.datetime
    reason: str = ''
    with_stopped: bool = False
    parallel: int | None = None
    deadline: datetime.datetime | None = None
    keep_spare: int = 0
    avoid: tuple[str, ...] = ()
    looked_at: datetime.datetime | None = None
    servers: int | None = None
    left: int | None = None
    blocked: Mapping[str, str] = field(default_factory=dict)
    waits_for: str = ''
    waits_in_vain: bool = False
    problem: str = ''
    finished_at: datetime.datetime | None = None
    unmovable: str = LEAVE
    to_stop: tuple[str, ...] = ()
    stopped: Mapping[str, str] = field(default_factory=dict)
    is_ours: bool = False
    is_unwatched: bool = False

    @property
    def wait(self) -> Wait:
        return Wait(why=self.waits_for, is_in_vain=self.waits_in_vain)

    def has_stopped(self, uuid: str, status: str) -> bool:
        """Return True if a server is off because the drain stopped the server; False otherwise. A
        host on which all servers are off for this reason counts as empty."""
        return uuid in self.stopped and status == 'SHUTOFF'
