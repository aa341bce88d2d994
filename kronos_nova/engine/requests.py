"""What a plan is asked for: which hosts it empties, which take servers, which servers it moves.

A request states the intent. The facts of the snapshot stay as they are.
"""

import dataclasses
from typing import Protocol

from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Instance

ACTIVE, SHUTOFF = 'ACTIVE', 'SHUTOFF'


class PlanRequest(Protocol):
    """The intent of a plan."""

    def takes(self, host: Host) -> bool:
        """Return whether the host may be a destination, and counts in an imbalance."""

    def empties(self, host: Host) -> bool:
        """Return whether all servers are to leave the host."""

    def statuses(self, instance: Instance) -> tuple[str, ...]:
        """Return the statuses in which Nova may have the instance for it to be moved."""


@dataclasses.dataclass(frozen=True, slots=True)
class BalanceRequest:
    """Improve an aggregate as its policies and the options say."""

    def takes(self, host: Host) -> bool:
        return host.service.is_available

    def empties(self, host: Host) -> bool:
        return host.service.is_evacuable

    def statuses(self, _instance: Instance) -> tuple[str, ...]:
        return (ACTIVE,)


BALANCING = BalanceRequest()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DrainRequest:
    """Empty some hosts, whether or not they are disabled, and no other.

    sources : names of the hosts
    include_stopped : those of them that stopped servers leave, too
    avoid : names of other hosts that take no server
    give_up : uuids of servers that are not moved any more
    """

    sources: frozenset[str]
    include_stopped: frozenset[str] = frozenset()
    avoid: frozenset[str] = frozenset()
    give_up: frozenset[str] = frozenset()

    def takes(self, host: Host) -> bool:
        return host.service.is_available and host.name not in self.sources | self.avoid

    def empties(self, host: Host) -> bool:
        return (host.name in self.sources and host.service.state == 'up'
                and not host.service.forced_down)

    def statuses(self, instance: Instance) -> tuple[str, ...]:
        if instance.uuid in self.give_up:
            return ()
        return (ACTIVE, SHUTOFF) if instance.host in self.include_stopped else (ACTIVE,)
