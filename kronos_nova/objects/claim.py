"""A claim: room that a compute node holds for an instance."""

import dataclasses
import datetime

CLAIMED = 'claimed'     # made by Nova itself
PREPARED = 'prepared'   # made ahead of a move, before Nova knows of it


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """The amounts of a claim: whole cores, MiB, GiB, addresses of PCI devices, and the instance's
    NUMA topology as the JSON of Nova's object, None where it has none."""

    vcpus: int
    memory_mb: int
    disk_gb: int
    pci: tuple[str, ...] = ()
    numa_topology: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One row. ``resize_target`` tells the room that a move arrives in from the room that the
    instance has; both may be on one node. ``created_at`` has a zone."""

    host: str
    node: str
    instance_uuid: str
    amount: Amount
    created_at: datetime.datetime
    resize_target: bool = False
    state: str = CLAIMED
    migration_uuid: str | None = None
    id: int | None = None

    @property
    def key(self) -> tuple[str, str, bool]:
        """The key of a claim on its host: (node, instance uuid, resize_target)."""
        return self.node, self.instance_uuid, self.resize_target

    def says_the_same_as(self, other: 'Claim | None') -> bool:
        """Return whether ``other`` needs no write: ids and times are the first writer's."""
        return other is not None and dataclasses.replace(
            self, id=other.id, created_at=other.created_at) == other
