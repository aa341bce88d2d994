"""Slots for moves: the limits on the number of moves in progress at the same time, in the cloud and
on each host."""

import collections
from collections.abc import Iterable
from typing import Protocol

from kronos_nova.objects.move import Caps


class Move(Protocol):
    """A move of an instance from one host to another."""

    @property
    def instance_uuid(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def destination(self) -> str: ...


class ConcurrencySlots:
    """A counter of moves in progress, which knows the limits on concurrent moves. While a limit
    permits one more move, a slot is free. An instance has at most one move at a time."""

    def __init__(self, caps: Caps, in_flight: Iterable[Move]):
        self.caps = caps
        self.sources: collections.Counter[str] = collections.Counter()
        self.destinations: collections.Counter[str] = collections.Counter()
        self.instances: set[str] = set()
        for move in in_flight:
            self._count(move)

    @property
    def is_full(self) -> bool:
        return len(self.instances) >= self.caps.total

    def enter(self, move: Move) -> bool:
        """Count a move as in progress, if all limits permit one more move. Return True if the move
        was counted. Return False if a limit is reached, or another move of the instance is in
        progress."""
        fits = (not self.is_full and move.instance_uuid not in self.instances and
                self.sources[move.source] < self.caps.sources.get(
                    move.source, self.caps.per_source) and
                self.destinations[move.destination] < self.caps.per_destination)
        if fits:
            self._count(move)
        return fits

    def _count(self, move: Move) -> None:
        self.sources[move.source] += 1
        self.destinations[move.destination] += 1
        self.instances.add(move.instance_uuid)
