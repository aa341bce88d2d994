"""Progress of moves and the times at which they are expected to end."""

import datetime
import statistics
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from kronos_nova import clock
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from kronos_nova.pacing.slots import ConcurrencySlots

NEAREST = 9
"""Maximum number of past migrations from which the duration of a new migration is predicted. The
past migrations with the most similar memory sizes are used. The duration of each past migration is
scaled to the memory size of the new one. The median of these durations is the prediction. Raised,
migrations of instances with very different memory sizes are used as well; lowered, one unusual
migration has more influence on the prediction. Not measured."""

OVERDUE = 3
"""Factor of the expected duration of a move. A move whose elapsed time exceeds this number of
times its expected duration is overdue, and no end is predicted for an overdue move. Raised, an end
is predicted for longer while a move hangs; lowered, no end is predicted for a move that is only
slow. Not measured."""
LEAST_OVERDUE_SECONDS = 60.0
"""Seconds after the beginning of a move in which the move is not overdue, even if its expected
duration is very short. No end is predicted for an overdue move. Raised, an end is predicted for
longer while a short move hangs; lowered, no end is predicted for a short move that waits for its
confirmation. Not measured."""


AnyMove = moves.MoveRecord | plans.PlannedMove
"""A move of the journal, or a move of a plan that has not begun."""
Observed = Callable[[], Sequence[tuple[int, float]]]
"""A function that returns [(memory in MiB, seconds)] of moves that completed."""


def percent(move: moves.MoveRecord) -> float | None:
    """Return the percentage of the instance's memory that a move has copied; 100 for a completed
    move. Return None if the move is not in progress, or if the hypervisor's driver does not report
    the memory.

    The percentage may fall, because the total that Nova reports grows while the guest writes to its
    memory.
    """
    if move.state == moves.COMPLETED:
        return 100.0
    if move.state != moves.MIGRATING or not move.memory_total or move.memory_remaining is None:
        return None
    return 100.0 * (1 - min(move.memory_remaining / move.memory_total, 1))


def expected_seconds(move: AnyMove, observed: Observed) -> float | None:
    """Return the seconds that a move is expected to take, as its plan predicts. For a move without
    a prediction, return the median duration of the observed moves with the most similar memory,
    scaled to the memory of this move.

    :param observed: returns [(memory in MiB, seconds)] of moves that completed; called only if the
        plan has no prediction
    :returns: None if there is neither a prediction nor an observed move
    """
    if move.expected_seconds is not None:
        return move.expected_seconds
    return _usual_seconds(move.memory_mb, observed())


def _usual_seconds(memory_mb: int, observed: Sequence[tuple[int, float]]) -> float | None:
    """Return the median duration, in seconds, of the :data:`NEAREST` observed moves with the most
    similar memory. Each duration is scaled to ``memory_mb``. Return None if no move was observed.

    :param observed: [(memory in MiB, seconds)] of moves that completed
    """
    nearest = sorted(observed, key=lambda each: abs(each[0] - memory_mb))[:NEAREST]
    return statistics.median(
        seconds * memory_mb / memory for memory, seconds in nearest) if nearest else None


def error(predictions: Iterable[tuple[float, float]]) -> float | None:
    """Return the median relative error of predictions, |expected - taken| / taken. Return None if
    there are no predictions.

    :param predictions: [(expected seconds, seconds taken)] of moves
    """
    found = [abs(expected - taken) / taken for expected, taken in predictions if taken > 0]
    return statistics.median(found) if found else None


def remaining_seconds(waiting: Collection[AnyMove], observed: Observed, caps: moves.Caps,
                      now: datetime.datetime, between: float = 0.0) -> float | None:
    """Return the expected seconds until all of ``waiting`` have ended. As many moves run at the
    same time as ``caps`` permits.

    :param waiting: all moves that have not ended, from the journal or a plan; both the moves in
        progress and the moves that have not begun
    :param observed: see :func:`expected_seconds`
    :param caps: Caps, the limits on concurrent moves
    :param between: seconds from the end of a move to the beginning of the next one
    :returns: None if a move has no prediction and no move was observed, or if a move is overdue
        (see :data:`OVERDUE`)
    """
    # Many servers are of few sizes, and each size is looked for once.
    sizes = {move.memory_mb for move in waiting if move.expected_seconds is None}
    known = observed() if sizes else ()
    usual: dict[int, float] = {}
    for size in sizes:
        seconds = _usual_seconds(size, known)
        if seconds is None:
            return None
        usual[size] = seconds
    if any(_is_overdue(move, usual, now) for move in waiting):
        return None
    elapsed, left = 0.0, sorted(waiting, key=_turn)
    running: list[tuple[float, AnyMove]] = []
    while running or left:
        slots = ConcurrencySlots(caps, (move for _end, move in running))
        starting = [move for move in left if slots.enter(move)]
        begun = {id(move) for move in starting}
        left = [move for move in left if id(move) not in begun]
        running += [(elapsed + between + _left(move, usual, now), move) for move in starting]
        elapsed = min(end for end, _move in running)
        running = [(end, move) for end, move in running if end > elapsed]
    return elapsed


def _turn(move: AnyMove) -> float:
    return move.begins_after or 0.0 if isinstance(move, plans.PlannedMove) else move.position


def _left(move: AnyMove, usual: Mapping[int, float], now: datetime.datetime) -> float:
    """Return the seconds that a move is still expected to take. For a move that has not begun, this
    is the whole duration.

    :param usual: {memory in MiB: seconds} for moves whose plan has no prediction
    """
    # A move that takes longer than expected may end at any time.
    return max(_whole(move, usual) - _elapsed(move, now), 1.0)


def _whole(move: AnyMove, usual: Mapping[int, float]) -> float:
    """Return the seconds that a move is expected to take from its beginning. ``usual`` as for
    :func:`_left`."""
    return usual[move.memory_mb] if move.expected_seconds is None else move.expected_seconds


def _elapsed(move: AnyMove, now: datetime.datetime) -> float:
    """Return the seconds since a move began; 0.0 if it is not in progress."""
    if (isinstance(move, plans.PlannedMove) or move.requested_at is None
            or move.state not in (moves.MIGRATING, moves.VERIFYING)):
        return 0.0
    return clock.seconds_between(move.requested_at, now) or 0.0


def _is_overdue(move: AnyMove, usual: Mapping[int, float], now: datetime.datetime) -> bool:
    return _elapsed(move, now) > max(OVERDUE * _whole(move, usual), LEAST_OVERDUE_SECONDS)


def estimated_end(move: moves.MoveRecord, observed: Observed) -> datetime.datetime | None:
    """Return the time at which a move in progress is expected to end; None if this is not known."""
    if move.requested_at is None or move.state not in (moves.MIGRATING, moves.VERIFYING):
        return None
    seconds = expected_seconds(move, observed)
    return move.requested_at + datetime.timedelta(seconds=seconds) if seconds else None
