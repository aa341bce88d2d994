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
"""The states of moves that count against the caps of moves at once."""

NOT_BEGUN = (PLANNED, DISPATCHED)
"""The states without a worker. A move that is given up there leaves no trace in Nova."""

REFUSED = 'PreFlightError'
"""Error type of a move that failed because it was refused before anything had changed."""


def request_id(move_uuid: str) -> str:
    """Return the request id with which Nova is asked for a move. It is in the log lines of every
    service about the move."""
    return f'req-{move_uuid}'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MoveRecord:
    """A move as the journal has it. ``created_at`` is when it was planned, ``checked_at`` when it
    was last held against the load there is. Memory of a migration is in bytes, None where the
    hypervisor's driver does not say; what was processed is all that was copied, again and again.
    ``group`` is a number that it shares with the moves of its plan without which it does not help.
    Of moves that are due, that of the lowest ``position`` goes first; what was expected of a move
    is None where nothing was."""

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
    """Moves that may run at once: in all, out of one host, into one host.

    sources : hosts of which another number may leave at once
    """

    total: int
    per_source: int
    per_destination: int
    sources: Mapping[str, int] = field(default_factory=dict)
