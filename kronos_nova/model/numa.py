"""NUMA cells in a model: whether servers fit into the cells of hosts, and the amounts that servers
use there.

The rules are the same as in ``nova.virt.hardware.numa_fit_instance_to_host``, with the limits of
Nova's NUMATopologyFilter. A *part* of a server is one cell of the server's own NUMA topology. Each
part needs a NUMA cell of the host that no other part of the same server uses. The cells are chosen
as Nova chooses them. Nova's rules about threads of one core, devices near a cell and networks are
not modelled; Nova's scheduler checks these rules.

Shapes: H hosts, C cells of the host with most cells, S page sizes, V instances, K kinds of
instances. Instances are of one kind if they have equal parts. Kind 0 has no parts.
"""

import copy
import dataclasses
import itertools
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kronos_nova.model.problem import TOLERANCE
from kronos_nova.objects import numa
from kronos_nova.objects.numa import InstanceCell
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Instance
from kronos_nova.units import KIB_PER_MIB

NO_PAGE = -1
"""Value (no unit) that marks a NUMA cell without page sizes. The value is used in place of the
index of a page size. Fixed: no index is negative."""


class Place(NamedTuple):
    """The place on a host of one cell of an instance's NUMA topology: a NUMA cell of the host, and
    a page size.

    cell : position of the host's NUMA cell
    page : position of the page size in the list of page sizes
    """

    cell: int
    page: int


@dataclasses.dataclass(slots=True)
class Amounts:
    """Amounts of resources in the NUMA cells of hosts: either the inventory of the cells or the
    amounts in use. A host has at most C cells. There are S page sizes.

    cpus, pinned : float64 (H, C), shared CPUs and pinned CPUs
    memory : float64 (H, C), MiB of memory
    pages : float64 (H, C, S), number of pages
    """

    cpus: np.ndarray
    pinned: np.ndarray
    memory: np.ndarray
    pages: np.ndarray

    def copy(self) -> 'Amounts':
        return Amounts(self.cpus.copy(), self.pinned.copy(), self.memory.copy(), self.pages.copy())


def _make_amounts(shape: tuple[int, int], sizes: int) -> Amounts:
    return Amounts(np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros((*shape, sizes)))


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Cells:
    """The NUMA cells of the hosts of a problem, and the NUMA topologies of its instances. A host
    has at most C cells. There are S page sizes.

    known : bool (H,), true for hosts whose cells are known
    exists : bool (H, C), true for cells that the host has
    ids : intp (H, C), the id that Nova gives to each cell
    has, used : Amounts that the cells have in total, and Amounts that are in use before any move
    cpu_ratio, memory_ratio : float64 (H,), allocation ratios of shared CPUs and of memory
    page_kb : float64 (S,), page sizes in KiB, the smallest first
    has_size : bool (H, C, S), true for page sizes that a cell has
    reserved : float64 (H, C, S), number of pages that no server may use
    kind : intp (V,), number of the NUMA topology of each instance. Instances with the same topology
    are of one kind
    parts : for each kind, the cells of its NUMA topology (its parts)
    home_host : intp (V,), host of each instance before any move
    home : {instance: Place of each of its parts before any move}, for the instances with known
        places
    packs : whether Nova fills cells in use first, instead of the cells with most room (``[compute]
        packing_host_numa_cells_allocation_strategy``)
    """

    known: np.ndarray
    exists: np.ndarray
    ids: np.ndarray
    has: Amounts
    used: Amounts
    cpu_ratio: np.ndarray
    memory_ratio: np.ndarray
    page_kb: np.ndarray
    has_size: np.ndarray
    reserved: np.ndarray
    kind: np.ndarray
    parts: tuple[tuple[InstanceCell, ...], ...]
    home_host: np.ndarray
    home: Mapping[int, tuple[Place, ...]]
    packs: bool = False


def cells(hosts: Sequence[Host], instances: Sequence[Instance], vm_host: np.ndarray,
          packs: bool = False, arrived: Iterable[int] = ()) -> Cells | None:
    """Return the NUMA cells of a problem's hosts and instances. Return None if no instance has a
    NUMA topology, or no host reports its cells.

    :param vm_host: intp (V,), host of each instance
    :param arrived: instances that planned moves bring to their hosts. The hosts' reported amounts
        in use do not include these instances yet
    """
    known = np.array([host.cells is not None for host in hosts], dtype=bool)
    if not known.any() or not any(each.cells for each in instances):
        return None
    kinds: dict[tuple[InstanceCell, ...], int] = {(): 0}
    kind = np.array([kinds.setdefault(each.cells, len(kinds)) for each in instances], dtype=np.intp)
    sizes = sorted({size for host in hosts for cell in host.cells or () for size in cell.pages})
    shape = len(hosts), max(len(host.cells or ()) for host in hosts)
    has, used = _make_amounts(shape, len(sizes)), _make_amounts(shape, len(sizes))
    exists, ids = np.zeros(shape, dtype=bool), np.full(shape, -1)
    reserved = np.zeros((*shape, len(sizes)))
    has_size = np.zeros((*shape, len(sizes)), dtype=bool)
    for at, host in enumerate(hosts):
        for number, cell in enumerate(host.cells or ()):
            place = at, number
            exists[place], ids[place] = True, cell.id
            has.cpus[place], used.cpus[place] = cell.cpus, cell.cpus_used
            has.pinned[place], used.pinned[place] = cell.pinned_cpus, cell.pinned_used
            has.memory[place], used.memory[place] = cell.memory_mb, cell.memory_used_mb
            for size, pages in cell.pages.items():
                one = *place, sizes.index(size)
                has_size[one], reserved[one] = True, pages.reserved
                has.pages[one], used.pages[one] = pages.total, pages.used
    ratios = np.array([[host.inventory[name].allocation_ratio if name in host.inventory else 1.0
                        for name in ('VCPU', 'MEMORY_MB')] for host in hosts])
    page_kb = np.array(sizes, dtype=float)
    home, arrived = {}, tuple(arrived)
    for vm, each in enumerate(instances):
        if each.cells and each.on_cells is not None and vm not in arrived:
            places = _home(hosts[int(vm_host[vm])], each, sizes)
            if places is not None:
                home[vm] = places
    found = Cells(known=known, exists=exists, ids=ids, has=has, used=used, cpu_ratio=ratios[:, 0],
                  memory_ratio=ratios[:, 1], page_kb=page_kb, has_size=has_size, reserved=reserved,
                  kind=kind, parts=tuple(kinds), home_host=vm_host, home=home,
                  packs=packs)
    use = CellUse(found)
    for vm in arrived:
        use.add(vm, int(vm_host[vm]), 1)
    return dataclasses.replace(found, used=use.used, home=use.places)


def settled(hosts: Sequence[Host], instances: Sequence[Instance], vm_host: np.ndarray,
            packs: bool = False) -> tuple[list[Host], list[Instance]]:
    """Place instances one after the other in the NUMA cells that Nova would choose. Return the
    hosts and the instances with these cells. The amounts in use that ``hosts`` report must not
    include any of the instances."""
    found = cells(hosts, instances, vm_host, packs, range(len(instances)))
    if found is None:
        return list(hosts), list(instances)
    return ([_with_used(host, found, at) for at, host in enumerate(hosts)],
            [_with_places(each, found, vm, int(vm_host[vm])) for vm, each in enumerate(instances)])


def moved(hosts: Sequence[Host], instances: Sequence[Instance], vm_host: np.ndarray,
          moves: Iterable[tuple[int, int]],
          packs: bool = False) -> tuple[list[Host], list[Instance]]:
    """Return the hosts and instances after moves (instance, destination). The used amounts of NUMA
    cells and the cells of instances are updated."""
    found, place = cells(hosts, instances, vm_host, packs), vm_host.copy()
    if found is None:
        return list(hosts), list(instances)
    use = CellUse(found)
    for vm, host in moves:
        use.add(vm, int(place[vm]), -1)
        use.add(vm, host, 1)
        place[vm] = host
    found = dataclasses.replace(found, used=use.used, home=use.places)
    return ([_with_used(host, found, at) for at, host in enumerate(hosts)],
            [_with_places(each, found, vm, int(place[vm])) for vm, each in enumerate(instances)])


def _with_used(host: Host, found: Cells, at: int) -> Host:
    used = found.used
    return dataclasses.replace(host, cells=host.cells and tuple(dataclasses.replace(
        cell, memory_used_mb=int(used.memory[at, number]), cpus_used=int(used.cpus[at, number]),
        pinned_used=int(used.pinned[at, number]), pages={
            size: dataclasses.replace(pages, used=int(
                used.pages[at, number, found.page_kb.searchsorted(size)]))
            for size, pages in cell.pages.items()}) for number, cell in enumerate(host.cells)))


def _with_places(instance: Instance, found: Cells, vm: int, host: int) -> Instance:
    places = found.home.get(vm, ())
    if not places:
        return dataclasses.replace(instance, on_cells=None, on_pages=())
    return dataclasses.replace(
        instance, on_cells=tuple(int(found.ids[host, place.cell]) for place in places),
        on_pages=tuple(int(found.page_kb[place.page]) for place in places
                       if place.page != NO_PAGE))


def _home(host: Host, instance: Instance, sizes: Sequence[int]) -> tuple[Place, ...] | None:
    """Return the Place of each cell of an instance's NUMA topology, on the host of the instance;
    None if a place is not known.

    :param sizes: page sizes in KiB
    """
    cells = {cell.id: (number, cell) for number, cell in enumerate(host.cells or ())}
    places = []
    for number, (need, on) in enumerate(zip(instance.cells, instance.on_cells or (),
                                            strict=False)):
        if on not in cells:
            return None
        position, cell = cells[on]
        size = instance.on_pages[number] if number < len(instance.on_pages) else need.page_kb
        if size is None or size < 0:
            size = min(cell.pages, default=0)
        if cell.pages and size not in cell.pages:
            return None
        places.append(Place(position, sizes.index(size) if cell.pages else NO_PAGE))
    return tuple(places) if len(places) == len(instance.cells) else None


class CellUse:
    """The use of NUMA cells in one state of the model. Only :meth:`add` changes the use.

    places : {instance: the Place of each cell of its NUMA topology}
    """

    def __init__(self, cells: Cells):
        self.cells, self.used = cells, cells.used.copy()
        self.places: dict[int, tuple[Place, ...]] = dict(cells.home)
        self._fits: dict[int, np.ndarray] = {}
        self._outdated: dict[int, set[int]] = {}

    def copy(self) -> 'CellUse':
        other = copy.copy(self)
        other.used, other.places = self.used.copy(), dict(self.places)
        other._fits = {kind: fits.copy() for kind, fits in self._fits.items()}
        other._outdated = {kind: set(hosts) for kind, hosts in self._outdated.items()}
        return other

    def of_empty_hosts(self) -> 'CellUse':
        """Return the use of the same cells without any instances."""
        used = self.cells.used
        return CellUse(dataclasses.replace(self.cells, home={}, used=_make_amounts(
            used.cpus.shape, used.pages.shape[-1])))

    def add(self, vm: int, host: int, sign: int) -> None:
        """Add an instance to the use of a host's cells, or remove the instance. An added instance
        gets the cells that Nova would choose. There is one exception: on the host on which it was
        before any move, it gets its former cells if they are free. An instance that does not fit
        gets no cells.

        :param sign: 1 to add the instance, -1 to remove it
        """
        kind = int(self.cells.kind[vm])
        if not kind or not self.cells.known[host]:
            return
        if sign < 0:
            places = self.places.pop(vm, ())
        else:
            places = self._again(vm, host) or self.choose(kind, host) or ()
            self.places[vm] = places
        for need, place in zip(self.cells.parts[kind], places, strict=False):
            self._count(need, host, place, sign)
        for outdated in self._outdated.values():
            outdated.add(host)

    def _again(self, vm: int, host: int) -> tuple[Place, ...]:
        """Return the places that an instance had on ``host`` before any move. Return () if the
        instance was on another host before any move, or if one of the places is not free now."""
        cells = self.cells
        places = cells.home.get(vm, ()) if cells.home_host[vm] == host else ()
        parts, at = cells.parts[cells.kind[vm]], np.array([host])
        return places if all(self.fits_part(need, at)[0, place.cell]
                             for need, place in zip(parts, places, strict=False)) else ()

    def _count(self, need: InstanceCell, host: int, place: Place, sign: int) -> None:
        used, at = self.used, (host, place.cell)
        pinned, shared = _cpus(need)
        used.pinned[at] += sign * pinned
        # Nova counts only CPUs that are not pinned.
        used.cpus[at] += sign * shared
        used.memory[at] += sign * need.memory_mb
        if place.page != NO_PAGE:
            used.pages[*at, place.page] += (
                sign * need.memory_mb * KIB_PER_MIB / self.cells.page_kb[place.page])

    def fits(self, kinds: np.ndarray) -> np.ndarray:
        """Return bool (n, H): for each of n kinds of instances, true where a host has room for one
        instance. Each cell of the instance's NUMA topology needs a separate cell of the host. The
        result is true for hosts that do not report their cells.

        :param kinds: intp (n,), kinds of instances
        """
        found = np.ones((len(kinds), len(self.cells.known)), dtype=bool)
        for row, kind in enumerate(kinds.tolist()):
            found[row] = self._fits_of(kind)
        return found

    def _fits_of(self, kind: int) -> np.ndarray:
        found, outdated = self._fits.get(kind), self._outdated.get(kind)
        every = np.arange(len(self.cells.known))
        if found is None:
            found = self._fits[kind] = self.fits_on(self.cells.parts[kind], every)
        elif outdated:
            hosts = np.array(sorted(outdated))
            found[hosts] = self.fits_on(self.cells.parts[kind], hosts)
        self._outdated[kind] = set()
        return found

    def fits_on(self, parts: Sequence[InstanceCell], hosts: np.ndarray) -> np.ndarray:
        """Return bool (h,), one value for each of h hosts: true if the host has room for all of
        ``parts``, the cells of a server's NUMA topology. Each part needs a separate cell of the
        host. The result is true for hosts that do not report their cells."""
        if not parts:
            return np.ones(len(hosts), dtype=bool)
        first, known = parts[0], self.cells.known[hosts]
        if any(need != first for need in parts) or first.page_kb in (numa.LARGE, numa.ANY):
            fits = [self.chosen(parts, host) is not None for host in hosts.tolist()]
            return np.array(fits, dtype=bool) | ~known
        return (self.fits_part(first, hosts).sum(axis=1) >= len(parts)) | ~known

    def fits_part(self, need: InstanceCell, hosts: np.ndarray) -> np.ndarray:
        """Return bool (h, C), one value for each of C NUMA cells of h hosts: true if the cell has
        room for ``need`` by the rules of ``nova.virt.hardware._numa_fit_instance_cell``.

        :param need: one cell of a server's own NUMA topology
        """
        fits = self._is_free(need, hosts)
        if need.pinned and need.shared_cpus is None:
            return fits
        cells, used = self.cells, self.used
        shared = _cpus(need)[1]
        fits &= used.cpus[hosts] + shared <= (
            cells.has.cpus[hosts] * cells.cpu_ratio[hosts, None] + TOLERANCE)
        return fits & (used.memory[hosts] + need.memory_mb <= (
            cells.has.memory[hosts] * cells.memory_ratio[hosts, None] + TOLERANCE))

    def _is_free(self, need: InstanceCell, hosts: np.ndarray) -> np.ndarray:
        """Return bool (h, C), one value for each of C NUMA cells of h hosts: true if the cell has
        room for ``need``. Only resources that cannot be overcommitted are checked;
        :meth:`fits_part` checks all resources.

        :param need: one cell of a server's own NUMA topology
        """
        has = self.cells.has
        pinned, shared = _cpus(need)
        fits = self.cells.exists[hosts] & self._has_memory(need, hosts)
        fits &= shared <= has.cpus[hosts]
        if need.pinned:
            fits &= pinned <= (has.pinned - self.used.pinned)[hosts]
        return fits

    def _has_memory(self, need: InstanceCell, hosts: np.ndarray) -> np.ndarray:
        """Return bool (h, C), one value for each of C NUMA cells of h hosts: true if the cell has
        memory for ``need``, in pages of a size that ``need`` permits.

        :param need: one cell of a server's own NUMA topology
        """
        cells, used = self.cells, self.used
        if need.page_kb is not None:
            return (self._fitting_pages(need, hosts) & self._sizes(need, hosts)).any(axis=2)
        # Memory of pinned servers is not overcommitted. That of others may be, but one part must
        # fit into the memory of its cell.
        free = (cells.has.memory - used.memory if need.pinned else cells.has.memory)[hosts]
        if not len(cells.page_kb):
            return need.memory_mb <= free
        by_page = (self._fitting_pages(need, hosts, need.pinned)
                   & _smallest(cells.has_size[hosts])).any(axis=2)
        return np.where(cells.has_size[hosts].any(axis=2), by_page, need.memory_mb <= free)

    def _fitting_pages(self, need: InstanceCell, hosts: np.ndarray,
                       only_free: bool = True) -> np.ndarray:
        """Return bool (h, C, S), one value for each of S page sizes in each of C NUMA cells of h
        hosts: true if the page size fits the memory of ``need``. A page size fits if the host's
        cell has enough pages of this size, and the memory is a whole number of pages.

        :param need: one cell of a server's own NUMA topology
        :param only_free: whether only free pages count
        """
        cells, memory = self.cells, need.memory_mb * KIB_PER_MIB
        there = cells.has.pages[hosts]
        if only_free:
            there = there - self.used.pages[hosts] - cells.reserved[hosts]
        return (cells.has_size[hosts] & (memory <= there * cells.page_kb + TOLERANCE)
                & (memory % cells.page_kb == 0))

    def _sizes(self, need: InstanceCell, hosts: np.ndarray) -> np.ndarray:
        """Return bool (h, C, S), one value for each of S page sizes in each of C NUMA cells of h
        hosts: true if the cell has pages of this size, and ``need`` permits the size.

        :param need: one cell of a server's own NUMA topology
        """
        has_size = self.cells.has_size[hosts]
        if need.page_kb == numa.ANY:
            return has_size
        if need.page_kb == numa.SMALL:
            return _smallest(has_size)
        if need.page_kb == numa.LARGE:
            return has_size & ~_smallest(has_size)
        return has_size & (self.cells.page_kb == need.page_kb)

    def choose(self, kind: int, host: int) -> tuple[Place, ...] | None:
        """Return the Place that Nova chooses on a host for each NUMA cell of an instance; None if
        Nova finds no places.

        :param kind: kind of the instance; instances of one kind have equal NUMA topologies
        """
        return self.chosen(self.cells.parts[kind], host)

    def chosen(self, parts: Sequence[InstanceCell], host: int) -> tuple[Place, ...] | None:
        """Return the Place that Nova chooses on a host for each of ``parts``, the cells of a
        server's NUMA topology; None if Nova finds no places.

        The result is the same as Nova's, even where Nova overlooks places. Nova tries the
        permutations of the host's cells. It remembers whether a part fits in a cell, under the
        number of the part and of the cell. During the search, Nova changes the numbers of parts,
        and two unequal parts can get the same number. Nova then uses the result of one part for the
        other part. Nova also keeps the page size that an earlier permutation found for a part.
        """
        needs, numbers = list(parts), list(range(len(parts)))
        fit, unfit = set[tuple[int, int]](), set[tuple[int, int]]()
        at = np.array([host])
        for cells in itertools.permutations(self._order(parts, host), len(parts)):
            for n, cell in enumerate(cells):
                pair = int(self.cells.ids[host, cell]), numbers[n]
                if pair in unfit:
                    break
                if pair not in fit:
                    needs[n] = self._with_size(needs[n], host, cell)
                    if not self.fits_part(needs[n], at)[0, cell]:
                        unfit.add(pair)
                        if needs[n].pinned and self._is_free(needs[n], at)[0, cell]:
                            numbers[n] = pair[0]  # its CPUs were pinned before it was refused
                        break
                    fit.add(pair)
                numbers[n] = pair[0]
            else:
                return tuple(Place(cell, self._page(need, host, cell))
                             for need, cell in zip(needs, cells, strict=True))
        return None

    def _with_size(self, need: InstanceCell, host: int, cell: int) -> InstanceCell:
        """Return ``need`` with a definite page size. If ``need`` asks for a kind of page size, such
        as :data:`~kronos_nova.objects.numa.LARGE`, the result has the largest page size with which
        ``need`` fits into the host's NUMA cell. If no page size fits, ``need`` is returned
        unchanged.

        :param need: one cell of a server's own NUMA topology
        :param cell: position of the host's NUMA cell
        """
        if need.page_kb is None or need.page_kb > 0:
            return need
        at = np.array([host])
        fitting = (self._fitting_pages(need, at) & self._sizes(need, at))[0, cell]
        if not fitting.any():
            return need
        return dataclasses.replace(need, page_kb=int(self.cells.page_kb[fitting][-1]))

    def without(self, vms: Iterable[int], vm_host: np.ndarray) -> 'CellUse':
        """Return a copy without the instances ``vms``.

        :param vm_host: intp (V,), host of each instance
        """
        other = self.copy()
        for vm in vms:
            other.add(vm, int(vm_host[vm]), -1)
        return other

    def options(self, kind: int, host: int) -> list[tuple[Place, ...]]:
        """Return the ways in which an instance can be placed in the NUMA cells of a host. A way is
        a tuple with a Place for each cell of the instance's own NUMA topology. If several ways
        differ only in the order of equal cells of the instance, only one of them is returned.

        :param kind: kind of the instance; instances of one kind have equal NUMA topologies
        """
        parts, at = self.cells.parts[kind], np.array([host])
        fits = {need: self.fits_part(need, at)[0] for need in set(parts)}
        cells = np.flatnonzero(self.cells.exists[host]).tolist()
        found: dict[tuple[tuple[int, ...], ...], tuple[Place, ...]] = {}
        for chosen in itertools.permutations(cells, len(parts)):
            if not all(fits[need][cell] for need, cell in zip(parts, chosen, strict=True)):
                continue
            alike = tuple(tuple(sorted(cell for other, cell in zip(parts, chosen, strict=True)
                                       if other == need)) for need in fits)
            if alike not in found:
                found[alike] = tuple(
                    Place(cell, self._page(self._with_size(need, host, cell), host, cell))
                    for need, cell in zip(parts, chosen, strict=True))
        return list(found.values())

    def amounts(self, need: InstanceCell, place: Place) -> dict[str, float]:
        """Return {name of a resource: amount that ``need`` uses in the host's NUMA cell of
        ``place``}.

        :param need: one cell of a server's own NUMA topology
        """
        pinned, shared = _cpus(need)
        found = {'pinned': pinned, 'cpus': shared,
                 'memory': 0 if need.pinned and place.page != NO_PAGE else need.memory_mb}
        if place.page != NO_PAGE:
            found[f'page {place.page}'] = (
                need.memory_mb * KIB_PER_MIB / self.cells.page_kb[place.page])
        return {name: float(amount) for name, amount in found.items() if amount}

    def free(self, host: int, cell: int, name: str) -> float:
        """Return the free amount of a resource in a cell.

        :param name: name of the resource, as in :meth:`amounts`
        """
        cells, used, at = self.cells, self.used, (host, cell)
        if name == 'pinned':
            return float(cells.has.pinned[at] - used.pinned[at])
        if name == 'cpus':
            return float(cells.has.cpus[at] * cells.cpu_ratio[host] - used.cpus[at])
        if name == 'memory':
            return float(cells.has.memory[at] * cells.memory_ratio[host] - used.memory[at])
        page = int(name.removeprefix('page '))
        return float((cells.has.pages - cells.reserved - used.pages)[host, cell, page])

    def slots(self, kind: int, hosts: np.ndarray) -> np.ndarray:
        """Return float64, one value for each of ``hosts``: the number of further instances of a
        kind that fit into the NUMA cells of the host; inf if its cells are not known. Instances of
        one kind have equal NUMA topologies."""
        parts, known = self.cells.parts[kind], self.cells.known[hosts]
        if any(need != parts[0] for need in parts):
            found = np.array([self._slots_one_by_one(kind, host) for host in hosts.tolist()])
        else:
            found = _servers_of_parts(self._parts_by_cell(parts[0], hosts), len(parts))
        return np.where(known, found, np.inf)

    def costs_slots(self, kind: int, slot: int) -> list[np.ndarray]:
        """Return the NUMA cells of hosts in which an instance of ``kind`` would take room from
        instances of another kind, ``slot``. The parts of an instance are the cells of its own NUMA
        topology. Each part of the instance of ``kind`` is checked separately. For ``slot``, only
        the first part is checked.

        :returns: a list with bool (H, C) for each part of ``kind``. It is true for each cell into
            which the first part of ``slot`` would fit fewer times if the part were in the cell
        """
        every, wanted = np.arange(len(self.cells.known)), self.cells.parts[slot][0]
        before, found = self._parts_by_cell(wanted, every), []
        for need in self.cells.parts[kind]:
            other = self.copy()
            other._fill(need, every, self.cells.exists)
            found.append(other._parts_by_cell(wanted, every) < before)
        return found

    def _parts_by_cell(self, need: InstanceCell, hosts: np.ndarray) -> np.ndarray:
        """Return intp (h, C): how many times ``need`` fits into each of C NUMA cells of h hosts.

        :param need: one cell of a server's own NUMA topology
        """
        other, count = self.copy(), np.zeros(self.cells.exists[hosts].shape, dtype=np.intp)
        while (fits := other.fits_part(need, hosts)).any():
            count += fits
            other._fill(need, hosts, fits)
        return count

    def _fill(self, need: InstanceCell, hosts: np.ndarray, cells: np.ndarray) -> None:
        """Add the amounts of ``need`` to the use of several NUMA cells of the hosts.

        :param need: one cell of a server's own NUMA topology
        :param cells: bool (h, C), true for the hosts' cells to which the amounts are added
        """
        used, (pinned, shared) = self.used, _cpus(need)
        if len(self.cells.page_kb):
            size = self._sizes_taken(need, hosts) & cells[..., None]
            used.pages[hosts] += size * (need.memory_mb * KIB_PER_MIB / self.cells.page_kb)
        used.pinned[hosts] += pinned * cells
        used.cpus[hosts] += shared * cells
        used.memory[hosts] += need.memory_mb * cells

    def _sizes_taken(self, need: InstanceCell, hosts: np.ndarray) -> np.ndarray:
        """Return bool (h, C, S), one value for each of S page sizes in each of C NUMA cells of h
        hosts: true for the page size that ``need`` would use in the cell.

        :param need: one cell of a server's own NUMA topology
        """
        if need.page_kb is None:
            return _smallest(self.cells.has_size[hosts])
        found = self._fitting_pages(need, hosts) & self._sizes(need, hosts)
        return _smallest(found[..., ::-1])[..., ::-1]

    def _slots_one_by_one(self, kind: int, host: int) -> int:
        parts, taken = self.cells.parts[kind], list[tuple[Place, ...]]()
        while (places := self.choose(kind, host)) is not None:
            for need, place in zip(parts, places, strict=True):
                self._count(need, host, place, 1)
            taken.append(places)
        for places in taken:
            for need, place in zip(parts, places, strict=True):
                self._count(need, host, place, -1)
        return len(taken)

    def sums(self, hosts: np.ndarray,
             vms: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the free room and the total room of hosts, and the needs of instances, as sums
        over NUMA cells.

        The arrays have k columns: CPUs to pin, shared CPUs, and pages of each size. A host whose
        cells are not known gets room for all instances.

        :returns: float64 (h, k), the free room of each of h hosts; float64 (h, k), the total room
            of each host; and float64 (v, k), the needs of each of v instances
        """
        cells, used = self.cells, self.used
        needs = np.array([_sum_of_parts(cells.parts[kind], cells.page_kb)
                          for kind in cells.kind[vms].tolist()])
        needs = needs.reshape(len(vms), 2 + len(cells.page_kb))
        room = np.column_stack([
            cells.has.pinned[hosts].sum(axis=1),
            cells.has.cpus[hosts].sum(axis=1) * cells.cpu_ratio[hosts],
            (cells.has.pages - cells.reserved)[hosts].sum(axis=1)])
        taken = np.column_stack([used.pinned[hosts].sum(axis=1), used.cpus[hosts].sum(axis=1),
                                 used.pages[hosts].sum(axis=1)])
        enough = np.where(cells.known[hosts, None], 0.0, needs.sum(axis=0) + 1.0)
        return room - taken + enough, room + enough, needs

    def _order(self, parts: Sequence[InstanceCell], host: int) -> list[int]:
        """Return the NUMA cells of a host in the order in which Nova tries them for a server.

        :param parts: the cells of the server's own NUMA topology
        """
        cells, used = self.cells, self.used
        order = np.flatnonzero(cells.exists[host]).tolist()
        if len(order) <= len(parts):
            return order
        free = cells.has.memory[host] - used.memory[host]
        order.sort(key=lambda cell: free[cell], reverse=not cells.packs)
        if parts[0].pinned:
            pinned = cells.has.pinned[host] - used.pinned[host]
            order.sort(key=lambda cell: pinned[cell], reverse=not cells.packs)
        else:
            order.sort(key=lambda cell: used.cpus[host, cell], reverse=cells.packs)
        return order

    def _page(self, need: InstanceCell, host: int, cell: int) -> int:
        """Return the page size that ``need`` uses in the NUMA cell ``cell`` of a host, as a
        position in ``page_kb``; NO_PAGE if the host's cell has no page sizes.

        :param need: one cell of a server's own NUMA topology
        """
        has_size = self.cells.has_size[host, cell]
        if not has_size.any():
            return NO_PAGE
        size = need.page_kb
        return int(has_size.argmax() if size is None else (self.cells.page_kb == size).argmax())


def _servers_of_parts(parts: np.ndarray, each: int) -> np.ndarray:
    """Return intp (h,): the number of servers for which each host has room. A server has ``each``
    equal parts. A part is one cell of the server's own NUMA topology, and needs a separate NUMA
    cell of the host.

    :param parts: intp (h, C), number of parts that each cell of the hosts can hold
    """
    found = np.zeros(len(parts), dtype=np.intp)
    for count in range(1, int(parts.sum(axis=1).max(initial=0)) // each + 1):
        found[np.minimum(parts, count).sum(axis=1) >= each * count] = count
    return found


def _sum_of_parts(parts: Sequence[InstanceCell], page_kb: np.ndarray) -> list[float]:
    """Return the needs of a server, summed over the cells of its NUMA topology: the number of CPUs
    to pin, of shared CPUs, and of pages of each size.

    :param parts: the cells of the server's NUMA topology
    :param page_kb: page sizes in KiB
    """
    pinned, shared = (sum(some) for some in zip((0, 0), *map(_cpus, parts), strict=True))
    return [pinned, shared, *(
        sum(need.memory_mb * KIB_PER_MIB / size for need in parts if need.page_kb == size)
        for size in page_kb.tolist())]


PAGES = {None: '', numa.SMALL: ' in small pages', numa.LARGE: ' in large pages',
         numa.ANY: ' in pages of one size'}


def wish(need: InstanceCell) -> str:
    """Return a text about the needs of one cell of a server's NUMA topology, such as "2 shared CPUs
    and 512 MiB in large pages"."""
    pinned, shared = _cpus(need)
    cpus = ' and '.join(f'{count} {noun}' for count, noun in (
        (pinned, 'CPUs to pin'), (shared, 'shared CPUs')) if count)
    pages = PAGES.get(need.page_kb, f' in pages of {need.page_kb} KiB')
    return f'{cpus} and {need.memory_mb} MiB{pages}'


def _smallest(has_size: np.ndarray) -> np.ndarray:
    """Return bool (..., S): true only for the smallest page size of each cell.

    :param has_size: bool (..., S), true for the page sizes of each cell
    """
    return has_size & (np.cumsum(has_size, axis=-1) == 1)


def _cpus(need: InstanceCell) -> tuple[int, int]:
    """Return (number of pinned CPUs, number of shared CPUs) that one cell of a server's NUMA
    topology needs."""
    return (need.cpus, need.shared_cpus or 0) if need.pinned else (0, need.cpus)
