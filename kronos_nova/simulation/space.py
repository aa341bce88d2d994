"""The part of a model that a search may touch, so small and so flat that whole searches fit into a
few array operations.

It knows what single moves cost and where they lead, and room as sums. What it leaves out — rooms
that hosts share, rules that have to be tried out, the order of moves — is decided by
:meth:`State.delta` when a plan is ordered.
"""

import functools

import numpy as np

from kronos_nova.simulation.problem import TOLERANCE
from kronos_nova.simulation.rules import Opaque
from kronos_nova.simulation.rules import Spacing
from kronos_nova.simulation.state import State

KINDS = 8
"""So many scales of hosts are told apart at first sight. Clouds have few kinds of hosts, and each
kind costs a matrix of its own."""


class SearchSpace:
    """Available hosts and the movable instances on them; h hosts, v instances, and c kinds of room
    that could run out within the budget.

    hosts, vms : intp, their indexes in the problem; after the hosts, rows may follow that stand for
        hosts which are not touched
    home : intp (v,), where each instance is now
    scores, scale : float64 (h, P); weights : float64 (v, P)
    worst : float64 (P,), the imbalance above which a policy may not end
    room, free : float64 (h, c), of which is left; sizes : float64 (v, c); unit : float64 (c,),
        the room of the biggest host
    residents : the instances on each host
    """

    def __init__(self, state: State, budget: int, hosts: np.ndarray | None = None):
        """
        :param hosts: the available hosts that may be touched, sorted; None for all. The scores of
            the others still count
        """
        problem = state.problem
        self.state, self.model, self.problem = state, state.model, problem
        self.hosts = np.flatnonzero(problem.available) if hosts is None else hosts
        position = np.full(len(problem.hosts), -1)
        position[self.hosts] = np.arange(len(self.hosts))
        self.vms = np.flatnonzero(problem.movable & (position[state.vm_host] >= 0))
        self.home = position[state.vm_host[self.vms]]
        self.scores, self.scale = state.scores[self.hosts], problem.host_scale[self.hosts]
        self.weights, self.policy_weights = problem.weights[self.vms], problem.policy_weights
        self.memory = problem.memory_mb[self.vms]
        self.worst = np.maximum(state.imbalances(), problem.thresholds) + TOLERANCE
        self._take_room(budget)
        self._take_groups()
        self.untouched = self._take_untouched()
        self.start = float(self.combined(self.scores[:, :, None])[0])
        self.by_home = np.argsort(self.home, kind='stable')
        self.first = np.searchsorted(self.home[self.by_home], np.arange(len(self.scores)))
        self.population = np.bincount(self.home, minlength=len(self.scores))
        self.residents = np.split(self.by_home, self.first[1:])
        self._rows: dict[int, np.ndarray] = {}
        self._columns: dict[int, np.ndarray] = {}

    def _take_room(self, budget: int) -> None:
        """Room of the rules that add up from what an instance needs on one host."""
        parts = [rule.linear(self.state, self.hosts, self.vms) for rule in self.model.rules
                 if hasattr(rule, 'linear') and not getattr(rule, 'is_passing', False)]
        nothing = [(np.zeros((len(self.hosts), 0)), np.zeros((len(self.hosts), 0)),
                    np.zeros((len(self.vms), 0)))]
        free, room, demands = (np.hstack(kind) for kind in zip(*(parts or nothing), strict=True))
        arriving = -np.sort(-demands, axis=0)[:budget].sum(axis=0)
        scarce = np.flatnonzero((free < arriving).any(axis=0))
        self.free, self.sizes, self.room = free[:, scarce], demands[:, scarce], room[:, scarce]
        self.unit = np.maximum(self.room.max(axis=0, initial=0), TOLERANCE)
        self.floor = np.minimum(self.free, 0.0) - TOLERANCE

    def _take_groups(self) -> None:
        """The first group of each instance that the rules are about: Nova lets an instance into one
        only; a further one is left to the order."""
        members = self.model.memberships
        rules = [rule.forbids for rule in self.model.rules if isinstance(rule, Spacing)]
        counted = np.logical_or.reduce([np.zeros(len(members.groups), dtype=bool), *rules])
        self._group = np.full(len(self.vms), -1)
        self._members_of: dict[int, np.ndarray] = {}
        position, groups = members.expand(self.vms)
        wanted = counted[groups] & members.anti[groups]
        self._group[position[wanted][::-1]] = groups[wanted][::-1]

    def _members(self, group: int) -> np.ndarray:
        """intp: the instances of the space in a group."""
        if group not in self._members_of:
            self._members_of[group] = np.flatnonzero(self._group == group)
        return self._members_of[group]

    def _take_untouched(self) -> int:
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

    def permitted(self, vm: int) -> np.ndarray:
        """bool (h,): hosts that an instance may go to; room aside, because a plan may make it."""
        return np.isfinite(self.row(vm))

    def row(self, vm: int) -> np.ndarray:
        """float64 (h,): the price of moving an instance to each host, inf where it may not go, room
        aside. :meth:`column` the other way round."""
        if vm not in self._rows:
            prices = self._prices(self.vms[vm], self.hosts)
            prices[self.home[vm]] = np.inf
            self._rows[vm] = np.pad(prices, (0, self.untouched), constant_values=np.inf)
        return self._rows[vm]

    def column(self, host: int) -> np.ndarray:
        """float64 (v,): the price of moving each instance to a host, inf where it may not go, room
        aside."""
        if host not in self._columns:
            if host >= len(self.hosts):
                self._columns[host] = np.full(len(self.vms), np.inf)
            else:
                self._columns[host] = self._prices(self.vms, self.hosts[host])
        return self._columns[host]

    def _prices(self, vms, hosts) -> np.ndarray:
        delta = self.state.delta((vms, hosts))
        permitted = np.ones(delta.shape, dtype=bool)
        for rule in self.model.rules:
            if not (hasattr(rule, 'linear') or isinstance(rule, Opaque)):
                permitted &= rule.permits(self.state, *delta.moves[0])
        return np.where(permitted, delta.price, np.inf)

    def prices(self, vms: np.ndarray, hosts: np.ndarray) -> np.ndarray:
        """float64 (n,): what moving each instance from its home to each host costs."""
        if self.model.prices.are_free:
            return np.zeros(len(vms))
        prices = self.state.delta((self.vms[vms], self.hosts[np.minimum(
            hosts, len(self.hosts) - 1)])).price
        return np.where(self.home[vms] == hosts, 0.0, prices)

    def price_of(self, plan: list[tuple[int, int]]) -> float:
        vms, hosts = np.array(plan, dtype=np.intp).reshape(-1, 2).T
        return float(self.prices(vms, hosts).sum())

    def combined(self, scores: np.ndarray) -> np.ndarray:
        """float64 (n,): combined imbalances of float64 (h, P, n)."""
        if not len(scores):
            return np.zeros(scores.shape[-1])
        return self.policy_weights @ (scores.max(axis=0) - scores.min(axis=0))

    def is_legal(self, top: np.ndarray, bottom: np.ndarray, free: np.ndarray) -> np.ndarray:
        """bool (n,): whether an end state breaks no policy and no room.

        top, bottom : float64 (P, n), the ends of the scores; free : float64 (h, c, n)
        """
        legal = (top - bottom <= self.worst[:, None]).all(axis=0)
        if free.shape[1]:
            legal &= (free >= self.floor[:, :, None]).all(axis=(0, 1))
        return legal

    def meets(self, vms: np.ndarray, hosts: np.ndarray, moves: np.ndarray) -> np.ndarray:
        """bool (n,): whether an instance may not go to a host because of what else moves there.

        :param moves: intp (n, length, 2), (instance, host) of the other moves, -1 for none
        """
        group = self._group[vms]
        result = np.zeros(len(vms), dtype=bool)
        some = np.flatnonzero(group >= 0)
        if not len(some) or not moves.shape[1]:
            return result
        group, host, moves = group[some], hosts[some], moves[some]
        same = (moves[:, :, 0] >= 0) & (self._group[moves[:, :, 0]] == group[:, None])
        more = (same & (moves[:, :, 1] == host[:, None])).sum(axis=1)
        more -= (same & (self.home[moves[:, :, 0]] == host[:, None])).sum(axis=1)
        inside = self.state.groups.on(group, self.hosts[host])
        result[some] = (more > 0) & (inside + more >= self.model.memberships.most[group])
        return result

    def is_met(self, vm: int, host: int, place: np.ndarray, leaving: tuple[int, ...] = ()) -> bool:
        """Whether an instance may not go to a host because of what else is there.

        :param place: intp (v or more,), where every instance is now
        :param leaving: instances that are not there any more
        """
        group = self._group[vm] if vm < len(self.vms) else -1
        if group < 0 or self.home[vm] == host:
            return False
        same = self._members(group)
        same = same[~np.isin(same, (vm, *leaving))]
        more = (place[same] == host).sum() - (self.home[same] == host).sum()
        inside = int(self.state.groups.on(np.array([group]), self.hosts[[host]])[0])
        return bool(more > 0 and inside + more >= self.model.memberships.most[group])

    def lets_in(self, vm: int, place: np.ndarray) -> np.ndarray:
        """bool (h,): hosts that an instance may go to, and its home, given where all others are;
        room aside.

        :param place: intp (v,), -1 for instances that are nowhere
        """
        allowed = self.permitted(vm).copy()
        allowed[self.home[vm]] = True
        group = self._group[vm]
        if group >= 0:
            same = self._members(group)
            inside = self.state.groups.on(np.full(len(self.hosts), group), self.hosts)
            np.add.at(inside, self.home[same], -1)
            same = same[(place[same] >= 0) & (same != vm)]
            np.add.at(inside, place[same], 1)
            allowed[:len(inside)] &= inside < self.model.memberships.most[group]
        return allowed

    def are_related(self, vm: int, others: list[int]) -> bool:
        """Whether an instance may have to keep away from one of the others."""
        return self._group[vm] >= 0 and any(self._group[vm] == self._group[other]
                                            for other in others)

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
            np.add.at(free.transpose(0, 2, 1), (place, columns), -way * self.sizes[vms])
