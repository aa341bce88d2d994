"""Requests for plans. A request determines the hosts to empty, the hosts that take servers, and the
servers to move.

A request does not change the snapshot.
"""

import dataclasses
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import ClassVar
from typing import Protocol

from kronos_nova.objects.eligibility import LIVE_STATUSES
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Instance
from kronos_nova.objects.snapshot import Snapshot

SHUTOFF = 'SHUTOFF'


class PlanRequest(Protocol):
    """The protocol of requests for a plan.

    planner : name of the only planner that makes the plan; '' if the phases that are due decide,
        and the options name the planner that balances load
    """

    @property
    def planner(self) -> str: ...

    def takes(self, host: Host) -> bool:
        """Return True if the host may be a destination and counts in imbalances; False
        otherwise."""

    def empties(self, host: Host) -> bool:
        """Return True if the plan is to empty the host; False otherwise."""

    def statuses(self, instance: Instance) -> tuple[str, ...]:
        """Return the statuses, as Nova names them, in which the instance may be moved."""

    def may_stop(self, instance: Instance) -> bool:
        """Return True if the instance may be stopped in order to move it; False otherwise."""


@dataclasses.dataclass(frozen=True, slots=True)
class BalanceRequest:
    """The request of regular evaluations: balance or pack an aggregate as its policies and the
    options say."""

    planner: ClassVar[str] = ''

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
    """The protocol of planners for requests of operators, such as drains. Aggregates with such
    requests are not balanced in the same evaluation. One Requester is made for each evaluation."""

    def wanted(self, aggregates: Collection[str]) -> Mapping[str, Sequence[Any]]:
        """Return {aggregate: its pending requests}, for the given aggregates."""

    def note_missing(self, aggregates: Collection[str]) -> None:
        """Note at the pending requests of these aggregates that Nova does not have the
        aggregates."""

    def plan(self, snapshot: Snapshot, planner_ports: Any, measurements: Any, aggregate: str,
             wanted: Sequence[Any]) -> Any:
        """Plan the requests of one aggregate, and return the outcome for :meth:`persist`."""

    def persist(self, snapshot: Snapshot, aggregate: str, wanted: Sequence[Any],
                outcome: Any) -> None:
        """Record the plan that :meth:`plan` returned, and the progress of the requests."""
