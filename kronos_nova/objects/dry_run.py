"""Verdicts about a planned move before it begins."""

import collections
import dataclasses
from collections.abc import Mapping
from typing import Protocol

from kronos_nova.objects.plan import PlannedMove
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Instance


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """At most one of ``refused`` and ``unasked`` is not empty.

    refused : why the move would not be let happen
    unasked : why that is not known; the move may be made, and is refused then if at all
    without : the part of the question that was left out, because only the moves before it decide on
        that; empty for a question about all
    """

    refused: str = ''
    unasked: str = ''
    without: str = ''


AGREED = Verdict()
ROOM = 'the room that moves before it make'
NO_ROOM_YET = 'placement gives nothing there until moves before it have made room'
CHANGES_YET = 'a filter refuses the host because of servers that come or leave before'
KNOWN_LATER = frozenset((NO_ROOM_YET, CHANGES_YET))
"""Reasons for no answer that end when the moves before the asked one are done."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """The moves of a plan that change the destination of a move before it runs.

    arriving : instances that come to the destination earlier
    leaving : instances that have left the destination, because the move waits for that
    alike : how many of those that come are of the same kind
    """

    arriving: tuple[Instance, ...] = ()
    leaving: tuple[Instance, ...] = ()
    alike: int = 0

    def wanted(self, amounts: Mapping[str, int]) -> dict[str, int]:
        """Return the amounts by resource class that the destination must have free today, so that
        there is room when the move runs; at least 1."""
        if not self.leaving:
            return dict(amounts)
        net: collections.Counter[str] = collections.Counter()
        for each in self.leaving:
            net.update(each.resources)
        for each in self.arriving:
            net.subtract(each.resources)
        return {name: min(amount, max(1, amount - net[name])) for name, amount in amounts.items()}


NOTHING_BEFORE = Before()


class DryRun(Protocol):
    """Asks the service that decides on a live migration whether it would permit it. Changes
    nothing."""

    def __call__(self, move: PlannedMove, instance: Instance, destination: Host,
                 before: Before = NOTHING_BEFORE) -> Verdict:
        ...


def not_asked(move: PlannedMove, instance: Instance, destination: Host,
              before: Before = NOTHING_BEFORE) -> Verdict:
    """Return the DryRun of a process that has no scheduler, such as a replay."""
    return AGREED
