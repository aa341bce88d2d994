"""States of drains."""

import dataclasses
import datetime
from collections.abc import Mapping
from dataclasses import field

REQUESTED = 'requested'
"""A worker has not disabled the nova-compute service yet."""
DRAINING = 'draining'
BLOCKED = 'blocked'
"""The remaining servers have no destination or may not be moved. Each cycle plans the drain
again."""
EMPTY = 'empty'
OVERDUE = 'overdue'
"""The drain was given up because its deadline has passed."""
RELEASING = 'releasing'
"""A worker has not enabled the nova-compute service again yet."""
RELEASED = 'released'

ACTIVE = (REQUESTED, DRAINING, BLOCKED)
"""States in which servers are moved off the host."""

OPENED = (RELEASING, RELEASED)
"""States of a drain that was ended by a release."""

OVER = (EMPTY, OVERDUE)
"""States in which nothing is moved, and the host stays disabled until it is released."""

DRAIN_TRANSITIONS: Mapping[str, frozenset[str]] = {
    REQUESTED: frozenset((DRAINING, BLOCKED, RELEASING, RELEASED)),
    DRAINING: frozenset((BLOCKED, EMPTY, OVERDUE, RELEASING, RELEASED)),
    BLOCKED: frozenset((DRAINING, EMPTY, OVERDUE, RELEASING, RELEASED)),
    EMPTY: frozenset((DRAINING, RELEASING, RELEASED)),
    OVERDUE: frozenset((RELEASING, RELEASED)),
    RELEASING: frozenset((RELEASED,)),
    # The state may follow itself, because a worker may have died between the call to Nova and its
    # record.
    RELEASED: frozenset((RELEASING,))}
"""The life of a drain: the states that may follow each. Only the control database's ``Drains``
changes a state."""

LIVE = 'live'
COLD = 'cold'
RESTART = 'restart'
"""Kinds of moves: a live migration; a cold one of a stopped server, confirmed at once; a cold one
of a running server, which Nova stops and starts again at the destination."""

COLD_KINDS = (COLD, RESTART)
"""Kinds that Nova carries out as a cold migration."""

LEAVE = 'leave'
MOVE_COLD = 'cold'
STOP = 'stop'
UNMOVABLE = (LEAVE, MOVE_COLD, STOP)
"""Ways to treat running servers that Nova does not migrate live: they stay, are migrated cold, or
are stopped until the host is released."""

STOPPING = 'stopping'
STOPPED = 'stopped'
STARTING = 'starting'
"""States of a server that a drain stops: the stop is requested, the server is off, the start is
requested."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """A request to empty a host, and its progress.

    parallel : maximum number of concurrent moves off this host; None for
        ``max_concurrent_per_source``
    keep_spare : number of hosts whose worth of room has to stay free
    avoid : hosts that are to be emptied later, and take servers only if no other host can
    servers : number of servers on the host at its first check
    left : number of servers at its last check, at ``looked_at``
    blocked : uuid of each server that stays to the reason
    waits_for : text with everything that the drain waits for; '' for nothing
    unmovable : one of :data:`UNMOVABLE`
    to_stop : uuids of servers to be stopped now, because no others are left
    stopped : uuid of each server that the drain has stopped to its state
    is_ours : whether the host was enabled before this drain disabled it
    is_unwatched : whether the service for high availability was asked not to act on the host
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
    problem: str = ''
    finished_at: datetime.datetime | None = None
    unmovable: str = LEAVE
    to_stop: tuple[str, ...] = ()
    stopped: Mapping[str, str] = field(default_factory=dict)
    is_ours: bool = False
    is_unwatched: bool = False

    def has_stopped(self, uuid: str, status: str) -> bool:
        """Return whether a server is off because the drain stopped it. Such servers do not keep the
        host from being empty."""
        return uuid in self.stopped and status == 'SHUTOFF'
