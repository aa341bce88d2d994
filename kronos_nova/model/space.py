"""The part of a model on which the search for a plan works. This part consists of small arrays, so
that a few array operations rate many assignments of instances to hosts.

The arrays contain the effects of single moves, the prices of moves (costs in units of combined
imbalance), and the sums of free resources. The search ignores shared providers, the order of moves,
and rules that are not additive. These rules are checked afterwards: :meth:`State.delta` evaluates
all rules when the order of the plan's moves is searched.
"""

import functools
from collections.abc import Sequence

import numpy as np

from kronos_nova.model import spans
from kronos_nova.model.arrays import Index
from kronos_nova.model.problem import TOLERANCE
from kronos_nova.model.rules import CallbackRule
from kronos_nova.model.rules import GroupPolicy
from kronos_nova.model.state import State

KINDS = 8
"""Maximum number of host sizes that a search distinguishes. If hosts have more sizes, similar sizes
count as equal. The search has a matrix for each size. Raised, a search takes more memory and time;
lowered, more hosts of different sizes are rated as if they had equal sizes. Chosen because clouds
have few kinds of hosts."""
ROWS = 256
"""Number of instances for which one call computes the prices of moves. The price of a move is its
cost in units of combined imbalance. Raised, a call takes more memory; lowered, more calls are made,
each with the overhead of numpy. Not measured."""
NOWHERE = -1
"""Value (no unit) that marks an instance on no host. The value stands in place of the index of a
host. Fixed: no index is negative."""
NEVER = np.float32(1e30)
"""Price of a forbidden move, in combined imbalance. Fixed: more than any other price, and finite,
so that differences and products of such prices are numbers."""


class SearchSpace:
    """The available hosts that a search may use, and the movable instances on these hosts. There
    are h hosts and v instances. There are c kinds of room, such as a resource class or a load
    limit. A kind of room is left out if no plan can use it up: on each host, it is enough for the
    arrivals of as many instances as a plan may move.

    The items of the space are the instances, followed by a dummy item for each host. A dummy item
    stands for no instance, and has no load and no size. A swap with a dummy item is a move of one
    instance.

    Arrays with a row for each host may have further rows at the end. The further rows stand for the
    available hosts that the search may not use.

    hosts : intp, indexes of the hosts in the problem
    vms : intp (v,), indexes of the instances in the problem
    home : intp (v,), host of each instance before the plan, as a position in ``hosts``
    scores : float64 (h, P), score of each host
    scale : float64 (h, P), score that a load of 1 causes on each host
    weights : float64 (v + h, P), loads of the items
    worst : float64 (P,), highest imbalance that each policy may have after a plan
    is_free : True if every instance may go to every host, and no move has a price
    room : float64 (h, c), total room of each host, without further rows
    free : float64 (h, c), free room of each host
    sizes : float64 (v + h, c), room that each item needs
    unit : float64 (c,), total room of the largest host
    """

    free: np.ndarray
    sizes: np.ndarray

    def __init__(self, state: State, budget: int, hosts: np.ndarray | None = None):
        """
        :param budget: maximum number of moves of a plan
        :param hosts: indexes of the available hosts that the search may use, sorted; None for all.
            The imbalances include the other available hosts as well
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
        self._set_room(budget)
        self.spacing = [rule for rule in self.model.rules if isinstance(rule, GroupPolicy)]
        together = [rule.together_only(self.model.memberships) for rule in self.spacing]
        self._forbidding = [
            rule for rule in self.model.rules
            if not (hasattr(rule, 'linear') and rule.is_additive
                    or isinstance(rule, (CallbackRule, GroupPolicy)))]
        self._forbidding += [rule for rule in together if rule.forbids.any()]
        self.is_free = self.model.prices.are_free and not self._forbidding
        self._known: dict[tuple[GroupPolicy, int], tuple | None] = {}
        self.untouched = self._add_untouched()
        self.weights, self.sizes = (np.pad(rows, ((0, len(self.scores)), (0, 0)))
                                    for rows in (self.weights, self.sizes))
        self._rows: dict[int, np.ndarray] = {}

    def _set_room(self, budget: int) -> None:
        """Set ``room``, ``free``, ``sizes`` and ``unit``: the arrays about the kinds of room that
        rules limit. A kind of room is left out if, on each host, the free room is enough for the
        arrivals of any ``budget`` instances."""
        parts = [rule.linear(self.state, self.hosts, self.vms) for rule in self.model.rules
                 if hasattr(rule, 'linear') and not getattr(rule, 'is_passing', False)]
        none = [(np.zeros((len(self.hosts), 0)), np.zeros((len(self.hosts), 0)),
                    np.zeros((len(self.vms), 0)))]
        free, room, demands = (np.hstack(kind) for kind in zip(*(parts or none), strict=True))
        arriving = -np.sort(-demands, axis=0)[:budget].sum(axis=0)
        scarce = np.flatnonzero((free < arriving).any(axis=0))
        self.free, self.sizes, self.room = free[:, scarce], demands[:, scarce], room[:, scarce]
        self.unit = np.maximum(self.room.max(axis=0, initial=0), TOLERANCE)
        self.floor = np.minimum(self.free, 0.0) - TOLERANCE

    def _add_untouched(self) -> int:
        """Add rows to ``scores`` and other arrays, so that the imbalances include the available
        hosts that the search may not use. Return the number of added rows.

        One row has the highest score of these hosts in each policy; another row has the lowest
        score. A policy may leave out its n most loaded and n least loaded hosts. In this case, the
        n next highest scores and the n next lowest scores are added as well. The added rows have no
        instances and take no instances.
        """
        others = self.problem.available.copy()
        others[self.hosts] = False
        if not others.any():
            return 0
        scores = self.state.scores[others]
        ends = np.stack([scores.max(axis=0), scores.min(axis=0)])
        if self.problem.left_out is not None:
            ends, each = np.sort(scores, axis=0), 1 + int(self.problem.left_out.max())
            if len(ends) > 2 * each:
                ends = np.delete(ends, slice(each, len(ends) - each), axis=0)
        more = len(ends)
        self.scores = np.vstack([self.scores, ends])
        self.scale = np.vstack([self.scale, np.repeat(self.scale[:1], more, axis=0)])
        self.free, self.floor = (np.pad(rows, ((0, more), (0, 0)), constant_values=value)
                                 for rows, value in ((self.free, np.inf), (self.floor, 0.0)))
        return more

    def imbalances(self, scores: np.ndarray) -> np.ndarray:
        """Return float64 (n, P): the imbalance of each policy in each of n assignments.

        :param scores: float64 (n, P, h), scores of the hosts in each assignment
        """
        return spans.imbalances(scores, self.problem.left_out)

    @functools.cached_property
    def kinds(self) -> tuple[np.ndarray, np.ndarray]:
        """The k distinct scales of h hosts: float64 (k, P), the scales; and intp (h,), index of
        each host's scale. A scale is the score that a load of 1 causes on a host, for each policy.

        Similar scales are merged, so that there are at most :data:`KINDS`. A search uses the merged
        scales only to choose swaps.
        """
        digits = 6
        while True:
            rounded = np.round(np.log2(np.maximum(self.scale, 1e-6)) * 2 ** digits) / 2 ** digits
            kinds, number = np.unique(rounded, axis=0, return_inverse=True)
            if len(kinds) <= KINDS or digits < -3:
                return 2.0 ** kinds, number.reshape(-1)
            digits -= 1

    def row(self, vm: int) -> np.ndarray:
        """Return float64 (h,): the price of moving an instance to each host, in units of combined
        imbalance. The price is 0 for the original host, and inf for hosts to which the instance may
        not go. Room is not considered, because a plan may make room."""
        if vm not in self._rows:
            self._rows[vm] = self._table(np.array([vm]))[0]
        return self._rows[vm]

    @functools.cached_property
    def prices_at(self) -> np.ndarray | None:
        """float32 (v + h, h): the prices of moving each item from its original host to each host;
        None if all moves are allowed and free. The price is :data:`NEVER` if an instance may not go
        to a host, and 0 for dummy items, which stand for no instance."""
        if self.is_free:
            return None
        table = np.zeros((len(self.vms) + len(self.scores), len(self.scores)), dtype=np.float32)
        table[:len(self.vms), len(self.hosts):] = NEVER
        table[self.priced] = self._priced_rows
        return table

    @functools.cached_property
    def _priced_rows(self) -> np.ndarray:
        """float32 (n, h): the prices of moving the instances in ``priced`` to each host."""
        rows = np.empty((len(self.priced), len(self.scores)), dtype=np.float32)
        for start in range(0, len(rows), ROWS):
            part = slice(start, start + ROWS)
            np.minimum(self._table(self.priced[part]), NEVER, out=rows[part], casting='same_kind')
        return rows

    @functools.cached_property
    def priced(self) -> np.ndarray:
        """intp: indices of the instances whose moves can have a price, and of the instances to
        which some host is forbidden."""
        found = self.model.prices.charges(self.vms, self.hosts)
        for rule in self._forbidding:
            found |= rule.narrows(self.vms, self.hosts)
        return np.flatnonzero(found)

    @functools.cached_property
    def price_rows(self) -> 'PriceRows | None':
        """The prices of moving each instance to each host, as PriceRows; None if all moves are
        allowed and free."""
        return None if self.is_free else PriceRows(
            self._priced_rows[:, :len(self.hosts)], self.priced, len(self.vms))

    def price_change(self, items: Index, sources: Index,
                     hosts: Index) -> np.ndarray | np.float32:
        """Return the change of a plan's price if items go to ``hosts`` instead of ``sources``:
        float32, in the common shape of the three arguments after broadcasting. Items are instances,
        or dummy items, which have no price."""
        if self.prices_at is None:
            return np.float32(0)
        # One flat index is many times faster than two.
        prices = self.prices_at.reshape(-1)
        first = np.asarray(items, dtype=np.intp) * len(self.scores)
        return prices.take(first + hosts) - prices.take(first + sources)

    def _table(self, vms: np.ndarray) -> np.ndarray:
        moves = self.vms[vms][:, None], self.hosts
        prices = self.state.delta(moves).price
        for rule in self._forbidding:
            np.copyto(prices, np.inf, where=~rule.allows(self.state, *moves))
        prices[np.arange(len(vms)), self.home[vms]] = 0.0
        return np.pad(prices, ((0, 0), (0, self.untouched)), constant_values=np.inf)

    def price_of(self, plan: Sequence[tuple[int, int]]) -> float:
        """Return the sum of the prices of all moves of a plan."""
        if self.model.prices.are_free:
            return 0.0
        vms, hosts = np.array(plan, dtype=np.intp).reshape(-1, 2).T
        return float(self.state.delta((self.vms[vms], self.hosts[hosts])).price.sum())

    def is_legal(self, imbalances: np.ndarray, free: np.ndarray) -> np.ndarray:
        """Return bool (n,), one value for each of n end states: true if every imbalance is at most
        ``worst``, and every host has enough room. A host that lacks room now must not lack more
        room than now.

        :param imbalances: float64 (n, P), imbalance of each policy in each end state
        :param free: float64 (n, c, h), free room of each host in each end state
        """
        legal = (imbalances <= self.worst).all(axis=1)
        return legal & (free >= self.floor.T).all(axis=(1, 2))

    def keeps_apart(self, vm: int, host: int, place: np.ndarray) -> bool:
        """Return True if all anti-affinity groups of an instance allow the instance on a host;
        False otherwise. A dummy item is always allowed.

        :param vm: position of an instance, or of a dummy item
        :param place: intp, host of every instance; -1 for an instance on no host. Elements after
            the first v are ignored
        """
        return vm >= len(self.vms) or bool(self._apart(vm, np.array([host]), place)[0])

    def allows_host(self, vm: int, place: np.ndarray) -> np.ndarray:
        """Return bool (h,): true for hosts on which all rules except the rules about room allow an
        instance. Members of an anti-affinity group may be together before the plan. Therefore the
        group also allows the original host of an instance if no more of the other members are there
        than before the plan. If the group keeps members in separate failure domains, all members in
        the failure domain of the host are counted.

        :param place: intp, host of every instance; -1 for an instance on no host. Elements after
            the first v are ignored
        """
        allowed = (np.arange(len(self.scores)) < len(self.hosts) if self.is_free
                   else np.isfinite(self.row(vm)))
        return allowed & self._apart(vm, np.arange(len(allowed)), place)

    def _apart(self, vm: int, hosts: np.ndarray, place: np.ndarray) -> np.ndarray:
        apart = np.ones(len(hosts), dtype=bool)
        for members, room, where in self._spacings(vm):
            there = where[hosts]
            others = np.bincount(where[place[members]] + 1, minlength=len(room) + 1)[1:]
            others = others[there] - (where[place[vm]] == there)
            before = np.count_nonzero(where[self.home[members]] == where[self.home[vm]])
            apart &= (others < room[there]) | ((there == where[self.home[vm]]) & (others < before))
        return apart

    def are_apart(self, place: np.ndarray) -> bool:
        """Return True if all anti-affinity groups allow the moved instances on their new hosts;
        False otherwise.

        :param place: intp, host of every instance; -1 for an instance on no host. Elements after
            the first v are ignored
        """
        return all(self.keeps_apart(int(vm), int(place[vm]), place)
                   for vm in np.flatnonzero(place[:len(self.vms)] != self.home))

    def conflicts(self, vm: int) -> frozenset[int]:
        """Return the other instances of the space from which some group keeps the instance
        apart."""
        return frozenset(other for members, _room, _where in self._spacings(vm)
                         for other in members.tolist()) - {vm}

    def _spacings(self, vm: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Return a tuple for each anti-affinity group of the instance ``vm``. A place is a host or
        a failure domain. Each tuple has three arrays:

        * intp, the members of the group in this search space
        * intp, the maximum number of these members in each place
        * intp (h + 1,), the place of each host. The last entry is -1, the place of an instance on
          no host.
        """
        return [found for rule in self.spacing
                for group in self.model.memberships.groups_of(self.vms[vm]).tolist()
                if (found := self._members_apart(rule, group))]

    def _members_apart(self, rule: GroupPolicy,
                       group: int) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        if (rule, group) not in self._known:
            every, room = self.model.memberships, rule.room(self.state, group, self.hosts)
            if room is None:
                self._known[rule, group] = None
                return None
            members = np.flatnonzero(np.isin(self.vms, every.members[every.member_of == group]))
            _places, first, where = np.unique(
                every.place(np.full(len(self.hosts), group), self.hosts), return_index=True,
                return_inverse=True)
            room = room[first] + np.bincount(where[self.home[members]], minlength=len(first))
            more = len(first) + np.arange(self.untouched)
            self._known[rule, group] = (members, np.pad(room, (0, self.untouched)),
                                        np.concatenate([where, more, [NOWHERE]]))
        return self._known[rule, group]

    def after(self,
              plans: Sequence[Sequence[tuple[int, int]]]) -> tuple[np.ndarray, np.ndarray]:
        """Return the end states of n plans as two arrays: scores (n, P, h) and free room (n, c, h),
        for h hosts and c kinds of room.

        :param plans: plans, each a list of (instance, destination)
        """
        scores, free = (np.tile(now.T, (len(plans), 1, 1)) for now in (self.scores, self.free))
        number = np.repeat(np.arange(len(plans)), [len(plan) for plan in plans])
        moves = [move for plan in plans for move in plan]
        vms, hosts = np.array(moves, dtype=np.intp).reshape(-1, 2).T
        self.shift(scores, free, number, vms, self.home[vms], hosts)
        return scores, free

    def shift(self, scores: np.ndarray, free: np.ndarray, number: np.ndarray, items: np.ndarray,
              sources: np.ndarray, hosts: np.ndarray) -> None:
        """Update ``scores`` and ``free`` for moves of items from ``sources`` to ``hosts``. An item
        is an instance, or a dummy item without load and size.

        :param scores: float64 (n, P, h), scores of the hosts in n states
        :param free: float64 (n, c, h), free room of the hosts in n states
        :param number: intp, for each move, the position of the state in which the item is moved
        """
        for place, way in ((sources, -1), (hosts, 1)):
            np.add.at(scores.transpose(0, 2, 1), (number, place),
                      way * self.weights[items] * self.scale[place])
            np.add.at(free.transpose(0, 2, 1), (number, place), -way * self.sizes[items])


class PriceRows:
    """Prices of moving each of v instances from its original host to each of h hosts. To save
    memory, all instances whose moves have no price share one row.

    rows : float32 (r, h), r rows of prices: one for each instance that may have a price. The last
        row is 0, for all instances without prices
    row : intp (v,), row of each instance in ``rows``
    columns : float32 (h, r), the transpose of ``rows``
    """

    def __init__(self, rows: np.ndarray, priced: np.ndarray, count: int):
        """
        :param rows: float32 (n, h), prices of the instances that may have a price
        :param priced: intp (n,), the instances of ``rows``
        :param count: number of all instances, v
        """
        self.row = np.full(count, len(priced))
        self.row[priced] = np.arange(len(priced))
        self.rows = np.vstack([rows, np.zeros_like(rows, shape=rows.shape[1:])])
        self.columns = np.ascontiguousarray(self.rows.T)
        self._is_priced = self.row < len(priced)
        self._is_charging = np.asarray(self.rows.any(axis=0))

    def price_of(self, vm: Index, host: Index) -> np.ndarray | np.float32:
        """Return the price of moving an instance from its original host to ``host``. Arguments may
        be arrays of one shape."""
        return self.rows[self.row[vm], host]

    def add(self, total: np.ndarray, vms: np.ndarray, hosts: Index) -> None:
        """Add the prices of moves to ``total``. If ``hosts`` is one host, the price of moving each
        instance to this host is added. If ``hosts`` is an array, the price of moving each instance
        to each host of the array is added.

        :param total: float64 (m,) if ``hosts`` is one host; float64 (n, m) if ``hosts`` is an array
        :param vms: intp (m,) if ``hosts`` is one host; intp (n, 1) if ``hosts`` is an array
        :param hosts: one host, or intp (m,)
        """
        if isinstance(hosts, int):
            if self._is_charging[hosts]:
                total += self.columns[hosts].take(self.row.take(vms))
            return
        charged = np.flatnonzero(self._is_priced[vms[:, 0]])
        if len(charged):
            total[charged] += self.rows[self.row[vms[charged, 0]]].take(hosts, axis=1)
