"""A move of a plan: its states, and its record in the journal."""

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
"""States of moves that count for the limits on concurrent moves."""

NOT_BEGUN = (PLANNED, DISPATCHED)
"""States in which no worker has begun with the move. A move that ends in one of them leaves no
trace in Nova."""

REFUSED = 'PreFlightError'
"""Error type of a move that failed because it was refused before anything had changed."""


def request_id(move_uuid: str) -> str:
    """Return the request id of the request to Nova for a move. It is in the log lines of every
    service about this move."""
    return f'req-{move_uuid}'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MoveRecord:
    """A move in the journal.

    created_at : time at which it was planned
    checked_at : time at which the move was last compared with the present load
    memory_total, memory_remaining, memory_processed : bytes of memory of the migration;
        ``memory_processed`` counts a page each time that it is copied. None where the hypervisor's
        driver does not report them
    group : a number that is equal for moves of the plan that help only together; None for a move
        that helps alone
    position : number by which moves that are due are sorted; the lowest position starts first
    expected_seconds, expected_downtime : predicted duration, and predicted seconds for which the
        guest is stopped; None where nothing was predicted
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
    """Limits on concurrent moves: in all, out of one host, and into one host.

    sources : host to its own limit of moves out of it, where this differs
    """

    total: int
    per_source: int
    per_destination: int
    sources: Mapping[str, int] = field(default_factory=dict)
