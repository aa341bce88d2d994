"""What is said of a planned move before anything of it is done."""

import dataclasses
from typing import Protocol

from kronos_nova.objects.plan import PlannedMove
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Instance


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """At most one of the two is not empty.

    refused : why the move would not be let happen now
    unasked : why that is not known; the move may be made, and is refused then if at all
    """

    refused: str = ''
    unasked: str = ''


AGREED = Verdict()


class DryRun(Protocol):
    """Asks whoever decides on a live migration whether it would be let happen. Changes nothing."""

    def __call__(self, move: PlannedMove, instance: Instance, destination: Host) -> Verdict:
        ...


def not_asked(move: PlannedMove, instance: Instance, destination: Host) -> Verdict:
    """Where nobody can be asked, as in a replay."""
    return AGREED
