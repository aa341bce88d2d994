"""The state that planning changes: the hosts of instances, and the loads, room and counts of group
members that follow from these hosts."""

import copy
from collections.abc import Iterable

import numpy as np

from kronos_nova.model import spans
from kronos_nova.model.arrays import Move
from kronos_nova.model.compiled import Model
from kronos_nova.model.delta import Delta
from kronos_nova.model.extremes import Extremes
from kronos_nova.model.groups import GroupCounts
from kronos_nova.model.numa import CellUse
from kronos_nova.model.problem import TOLERANCE


class State:
    """A :class:`Model` after some moves. Only :meth:`move` and :meth:`arrive` change the hosts of
    instances. A move is undone by a move back to the earlier host.

    scores, capacity_scores : float64 (H, P), scores of the hosts, and scores by ``capacity_query``
    used : float64 (H + S, C), allocated amount of each of C resource classes on each of H hosts and
        S shared providers
    vm_host : intp (V,), host of each instance
    guests : intp (H,), number of instances on each host, including instances that are migrating to
        the host
    groups : counts of the server groups' members on hosts and in failure domains
    cells : use of NUMA cells; None if the problem has no NUMA cells
    origin : intp (V,), host of each instance at the last call of :meth:`settle`. The price of the
        state is that of moving each instance from this host to its present host
    """

    def __init__(self, model: Model):
        self.model, self.problem = model, model.problem
        problem = model.problem
        self.scores = problem.scores.copy()
        self.capacity_scores = problem.capacity_scores.copy()
        self.used = problem.used.copy()
        self.vm_host = problem.vm_host.copy()
        self.guests = model.guests.copy()
        self.groups = GroupCounts(model.memberships, problem.vm_host)
        self.cells = CellUse(problem.cells) if problem.cells is not None else None
        self._extremes: dict[int, Extremes] = {}
        self.settle()

    def copy(self) -> 'State':
        """Return a copy that can be changed independently of this state. Both have the same
        model."""
        other = copy.copy(self)
        for name in ('scores', 'capacity_scores', 'used', 'vm_host', 'guests', 'groups'):
            setattr(other, name, getattr(self, name).copy())
        other.cells = self.cells and self.cells.copy()
        other._extremes = {}
        return other

    def after(self, moves: Iterable[tuple[int, int]]) -> 'State':
        """Return a copy of the state after the moves (instance, destination)."""
        other = self.copy()
        for vm, host in moves:
            other.move(vm, host)
        return other

    def under(self, model: Model) -> 'State':
        """Return a copy of the state with another model. The other model has the same problem with
        other rules."""
        other = self.copy()
        other.model = model
        return other

    def settle(self) -> None:
        """Set the price to 0. From now on, :meth:`price` counts only the moves from the present
        state, and the violations of group policies that these moves add."""
        self.origin, self.allowed = self.vm_host.copy(), self.groups.misplaced.copy()

    def move(self, vm: int, destination: int) -> int:
        """Move an instance to another host, and return the host that the instance leaves. A move
        back to this host undoes the move."""
        source = int(self.vm_host[vm])
        self._shift(vm, source, -1)
        self._shift(vm, destination, 1)
        self.vm_host[vm] = destination
        return source

    def chosen_parts(self, vm: int, host: int) -> tuple[int, ...]:
        """Return the NUMA cells of a host that Nova would choose for an instance. The result is
        empty if the instance needs no NUMA cells or does not fit."""
        if self.cells is None:
            return ()
        places = self.cells.choose(int(self.cells.cells.kind[vm]), host) or ()
        return tuple(place.cell for place in places)

    def slots(self, vm: int, hosts: np.ndarray) -> np.ndarray:
        """Return float64, one value for each of ``hosts``: the number of further instances like
        ``vm`` for which the host has free room. Rules that are not about room are ignored. The free
        room of a shared provider counts in full for each of its hosts."""
        problem, demand = self.problem, self.problem.demands[vm]
        needed = np.flatnonzero(demand > 0)
        rows = problem.row(hosts[:, None], needed)
        free = (problem.limits - self.used)[rows, needed] + TOLERANCE
        found = np.floor(np.maximum(free, 0.0) / demand[needed]).min(axis=1, initial=np.inf)
        kind = 0 if problem.cells is None else int(problem.cells.kind[vm])
        return np.minimum(found, self.cells.slots(kind, hosts)) if self.cells and kind else found

    def arrive(self, vm: int, destination: int) -> None:
        """Add an instance to its destination without removing it from its source. This is the worst
        case during a migration, when both hosts have the instance."""
        self._shift(vm, destination, 1)
        self.vm_host[vm] = destination

    def _shift(self, vm: int, host: int, sign: int) -> None:
        problem = self.problem
        weight, demand = sign * problem.weights[vm] * problem.host_scale[host], problem.demands[vm]
        self.scores[host] += weight
        self.capacity_scores[host] += weight
        if problem.provider is None:
            self.used[host] += sign * demand
        else:
            self.used[problem.provider[host], np.arange(len(demand))] += sign * demand
        self.guests[host] += sign
        self.groups.add(vm, host, sign)
        if self.cells is not None:
            self.cells.add(vm, host, sign)
        self._extremes = {}

    def imbalances(self) -> np.ndarray:
        """Return float64 (P,): for each policy, the highest minus the lowest score of the available
        hosts, without the extreme scores that the policy leaves out. The result is 0 if no host is
        available."""
        counted = self.scores[self.problem.available]
        if self.problem.left_out is not None:
            return spans.imbalances(counted.T, self.problem.left_out)
        return np.ptp(counted, axis=0) if len(counted) else np.zeros(counted.shape[1])

    def combined(self) -> float:
        """Return the combined imbalance: the sum of the imbalances of all policies, weighted by the
        policies' weights."""
        return self.extremes().combined

    def price(self) -> float:
        """Return the price of all moves since :meth:`settle`, in units of combined imbalance."""
        moved = np.flatnonzero(self.vm_host != self.origin)
        return self.misplacing() + float(self.model.prices.of_moves(
            moved, self.origin[moved], self.vm_host[moved]).sum())

    def misplacing(self) -> float:
        """Return the price of the violations of soft server groups' policies, a part of
        :meth:`price`. Only violations that were added since :meth:`settle` have a price."""
        beyond = np.maximum(self.groups.misplaced - self.allowed, 0)
        return float((self.model.prices.soft_group_cost or 0.0) * (beyond @ self.model.breakable))

    def objective(self) -> float:
        """Return the objective that planners minimise: the combined imbalance plus the price of the
        moves since :meth:`settle`."""
        return self.combined() + self.price()

    @property
    def is_balanced(self) -> bool:
        return self.extremes().is_balanced

    @property
    def fill(self) -> np.ndarray:
        """float64 (H,): the fraction of each host's capacity that is used. Of all resource classes,
        the class with the largest fraction counts."""
        hosts = len(self.guests)
        limits = np.maximum(self.problem.limits[:hosts], TOLERANCE)
        return (self.used[:hosts] / limits).max(axis=1, initial=0.0)

    def extremes(self, count: int = 3) -> Extremes:
        """Return the most and the least loaded hosts of each policy. The result is cached until the
        next move.

        :param count: number of hosts at each end
        """
        if count not in self._extremes:
            self._extremes[count] = Extremes(self.problem, self.scores, self.vm_host, count)
        return self._extremes[count]

    def delta(self, *moves: Move, model: Model | None = None) -> Delta:
        """Return the effect of moves, and whether the moves are allowed.

        :param moves: pairs (instances, destinations) of intp arrays that are broadcast to one
            common shape. One pair stands for single moves. Several pairs stand for chains: moves
            that are made together, such as the two moves of a swap. A chain has at most one move of
            each instance
        :param model: the model whose rules apply; by default the model of the state
        """
        return Delta(self, moves, model)
