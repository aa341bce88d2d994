"""The planner ``pack``, which frees as many hosts as the budget of moves permits. The problem is
vector bin packing in which moves have a price, as in BalCon (FGCS 2023). The *usable room* of a
host is the free amount of its scarcest resource. The scarcest resource is the one whose free amount
is smallest in relation to the needs of the instances that are still to be placed."""

from collections.abc import Iterator

import numpy as np

from kronos_nova.model import TOLERANCE
from kronos_nova.model import State
from kronos_nova.model import assignment
from kronos_nova.model.program import Program
from kronos_nova.model.space import SearchSpace
from kronos_nova.objects.plan import PACK
from kronos_nova.planners import order
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import SearchBudget
from kronos_nova.planners.base import Step
from kronos_nova.planners.bundle_swap import BundleSwaps
from kronos_nova.planners.ffd import FirstFitDecreasing
from kronos_nova.planners.packing import Packing

BALANCED = 30
"""Maximum number of attempts to find a host for one instance when hosts are emptied. Between two
attempts, other instances are swapped, which makes more of the free room usable. Raised, plans take
longer where hosts cannot be emptied; lowered, fewer hosts are emptied. Not measured."""
ROUNDS = ((0.01, 4), (0.002, 8), (0.0005, 12), (1e-5, 12), (0.0, 100))
"""Pairs of parameters (no unit) of a search that empties hosts: a price of a move and a number of
hosts. The pairs are used one after the other.

* Price of a move, as a fraction of a host's room. To make free room usable, two hosts exchange
  instances if the usable room grows by more than the price of the moves. The usable room of a host
  is the free amount of its scarcest resource. Raised, plans have fewer moves and empty fewer hosts;
  lowered, plans have more moves and empty more hosts.
* Number of hosts: after this many failures to empty a host, the search goes on with the next pair.
  Raised, plans take longer; lowered, plans empty fewer hosts.

Chosen with ``bench balcon``: without the last pair, plans for 3 of its 100 clusters empty one host
less."""
BUDGET = SearchBudget(pairs=(5000,), nodes=30, gap=1e-4, move_mb=4096.0)
"""Limits of the integer program that chooses the hosts to be emptied, in small clusters. The fixed
cost of a move counts in every search: of plans that empty equally many hosts, the one with the
lowest cost is chosen. A node takes some 40 ms. The gap is small because most of the value is the
number of freed hosts, and a small part the memory to copy. Not measured."""
EFFORT = 8e8
"""Maximum number of swaps that are rated for one plan that empties hosts. A swap exchanges two
bundles, and a bundle is several instances of one size on one host. Raised, plans for large clusters
take longer; lowered, plans for large clusters free fewer hosts. Chosen with ``bench balcon``: at
6e8, the plan for one of its 100 clusters empties one host less, and no plan takes more than 8 s."""
BY_MOVES = (1.0, 0.5, 0.0)
"""Weights, from 0 to 1, of the number of moves in the choice of the next host to empty. The rest, 1
minus the weight, is the weight of the memory to copy. One search is made with each of the three
weights. Raised, hosts with few instances are emptied first, which suits plans with few moves;
lowered, hosts with little memory to copy are emptied first. Not measured."""

RESTARTS = 120
"""Maximum number of further searches in small clusters, each of which empties the hosts in another
random order. They end earlier once a hundredth of :data:`EFFORT` is used up. Raised, plans for
small clusters take longer; lowered, they free fewer hosts or copy more memory. Chosen by ``bench
optimum``: with 40, two plans of 80 copy 11 % more memory than necessary; without, two plans free
one host less."""


class Pack:
    """A planner that empties one host after the other. Each instance goes to the host whose usable
    room the instance reduces least. The usable room of a host is the free amount of its scarcest
    resource: the one whose free amount is smallest in relation to the needs of the instances to be
    placed. If an instance fits on no host, full hosts swap instances until one of them has room.

    Several searches empty the hosts in different orders. The end state that frees the most hosts is
    chosen; of equal end states, the one with the lowest cost. The cost of a move is the memory of
    the instance plus the fixed cost in :data:`BUDGET`.
    """

    phase = PACK

    def plan(self, state: State, limits: Limits) -> list[Step]:
        if limits.budget < 1:
            return []
        space = SearchSpace(state, limits.budget)
        simple = FirstFitDecreasing().plan(state.copy(), limits)
        best = [(step.vm, step.destination) for step in simple]
        freed = _freed(state, best)
        needed = [(step.vm, step.destination) for step in simple if step.source in freed]
        best = best if freed and limits.permit(state, [vm for vm, _host in best]) else []
        ends = [needed, *search(space, limits)]
        best = _best_possible(state, ends, best, limits)
        if is_tight(space, limits) or not _has_freed_all_it_can(space, best):
            most = max(len(_freed(state, moves)) for moves in ends)
            best = _best_possible(state, [*_exact(state, limits, most)], best, limits)
        freed, names = _freed(state, best), state.problem.hosts
        return order.carry_out(best, state, lambda source: (
            f'{"empties" if source in freed else "makes room on"} {names[source]}'))


def _best_possible(state: State, ends: list[list[tuple[int, int]]],
                   best: list[tuple[int, int]], limits: Limits) -> list[tuple[int, int]]:
    """Return the moves to the best of the end states ``ends`` that can be reached, in a possible
    order; ``best`` if none of them is better.

    :param best: moves in a possible order
    """
    for moves in sorted(ends, key=lambda moves: _rate_moves(state, moves)):
        least = _rate_moves(state, best)
        if _rate_moves(state, moves) >= least or (best and limits.is_over):
            break
        ordering = order.Ordering(state, limits)
        if (ordering.do_all(moves) and _rate_moves(state, ordering.done) < least
                and limits.permit(state, [vm for vm, _host in ordering.done])):
            best = ordering.done
    return best


def is_tight(space: SearchSpace, limits: Limits) -> bool:
    """Return True if the budget permits moves of less than half of the instances; False
    otherwise."""
    return limits.budget < len(space.vms) // 2


def _has_freed_all_it_can(space: SearchSpace, moves: list[tuple[int, int]]) -> bool:
    """Return True if no plan frees more hosts than ``moves`` (see :func:`least_hosts`); False if
    there may be such a plan."""
    guests = space.state.guests[space.hosts]
    return (guests > 0).sum() - len(_freed(space.state, moves)) <= least_hosts(space)


def least_hosts(space: SearchSpace) -> int:
    """Return the number of hosts that the instances would need if they could be divided. No plan
    leaves fewer hosts in use."""
    held = (space.room - space.free).sum(axis=0)
    biggest = np.cumsum(-np.sort(-space.room, axis=0), axis=0)
    return int((biggest < held - TOLERANCE).sum(axis=0).max(initial=0)) + 1


def _exact(state: State, limits: Limits, freed: int) -> Iterator[list[tuple[int, int]]]:
    """Yield the moves to the best end state that an integer program finds. The best end state frees
    the most hosts; of equal end states, it has the lowest cost. Yield nothing if the cluster is too
    large or no end state is found.

    :param freed: number of hosts that a known plan frees
    """
    problem = state.problem
    hosts = np.flatnonzero(problem.available & (state.guests > 0))
    vms = np.flatnonzero(problem.movable)
    if not len(vms) or len(vms) * len(hosts) > BUDGET.most_pairs or limits.is_over:
        return
    quotas = limits.quotas
    together = assignment.Assignment(state, state.model, vms[:0], vms, hosts, by_weight=True,
                                     sets=None if quotas is None else quotas.of)
    program = Program(together, BUDGET.move_mb)
    program.keep_load_limits()
    program.limit_moves(limits.budget)
    if quotas is not None:
        program.limit_moves_of(quotas.of, quotas.left(state))
    most = np.sort(problem.memory_mb[vms] + BUDGET.move_mb)[-limits.budget:].sum() / program.unit
    program.reward_empty(together.here().sum(axis=0) == state.guests[hosts], float(most) + 1.0,
                         freed)
    solution = BUDGET.solve(program, limits)
    if solution is not None:
        yield sorted(together.ended(solution).moves, key=lambda move: -problem.memory_mb[move[0]])


def _rate_moves(state: State, moves: list[tuple[int, int]]) -> tuple[int, float]:
    """Return the rating of moves: (minus the number of freed hosts, cost of the moves in MiB). A
    smaller rating is better."""
    memory = state.problem.memory_mb
    return -len(_freed(state, moves)), sum(int(memory[vm]) + BUDGET.move_mb for vm, _ in moves)


def _freed(state: State, moves: list[tuple[int, int]]) -> set[int]:
    """Return the hosts that are empty after the moves and were not empty before."""
    guests = state.guests.copy()
    for vm, host in dict(moves).items():
        guests[state.vm_host[vm]] -= 1
        guests[host] += 1
    return set(np.flatnonzero((state.guests > 0) & (guests == 0)).tolist())


def search(space: SearchSpace, limits: Limits) -> list[list[tuple[int, int]]]:
    """Return end states that the budget permits, each as a list of moves. The order of each list is
    likely to be possible."""
    if not len(space.vms):
        return []
    found, rated, tight = [], 0, is_tight(space, limits)
    is_small = len(space.vms) * len(space.hosts) <= BUDGET.most_pairs
    restarts = RESTARTS if is_small and not tight else 0
    for number, (by_moves, factors) in enumerate(_costs(len(space.hosts), tight, restarts)):
        if number >= len(BY_MOVES) and rated >= EFFORT / 100:
            break
        emptying = Emptying(space, limits, by_moves, EFFORT - rated, factors)
        found += emptying.run()
        rated += emptying.rated
        if limits.is_past or emptying.has_freed_all_it_can and not tight and not restarts:
            break
    return found


def _costs(hosts: int, tight: bool, restarts: int) -> Iterator[tuple[float, np.ndarray]]:
    """Yield the parameters of the costs by which each search chooses the next host to empty: the
    weight of the number of moves (:data:`BY_MOVES`), and float64 (h,), a factor for each host.

    :param tight: whether the number of moves has to be small
    :param restarts: number of searches with random factors
    """
    for by_moves in BY_MOVES[::1 if tight else -1]:
        yield by_moves, np.ones(hosts)
    chance = np.random.default_rng(0)
    for _ in range(restarts):
        yield float(chance.choice(BY_MOVES)), chance.lognormal(size=hosts)


class Emptying:
    """One search that empties hosts until no further host can be emptied.

    keeps_balance : what happens when an attempt to empty a host fails. If true, the swaps of other
        instances that were made in the attempt are kept; if false, all changes of the attempt are
        undone
    rated : number of pairs of bundles rated so far; a bundle is several instances of one size
    """

    def __init__(self, space: SearchSpace, limits: Limits, by_moves: float, effort: float,
                 factors: np.ndarray):
        """:param factors: float64 (h,), factors of the cost by which the next host is chosen"""
        self.space, self.limits, self.effort, self.factors = space, limits, effort, factors
        self.packing = Packing(space)
        self.rated = 0
        quotas = limits.quotas
        self._set = None if quotas is None else quotas.of[space.vms]
        self._left = np.zeros(0) if quotas is None else np.maximum(quotas.left(space.state), 0)
        self.keeps_balance = False
        self.cost = by_moves + (1 - by_moves) * space.memory / max(space.memory.mean(), 1)

    def run(self) -> list[list[tuple[int, int]]]:
        """Empty hosts until no further host can be emptied. Return one list for each emptied host,
        with all moves made from the start of the search until this host was empty."""
        found = []
        for price, failures in ROUNDS:
            given_up: set[int] = set()
            while len(given_up) < failures and not self._is_over:
                host = self._next(given_up)
                if host is None:
                    break
                if self._empty(host, price * self.cost):
                    found.append(self._moves())
                else:
                    given_up.add(host)
            self.keeps_balance = self.limits.budget >= len(self.space.vms)
        return found

    @property
    def has_freed_all_it_can(self) -> bool:
        """True if no further host can be freed, because the instances would not fit on fewer hosts
        even if instances could be divided; False if a further host can perhaps be freed."""
        return self.packing.is_open.sum() <= least_hosts(self.space)

    @property
    def _is_over(self) -> bool:
        return self.rated >= self.effort or self.limits.is_over

    def _next(self, given_up: set[int]) -> int | None:
        """Return the host that costs least to empty; None if no host can be emptied. To empty a
        host, the budget must permit the moves, and the other hosts must have enough free room.

        :param given_up: hosts that could not be emptied before, which are left out
        """
        packing, count = self.packing, len(self.space.hosts)
        on = packing.place
        stays = ~packing.moved
        moves = np.bincount(on, weights=stays, minlength=count)
        cost = self.factors * np.bincount(on, weights=self.cost * stays, minlength=count)
        possible = packing.may_empty & packing.is_open
        possible &= packing.moved.sum() + moves <= self.limits.budget
        possible &= self._within_quotas(on, stays)
        possible[list(given_up)] = False
        held = np.zeros((count, packing.size.shape[1]))
        np.add.at(held, on, packing.size)
        room = np.maximum(packing.free[packing.is_open], 0).sum(axis=0)
        possible &= (held <= room - np.maximum(packing.free, 0) + TOLERANCE).all(axis=1)
        hosts = np.flatnonzero(possible)
        return int(hosts[np.argmin(cost[hosts])]) if len(hosts) else None

    def _empty(self, host: int, price: np.ndarray) -> bool:
        packing, before = self.packing, self.packing.copy()
        waiting = np.flatnonzero(packing.place == host)
        waiting = waiting[np.lexsort((waiting, -packing.size[waiting].max(axis=1, initial=0)))]
        for vm in waiting.tolist():
            packing.remove(vm)
        packing.is_open[host] = False
        if self._place_all(waiting.tolist(), price):
            packing.go_home()
            return True
        if self.keeps_balance:
            self._put_back(waiting, host)
        else:
            self.packing = before
        return False

    def _put_back(self, vms: np.ndarray, host: int) -> None:
        """Put the instances ``vms`` back on the host that could not be emptied. Keep the swaps of
        other instances that were made in the attempt."""
        packing = self.packing
        packing.is_open[host] = True
        for vm in vms:
            if packing.place[vm] >= 0:
                packing.remove(vm)
            packing.put(vm, host)

    def _place_all(self, waiting: list[int], price: np.ndarray) -> bool:
        for n, vm in enumerate(waiting):
            ratio = self.packing.size[waiting[n:]].sum(axis=0)
            ratio = np.maximum(ratio / ratio.max(initial=TOLERANCE), TOLERANCE)
            swaps = BundleSwaps(self.packing, ratio, price)
            placed = self._place(vm, swaps)
            self.rated += swaps.rated
            if not placed or self._has_too_many_moves or self._is_over:
                return False
        return True

    @property
    def _has_too_many_moves(self) -> bool:
        moved = self.packing.moved
        return moved.sum() > self.limits.budget or self._set is not None and bool(
            (np.bincount(self._set[moved], minlength=len(self._left)) > self._left).any())

    def _within_quotas(self, on: np.ndarray, stays: np.ndarray) -> np.ndarray:
        """Return bool (h,): true for hosts whose remaining instances may all be moved, by the
        limits of the moves of sets of instances.

        :param on: intp (v,), host of each instance
        :param stays: bool (v,), true for instances that are not moved yet
        """
        moves = np.zeros((len(self.space.hosts), len(self._left)))
        if self._set is not None:
            np.add.at(moves, (on[stays], self._set[stays]), 1.0)
            moves += np.bincount(self._set[~stays], minlength=len(self._left))
        return np.asarray((moves <= self._left).all(axis=1))

    def _place(self, vm: int, swaps: BundleSwaps) -> bool:
        """Put an instance on the host whose usable room the instance reduces least. The usable room
        of a host is the free amount of its scarcest resource: the one whose free amount is smallest
        in relation to the needs of the instances to be placed.

        If the instance fits on no host, make room for the instance by a swap. If no swap makes
        enough room, make the swap that adds the most usable room, and try again. Return True if the
        instance was put on a host; False otherwise.
        """
        for _ in range(BALANCED):
            if self._fit(vm, swaps) or swaps.admit(vm):
                return True
            if self._is_over or not swaps.balance():
                return False
        return False

    def _fit(self, vm: int, swaps: BundleSwaps) -> bool:
        """Put an instance on a host that has room for the instance. Return True if the instance was
        put on a host; False if no host has room.

        The original host of the instance is preferred, then the host whose usable room the instance
        reduces least (see :meth:`_place`). Of equal hosts, the fullest host is chosen.
        """
        packing = self.packing
        hosts = np.flatnonzero(packing.has_room(vm))
        if not len(hosts):
            return False
        home = self.space.home[vm]
        if home not in hosts:
            free = packing.free[hosts]
            lost = swaps.usable(free) - swaps.usable(free - packing.size[vm])
            home = hosts[np.lexsort((free.sum(axis=1), np.round(lost, 6)))[0]]
        packing.put(vm, int(home))
        return True

    def _moves(self) -> list[tuple[int, int]]:
        """Return the moves in an order that is likely to be possible. The moves off hosts that stay
        in use come first; then the moves off the emptied hosts. In each of these two groups, the
        largest instances come first."""
        packing, space = self.packing, self.space
        moved = np.flatnonzero(packing.moved)
        size = packing.size[moved].max(axis=1, initial=0)
        moved = moved[np.lexsort((moved, -size, ~packing.is_open[space.home[moved]]))]
        return [(int(space.vms[vm]), int(space.hosts[packing.place[vm]])) for vm in moved]
