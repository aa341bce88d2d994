"""Claims: resources that a compute node holds for an instance."""

import dataclasses
import datetime

CLAIMED = 'claimed'     # made during Nova's own claim
PREPARED = 'prepared'   # made ahead of a move, before Nova knows of it


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """The amounts of a claim: vCPUs, MiB of memory, GiB of disk, addresses of PCI devices, and the
    instance's NUMA topology as the JSON of Nova's object; None where it has no topology."""

    vcpus: int
    memory_mb: int
    disk_gb: int
    pci: tuple[str, ...] = ()
    numa_topology: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A claim of an instance on a node. ``resize_target`` is True for the room into which a move
    brings the instance, and False for the room that it already has; one node may have both claims.
    ``created_at`` has a time zone."""

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
        """Return whether ``other`` differs at most in its id and time, so that it need not be
        written."""
        return other is not None and dataclasses.replace(
            self, id=other.id, created_at=other.created_at) == other
