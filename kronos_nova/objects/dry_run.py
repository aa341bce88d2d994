"""Dry runs: requests to Nova's scheduler or placement that check a planned move and change
nothing."""

import collections
import dataclasses
from collections.abc import Mapping
from typing import Protocol

from kronos_nova.objects.plan import PlannedMove
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Instance


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a dry run. At most one of ``refused`` and ``unasked`` is not empty.

    refused : reason why Nova would refuse the move; '' if Nova would permit it
    unasked : reason why the dry run has no result; the move may still be made, and Nova may then
        refuse it
    without : the part of the check that was left out, because its result depends on earlier moves
        of the plan; '' if nothing was left out
    """

    refused: str = ''
    unasked: str = ''
    without: str = ''


AGREED = Verdict()
ROOM = 'the room that moves before it make'
NO_ROOM_YET = 'placement gives nothing there until moves before it have made room'
CHANGES_YET = 'a filter refuses the host because of servers that come or leave before'
KNOWN_LATER = frozenset((NO_ROOM_YET, CHANGES_YET))
"""Reasons why a dry run has no result, but may have one later. They no longer apply once the
earlier moves of the plan have ended."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """The earlier moves of a plan that change the destination of a later move.

    arriving : instances that come to the destination earlier
    leaving : instances that leave the destination earlier; the later move waits until they have
        left
    alike : number of arriving instances of the same kind as the instance of the later move
    """

    arriving: tuple[Instance, ...] = ()
    leaving: tuple[Instance, ...] = ()
    alike: int = 0

    def wanted(self, amounts: Mapping[str, int]) -> dict[str, int]:
        """Return the amounts that must be free on the destination now, before the earlier moves of
        the plan. There is then room for ``amounts`` when the later move runs.

        :returns: {resource class: amount, at least 1 for an amount that is reduced}
        """
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
    """A callable that asks Nova's scheduler or placement whether a live migration is permitted. It
    changes nothing."""

    def __call__(self, move: PlannedMove, instance: Instance, destination: Host,
                 before: Before = NOTHING_BEFORE) -> Verdict:
        ...


def not_asked(move: PlannedMove, instance: Instance, destination: Host,
              before: Before = NOTHING_BEFORE) -> Verdict:
    """Return AGREED for every move. This function replaces dry runs in a process without a
    scheduler, such as a replay."""
    return AGREED
