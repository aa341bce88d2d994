"""The interface by which an audit reads Nova's records of instances and migrations.

The implementation, in :mod:`kronos_nova.plugin.nova_records`, reads all cells. A host is identified
by the uuid of its root resource provider, which equals the uuid of its compute node.
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
    """An instance that is not deleted. ``root`` is the root provider of its host; None if the
    instance is on no host, or its host has no compute node record.

    ``settled_for`` is the time in seconds since the record of the instance last changed.
    ``asks_for`` is {resource class: amount that the instance should have}, computed from Nova's
    records; None if the records are not enough to compute the amounts.
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
    """A migration record. ``is_source_up`` is true while the nova-compute of the source is up.
    ``settled_for`` is the time in seconds since the record last changed."""

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
    """An instance and its migrations. ``instance`` is None if the instance was deleted.
    ``migrations`` are the migrations that have not ended or have changed within a day, and the
    older migrations that the caller named."""

    instance: InstanceRecord | None
    migrations: tuple[Migration, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """The records of all instances, and of all migrations that have not ended.

    ``hosts`` is {uuid of the root provider of a compute node: host}. ``instances`` and
    ``migrations`` are dicts with uuids as keys. ``silent`` are the names of cells that did not
    respond, whose instances and migrations are missing.
    """

    hosts: Mapping[str, str]
    instances: Mapping[str, InstanceRecord]
    migrations: Mapping[str, Migration]
    silent: tuple[str, ...] = ()


class NovaRecords(Protocol):
    """Access to Nova's databases. Every method raises InventoryError if the databases cannot be
    read."""

    def read(self) -> Records:
        """Return the records of all cells that respond."""

    def migrations(self, uuids: Iterable[str]) -> Mapping[str, Migration]:
        """Return {uuid: migration} for the given uuids. Ended migrations are included."""

    def deleted(self, uuids: Iterable[str]) -> frozenset[str]:
        """Return the given uuids that belong to deleted instances."""

    def building(self, uuids: Iterable[str]) -> frozenset[str]:
        """Return the given uuids that belong to new instances which are not in a cell yet."""

    def histories(self, wanted: Mapping[str, Set[str]]) -> Mapping[str, InstanceHistory]:
        """Return {instance uuid: history of the instance}. Instances whose cells do not respond are
        left out.

        :param wanted: {instance uuid: uuids of migrations that are returned regardless of their
            age}
        """

    def recent(self, seconds: float) -> tuple[Mapping[str, Mapping[str, object]], Sequence[str]]:
        """Return the instances with recent migrations, and the cells that could not be read. A
        migration is recent if it has not ended, or has changed within the last ``seconds``.

        :returns: {instance uuid: {migration uuid: value that differs after each change of the
            migration}}, and the names of the cells
        """

    def accepted(self) -> list[Migration]:
        """Return the live migrations that no nova-compute has received yet."""

    def end_stale(self, before: datetime.datetime) -> list[str]:
        """End migrations whose status says that they are in progress, although no service continues
        them. A migration is ended if its record has not changed since ``before``, and if its
        instance is deleted or is on neither the source nor the destination.

        :returns: uuids of the migrations that were ended
        """

    def marked(self, before: datetime.datetime) -> frozenset[str]:
        """Return the uuids of the instances that were marked for a migration before ``before`` and
        have not changed since. Nova marks an instance for a migration by the task state
        ``migrating`` (live) or ``resize_prep`` (cold, or a resize). Cells that do not respond are
        left out."""

    def unbegun(self, instance_uuid: str, created_before: datetime.datetime) -> list[str]:
        """Return the uuids of an instance's migrations that no nova-compute has received yet.
        Only migrations that were created before ``created_before`` are returned."""

    def set_free(self, instance_uuid: str, marked_before: datetime.datetime) -> None:
        """Clear the task state of an instance, if it was marked for a migration before
        ``marked_before`` and has not changed since. Nothing is changed if the migration is in
        progress."""

    def give_up(self, migration_uuid: str) -> bool:
        """End a migration that has no worker, and clear the task state of its instance.

        The migration is ended only if the nova-compute of the source is up and has not received the
        request for the migration. A nova-compute that is up has received all requests in its queue,
        so the request cannot arrive later.

        :returns: True if the migration was ended or another process continues the migration; False
            if the caller has to try again
        """

    def asks_for(self, instance_uuid: str) -> tuple[Mapping[str, int], ...]:
        """Return the amounts that an instance should have allocated according to its flavor, its
        request specification, its devices and its ports. The result is a tuple of dicts {resource
        class: amount}. Mostly the tuple has one dict. For an instance with pinned CPUs it has two:
        one with PCPU, and one with VCPU for a host that does not report PCPU. The tuple is empty if
        the instance no longer exists."""

    def candidates(self, instance_uuid: str, kept: Allocations) -> list[Allocations]:
        """Return the candidates for the allocations of an instance on its host, the best candidate
        first. The allocations ``kept`` stay and are not part of a candidate. The result is empty
        if the host has no room."""
