"""NUMA cells of hosts, and the cells and devices that servers request.

Fields have the names of fields of ``nova.objects.NUMACell`` and ``nova.objects.InstanceNUMACell``,
but fields about CPUs have the number of the CPUs instead of a list of CPUs.
"""

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import field

SMALL, LARGE, ANY = -1, -2, -3
"""Numbers that stand for page sizes if a server does not request a size in KiB. ``SMALL`` is the
smallest page size of the NUMA cell, ``LARGE`` any size above the smallest, and ``ANY`` any size.
Fixed by ``MEMPAGES_SMALL``, ``MEMPAGES_LARGE`` and ``MEMPAGES_ANY`` of ``nova.virt.hardware``."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """The memory pages of one size in a NUMA cell, as numbers of pages. ``reserved`` pages are
    given to no server."""

    total: int
    used: int = 0
    reserved: int = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NumaCell:
    """A NUMA cell of a host.

    cpus : number of CPUs that servers share
    pinned_cpus : number of CPUs that each belong to one server at most
    pages : {page size in KiB: the Pages of this size}; empty if the hypervisor does not report
        pages
    """

    id: int
    memory_mb: int
    memory_used_mb: int = 0
    cpus: int = 0
    cpus_used: int = 0
    pinned_cpus: int = 0
    pinned_used: int = 0
    pages: Mapping[int, Pages] = field(default_factory=dict)


def emptied(cell: NumaCell) -> NumaCell:
    """Return a copy of the cell in which nothing is in use."""
    return dataclasses.replace(
        cell, memory_used_mb=0, cpus_used=0, pinned_used=0,
        pages={size: dataclasses.replace(each, used=0) for size, each in cell.pages.items()})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class InstanceCell:
    """A NUMA cell of a server: a part of the server's CPUs and memory. Two cells of a server never
    use the same NUMA cell of the host.

    cpus : number of the cell's CPUs. In a server with both pinned and shared CPUs (``mixed``), only
        the pinned CPUs are counted here
    pinned : whether the CPUs in ``cpus`` are pinned
    shared_cpus : number of the cell's shared CPUs in a ``mixed`` server, possibly 0; None in any
        other server
    page_kb : page size in KiB, or :data:`SMALL`, :data:`LARGE` or :data:`ANY`; None if the server
        does not request a page size
    """

    cpus: int
    memory_mb: int
    pinned: bool = False
    shared_cpus: int | None = None
    page_kb: int | None = None


LEGACY, REQUIRED, PREFERRED, SOCKET = POLICIES = ('legacy', 'required', 'preferred', 'socket')
"""Policies for the NUMA cell of a device (``nova.objects.fields.PCINUMAAffinityPolicy``).
``required``: the device is in one of the server's cells. ``legacy``: the device is in one of the
server's cells, or in no cell. ``preferred``: the device may be in any cell. ``socket``: the device
is at the socket of one of the server's cells."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A pool of equal devices of a host. ``cell`` is the number of their NUMA cell; None if they
    belong to no cell. ``resource_class`` is their resource class in placement; None if placement
    does not track the devices."""

    alias: str
    total: int
    used: int = 0
    cell: int | None = None
    resource_class: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A number of equal devices that a server requests. ``policy`` is one of :data:`POLICIES`."""

    alias: str
    count: int = 1
    policy: str = LEGACY


DEDICATED, MIXED = 'dedicated', 'mixed'
"""CPU policies of servers: all CPUs are pinned (``dedicated``), or some CPUs are pinned
(``mixed``)."""
PAGE_SIZES = {'small': SMALL, 'large': LARGE, 'any': ANY}
UNIT_KB = {'k': 1, 'm': 1 << 10, 'g': 1 << 20, 't': 1 << 30}
"""Number of KiB in each unit of a page size. Fixed by the definition of the units."""
NUMBER = re.compile(r'[0-9]{1,12}')
"""Pattern of an amount in an extra spec. Longer numbers exceed any host and are ignored."""
PAGE_SIZE = re.compile(r'([0-9]{1,12})\s*([kmgt])i?b?', re.IGNORECASE)
CPU_RANGE = re.compile(r'(\^?)([0-9]{1,12})(?:-([0-9]{1,12}))?')
MOST_CPUS = 8192
"""Maximum number of CPUs of a flavor for which NUMA cells are computed. Raised, an invalid flavor
costs more time and memory each time that flavors are read; lowered, flavors for the largest hosts
are treated as flavors without NUMA cells. Chosen as the limit of Linux for the CPUs of one host."""


def page_size(extra_specs: Mapping[str, str], image: Mapping[str, str]) -> int | None:
    """Return the page size that a server requests, as ``page_kb`` of :class:`InstanceCell`. None if
    the server requests no page size, or a page size that Nova refuses. If the flavor accepts any
    size or any large size, the size that the image requests is used."""
    wanted = _page_kb(extra_specs.get('hw:mem_page_size'))
    if wanted in (LARGE, ANY) and image.get('hw_mem_page_size'):
        return _page_kb(image['hw_mem_page_size'])
    return wanted


def _page_kb(text: str | None) -> int | None:
    if not text:
        return None
    if text in PAGE_SIZES or NUMBER.fullmatch(text):
        return PAGE_SIZES.get(text) or int(text) or None
    found = PAGE_SIZE.fullmatch(text)
    return int(found[1]) * UNIT_KB[found[2].lower()] if found else None


def number_in(text: str) -> int | None:
    """Return the value of an extra spec as a number; None if the value is no number."""
    return int(text) if NUMBER.fullmatch(text) else None


def of_flavor(vcpus: int, memory_mb: int,
              extra_specs: Mapping[str, str]) -> tuple[InstanceCell, ...]:
    """Return the NUMA cells that a server of a flavor requests. The result is the same as that of
    ``nova.virt.hardware.numa_get_constraints`` for an image without properties.

    The result is empty for a flavor without a NUMA topology, for a flavor that Nova refuses, and
    for a flavor with more than :data:`MOST_CPUS` CPUs.
    """
    policy = extra_specs.get('hw:cpu_policy')
    if 'resources:PCPU' in extra_specs:
        policy = DEDICATED
    size, nodes = page_size(extra_specs, {}), extra_specs.get('hw:numa_nodes', '')
    if not (nodes or size or policy in (DEDICATED, MIXED)):
        return ()
    found = number_in(nodes)
    count = 1 if found is None else found
    # Each part has at least one CPU.
    if count > vcpus or vcpus > MOST_CPUS:
        return ()
    cpus, memory = _parts(vcpus, memory_mb, count, extra_specs)
    pinned = _pinned(vcpus, policy, extra_specs)
    if sum(map(len, cpus)) != vcpus or sum(memory) != memory_mb or not all(cpus):
        return ()
    # Nova places the emulator's threads with the first part.
    more = [int(not number and bool(pinned)
                and extra_specs.get('hw:emulator_threads_policy') == 'isolate')
            for number in range(count)]
    return tuple(InstanceCell(
        cpus=len(part & pinned) + extra if pinned else len(part), memory_mb=mib,
        pinned=bool(pinned), shared_cpus=len(part - pinned) if policy == MIXED else None,
        page_kb=size) for part, mib, extra in zip(cpus, memory, more, strict=True))


def _parts(vcpus: int, memory_mb: int, count: int,
           extra_specs: Mapping[str, str]) -> tuple[list[frozenset[int]], list[int]]:
    """Return two lists with one item for each NUMA cell of the server: the numbers of its CPUs, and
    its memory in MiB.

    :param count: number of NUMA cells
    """
    if 'hw:numa_cpus.0' not in extra_specs:
        each = max(vcpus // max(count, 1), 1)
        return ([frozenset(range(n * each, (n + 1) * each)) for n in range(count)],
                [memory_mb // max(count, 1)] * count)
    given = [extra_specs.get(f'hw:numa_mem.{n}', '') for n in range(count)]
    return ([_cpu_set(extra_specs.get(f'hw:numa_cpus.{n}', ''), vcpus) for n in range(count)],
            [number_in(text) or 0 for text in given])


def _pinned(vcpus: int, policy: str | None, extra_specs: Mapping[str, str]) -> frozenset[int]:
    """Return the numbers of the server's CPUs that are pinned."""
    every = frozenset(range(vcpus))
    if policy == DEDICATED:
        return every
    if policy != MIXED:
        return frozenset()
    mask = (extra_specs.get('hw:cpu_dedicated_mask')
            or extra_specs.get('hw:cpu_realtime_mask', '')).strip()
    return _cpu_set(f'0-{vcpus - 1},{mask}' if mask.startswith('^') else mask, vcpus) & every


def _cpu_set(text: str, vcpus: int) -> frozenset[int]:
    """Return the CPU numbers that a text such as ``0-3,^2,5`` lists. Parts of the text that cannot
    be read are left out. The CPUs of the server have the numbers from 0 to ``vcpus`` - 1. A greater
    number counts as ``vcpus``, so that an invalid text cannot make a large set."""
    found, left_out = set[int](), set[int]()
    for part in text.split(','):
        one = CPU_RANGE.fullmatch(part.strip())
        if one:
            (left_out if one[1] else found).update(
                range(min(int(one[2]), vcpus), min(int(one[3] or one[2]), vcpus) + 1))
    return frozenset(found - left_out)
