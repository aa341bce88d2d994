"""What a search works on: the part of a problem that spread and pack may touch, as arrays."""

import numpy as np

from kronos_nova.constraints.base import Constraints
from kronos_nova.planners.base import Limits
from kronos_nova.simulation import TOLERANCE
from kronos_nova.simulation import State


class Arena:
    """Available hosts and the movable instances on them; h hosts, v instances, and c kinds of room
    that could run out within the budget: resource classes, and policies with a capacity threshold.

    hosts, vms : intp, their indexes in the problem
    home : intp (v,), where each instance is now
    scores, scale : float64 (h, P); weights : float64 (v, P)
    worst : float64 (P,), the imbalance above which a policy may not end
    room, free : float64 (h, c), of which is left; demands : float64 (v, c); unit : float64 (c,),
        the room of the biggest host
    group : intp (v,), the server group of an instance that is one, else -1
    residents : the instances on each host
    """

    def __init__(self, state: State, constraints: Constraints, limits: Limits):
        problem = state.problem
        self.state, self.constraints, self.problem = state, constraints, problem
        self.hosts = np.flatnonzero(problem.available)
        position = np.full(len(problem.hosts), -1)
        position[self.hosts] = np.arange(len(self.hosts))
        self.vms = np.flatnonzero(problem.movable & (position[state.vm_host] >= 0))
        self.home = position[state.vm_host[self.vms]]
        self.scores, self.scale = state.scores[self.hosts], problem.host_scale[self.hosts]
        self.weights, self.policy_weights = problem.weights[self.vms], problem.policy_weights
        self.memory = problem.memory_mb[self.vms]
        self.start = self.combined(self.scores)
        self.worst = np.maximum(state.imbalances(), problem.thresholds) + TOLERANCE
        self._take_resources(limits.budget)
        self._take_groups(position)
        order = np.argsort(self.home, kind='stable')
        self.residents = np.split(
            order, np.searchsorted(self.home[order], np.arange(1, len(self.hosts))))
        self._emptied = None
        self._permitted: dict[int, np.ndarray] = {}

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
        self._group_hosts = {}
        for n, group in enumerate(problem.groups):
            number[group.members] = n
            self._group_hosts[n] = position[self.state.vm_host[group.members]]
        self.group = number[self.vms]

    def permitted(self, vm: int) -> np.ndarray:
        """bool (h,): hosts that an instance may go to as far as no other move has a say in it.

        Asked of the constraints as if every host were empty, because a plan may make room.
        """
        if vm not in self._permitted:
            if self._emptied is None:
                self._emptied = _without_load(self.state)
            mask = self.constraints.mask(self._emptied, int(self.vms[vm]))[self.hosts]
            mask[self.home[vm]] = False
            if self.group[vm] >= 0:
                mask = mask & self._permitted_by_group(vm)
            self._permitted[vm] = mask
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

    def combined(self, scores: np.ndarray) -> np.ndarray:
        """float64 (...): combined imbalances of float64 (..., h, P)."""
        if not scores.shape[-2]:
            return np.zeros(scores.shape[:-2])
        return (scores.max(axis=-2) - scores.min(axis=-2)) @ self.policy_weights

    def is_legal(self, scores: np.ndarray, free: np.ndarray) -> np.ndarray:
        """bool (n,): whether an end state breaks no policy and no capacity.

        scores, free : float64 (n, h, P), (n, h, c)
        """
        legal = (scores.max(axis=1) - scores.min(axis=1) <= self.worst).all(axis=1)
        if free.shape[2]:
            legal &= (free >= self.floor).all(axis=(1, 2))
        return legal

    def plan_of(self, state: State) -> list[tuple[int, int]]:
        """Where instances are in another state, as a plan."""
        there = np.searchsorted(self.hosts, state.vm_host[self.vms])
        moved = np.flatnonzero(there != self.home)
        return [(int(vm), int(there[vm])) for vm in moved]

    def after(self, plans: list[list[tuple[int, int]]]) -> tuple[np.ndarray, np.ndarray]:
        """The end states of plans, each a list of (instance, destination)."""
        scores = np.repeat(self.scores[None], len(plans), axis=0)
        free = np.repeat(self.free[None], len(plans), axis=0)
        rows = np.repeat(np.arange(len(plans)), [len(plan) for plan in plans])
        moves = [move for plan in plans for move in plan]
        vms, hosts = np.array(moves, dtype=np.intp).reshape(-1, 2).T
        self.shift(scores, free, rows, vms, hosts)
        return scores, free

    def shift(self, scores, free, rows, vms, hosts, sign: int = 1) -> None:
        """Take instances from their homes to ``hosts`` in those rows of end states; with sign -1,
        back."""
        home = self.home[vms]
        for place, way in ((home, -sign), (hosts, sign)):
            np.add.at(scores, (rows, place), way * self.weights[vms] * self.scale[place])
            np.add.at(free, (rows, place), -way * self.demands[vms])


def _without_load(state: State) -> State:
    """The same placement on hosts that nothing fills. Server groups stay as they are."""
    empty = State(state.problem)
    empty.vm_host[:] = state.vm_host
    empty.used[:] = 0.0
    empty.scores[:] = 0.0
    empty.capacity_scores[:] = 0.0
    return empty
