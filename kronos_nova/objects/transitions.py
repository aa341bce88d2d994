"""The permitted transitions between states of plans and between states of moves.

The transitions of drains are in :mod:`kronos_nova.drain.states`.
"""

from collections.abc import Mapping

from kronos_nova.objects import move
from kronos_nova.objects import plan

PLAN_TRANSITIONS: Mapping[str, frozenset[str]] = {
    plan.OBSERVED: frozenset((plan.APPROVED,)),
    plan.PROPOSED: frozenset((plan.APPROVED, plan.REJECTED, plan.EXPIRED, plan.SUPERSEDED,
                              plan.VOID)),
    # Rejected: an operator has withdrawn the approval.
    plan.APPROVED: frozenset((plan.EXECUTING, plan.REJECTED, plan.EXPIRED, plan.SUPERSEDED,
                              plan.VOID, plan.STOPPED)),
    plan.EXECUTING: frozenset((plan.DONE,)),
    plan.DONE: frozenset(),
    plan.REJECTED: frozenset(),
    plan.EXPIRED: frozenset(),
    plan.SUPERSEDED: frozenset(),
    plan.VOID: frozenset(),
    plan.STOPPED: frozenset(),
}
"""{state of a plan: states that may follow it}. Only the journal changes the state of a plan."""

MOVE_TRANSITIONS: Mapping[str, frozenset[str]] = {
    # Failed: a try failed, and there is no time for a retry.
    move.PLANNED: frozenset((move.DISPATCHED, move.FAILED, move.ABANDONED)),
    # Back to planned: no worker accepted it. Abandoned: an operator stopped Kronos.
    move.DISPATCHED: frozenset((move.CHECKING, move.PLANNED, move.ABANDONED)),
    # Back to planned: its worker ended or asked for a retry. To verifying: an earlier try that
    # counted as lost has moved the instance to the destination.
    move.CHECKING: frozenset((move.CLAIMING, move.MIGRATING, move.VERIFYING, move.PLANNED,
                              move.FAILED, move.ABANDONED)),
    move.CLAIMING: frozenset((move.MIGRATING, move.VERIFYING, move.PLANNED, move.FAILED,
                              move.ABANDONED)),
    # Back to planned: it failed and a retry is left.
    # Abandoned: an operator aborted it, or the instance is not as it was planned for.
    move.MIGRATING: frozenset((move.VERIFYING, move.PLANNED, move.FAILED, move.ABANDONED)),
    move.VERIFYING: frozenset((move.COMPLETED, move.PLANNED, move.FAILED)),
    move.COMPLETED: frozenset(),
    move.FAILED: frozenset(),
    move.ABANDONED: frozenset(),
}
"""{state of a move: states that may follow it}."""


def is_legal(old: str, new: str) -> bool:
    """Return True if a move may change from state ``old`` to state ``new``, else False."""
    return new in MOVE_TRANSITIONS[old]
