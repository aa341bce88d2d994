"""The life of a move: its states and the legal steps between them."""

import dataclasses

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

TRANSITIONS = {
    PLANNED: frozenset((DISPATCHED, ABANDONED)),
    # Back to planned: dispatched, but whoever took it died or asked for a retry.
    DISPATCHED: frozenset((CHECKING, PLANNED, FAILED, ABANDONED)),
    CHECKING: frozenset((CLAIMING, MIGRATING, PLANNED, FAILED, ABANDONED)),
    CLAIMING: frozenset((MIGRATING, PLANNED, FAILED, ABANDONED)),
    # Back to planned: it failed and a retry is left.
    MIGRATING: frozenset((VERIFYING, PLANNED, FAILED)),
    VERIFYING: frozenset((COMPLETED, PLANNED, FAILED)),
    COMPLETED: frozenset(),
    FAILED: frozenset(),
    ABANDONED: frozenset(),
}


def is_legal(old: str, new: str) -> bool:
    """Whether a move in state ``old`` may go to ``new``."""
    return new in TRANSITIONS[old]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MoveOutcome:
    """How a move ended. ``error_type`` is the class name of a
    :class:`kronos_nova.exception.MoveError`, or None."""

    move_id: str
    state: str
    migration_uuid: str | None = None
    error_type: str | None = None
    error: str = ''
    retry_count: int = 0
