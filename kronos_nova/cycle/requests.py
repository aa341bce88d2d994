"""Requests for plans: the hosts to empty, the hosts that take servers, the servers to move.

A request states the intent. The facts of the snapshot stay as they are.
"""

import dataclasses
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Protocol

from kronos_nova.objects.eligibility import LIVE_STATUSES
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Instance
from kronos_nova.objects.snapshot import Snapshot

SHUTOFF = 'SHUTOFF'


class PlanRequest(Protocol):
    """The intent of a plan."""

    def takes(self, host: Host) -> bool:
        """Return whether the host may be a destination, and counts in an imbalance."""

    def empties(self, host: Host) -> bool:
        """Return whether all servers are to leave the host."""

    def statuses(self, instance: Instance) -> tuple[str, ...]:
        """Return the statuses in which Nova may have the instance for it to be moved."""

    def may_stop(self, instance: Instance) -> bool:
        """Return whether the instance may be stopped to be moved."""


@dataclasses.dataclass(frozen=True, slots=True)
class BalanceRequest:
    """Improve an aggregate as its policies and the options say."""

    def takes(self, host: Host) -> bool:
        return host.service.is_available

    def empties(self, host: Host) -> bool:
        return host.service.is_evacuable

    def statuses(self, _instance: Instance) -> tuple[str, ...]:
        return LIVE_STATUSES

    def may_stop(self, _instance: Instance) -> bool:
        return False


BALANCING = BalanceRequest()


class Requester(Protocol):
    """Plans what was asked for in some aggregates, in the place of balancing them. Made once an
    evaluation."""

    def wanted(self, aggregates: Collection[str]) -> Mapping[str, Sequence[Any]]:
        """Return the requests by aggregate."""

    def plan(self, snapshot: Snapshot, planner_ports: Any, measurements: Any, aggregate: str,
             wanted: Sequence[Any]) -> Any:
        """Plan what was requested in one aggregate."""

    def persist(self, snapshot: Snapshot, aggregate: str, wanted: Sequence[Any],
                outcome: Any) -> None:
        """Write down what :meth:`plan` returned, and how far the requests are."""
