"""From a set of moves to steps: an order that is possible, and what depends on what.

Live migration has to keep every rule after every single move. Where two moves wait for each other's
room, an instance is put aside for a while, which is how Sirdey et al. (RAIRO 2007) solve the zero
impact process move problem.
"""

from collections.abc import Callable
from collections.abc import Sequence

import numpy as np

from kronos_nova.model import Delta
from kronos_nova.model import State
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import Step
from kronos_nova.planners.steps import StepRecorder

PLACES = 3
"""Hosts that are tried to put an instance aside on. They are sorted by how likely they are to
serve, and each costs a question for every move that waits."""
ASKED_FIRST = 32
"""Moves that are asked about first, before all others: of these one is nearly always possible."""


class Ordering:
    """Makes moves on a copy of a state, each only when every rule allows it then.

    state : after what is done
    done : (instance, destination) of each move
    """

    def __init__(self, state: State, limits: Limits, most: np.ndarray | None = None):
        """
        :param most: float64 (P,), imbalances. A move after which one is higher is made only when
            no other move is possible
        """
        self.state, self.limits, self.most = state.copy(), limits, most
        self.done: list[tuple[int, int]] = []

    def do(self, vm: int, host: int) -> None:
        self.state.move(vm, host)
        self.done.append((vm, host))

    def do_all(self, moves: list[tuple[int, int]]) -> bool:
        """Make ``moves`` (instance, destination), in the order given as far as that is possible.

        Returns whether all are made; if not, nothing makes room for those that are left, or the
        budget has nothing left to put an instance aside with.
        """
        waiting = np.array(moves, dtype=np.intp).reshape(-1, 2)
        while len(waiting):
            possible = self._first_possible(waiting)
            if possible is not None:
                self.do(*waiting[possible].tolist())
                waiting = np.delete(waiting, possible, axis=0)
            elif not self._park(*waiting.T):
                return False
        return True

    def _first_possible(self, moves: np.ndarray) -> int | None:
        first = None
        for start, end in ((0, ASKED_FIRST), (ASKED_FIRST, len(moves))):
            delta = self.state.delta(tuple(moves[start:end].T))
            if first is None and delta.feasible.any():
                first = start + int(delta.feasible.argmax())
            spoils_none = self._spoils_none(delta)
            if spoils_none.any():
                return start + int(spoils_none.argmax())
        return first

    def _spoils_none(self, delta: Delta) -> np.ndarray:
        """bool (n,): possible moves after which no imbalance is above ``most``."""
        if self.most is None:
            return delta.feasible
        return delta.feasible & (delta.imbalances <= self.most).all(axis=-1)

    def _park(self, vms: np.ndarray, hosts: np.ndarray) -> bool:
        """Put one of the instances that wait somewhere for a while, so that another may go; on a
        host that no move waits for if there is one, the emptiest first."""
        if len(self.done) + len(vms) >= self.limits.budget:
            return False
        state, memory = self.state, self.state.problem.memory_mb
        # Wherever the first one goes, it leaves room to the second.
        first, second = np.nonzero(state.vm_host[vms][:, None] == hosts)
        enables = state.delta((vms[first], hosts[first]), (vms[second], hosts[second])).has_room(1)
        first, second = first[enables], second[enables]
        helpful = np.unique(first)
        for n in helpful[np.lexsort((vms[helpful], memory[vms[helpful]]))]:
            if self._park_one(int(vms[n]), vms[second[first == n]], hosts):
                return True
        return False

    def _park_one(self, vm: int, waiting: np.ndarray, wanted: np.ndarray) -> bool:
        """Put an instance aside so that one of those waiting for its host may go.

        :param wanted: hosts that moves wait for
        """
        state = self.state
        source = state.vm_host[vm]
        possible = np.flatnonzero(state.delta((vm, np.arange(len(state.guests)))).feasible)
        order = np.lexsort((possible, state.fill[possible], np.isin(possible, wanted)))
        for host in possible[order][:PLACES]:
            if state.delta((vm, host), (waiting, source)).feasible.any():
                self.do(vm, int(host))
                return True
        return False


def carry_out(moves: list[tuple[int, int]], state: State, why: Callable[[int], str]) -> list[Step]:
    """Make ``moves`` on a state, and tell of each what it does.

    :param why: from the host that is left to what the move is for
    """
    recorder, last = StepRecorder(state), {vm: n for n, (vm, _host) in enumerate(moves)}
    return [recorder.record(vm, host, why(int(state.vm_host[vm])) if n == last[vm]
                          else 'waits here until there is room')
            for n, (vm, host) in enumerate(moves)]


def dependencies(moves: Sequence[Step], before: State) -> list[tuple[int, ...]]:
    """For every move of a plan that begins at ``before``: the earlier ones that must have ended
    before it may start.

    A move waits for what left its destination before, or hosts that share room with it, if the
    destination could not hold all that arrives there up to and including this move otherwise; for
    the last move of the same instance; and for the last one that may not be under way together with
    it. Whatever finishes first, no host ever holds more than in the order given: of the moves under
    way to it, the latest has seen everything leave that left before it in that order.
    """
    crowded = before.copy()
    last: dict[object, int] = {}
    left: dict[int, list[int]] = {}
    needed = []
    for n, move in enumerate(moves):
        earlier: set[int] = set()
        if not crowded.delta((move.vm, move.destination)).feasible:
            for host in before.model.sharing_with(move.destination):
                earlier.update(left.get(host, ()))
        crowded.arrive(move.vm, move.destination)
        keys: tuple[object, ...] = (('itself', move.vm), *before.model.serial(move.vm))
        for key in keys:
            earlier.update({last[key]} if key in last else ())
            last[key] = n
        left.setdefault(move.source, []).append(n)
        needed.append(tuple(sorted(earlier)))
    return needed
