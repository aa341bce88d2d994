"""Instances that are moved often, and moves that undo each other."""

from collections.abc import Iterable

from kronos_nova.cooldown.planning_history import PastMove


def growing(seconds: float, factor: float, longest: float, times: int) -> float:
    """How long an instance is left alone once it was part of ``times`` plans before.

    ``seconds`` the first time, ``factor`` times longer each further time, ``longest`` at most.

    >>> [growing(60, 2, 300, times) for times in range(4)]
    [60, 120, 240, 300]
    """
    if factor <= 1 or seconds <= 0:
        return seconds
    length = seconds
    for _time in range(times):
        length *= factor
        if length >= longest:
            return max(longest, seconds)
    return length


def left(moves: Iterable[PastMove], since: float) -> frozenset[tuple[str, str]]:
    """(instance uuid, host): the hosts that instances left since then (Unix seconds).

    To go back there would undo a move that was made, A to B to A, or be the last leg of a longer
    circle. What left because the host was emptied may return.
    """
    return frozenset((move.instance_uuid, move.source) for move in moves
                     if move.ended_at >= since and not move.has_emptied)
