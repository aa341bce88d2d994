"""The states of a move, its record in the journal, and the limits on concurrent moves."""

import dataclasses
import datetime
from collections.abc import Mapping
from dataclasses import field

PLANNED = 'planned'
DISPATCHED = 'dispatched'
CHECKING = 'checking'
CLAIMING = 'claiming'
MIGRATING = 'migrating'
VERIFYING = 'verifying'
COMPLETED = 'completed'
FAILED = 'failed'
ABANDONED = 'abandoned'

TERMINAL = frozenset((COMPLETED, FAILED, ABANDONED))
IN_FLIGHT = (DISPATCHED, CHECKING, CLAIMING, MIGRATING, VERIFYING)
"""States in which a move counts towards the limits on concurrent moves."""

NOT_BEGUN = (PLANNED, DISPATCHED)
"""States in which no worker has begun the move. If a move is given up in one of these states, Nova
has no record of the move."""

REFUSED = 'PreFlightError'
"""Error type of a failed move that was refused before anything had changed."""


def request_id(move_uuid: str) -> str:
    """Return the global request id of the requests to Nova for a move. All services have this id in
    their log lines about the move."""
    return f'req-{move_uuid}'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MoveRecord:
    """A move in the journal.

    created_at : time at which the move was planned
    checked_at : time at which the move was last compared with the present load
    memory_total, memory_remaining, memory_processed : bytes of memory that have to be copied in
        total, that remain to be copied, and that were copied; ``memory_processed`` counts a page
        each time that the page is copied. None if the hypervisor's driver does not report them
    group : number of the group to which the move belongs. The moves of a group are useful only if
        all of them are made. None for a move that is useful alone
    only_makes_room : True if the move serves nothing but moves of its plan that depend on it
    position : number by which the moves that may start now are sorted; the move with the lowest
        number starts first
    expected_seconds, expected_downtime : predicted duration of the move, and predicted time for
        which the guest is stopped; None if nothing was predicted
    """

    uuid: str
    plan_uuid: str
    aggregate: str
    ordinal: int
    phase: str
    instance_uuid: str
    source: str
    destination: str
    memory_mb: int
    reason: str
    state: str
    not_before: datetime.datetime
    created_at: datetime.datetime
    checked_at: datetime.datetime | None = None
    depends_on: tuple[int, ...] = ()
    group: int | None = None
    only_makes_room: bool = False
    owner: str | None = None
    retry_count: int = 0
    migration_uuid: str | None = None
    abort_requested: bool = False
    dispatched_at: datetime.datetime | None = None
    requested_at: datetime.datetime | None = None
    forced_at: datetime.datetime | None = None
    finished_at: datetime.datetime | None = None
    settled_at: datetime.datetime | None = None
    error_type: str | None = None
    error: str | None = None
    outage: bool = False
    memory_total: int | None = None
    memory_remaining: int | None = None
    memory_processed: int | None = None
    kind: str = 'live'
    position: int = 0
    expected_seconds: float | None = None
    expected_downtime: float | None = None
    adopted: bool = False
    project_id: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """Limits on concurrent moves: the number in total, the number out of one host, and the number
    into one host.

    sources : {host: limit of moves out of the host}, for the hosts whose limit is not
        ``per_source``
    """

    total: int
    per_source: int
    per_destination: int
    sources: Mapping[str, int] = field(default_factory=dict)
