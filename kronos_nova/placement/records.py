"""Nova's records of instances and migrations: the port that an audit asks.

The adapter reads all cells. Hosts are known by the uuid of their root resource provider, which is
the uuid of their compute node.
"""

import dataclasses
import datetime
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from collections.abc import Set
from typing import Protocol

from kronos_nova.objects import migration_status
from kronos_nova.placement.allocations import Allocations


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class InstanceRecord:
    """An instance that is not deleted. ``root`` is None where it is on no host.

    ``settled_for`` is how long its record has not changed (seconds). ``asks_for`` is how much of
    each resource class it should hold, as far as its own record tells; None where that does not
    tell.
    """

    uuid: str
    root: str | None
    host: str | None
    cell: str
    project_id: str
    user_id: str
    vm_state: str
    task_state: str | None
    settled_for: float
    asks_for: Mapping[str, int] | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """A migration record. ``is_source_up`` tells whether its source's nova-compute answers."""

    uuid: str
    instance_uuid: str
    kind: str
    status: str
    source: str | None
    destination: str | None
    is_source_up: bool
    settled_for: float

    @property
    def has_ended(self) -> bool:
        return self.status in migration_status.ENDED


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class InstanceHistory:
    """The present instance, None if it was deleted, and its migrations: those that have not ended
    or that changed within a day, and older ones on request."""

    instance: InstanceRecord | None
    migrations: tuple[Migration, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """All instances, and all migrations that have not ended, by uuid.

    ``hosts`` are the root providers that are compute nodes: {uuid: host}. ``silent`` are the names
    of cells that do not answer: nothing of them is here.
    """

    hosts: Mapping[str, str]
    instances: Mapping[str, InstanceRecord]
    migrations: Mapping[str, Migration]
    silent: tuple[str, ...] = ()


class NovaRecords(Protocol):
    """Nova's databases. Every method raises InventoryError where they cannot be read."""

    def read(self) -> Records:
        """Everything at once, of the cells that answer."""

    def migrations(self, uuids: Iterable[str]) -> Mapping[str, Migration]:
        """The migrations of ``uuids``, ended or not."""

    def deleted(self, uuids: Iterable[str]) -> frozenset[str]:
        """The uuids of ``uuids`` that were instances once."""

    def building(self, uuids: Iterable[str]) -> frozenset[str]:
        """The uuids of ``uuids`` that are instances in the making, which no cell has yet."""

    def histories(self, wanted: Mapping[str, Set[str]]) -> Mapping[str, InstanceHistory]:
        """The histories of some instances, of those whose cells answer.

        :param wanted: instance uuid to the uuids of migrations that are wanted however old
        """

    def recent(self, seconds: float) -> tuple[Mapping[str, Mapping[str, object]], Sequence[str]]:
        """The instances of migrations that have not ended, or that changed within ``seconds``: each
        with these migrations by their uuids, and something that is another when one changes. And
        the names of the cells that could not be read."""

    def accepted(self) -> list[Migration]:
        """Live migrations that no nova-compute has received yet."""

    def end_stale(self, before: datetime.datetime) -> list[str]:
        """End live migrations in progress that have not changed since then, and whose instance is
        at neither end, or is deleted.

        :returns: uuids of the migrations that were ended
        """

    def marked(self, before: datetime.datetime) -> frozenset[str]:
        """The instances that were marked as migrating before then and are still. Of the
        cells that answer."""

    def unbegun(self, instance_uuid: str, created_before: datetime.datetime) -> list[str]:
        """The live migrations of an instance that are as old as that and that no nova-compute has
        received yet."""

    def set_free(self, instance_uuid: str, marked_before: datetime.datetime) -> None:
        """Clear the task state of an instance that was marked as migrating before a time and has no
        live migration in progress."""

    def give_up(self, migration_uuid: str) -> bool:
        """End a live migration without a worker, and set its instance free.

        Only one that the source compute never received, where that compute is up, so that it does
        not receive it later.

        :returns: whether nothing more has to be done: it is given up, or others have it
        """

    def asks_for(self, instance_uuid: str) -> tuple[Mapping[str, int], ...]:
        """Return how much of each resource class an instance should hold by its flavor, its
        request, its devices and its ports; each of them is right. Empty where it is gone."""

    def candidates(self, instance_uuid: str, kept: Allocations) -> list[Allocations]:
        """The allocations that the instance may have on the host where it runs, in addition to
        those that it keeps; best first, empty: no room."""
