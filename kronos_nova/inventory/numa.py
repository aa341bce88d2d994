"""NUMA cells as Nova's database stores them.

The database has serialized objects: ``nova.objects.NUMATopology`` for compute nodes, and
``nova.objects.InstanceNUMATopology`` for instances.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any
from typing import NamedTuple

from kronos_nova import boundary
from kronos_nova.objects import numa
from kronos_nova.objects.numa import InstanceCell
from kronos_nova.objects.numa import NumaCell
from kronos_nova.objects.numa import Pages

MOST_CELLS = 1024
"""Maximum number of NUMA cells of a host or server. Raised, a faulty record in Nova's database
takes more memory; lowered, large hosts and servers are refused. Chosen far above the number of NUMA
cells of any host."""
MOST_CPUS = 65_536
"""Maximum number of CPUs of one NUMA cell. Raised, a faulty record in Nova's database takes more
memory; lowered, large hosts and servers are refused. Chosen far above the number of CPUs of any
NUMA cell."""
MOST_SIZES = 64
"""Maximum number of page sizes of one NUMA cell. Raised, a faulty record in Nova's database takes
more memory; lowered, hosts with more page sizes are refused. Chosen far above the number of page
sizes of any processor."""
MOST = 1 << 53
"""Largest number that is accepted in a NUMA topology (no unit). Fixed by float64, which represents
all whole numbers exactly only up to this number."""


class Topology(NamedTuple):
    """The NUMA cells of an instance. The fields are those of
    :class:`~kronos_nova.objects.snapshot.Instance` with the same names.

    cells : NUMA cells that the instance requests; empty for an instance without NUMA topology
    on_cells : for each of ``cells``, the id of the host's NUMA cell that it uses now; None if
        unknown
    on_pages : for each of ``cells``, the page size in KiB that it uses now; empty if unknown
    """

    cells: tuple[InstanceCell, ...] = ()
    on_cells: tuple[int, ...] | None = None
    on_pages: tuple[int, ...] = ()


NO_TOPOLOGY = Topology()


def host_cells(raw: Any) -> tuple[NumaCell, ...]:
    """Return the NUMA cells of a host. The result is empty for a host without NUMA cells.

    :param raw: ``compute_nodes.numa_topology``, parsed
    :raises OutOfBounds: ``raw`` does not have the form in which Nova writes it
    """
    return tuple(_host_cell(cell) for cell in _cells(raw))


def _host_cell(cell: Mapping[str, Any]) -> NumaCell:
    pages = [_data(each) for each in boundary.sized(
        cell.get('mempages') or (), 'page sizes', MOST_SIZES)]
    return NumaCell(
        id=_figure(cell, 'id'), memory_mb=_figure(cell, 'memory'),
        memory_used_mb=_figure(cell, 'memory_usage'), cpus=_count(cell, 'cpuset'),
        cpus_used=_figure(cell, 'cpu_usage'), pinned_cpus=_count(cell, 'pcpuset'),
        pinned_used=_count(cell, 'pinned_cpus'),
        pages={_figure(size, 'size_kb'): Pages(
            total=_figure(size, 'total'), used=_figure(size, 'used'),
            reserved=_figure(size, 'reserved')) for size in pages})


def topology(raw: Any) -> Topology:
    """Return the NUMA cells that an instance requests, and the cells and page sizes that it uses.
    The requested page size is not in ``raw``; :func:`with_page_size` adds it.

    :param raw: ``instance_extra.numa_topology``, parsed
    :raises OutOfBounds: ``raw`` does not have the form in which Nova writes it
    """
    cells = _cells(raw)
    is_isolated = bool(cells) and _data(raw).get('emulator_threads_policy') == 'isolate'
    needs = tuple(_instance_cell(cell, is_isolated and not number)
                  for number, cell in enumerate(cells))
    places = tuple(boundary.integer(cell.get('id'), 'a NUMA cell: id', -1, MOST) for cell in cells)
    pages = tuple(boundary.integer(int(cell.get('pagesize') or 0), 'a NUMA cell: pagesize',
                                   numa.ANY, MOST) for cell in cells)
    return Topology(needs, places if cells and min(places) >= 0 else None,
                    pages if cells and min(pages) > 0 else ())


def with_page_size(found: Topology, extra_specs: Mapping[str, str],
                   image: Mapping[str, str]) -> Topology:
    """Return a copy of ``found`` with the page size that the instance requests by its flavor or
    image. Nova requests this size again at the destination of a move."""
    wanted = numa.page_size(extra_specs, image)
    return found._replace(cells=tuple(
        dataclasses.replace(cell, page_kb=wanted) for cell in found.cells))


def _instance_cell(cell: Mapping[str, Any], has_emulator: bool) -> InstanceCell:
    policy = cell.get('cpu_policy')
    shared, pinned = _count(cell, 'cpuset'), _count(cell, 'pcpuset')
    if policy == numa.DEDICATED and not pinned:  # stored so before Victoria
        shared, pinned = 0, shared
    is_pinned = policy in (numa.DEDICATED, numa.MIXED)
    return InstanceCell(
        cpus=pinned + has_emulator if is_pinned else shared, memory_mb=_figure(cell, 'memory'),
        pinned=is_pinned, shared_cpus=shared if policy == numa.MIXED else None)


def _cells(raw: Any) -> list[Mapping[str, Any]]:
    if raw is None:
        return []
    return [_data(cell) for cell in boundary.sized(
        _data(raw).get('cells') or (), 'NUMA cells', MOST_CELLS)]


def _data(raw: Any) -> Mapping[str, Any]:
    data = raw.get('nova_object.data', raw) if isinstance(raw, Mapping) else None
    if not isinstance(data, Mapping):
        raise boundary.OutOfBounds(what='a NUMA topology', problem='must be a JSON object')
    return data


def _figure(data: Mapping[str, Any], name: str) -> int:
    value = data.get(name) or 0
    return boundary.integer(int(value) if isinstance(value, float) else value,
                            f'a NUMA cell: {name}', 0, MOST)


def _count(data: Mapping[str, Any], name: str) -> int:
    return len(boundary.sized(data.get(name) or (), f'a NUMA cell: {name}', MOST_CPUS))
