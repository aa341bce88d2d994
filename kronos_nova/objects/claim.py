"""Claims: resources of a compute node that are reserved for an instance."""

import dataclasses
import datetime

CLAIMED = 'claimed'     # made during Nova's own claim
PREPARED = 'prepared'   # made ahead of a move, before Nova knows of it


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """The resources of a claim: vCPUs, MiB of memory, GiB of disk, PCI devices and NUMA cells.

    ``pci`` are the addresses of the PCI devices. ``numa_topology`` is the JSON of Nova's
    InstanceNUMATopology; None for an instance without a NUMA topology.
    """

    vcpus: int
    memory_mb: int
    disk_gb: int
    pci: tuple[str, ...] = ()
    numa_topology: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A claim of an instance on a compute node.

    ``resize_target`` is True for resources that the instance needs after a move to the node, and
    False for resources that the instance uses now. A node may have one claim of each kind for the
    same instance. ``created_at`` has a time zone.
    """

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
        """The key (node, instance uuid, resize_target), which identifies a claim on its host."""
        return self.node, self.instance_uuid, self.resize_target

    def says_the_same_as(self, other: 'Claim | None') -> bool:
        """Return True if ``other`` is equal to this claim, except for the id and the time. In this
        case the claim does not have to be written again. Return False if another field differs, or
        if ``other`` is None."""
        return other is not None and dataclasses.replace(
            self, id=other.id, created_at=other.created_at) == other
