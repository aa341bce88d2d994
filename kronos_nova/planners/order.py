"""From a set of moves to steps: an order that is possible, and what depends on what."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from kronos_nova.constraints.base import Constraints
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import Step
from kronos_nova.planners.outcome import Outlook
from kronos_nova.planners.outcome import take
from kronos_nova.simulation import TOLERANCE
from kronos_nova.simulation import State


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
        problem = state.problem
        after = state.scores[host] + problem.weights * problem.host_scale[host]
        return (after <= self._most[host]).all(axis=1)

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

    def may(self, vm: int, host: int) -> bool:
        return self.constraints.permits(self.state, vm, host)

    def do(self, vm: int, host: int, is_parking: bool = False) -> None:
        source = self.state.move(vm, host)
        self.hops.append(Hop(vm, source, host, is_parking))

    def undo(self, down_to: int = 0) -> None:
        while len(self.hops) > down_to:
            hop = self.hops.pop()
            self.state.move(hop.vm, hop.source)

    def do_all(self, moves: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Do ``moves`` (instance, destination), in the order given as far as that is possible.
        Returns those that are left, because the budget is used or nothing makes room for them."""
        left = list(moves)
        while left:
            possible = next((n for n, move in enumerate(left) if self.may(*move)), None)
            if possible is not None:
                self.do(*left.pop(possible))
            elif not self._park(left):
                return left
        return left

    def _park(self, left: list[tuple[int, int]]) -> bool:
        """Put one of the instances that wait somewhere for a while, so that another may go."""
        if len(self.hops) + len(left) >= self.limits.budget:
            return False
        memory = self.state.problem.memory_mb
        for vm, destination in sorted(left, key=lambda move: (memory[move[0]], move[0])):
            others = [move for move in left if move[0] != vm]
            for host in np.flatnonzero(self.constraints.mask(self.state, vm)):
                if host == destination:
                    continue
                self.do(vm, int(host), is_parking=True)
                if any(self.may(*move) for move in others):
                    return True
                self.undo(len(self.hops) - 1)
        return False


def carry_out(hops: list[Hop], state: State, why: str) -> list[Step]:
    """Do ``hops`` on a state, and tell of each what it does."""
    return [take(Outlook(state), hop.vm, hop.destination,
                 f'{why}, by way of here to make room' if hop.is_parking else why)
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
