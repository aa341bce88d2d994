"""What a search works on: the part of a problem that spread and pack may touch, as arrays."""

import functools

import numpy as np

from kronos_nova.constraints.base import Constraints
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import Prices
from kronos_nova.simulation import TOLERANCE
from kronos_nova.simulation import State

KINDS = 8


class Arena:
    """Available hosts and the movable instances on them; h hosts, v instances, and c kinds of room
    that could run out within the budget: resource classes, and policies with a capacity threshold.

    hosts, vms : intp, their indexes in the problem; after the hosts, rows may follow that stand for
        hosts which are not touched
    home : intp (v,), where each instance is now
    scores, scale : float64 (h, P); weights : float64 (v, P)
    worst : float64 (P,), the imbalance above which a policy may not end
    room, free : float64 (h, c), of which is left; demands : float64 (v, c); unit : float64 (c,),
        the room of the biggest host
    group : intp (v,), the server group of an instance that is one, else -1
    residents : the instances on each host
    """

    def __init__(self, state: State, constraints: Constraints, limits: Limits,
                 hosts: np.ndarray | None = None):
        """
        :param hosts: the available hosts that may be touched, sorted; None for all. The scores of
            the others still count
        """
        problem = state.problem
        self.state, self.constraints, self.problem = state, constraints, problem
        self.hosts = np.flatnonzero(problem.available) if hosts is None else hosts
        position = np.full(len(problem.hosts), -1)
        position[self.hosts] = np.arange(len(self.hosts))
        self.vms = np.flatnonzero(problem.movable & (position[state.vm_host] >= 0))
        self.home = position[state.vm_host[self.vms]]
        self.scores, self.scale = state.scores[self.hosts], problem.host_scale[self.hosts]
        self.weights, self.policy_weights = problem.weights[self.vms], problem.policy_weights
        self.memory = problem.memory_mb[self.vms]
        self.worst = np.maximum(state.imbalances(), problem.thresholds) + TOLERANCE
        self._take_resources(limits.budget)
        self._take_groups(position)
        self._take_prices(limits.prices, position)
        self.bystanders = self._take_bystanders()
        self.start = float(self.combined(self.scores[:, :, None])[0])
        self.by_home = np.argsort(self.home, kind='stable')
        self.first = np.searchsorted(self.home[self.by_home], np.arange(len(self.scores)))
        self.population = np.bincount(self.home, minlength=len(self.scores))
        self.residents = np.split(self.by_home, self.first[1:])
        self._permitted: dict[int, np.ndarray] = {}
        self._doors: dict[int, np.ndarray] = {}

    def _take_prices(self, prices: Prices, position: np.ndarray) -> None:
        self._vm_prices = np.zeros(len(self.vms)) if prices.vms is None else prices.vms[self.vms]
        self._pair_prices = {
            (int(position[source]), int(position[host])): price
            for (source, host), price in prices.pairs.items()
            if position[source] >= 0 and position[host] >= 0}

    def _take_bystanders(self) -> int:
        """Two rows for the hosts that are not touched, with the highest and the lowest score of
        each policy: nothing is on them and nothing may go there."""
        others = self.problem.available.copy()
        others[self.hosts] = False
        if not others.any():
            return 0
        scores = self.state.scores[others]
        self.scores = np.vstack([self.scores, scores.max(axis=0), scores.min(axis=0)])
        self.scale = np.vstack([self.scale, self.scale[:1], self.scale[:1]])
        self.free, self.floor = (np.pad(rows, ((0, 2), (0, 0)), constant_values=value)
                                 for rows, value in ((self.free, np.inf), (self.floor, 0.0)))
        return 2

    def _take_resources(self, budget: int) -> None:
        problem, hosts = self.problem, self.hosts
        capped = np.flatnonzero(np.isfinite(problem.capacity_thresholds))
        load = np.fmax(self.state.scores, self.state.capacity_scores)[np.ix_(hosts, capped)]
        headroom = (problem.capacity_thresholds[capped] - load) / self.scale[:, capped]
        free = np.hstack([(problem.limits - self.state.used)[hosts], headroom])
        size = np.hstack([problem.limits[hosts],
                          problem.capacity_thresholds[capped] / self.scale[:, capped]])
        demands = np.hstack([problem.demands[self.vms], self.weights[:, capped]])
        arriving = -np.sort(-demands, axis=0)[:budget].sum(axis=0)
        scarce = np.flatnonzero((free < arriving).any(axis=0))
        self.free, self.demands = free[:, scarce], demands[:, scarce]
        self.room = size[:, scarce]
        self.unit = np.maximum(self.room.max(axis=0, initial=0), TOLERANCE)
        self.floor = np.minimum(self.free, 0.0) - TOLERANCE

    def _take_groups(self, position: np.ndarray) -> None:
        """Nova lets an instance into one group only; a further one is left to the constraints."""
        problem = self.problem
        number = np.full(len(problem.vms), -1)
        self.group_limit = np.array([group.max_per_host for group in problem.groups], dtype=int)
        self._anti = np.array([group.anti for group in problem.groups], dtype=bool)
        self._group_size = np.array([len(group.members) for group in problem.groups], dtype=int)
        self._group_hosts = {}
        for n, group in enumerate(problem.groups):
            number[group.members] = n
            self._group_hosts[n] = position[self.state.vm_host[group.members]]
        self._member_group = np.repeat(np.arange(len(problem.groups)), self._group_size)
        self._member_host = np.concatenate(
            [np.empty(0, dtype=int), *self._group_hosts.values()])
        self.group = number[self.vms]

    @functools.cached_property
    def kinds(self) -> tuple[np.ndarray, np.ndarray]:
        """Hosts of about the same scale: (k, P) their scales and (h,) which host is which.

        At most :data:`KINDS`; where there are more, similar ones are taken for equal, which only
        makes the first look coarser.
        """
        digits = 6
        while True:
            rounded = np.round(np.log2(np.maximum(self.scale, 1e-6)) * 2 ** digits) / 2 ** digits
            kinds, number = np.unique(rounded, axis=0, return_inverse=True)
            if len(kinds) <= KINDS or digits < -3:
                return 2.0 ** kinds, number.reshape(-1)
            digits -= 1

    @functools.cached_property
    def _unloaded(self) -> State:
        return _without_load(self.state)

    def permitted(self, vm: int) -> np.ndarray:
        """bool (h,): hosts that an instance may go to as far as no other move has a say in it.

        Asked of the constraints as if every host were empty, because a plan may make room.
        """
        if vm not in self._permitted:
            mask = self.constraints.mask(self._unloaded, int(self.vms[vm]))[self.hosts]
            mask[self.home[vm]] = False
            if self.group[vm] >= 0:
                mask = mask & self._permitted_by_group(vm)
            self._permitted[vm] = np.pad(mask, (0, self.bystanders))
        return self._permitted[vm]

    def _permitted_by_group(self, vm: int) -> np.ndarray:
        group = self.problem.groups[self.group[vm]]
        count = np.zeros(len(self.hosts), dtype=int)
        inside = self._group_hosts[self.group[vm]]
        np.add.at(count, inside[inside >= 0], 1)
        count[self.home[vm]] -= 1
        if group.anti:
            return count < group.max_per_host
        return count == len(group.members) - 1

    def door(self, host: int) -> np.ndarray:
        """float64 (v,): the price of moving each instance to a host, inf where it may not go as far
        as no other move has a say in it; :meth:`permitted` the other way round."""
        if host not in self._doors:
            self._doors[host] = self._door(host)
        return self._doors[host]

    def _door(self, host: int) -> np.ndarray:
        every = np.arange(len(self.vms))
        if host >= len(self.hosts):
            return np.full(len(every), np.inf)
        column = self.constraints.column(self._unloaded, int(self.hosts[host]))[self.vms]
        grouped = np.flatnonzero(self.group >= 0)
        column[grouped] &= self._open_groups(host)[self.group[grouped]]
        return np.where(column, self.prices(every, np.full(len(every), host)), np.inf)

    def prices(self, vms: np.ndarray, hosts: np.ndarray) -> np.ndarray:
        """float64 (n,): what moving each instance from its home to each host costs."""
        prices = self._vm_prices[vms]
        if self._pair_prices:
            pairs = zip(self.home[vms].tolist(), hosts.tolist(), strict=True)
            prices = prices + [self._pair_prices.get(pair, 0.0) for pair in pairs]
        return prices

    def price_of(self, plan: list[tuple[int, int]]) -> float:
        vms, hosts = np.array(plan, dtype=np.intp).reshape(-1, 2).T
        return float(self.prices(vms, hosts).sum())

    def _open_groups(self, host: int) -> np.ndarray:
        """bool (groups,): whether one more member, from another host, may go to a host."""
        here = np.bincount(self._member_group[self._member_host == host],
                           minlength=len(self.group_limit))
        return np.where(self._anti, here < self.group_limit, here == self._group_size - 1)

    def combined(self, scores: np.ndarray) -> np.ndarray:
        """float64 (n,): combined imbalances of float64 (h, P, n)."""
        if not len(scores):
            return np.zeros(scores.shape[-1])
        return self.policy_weights @ (scores.max(axis=0) - scores.min(axis=0))

    def is_legal(self, top: np.ndarray, bottom: np.ndarray, free: np.ndarray) -> np.ndarray:
        """bool (n,): whether an end state breaks no policy and no capacity.

        top, bottom : float64 (P, n), the ends of the scores; free : float64 (h, c, n)
        """
        legal = (top - bottom <= self.worst[:, None]).all(axis=0)
        if free.shape[1]:
            legal &= (free >= self.floor[:, :, None]).all(axis=(0, 1))
        return legal

    def plan_of(self, state: State) -> list[tuple[int, int]]:
        """Where instances are in another state, as a plan."""
        there = np.searchsorted(self.hosts, state.vm_host[self.vms])
        moved = np.flatnonzero(there != self.home)
        return [(int(vm), int(there[vm])) for vm in moved]

    def after(self, plans: list[list[tuple[int, int]]]) -> tuple[np.ndarray, np.ndarray]:
        """The end states of plans, each a list of (instance, destination): scores (h, P, n) and
        free (h, c, n)."""
        scores = np.repeat(self.scores[:, :, None], len(plans), axis=2)
        free = np.repeat(self.free[:, :, None], len(plans), axis=2)
        columns = np.repeat(np.arange(len(plans)), [len(plan) for plan in plans])
        moves = [move for plan in plans for move in plan]
        vms, hosts = np.array(moves, dtype=np.intp).reshape(-1, 2).T
        self.shift(scores, free, columns, vms, hosts)
        return scores, free

    def shift(self, scores, free, columns, vms, hosts, sign: int = 1) -> None:
        """Take instances from their homes to ``hosts`` in those columns of end states; with sign
        -1, back."""
        home = self.home[vms]
        for place, way in ((home, -sign), (hosts, sign)):
            np.add.at(scores.transpose(0, 2, 1), (place, columns),
                      way * self.weights[vms] * self.scale[place])
            np.add.at(free.transpose(0, 2, 1), (place, columns), -way * self.demands[vms])


def _without_load(state: State) -> State:
    """The same placement on hosts that nothing fills. Server groups stay as they are."""
    empty = State(state.problem)
    empty.vm_host[:] = state.vm_host
    empty.used[:] = 0.0
    empty.scores[:] = 0.0
    empty.capacity_scores[:] = 0.0
    return empty
