"""States of drains."""

import dataclasses
import datetime
from collections.abc import Mapping
from dataclasses import field

REQUESTED = 'requested'
"""The service is not disabled yet."""
DRAINING = 'draining'
BLOCKED = 'blocked'
"""The servers that are left have no destination or may not be moved; planned again each cycle."""
EMPTY = 'empty'
OVERDUE = 'overdue'
"""Given up: its deadline has passed."""
RELEASING = 'releasing'
"""The service is not enabled again yet."""
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
"""States of a server that a drain stops: Nova is asked to stop it, it was off, Nova is asked to
start it."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """A request to empty a host, and its progress.

    parallel : moves at once off this host, or None for ``max_concurrent_per_source``
    keep_spare : hosts' worth of room that has to stay free
    avoid : hosts that are to be emptied later, and take servers only if no other host can
    servers : how many were on the host when it was first looked at
    left : how many were when it was last, at ``looked_at``
    blocked : uuid of each server that stays to why
    waits_for : what has to happen before the host can be emptied further, '' for nothing
    unmovable : one of :data:`UNMOVABLE`
    to_stop : uuids of servers that are to be stopped now: none but they are left
    stopped : uuid of each server that the drain has stopped to its state
    is_ours : whether the host was disabled for this drain, and by nothing else before
    is_unwatched : whether a service for high availability was asked to leave the host alone
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
        """Return whether a server was stopped by the drain. Its host counts as empty."""
        return uuid in self.stopped and status == 'SHUTOFF'
