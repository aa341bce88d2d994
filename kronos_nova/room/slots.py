"""Slots: the number of further servers of a shape that fit. A shape is the resources of one
server."""

import copy
import dataclasses
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.model import State
from kronos_nova.model.problem import TOLERANCE
from kronos_nova.model.rules import CellRoom
from kronos_nova.model.rules import ReservedRoom
from kronos_nova.model.rules import Room
from kronos_nova.objects.shape import Shape
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.room import shapes
from kronos_nova.room import whole
from kronos_nova.room.failover import FITS
from kronos_nova.room.failover import LossVerdict

CPUS = frozenset(('VCPU', 'PCPU'))
"""Resource classes of CPUs. For these classes the fragment rate is reported: the fraction of the
free CPUs that no further server can use."""
CELLS = 'NUMA cells'
"""Value of ``short`` if the hosts have enough resources in total, but not in the NUMA cells that a
server would use."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """The number of servers of one shape (the resources of one server) that fit without any move.

    by_host : {name of a host that may take servers of the shape: number for which it has room}
    total : total number of servers that fit, on the hosts and on their sharing providers
    unusable : {resource class: amount that stays free after ``total`` servers are added}, summed
        over the hosts of ``by_host`` and their sharing providers
    short : what limits ``total``. :data:`CELLS` if NUMA cells are the limit on most hosts.
        Otherwise a resource class: the one that runs out on a sharing provider, or else the one
        that runs out on most hosts. '' if no host may take servers of the shape
    """

    shape: Shape
    by_host: Mapping[str, int]
    total: int
    unusable: Mapping[str, float]
    short: str

    @property
    def fragment_rate(self) -> float:
        """The fraction of the free CPUs that is unusable, on hosts that may take servers of the
        shape; 0 if no CPU is free."""
        free = lost = 0.0
        for name in CPUS & self.unusable.keys():
            lost += self.unusable[name]
            free += self.unusable[name] + self.total * self.shape.resources.get(name, 0)
        return lost / free if free else 0.0


class SlotCounter:
    """A counter of slots (further servers that fit) in one cloud.

    free : float64 (H + S, C), free amount of each of C resource classes on H hosts and S sharing
        providers
    cells : use of NUMA cells; None if no server needs NUMA cells
    """

    def __init__(self, snapshot: Snapshot, rules: ConstraintRules, wanted: Sequence[Shape],
                 hosts: Iterable[str] | None = None, project_id: str = ''):
        """
        :param hosts: names of the hosts that count; None for all
        :param project_id: project of the new servers
        """
        cloud, emptied, new = shapes.with_new(snapshot, wanted, project_id=project_id)
        self.shapes, self.model = wanted, whole.model_of(cloud, rules, emptied)
        self.problem, self._state = self.model.problem, State(self.model)
        self._host = {name: host for host, name in enumerate(self.problem.hosts)}
        self._vm = {uuid: vm for vm, uuid in enumerate(self.problem.vms)}
        self._new = [[self._vm[uuid] for uuid in uuids] for uuids in new]
        self._counts = self.problem.available.copy()
        if hosts is not None:
            self._counts &= np.isin(self.problem.hosts, list(hosts))
        self.free = np.maximum(self.problem.limits - self._state.used, 0.0)
        self.cells = self._state.cells

        self._allowed = [self._permitted(vms) for vms in self._new]

    def within(self, hosts: Iterable[str]) -> 'SlotCounter':
        """Return a copy in which only some hosts count.

        :param hosts: names of these hosts
        """
        other = copy.copy(self)
        other._counts = self._counts & np.isin(self.problem.hosts, list(hosts))
        return other

    def of_empty_hosts(self) -> 'SlotCounter':
        """Return a copy that counts as if no server were on the hosts."""
        other = copy.copy(self)
        other.free = np.maximum(self.problem.limits, 0.0)
        other.cells = self.cells and self.cells.of_empty_hosts()
        return other

    def _permitted(self, vms: Iterable[int]) -> np.ndarray:
        """Return bool (H,): True if the rules permit the host for at least one instance of ``vms``.
        Rules about room are not considered."""
        every, found = np.arange(len(self.problem.hosts)), np.zeros(len(self._counts), dtype=bool)
        for vm in vms:
            may = self.problem.available.copy()
            for rule in self.model.for_emptying.rules:
                if not isinstance(rule, Room | ReservedRoom | CellRoom):
                    may &= rule.allows(self._state, np.full(len(every), vm), every)
            found |= may
        return found

    def slots(self, shape: int) -> Slots:
        """Return the Slots of a shape (the resources of one server): how many more servers fit, and
        why no more fit.

        :param shape: position of the shape in ``shapes``
        """
        problem, demand = self.problem, self.problem.demands[self._new[shape][0]]
        needed = np.flatnonzero(demand > 0)
        hosts = np.flatnonzero(self._allowed[shape] & self._counts)
        rows = np.broadcast_to(problem.row(hosts[:, None], needed), (len(hosts), len(needed)))
        own = rows == hosts[:, None]
        fit = np.floor((self.free[rows, needed] + TOLERANCE) / demand[needed])
        counts = np.where(own, fit, np.inf).min(axis=1, initial=np.inf)
        counts = np.where(np.isfinite(counts), counts, fit.max(axis=1, initial=0.0))
        in_cells = self._in_cells(shape, hosts)
        is_by_cells, counts = in_cells < counts, np.minimum(counts, in_cells)
        totals = [_within(counts, rows[:, c], fit[:, c], own[:, c]) for c in range(len(needed))]
        total = min(totals, default=0.0)
        if is_by_cells.sum() * 2 > len(hosts):
            total, short = min(total, float(counts.sum())), CELLS
        elif total < counts.sum():
            short = problem.resource_classes[needed[int(np.argmin(totals))]]
        else:
            lacking = (fit <= counts[:, None]) & own
            short = problem.resource_classes[needed[int(lacking.sum(axis=0).argmax())]] if len(
                hosts) else ''
        unusable = {problem.resource_classes[c]: float(
            self.free[np.unique(rows[:, n]), c].sum() - total * demand[c])
            for n, c in enumerate(needed.tolist())}
        return Slots(shape=self.shapes[shape], total=int(total), unusable=unusable, short=short,
                     by_host={problem.hosts[host]: int(count) for host, count in zip(
                         hosts.tolist(), counts.tolist(), strict=True)})

    def _in_cells(self, shape: int, hosts: np.ndarray) -> np.ndarray:
        """Return float64 (h,): the number of servers of a shape that fit into the NUMA cells of
        each host; inf if the servers need no NUMA cells."""
        if self.cells is None or not any(isinstance(each, CellRoom) for each in self.model.rules):
            return np.full(len(hosts), np.inf)
        kind = int(self.cells.cells.kind[self._new[shape][0]])
        return self.cells.slots(kind, hosts) if kind else np.full(len(hosts), np.inf)

    def spread(self, shape: int, count: int) -> list[str]:
        """Return the hosts on which new servers of a shape are placed. Each server is placed on the
        host with most slots (room for further servers) left. The list is shorter than ``count`` if
        not all servers fit."""
        found = self.slots(shape)
        left, hosts = dict(found.by_host), []
        for _number in range(min(count, found.total)):
            hosts.append(max(left, key=lambda name: left[name]))
            left[hosts[-1]] -= 1
        return hosts

    def without(self, shape: int, verdict: LossVerdict) -> int:
        """Return the number of slots of a shape (how many more servers fit) after hosts have failed
        and their servers have restarted."""
        free, counts, cells = self.free, self._counts, self.cells
        self.free, self._counts = free.copy(), counts.copy()
        self._counts[[self._host[name] for name in verdict.lost]] = False
        for uuid, name in verdict.placement.items():
            self.free[self._host[name]] -= self.problem.demands[self._vm[uuid]]
            if cells is not None and self.cells is cells:
                self.cells = cells.copy()
            if self.cells is not None:
                self.cells.add(self._vm[uuid], self._host[name], 1)
        self.free = np.maximum(self.free, 0.0)
        try:
            return self.slots(shape).total
        finally:
            self.free, self._counts, self.cells = free, counts, cells


def _within(counts: np.ndarray, rows: np.ndarray, fit: np.ndarray, own: np.ndarray) -> float:
    """Return the number of servers that fit on all hosts together. Several hosts may share a
    provider of one resource class. These hosts together take no more servers than the shared
    provider has room for.

    :param counts: float64, for each host the number of servers that fit by its own room
    :param rows: intp, for each host the provider of the resource class
    :param fit: float64, for each host the number of servers for which this provider has room
    :param own: bool, for each host True if this provider is the host itself
    """
    total = float(counts[own].sum())
    for row in np.unique(rows[~own]):
        inside = rows == row
        total += min(float(counts[inside].sum()), float(fit[inside][0]))
    return total


def after_losses(counter: SlotCounter, verdicts: Sequence[LossVerdict]) -> list[int | None]:
    """Return for each shape the number of slots (how many more servers fit) that are left after the
    worst loss, the one that leaves the fewest slots. It is assumed that the servers of the lost
    hosts have first restarted elsewhere. If the servers of some loss cannot all restart, the number
    is None for all shapes.

    :param verdicts: one verdict for each loss
    """
    numbers = range(len(counter.shapes))
    if any(verdict.verdict != FITS for verdict in verdicts):
        return [None] * len(numbers)
    return [min((counter.without(number, verdict) for verdict in verdicts),
                default=counter.slots(number).total) for number in numbers]
