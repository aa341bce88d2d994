"""Dry runs. A dry run is a request to Nova's scheduler or placement that checks a planned move and
changes nothing."""

import collections
import dataclasses
from collections.abc import Mapping
from typing import Protocol

from kronos_nova.objects.plan import PlannedMove
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Instance


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a dry run. If ``refused`` and ``unasked`` are both empty, Nova would permit the
    move. They are never both set.

    refused : reason why Nova would refuse the move; else ''
    unasked : reason why the dry run has no result; else ''. Without a result, the move may still be
        made, and Nova may then refuse the move
    is_silent : True if there is no result because a service did not answer, or permitted no
        request. A dry run of another move would have no result either, and may wait as long in vain
    without : name of the part of the check that was left out; '' if the check was complete. A part
        is left out if its result depends on earlier moves of the plan
    """

    refused: str = ''
    unasked: str = ''
    is_silent: bool = False
    without: str = ''


AGREED = Verdict()
ROOM = 'the room that moves before it make'
NO_ROOM_YET = 'placement gives nothing there until moves before it have made room'
CHANGES_YET = 'a filter refuses the host because of servers that come or leave before'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """The earlier moves of a plan that bring instances to the destination of a later move, or take
    instances away from it.

    arriving : instances that move to the destination before the later move
    leaving : instances that leave the destination; the later move waits until they have left
    alike : number of arriving instances that the scheduler treats like the instance of the later
        move, because their flavors, images, projects, requirements and server groups are equal
    """

    arriving: tuple[Instance, ...] = ()
    leaving: tuple[Instance, ...] = ()
    alike: int = 0

    def wanted(self, amounts: Mapping[str, int]) -> dict[str, int]:
        """Return the amounts that have to be free on the destination now, so that ``amounts`` are
        free when the later move runs.

        Until then, instances that leave the destination release resources, and instances that
        arrive use resources. If more of a resource is released than used, less has to be free now.

        :returns: {resource class: amount}. Each amount is at least 1, and at most the amount in
            ``amounts``
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
    """A callable that asks Nova's scheduler or placement whether a live migration is permitted. The
    call changes nothing."""

    def __call__(self, move: PlannedMove, instance: Instance, destination: Host,
                 before: Before = NOTHING_BEFORE) -> Verdict:
        ...


def not_asked(move: PlannedMove, instance: Instance, destination: Host,
              before: Before = NOTHING_BEFORE) -> Verdict:
    """Return AGREED for every move. A process that can make no dry runs, such as a replay, uses
    this function instead."""
    return AGREED
