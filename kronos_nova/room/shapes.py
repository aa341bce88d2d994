"""Imaginary new servers, which are added to a snapshot to plan room for new servers."""

import dataclasses
import re
from collections.abc import Iterable
from collections.abc import Sequence

from kronos_nova import exception
from kronos_nova.objects.requirements import requirements
from kronos_nova.objects.shape import Shape
from kronos_nova.objects.snapshot import Flavor
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Instance
from kronos_nova.objects.snapshot import Service
from kronos_nova.objects.snapshot import Snapshot

NEW = '\0new '
"""Prefix of the names of hosts and instances that stand for new servers. It begins with NUL,
because no real host can have such a name."""
TEXT = re.compile(r'([0-9]{1,9}):([0-9]{1,9})(?::([0-9]{1,9}))?')
"""Pattern of a size: VCPUs, MiB of memory and optionally GiB of disk. Each number has at most nine
digits. Nine digits of MiB are about a PiB of memory, and fit into the arrays of the model."""


def parse(text: str) -> Shape:
    """Parse a shape such as ``4:8192:40``: VCPUs, MiB and optionally GiB.

    :raises RequestRefused: the text is not a valid shape
    """
    found = TEXT.fullmatch(text)
    if not found or not int(found[1]) or not int(found[2]):
        raise exception.RequestRefused(
            what=f'flavor {text}', problem='there is no flavor of that name',
            remedy='Give the name of a flavor, or VCPUS:MEMORY_MB or VCPUS:MEMORY_MB:DISK_GB.')
    return Shape(name=text, vcpus=int(found[1]), memory_mb=int(found[2]),
                 disk_gb=int(found[3] or 0))


def with_new(snapshot: Snapshot, shapes: Iterable[Shape], count: int = 1,
             project_id: str = '') -> tuple[Snapshot, list[str], list[list[str]]]:
    """Return the cloud with new servers on an imaginary host in each Nova cell.

    :param count: number of servers for each shape and cell
    :returns: (snapshot, names of the imaginary hosts, for each shape the uuids of its servers)
    """
    # A snapshot without hosts has one cell, whose name is not known.
    shapes, cells = list(shapes), sorted({host.cell for host in snapshot.hosts}) or ['']
    hosts = [_host(cell) for cell in cells]
    instances = [[instance(shape, f'{host.name}/{number:06d}/{n}', host.name, project_id)
                  for host in hosts for n in range(count)] for number, shape in enumerate(shapes)]
    return (dataclasses.replace(
        snapshot, hosts=(*snapshot.hosts, *hosts),
        instances=(*snapshot.instances, *(each for some in instances for each in some))),
        [host.name for host in hosts], [[each.uuid for each in some] for some in instances])


def is_new(uuid: str) -> bool:
    """Return True if an instance is an imaginary new server; False if it exists."""
    return uuid.startswith(NEW)


def label(uuid: str) -> str:
    """Return the uuid of a server in the form that is shown. For an imaginary new server, the
    result is a text without control characters, such as ``new server m1.large/000001``."""
    return uuid.removeprefix('\0')


def _host(cell: str) -> Host:
    return Host(name=f'{NEW}{cell}', uuid=f'{NEW}{cell}', cell=cell, inventory={}, used={},
                service=Service(state='up', status='disabled'))


def instance(shape: Shape, uuid: str, host: str, project_id: str) -> Instance:
    """Make an imaginary new server on a host."""
    return Instance(
        uuid=uuid, name=uuid, display_name=shape.name, host=host, project_id=project_id,
        status='ACTIVE', vcpus=shape.vcpus, memory_mb=shape.memory_mb, disk_gb=shape.disk_gb,
        flavor_extra_specs=shape.extra_specs, resources=dict(shape.resources),
        requires=requirements(shape.extra_specs, {}), cells=shape.cells, devices=shape.devices,
        flavor=Flavor(name=shape.name, id=shape.id or None))


def named(names: Sequence[str], flavors: Iterable[Shape]) -> list[Shape]:
    """Return the shape for each name. A name is the name of a flavor, or a text as for
    :func:`parse`.

    :raises RequestRefused: a name is neither that of a flavor nor a valid shape
    """
    known = {flavor.name: flavor for flavor in flavors}
    return [known.get(name) or parse(name) for name in names]
