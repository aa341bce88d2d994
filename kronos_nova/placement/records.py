"""Nova's records of instances and migrations: the interface by which an audit reads them.

The implementation, in :mod:`kronos_nova.plugin.nova_records`, reads all cells. Hosts are known by
the uuid of their root resource provider, which is the uuid of their compute node.
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

    ``settled_for`` are the seconds since the record of the instance last changed. ``asks_for`` is
    the amount of each resource class that the instance should hold, by Nova's records of it; None
    where these records do not say it.
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
    """A migration record. ``is_source_up`` is true while the nova-compute of its source is up."""

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
    """All instances, and all migrations that have not ended, each by its uuid.

    ``hosts`` are the root providers that are compute nodes: {uuid: host}. ``silent`` are the names
    of cells that did not answer; their instances and migrations are missing.
    """

    hosts: Mapping[str, str]
    instances: Mapping[str, InstanceRecord]
    migrations: Mapping[str, Migration]
    silent: tuple[str, ...] = ()


class NovaRecords(Protocol):
    """Nova's databases. Every method raises InventoryError where they cannot be read."""

    def read(self) -> Records:
        """Return the records of all cells that answer."""

    def migrations(self, uuids: Iterable[str]) -> Mapping[str, Migration]:
        """Return {uuid: Migration} of the migrations with these uuids, whether they have ended or
        not."""

    def deleted(self, uuids: Iterable[str]) -> frozenset[str]:
        """Return those of ``uuids`` that are uuids of deleted instances."""

    def building(self, uuids: Iterable[str]) -> frozenset[str]:
        """Return those of ``uuids`` that are uuids of instances which are being created and are in
        no cell yet."""

    def histories(self, wanted: Mapping[str, Set[str]]) -> Mapping[str, InstanceHistory]:
        """Return {instance uuid: history} of the wanted instances whose cells answer.

        :param wanted: instance uuid to the uuids of migrations that are wanted however old
        """

    def recent(self, seconds: float) -> tuple[Mapping[str, Mapping[str, object]], Sequence[str]]:
        """Return the instances with migrations that have not ended, or that changed within
        ``seconds``. Each instance has these migrations by uuid, and a value that differs once one
        of them changes. Return also the names of the cells that could not be read."""

    def accepted(self) -> list[Migration]:
        """Return the live migrations that no nova-compute has received yet."""

    def end_stale(self, before: datetime.datetime) -> list[str]:
        """End live migrations in progress that have not changed since ``before``, and whose
        instance is on neither of the two hosts, or is deleted.

        :returns: uuids of the migrations that were ended
        """

    def marked(self, before: datetime.datetime) -> frozenset[str]:
        """Return the uuids of the instances whose task state has been ``migrating`` since before a
        time. Cells that do not answer are left out."""

    def unbegun(self, instance_uuid: str, created_before: datetime.datetime) -> list[str]:
        """Return the uuids of the live migrations of an instance that are older than a time and
        that no nova-compute has received."""

    def set_free(self, instance_uuid: str, marked_before: datetime.datetime) -> None:
        """Clear the task state of an instance if it has been ``migrating`` since before a time and
        no live migration of the instance is in progress."""

    def give_up(self, migration_uuid: str) -> bool:
        """End a live migration without a worker, and clear the task state of its instance.

        Only a migration that the source compute never received is ended, and only while that
        compute is up, so that the request does not arrive later.

        :returns: whether nothing is left to do: the migration is given up, or another process
            continues it
        """

    def asks_for(self, instance_uuid: str) -> tuple[Mapping[str, int], ...]:
        """Return how much of each resource class an instance should hold by its flavor, its
        request, its devices and its ports. Several sets of amounts may be right. Empty where the
        instance is gone."""

    def candidates(self, instance_uuid: str, kept: Allocations) -> list[Allocations]:
        """Return the allocations that the instance may have on its host, in addition to those that
        it keeps, the best first. Empty where there is no room."""
