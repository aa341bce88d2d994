"""NUMA cells of hosts, and the parts of servers that need distinct cells.

Names have the meaning of those in ``nova.objects.NUMACell`` and ``nova.objects.InstanceNUMACell``,
but CPUs are counted instead of listed.
"""

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import field

SMALL, LARGE, ANY = -1, -2, -3
"""Numbers (no unit) in place of a page size in KiB, for servers that request no certain size. In
this order: the smallest page size of the cell, any but the smallest, any. Fixed by
``MEMPAGES_SMALL``, ``MEMPAGES_LARGE`` and ``MEMPAGES_ANY`` of ``nova.virt.hardware``."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """Memory pages of one size in a cell: the number of all pages, of used pages, and of pages that
    are reserved and given to no server."""

    total: int
    used: int = 0
    reserved: int = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NumaCell:
    """A NUMA cell of a host. ``cpus`` are shared by servers, each of ``pinned_cpus`` belongs to one
    server. ``pages`` maps page sizes in KiB to their pages; empty where the hypervisor does not
    report them."""

    id: int
    memory_mb: int
    memory_used_mb: int = 0
    cpus: int = 0
    cpus_used: int = 0
    pinned_cpus: int = 0
    pinned_used: int = 0
    pages: Mapping[int, Pages] = field(default_factory=dict)


def emptied(cell: NumaCell) -> NumaCell:
    """Return a copy of the cell with nothing in use."""
    return dataclasses.replace(
        cell, memory_used_mb=0, cpus_used=0, pinned_used=0,
        pages={size: dataclasses.replace(each, used=0) for size, each in cell.pages.items()})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class InstanceCell:
    """The part of a server that needs a cell of its own.

    ``cpus`` are pinned or shared. In a server with both kinds of CPUs (``mixed``), ``cpus`` are the
    pinned ones and ``shared_cpus`` the others, possibly 0; for other servers ``shared_cpus`` is
    None. ``page_kb`` is a size in KiB, one of :data:`SMALL`, :data:`LARGE` and :data:`ANY`, or None
    where the server does not ask for a size.
    """

    cpus: int
    memory_mb: int
    pinned: bool = False
    shared_cpus: int | None = None
    page_kb: int | None = None


LEGACY, REQUIRED, PREFERRED, SOCKET = POLICIES = ('legacy', 'required', 'preferred', 'socket')
"""Policies for the cell of a device relative to the cells of its server: one of them or no cell,
one of them, any, a socket of one of them (``nova.objects.fields.PCINUMAAffinityPolicy``)."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A pool of equal devices of a host. ``cell`` is the number of their NUMA cell; None where they
    are on none. ``resource_class`` is that of placement; None where placement does not count
    them."""

    alias: str
    total: int
    used: int = 0
    cell: int | None = None
    resource_class: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """Devices that a server needs; ``policy`` is one of :data:`POLICIES`."""

    alias: str
    count: int = 1
    policy: str = LEGACY


DEDICATED, MIXED = 'dedicated', 'mixed'
"""CPU policies of servers: all CPUs are pinned, or some."""
PAGE_SIZES = {'small': SMALL, 'large': LARGE, 'any': ANY}
UNIT_KB = {'k': 1, 'm': 1 << 10, 'g': 1 << 20, 't': 1 << 30}
"""KiB of each unit of a page size. Fixed by the units."""
NUMBER = re.compile(r'[0-9]{1,12}')
"""Pattern of an amount in an extra spec. Numbers of more digits exceed any host, and are
ignored."""
PAGE_SIZE = re.compile(r'([0-9]{1,12})\s*([kmgt])i?b?', re.IGNORECASE)
CPU_RANGE = re.compile(r'(\^?)([0-9]{1,12})(?:-([0-9]{1,12}))?')
MOST_CPUS = 8192
"""Maximum number of CPUs of a flavor whose NUMA cells are computed. Raised, an invalid flavor costs
more time and memory wherever flavors are read; lowered, flavors for the largest hosts are treated
as if they had no NUMA cells. Chosen as the limit of Linux for one host."""


def page_size(extra_specs: Mapping[str, str], image: Mapping[str, str]) -> int | None:
    """Return the page size that a server requests, as ``page_kb`` of :class:`InstanceCell`; None
    for none, or for one that Nova refuses. The image decides where the flavor leaves the size
    open."""
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
    """Return the value of an extra spec as a number; None where it is no number."""
    return int(text) if NUMBER.fullmatch(text) else None


def of_flavor(vcpus: int, memory_mb: int,
              extra_specs: Mapping[str, str]) -> tuple[InstanceCell, ...]:
    """Return the parts that need cells of servers of a flavor, as
    ``nova.virt.hardware.numa_get_constraints`` computes them for an image without properties. Empty
    for a flavor without a topology, and for one that Nova refuses or that has more CPUs than any
    host."""
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
    """Return the numbers of the CPUs of each part, and its memory in MiB."""
    if 'hw:numa_cpus.0' not in extra_specs:
        each = max(vcpus // max(count, 1), 1)
        return ([frozenset(range(n * each, (n + 1) * each)) for n in range(count)],
                [memory_mb // max(count, 1)] * count)
    given = [extra_specs.get(f'hw:numa_mem.{n}', '') for n in range(count)]
    return ([_cpu_set(extra_specs.get(f'hw:numa_cpus.{n}', ''), vcpus) for n in range(count)],
            [number_in(text) or 0 for text in given])


def _pinned(vcpus: int, policy: str | None, extra_specs: Mapping[str, str]) -> frozenset[int]:
    """Return the numbers of the CPUs that are pinned."""
    every = frozenset(range(vcpus))
    if policy == DEDICATED:
        return every
    if policy != MIXED:
        return frozenset()
    mask = (extra_specs.get('hw:cpu_dedicated_mask')
            or extra_specs.get('hw:cpu_realtime_mask', '')).strip()
    return _cpu_set(f'0-{vcpus - 1},{mask}' if mask.startswith('^') else mask, vcpus) & every


def _cpu_set(text: str, vcpus: int) -> frozenset[int]:
    """Return the numbers in a text such as ``0-3,^2,5``. Parts that cannot be read, and numbers
    that exceed the CPUs of the server, are left out."""
    found, left_out = set[int](), set[int]()
    for part in text.split(','):
        one = CPU_RANGE.fullmatch(part.strip())
        if one:
            (left_out if one[1] else found).update(
                range(min(int(one[2]), vcpus), min(int(one[3] or one[2]), vcpus) + 1))
    return frozenset(found - left_out)
