"""From a set of moves to steps: an order that is possible, and what depends on what."""

import dataclasses
from collections.abc import Callable
from collections.abc import Sequence

import numpy as np

from kronos_nova.constraints.base import Constraints
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import Step
from kronos_nova.planners.outcome import Teller
from kronos_nova.simulation import TOLERANCE
from kronos_nova.simulation import State

PLACES = 3
"""Hosts that are tried to put an instance aside on."""


@dataclasses.dataclass(frozen=True, slots=True)
class Hop:
    """One live migration; ``is_parking`` if the instance moves on later."""

    vm: int
    source: int
    destination: int
    is_parking: bool = False


class Ceiling:
    """No host passes the ceiling in any policy, unless it already was above when planning began:
    then it may not pass where it was."""

    reason = 'threshold'
    idle = False

    def __init__(self, state: State, ceiling: float):
        self._most = np.maximum(ceiling, state.scores) + TOLERANCE

    def mask(self, state: State, vm: int) -> np.ndarray:
        problem = state.problem
        return (state.scores + problem.weights[vm] * problem.host_scale <= self._most).all(axis=1)

    def column(self, state: State, host: int) -> np.ndarray:
        problem, permitted = state.problem, np.ones(len(state.problem.vms), dtype=bool)
        # A policy at a time: much faster than all() over so short an axis.
        for p, most in enumerate(self._most[host]):
            permitted &= (state.scores[host, p]
                          + problem.weights[:, p] * problem.host_scale[host, p]) <= most
        return permitted

    def permits(self, state: State, vm: int, host: int) -> bool:
        return not self._over(state, vm, host).any()

    def why(self, state: State, vm: int, host: int) -> str:
        problem = state.problem
        policy = problem.policies[int(self._over(state, vm, host).argmax())]
        return f'{problem.hosts[host]} would pass the overload ceiling in {policy}'

    def _over(self, state: State, vm: int, host: int) -> np.ndarray:
        problem = state.problem
        after = state.scores[host] + problem.weights[vm] * problem.host_scale[host]
        return after > self._most[host]


def below_ceiling(constraints: Constraints, state: State, limits: Limits) -> Constraints:
    """The constraints with the overload ceiling as one more."""
    return Constraints((*constraints.constraints, Ceiling(state, limits.overload_ceiling)))


class Run:
    """Carries moves out on a state, each only when every constraint permits it then."""

    def __init__(self, state: State, constraints: Constraints, limits: Limits):
        self.state, self.constraints, self.limits = state, constraints, limits
        self.hops: list[Hop] = []

    def do(self, vm: int, host: int, is_parking: bool = False) -> None:
        source = self.state.move(vm, host)
        self.hops.append(Hop(vm, source, host, is_parking))

    def undo(self, down_to: int = 0) -> None:
        while len(self.hops) > down_to:
            hop = self.hops.pop()
            self.state.move(hop.vm, hop.source)

    def do_all(self, moves: list[tuple[int, int]]) -> bool:
        """Do ``moves`` (instance, destination), in the order given as far as that is possible.

        Returns whether all are done; if not, nothing makes room for those that are left, or the
        budget has nothing left to put an instance aside with.
        """
        vms, hosts = np.array(moves, dtype=np.intp).reshape(-1, 2).T
        while len(vms):
            possible = self._first_possible(vms, hosts)
            if possible is not None:
                self.do(int(vms[possible]), int(hosts[possible]))
                vms, hosts = np.delete(vms, possible), np.delete(hosts, possible)
            elif not self._park(vms, hosts):
                return False
        return True

    def _first_possible(self, vms, hosts) -> int | None:
        for n in np.flatnonzero(self._fits(vms, self.state.used[hosts], hosts)):
            if self.constraints.permits(self.state, int(vms[n]), int(hosts[n])):
                return int(n)
        return None

    def _fits(self, vms, used, hosts) -> np.ndarray:
        """bool (n,): whether there is room in placement's terms: quickly asked and mostly decides.
        """
        problem = self.state.problem
        demands = problem.demands[vms]
        fits = (used + demands <= problem.limits[hosts] + TOLERANCE) | (demands == 0)
        return fits.all(axis=1)

    def _park(self, vms, hosts) -> bool:
        """Put one of the instances that wait somewhere for a while, so that another may go."""
        if len(self.hops) + len(vms) >= self.limits.budget:
            return False
        state, memory = self.state, self.state.problem.memory_mb
        for n in np.lexsort((vms, memory[vms])):
            vm, source = int(vms[n]), state.vm_host[vms[n]]
            waiting = np.flatnonzero(hosts == source)
            left = np.broadcast_to(state.used[source] - state.problem.demands[vm],
                                   (len(waiting), state.used.shape[1]))
            enabled = waiting[self._fits(vms[waiting], left, hosts[waiting])]
            if len(enabled) and self._park_one(vm, vms[enabled], int(source), set(hosts)):
                return True
        return False

    def _park_one(self, vm: int, enabled, source: int, wanted: set[int]) -> bool:
        """Park an instance, on a host that no move waits for if there is one, the emptiest first,
        unless it does not help after all."""
        state, done = self.state, len(self.hops)
        possible = np.flatnonzero(self.constraints.mask(state, vm))
        fill = (state.used / np.maximum(state.problem.limits, TOLERANCE)).max(axis=1)
        for host in sorted(possible, key=lambda host: (host in wanted, fill[host], host))[:PLACES]:
            self.do(vm, int(host), is_parking=True)
            if any(self.constraints.permits(state, int(other), source) for other in enabled):
                return True
            self.undo(done)
        return False


def carry_out(hops: list[Hop], state: State, why: Callable[[Hop], str]) -> list[Step]:
    """Do ``hops`` on a state, and tell of each what it does."""
    teller = Teller(state)
    return [teller.take(hop.vm, hop.destination,
                        'waits here until there is room' if hop.is_parking else why(hop))
            for hop in hops]


def dependencies(hops: Sequence[Hop | Step], before: State,
                 ceiling: float) -> list[tuple[int, ...]]:
    """For every hop of a plan that begins at ``before``: the earlier ones that must have ended
    before it may start.

    A hop waits for what left its destination before, if the destination could not hold all that
    arrives there up to and including this hop otherwise; for the last hop of the same instance; and
    for the last hop of its server group, because Nova does not see a fellow that is on its way.
    Whatever finishes first, no host ever holds more than in the order given: of the hops under way
    to it, the latest has seen everything leave that left before it in that order.
    """
    room = _Room(before, ceiling)
    last_of_vm: dict[int, int] = {}
    last_of_group: dict[int, int] = {}
    groups: dict[int, list[int]] = {}
    for number, group in enumerate(before.problem.groups):
        for vm in group.members:
            groups.setdefault(int(vm), []).append(number)
    left: dict[int, list[int]] = {}
    needed = []
    for n, hop in enumerate(hops):
        earlier = set()
        if not room.arrive(hop.vm, hop.destination):
            earlier.update(left.get(hop.destination, ()))
        earlier.update(_replaced(last_of_vm, hop.vm, n))
        for group in groups.get(hop.vm, ()):
            earlier.update(_replaced(last_of_group, group, n))
        left.setdefault(hop.source, []).append(n)
        needed.append(tuple(sorted(earlier)))
    return needed


def _replaced(last: dict[int, int], key: int, value: int) -> list[int]:
    old = last.get(key)
    last[key] = value
    return [] if old is None else [old]


class _Room:
    """What hosts hold if everything arrives and nothing leaves."""

    def __init__(self, before: State, ceiling: float):
        self.problem = before.problem
        self.used, self.load = before.used.copy(), before.capacity_scores.copy()
        self.scores = before.scores.copy()
        self.ceiling = np.maximum(ceiling, before.scores) + TOLERANCE

    def arrive(self, vm: int, host: int) -> bool:
        problem = self.problem
        weight = problem.weights[vm] * problem.host_scale[host]
        self.used[host] += problem.demands[vm]
        self.load[host] += weight
        self.scores[host] += weight
        fits = ((self.used[host] <= problem.limits[host] + TOLERANCE)
                | (problem.demands[vm] == 0))
        above = ((self.load[host] > problem.capacity_thresholds + TOLERANCE)
                 | (self.scores[host] > self.ceiling[host]))
        return bool(fits.all() and not above.any())
