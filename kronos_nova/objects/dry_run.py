"""Dry runs: the question to Nova's scheduler or placement whether a planned move would be
permitted."""

import collections
import dataclasses
from collections.abc import Mapping
from typing import Protocol

from kronos_nova.objects.plan import PlannedMove
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Instance


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to a dry run. At most one of ``refused`` and ``unasked`` is not empty.

    refused : reason why the move would be refused; '' if it would not be
    unasked : reason why there is no answer; the move may still be made, and Nova may refuse it then
    without : the part of the question that was left out because the answer depends on earlier moves
        of the plan; empty where nothing was left out
    """

    refused: str = ''
    unasked: str = ''
    without: str = ''


AGREED = Verdict()
ROOM = 'the room that moves before it make'
NO_ROOM_YET = 'placement gives nothing there until moves before it have made room'
CHANGES_YET = 'a filter refuses the host because of servers that come or leave before'
KNOWN_LATER = frozenset((NO_ROOM_YET, CHANGES_YET))
"""Reasons for no answer that no longer apply once the earlier moves have ended."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """The moves of a plan that change the destination of a move before it runs.

    arriving : instances that come to the destination earlier
    leaving : instances that have left the destination before the move runs, because it waits for
        their moves
    alike : number of arriving instances of the same kind as the moved one
    """

    arriving: tuple[Instance, ...] = ()
    leaving: tuple[Instance, ...] = ()
    alike: int = 0

    def wanted(self, amounts: Mapping[str, int]) -> dict[str, int]:
        """Return {resource class: amount, at least 1} that must be free on the destination now,
        before earlier moves of the plan, so that there is room for ``amounts`` when the move
        runs."""
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
    """The protocol of a question to Nova's scheduler or placement: whether it would permit a live
    migration. Nothing is changed."""

    def __call__(self, move: PlannedMove, instance: Instance, destination: Host,
                 before: Before = NOTHING_BEFORE) -> Verdict:
        ...


def not_asked(move: PlannedMove, instance: Instance, destination: Host,
              before: Before = NOTHING_BEFORE) -> Verdict:
    """Return AGREED for every move. This is the DryRun of a process without a scheduler, such as a
    replay."""
    return AGREED
