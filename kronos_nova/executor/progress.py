"""Progress of moves and their expected end."""

import datetime
import statistics

from kronos_nova.objects import move as moves
from kronos_nova.pacing.slots import ConcurrencySlots

NEAREST = 9
"""Number of migrations of similar memory from which a duration is predicted. Raised, migrations of
other sizes count too; lowered, one unusual migration decides. Not measured."""


def percent(move):
    """Return the percentage of memory that was copied; None where the hypervisor's driver does not
    report it.

    The total is what Nova says now: a guest that writes while it is copied makes it grow.
    """
    if move.state == moves.COMPLETED:
        return 100.0
    if move.state != moves.MIGRATING or not move.memory_total or move.memory_remaining is None:
        return None
    return 100.0 * (1 - min(move.memory_remaining / move.memory_total, 1))


def expected_seconds(move, observed):
    """Return how long a move takes: what its plan expected; else the median of the observed moves
    nearest in memory, those of another size in proportion.

    :param observed: returns [(memory in MiB, seconds)] of moves that completed; called where plans
        expected nothing
    :returns: None where nothing was expected or observed
    """
    if move.expected_seconds is not None:
        return move.expected_seconds
    return _usual_seconds(move.memory_mb, observed())


def _usual_seconds(memory_mb, observed):
    """Return the usual seconds of a move of so much memory; None where none was observed."""
    nearest = sorted(observed, key=lambda each: abs(each[0] - memory_mb))[:NEAREST]
    return statistics.median(
        seconds * memory_mb / memory for memory, seconds in nearest) if nearest else None


def error(predictions):
    """Return the median of |expected - taken| / taken; None where nothing was predicted.

    :param predictions: [(seconds that were expected, seconds that it took)]
    """
    found = [abs(expected - taken) / taken for expected, taken in predictions if taken > 0]
    return statistics.median(found) if found else None


def remaining_seconds(waiting, observed, caps, now, between=0.0):
    """Return how long some moves may take together, as many at a time as the caps let.

    :param waiting: moves that have not ended, those of the journal or of a plan
    :param observed: as of :func:`expected_seconds`
    :param caps: Caps
    :param between: seconds that pass until a move is begun once there is room for it
    :returns: None where nothing was expected or observed
    """
    # Many servers are of few sizes, and each size is looked for once.
    sizes = {move.memory_mb for move in waiting if move.expected_seconds is None}
    known = observed() if sizes else ()
    usual = {size: _usual_seconds(size, known) for size in sizes}
    if None in usual.values():
        return None
    elapsed, running, left = 0.0, [], sorted(waiting, key=_turn)
    while running or left:
        slots = ConcurrencySlots(caps, (move for _end, move in running))
        starting = [move for move in left if slots.enter(move)]
        begun = {id(move) for move in starting}
        left = [move for move in left if id(move) not in begun]
        running += [(elapsed + between + _left(move, usual, now), move) for move in starting]
        elapsed = min(end for end, _move in running)
        running = [(end, move) for end, move in running if end > elapsed]
    return elapsed


def _turn(move):
    position = getattr(move, 'position', None)
    return move.begins_after or 0.0 if position is None else position


def _left(move, usual, now):
    """Return the seconds that a move still takes once it has begun.

    :param usual: memory in MiB to the seconds of moves of which nothing was expected
    """
    seconds = usual[move.memory_mb] if move.expected_seconds is None else move.expected_seconds
    requested_at = getattr(move, 'requested_at', None)
    if requested_at is None or move.state not in (moves.MIGRATING, moves.VERIFYING):
        return seconds
    # One that takes longer than expected may end at any time.
    return max(seconds - (now - requested_at).total_seconds(), 1.0)


def estimated_end(move, observed):
    """Return the expected end of a move in progress; None where it is not known."""
    if move.state not in (moves.MIGRATING, moves.VERIFYING):
        return None
    seconds = expected_seconds(move, observed)
    return seconds and move.requested_at + datetime.timedelta(seconds=seconds)
