"""The size and the needs of new servers. In most cases both come from a flavor."""

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import field

from kronos_nova.objects import numa
from kronos_nova.objects.numa import Device
from kronos_nova.objects.numa import InstanceCell

SPEC = re.compile(r'resources:([A-Z0-9_]+)')
"""Pattern of an extra spec that requests an amount of a resource class from placement."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The size and the needs of new servers of one kind, with or without a flavor.

    Memory is in MiB, disk in GiB. ``id`` is the id of the flavor; '' if there is no flavor.
    ``resources`` are the amounts that each server requests from placement. ``cells`` are the NUMA
    cells that each server requests. If ``resources`` is empty, the amounts are computed from the
    other fields. If ``cells`` is empty, the cells are computed from the other fields.
    """

    name: str
    vcpus: int
    memory_mb: int
    disk_gb: int = 0
    id: str = ''
    extra_specs: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, int] = field(default_factory=dict)
    cells: tuple[InstanceCell, ...] = ()
    devices: tuple[Device, ...] = ()

    def __post_init__(self) -> None:
        if not self.cells:
            object.__setattr__(self, 'cells', numa.of_flavor(self.vcpus, self.memory_mb,
                                                             self.extra_specs))
        if not self.resources:
            object.__setattr__(self, 'resources', resources(self))


def resources(shape: Shape) -> dict[str, int]:
    """Return {resource class: amount} that a server of a shape requests from placement. The amounts
    are those of ``nova.scheduler.utils.ResourceRequest``. The server is assumed to boot from a disk
    on its host, and not from a volume."""
    pinned = sum(part.cpus for part in shape.cells if part.pinned)
    shared = sum(part.shared_cpus or 0 for part in shape.cells) if pinned else shape.vcpus
    found = {'VCPU': shared, 'PCPU': pinned, 'MEMORY_MB': shape.memory_mb,
             'DISK_GB': shape.disk_gb}
    for key, value in shape.extra_specs.items():
        named = SPEC.fullmatch(key)
        amount = numa.number_in(value) if named else None
        if named and amount is not None:
            found[named[1]] = amount
    return {name: amount for name, amount in found.items() if amount}
