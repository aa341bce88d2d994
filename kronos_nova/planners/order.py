"""The search for an order of moves in which every rule holds after each move, and for the
dependencies between moves.

If each of two moves needs the room that the other move frees, an instance is moved to a third host
first. The instance waits there until its destination has room. This method is known from the zero
impact process move problem (Sirdey et al., RAIRO 2007).
"""

import collections
import itertools
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np

from kronos_nova.model import TOLERANCE
from kronos_nova.model import Delta
from kronos_nova.model import State
from kronos_nova.planners.base import Choice
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import Step
from kronos_nova.planners.base import StepRecorder
from kronos_nova.planners.base import batches

PLACES = 3
"""Maximum number of third hosts that are tried for an instance whose destination has no room yet.
The instance waits on a third host until the destination has room. Raised, the order of moves takes
longer to find; lowered, a possible order of the moves is found for fewer plans. Not measured."""
DEAD_ENDS = 32
"""Number of dead ends after which the search for an order of moves gives up. A dead end is a state
in which none of the remaining moves is possible. After a search gives up, instances are moved to a
third host to wait for room. Raised, the search takes longer, and fewer instances wait on a third
host; lowered, more instances wait on a third host. Measured: for 6 to 8 moves without an order, the
search takes 1 ms."""

WAITS = 'waits here until there is room'
"""Reason of a move to a third host (text, no unit). Fixed."""


class Ordering:
    """The moves of a plan, made one after the other on a copy of a state. Every rule holds after
    each move.

    state : the state after the moves in ``done``
    done : (instance, destination) of each move made, in order
    """

    def __init__(self, state: State, limits: Limits, most: np.ndarray | None = None,
                 parts: Mapping[int, tuple[int, ...]] | None = None):
        """:param state: the state before the moves
        :param most: float64 (P,), limits of imbalances. A move that lifts an imbalance above its
            limit is made only when no other move is possible
        :param parts: {instance: NUMA cells of its destination that the plan chose}. If Nova would
            now choose other NUMA cells for a move, the move is made only when no other move is
            possible
        """
        self.state, self.limits, self.most = state.copy(), limits, most
        self.parts = parts or {}
        self.done: list[tuple[int, int]] = []

    def do(self, vm: int, host: int) -> None:
        self.state.move(vm, host)
        self.done.append((vm, host))

    def do_meant(self, moves: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Make a part of ``moves``: the moves for which Nova would choose the same NUMA cells of
        the destination as the plan. Stop when no such move is possible. Return the moves that are
        left."""
        waiting = np.array(moves, dtype=np.intp).reshape(-1, 2)
        while len(waiting) and (possible := self._first_meant(waiting)) is not None:
            self.do(*waiting[possible].tolist())
            waiting = np.delete(waiting, possible, axis=0)
        return [(int(vm), int(host)) for vm, host in waiting]

    def do_all(self, moves: list[tuple[int, int]]) -> bool:
        """Make ``moves`` (instance, destination), in the given order as far as possible.

        If none of the remaining moves is possible, other orders are tried. If no other order is
        found, a waiting instance is moved to a third host: neither its present host nor its
        destination. This makes room for another waiting instance, and is repeated if necessary.

        Return True if all moves are made. Return False if no instance can make room by a move to a
        third host, or if the budget permits no such move.
        """
        waiting = every = np.array(moves, dtype=np.intp).reshape(-1, 2)
        begin, home = len(self.done), self.state.vm_host[every[:, 0]]
        is_first = True
        while len(waiting):
            possible = self._first_meant(waiting) if self.parts else None
            if possible is None:
                possible = self._first_possible(waiting)
            if possible is not None:
                self.do(*waiting[possible].tolist())
                waiting = np.delete(waiting, possible, axis=0)
                continue
            if is_first and self._do_in_other_order(every, home, begin):
                return True
            if not self._park(*waiting.T):
                return False
            is_first = False
        return True

    def _do_in_other_order(self, moves: np.ndarray, home: np.ndarray, begin: int) -> bool:
        """Undo the moves that were made since ``begin``, and make all of ``moves`` in another
        order. Return True if a possible order was found. Otherwise change nothing and return False.

        :param home: intp (n,), hosts of the instances before the moves
        :param begin: number of moves in ``done`` that were made before the first of ``moves``
        """
        if len(self.done) == begin:
            return False  # no move was made, so that none of them is possible as the first
        state, source = self.state.copy(), dict(zip(moves[:, 0].tolist(), home.tolist(),
                                                    strict=True))
        for vm, _host in reversed(self.done[begin:]):
            state.move(vm, source[vm])
        order = find_order(state, moves)
        if order is None:
            return False
        self.state = state
        self.done[begin:] = [(int(vm), int(host)) for vm, host in moves[order]]
        return True

    def _first_meant(self, moves: np.ndarray) -> int | None:
        """Return the position of the first possible move for which Nova would choose the same NUMA
        cells of the destination as the plan; None if there is no such move."""
        possible = np.flatnonzero(self._spoils_none(self.state.delta(tuple(moves.T))))
        for n in possible.tolist():
            vm, host = moves[n].tolist()
            if self.parts.get(vm, ()) == self.state.chosen_parts(vm, host):
                return n
        return None

    def _first_possible(self, moves: np.ndarray) -> int | None:
        first = None
        for some in batches(len(moves)):
            delta = self.state.delta(tuple(moves[some].T))
            if first is None and delta.feasible.any():
                first = some.start + int(delta.feasible.argmax())
            spoils_none = self._spoils_none(delta)
            if spoils_none.any():
                return some.start + int(spoils_none.argmax())
        return first

    def _spoils_none(self, delta: Delta) -> np.ndarray:
        """Return bool (n,): true for each possible move after which every imbalance is within its
        limit in ``most``."""
        if self.most is None:
            return delta.feasible
        return delta.feasible & (delta.imbalances <= self.most).all(axis=-1)

    def _park(self, vms: np.ndarray, hosts: np.ndarray) -> bool:
        """Move one of the waiting instances to a third host, so that another waiting instance can
        move. Hosts that are not the destination of a waiting move are tried first; of these, the
        least full host is tried first. Return True if an instance was moved; False if no such move
        is possible.

        :param vms, hosts: the waiting instances and their destinations
        """
        if len(self.done) + len(vms) >= self.limits.budget:
            return False
        state, memory = self.state, self.state.problem.memory_mb
        # Wherever the first instance goes, its host then has the room for the second.
        first, second = np.nonzero(state.vm_host[vms][:, None] == hosts)
        enables = state.delta((vms[first], hosts[first]), (vms[second], hosts[second])).has_room(1)
        first, second = first[enables], second[enables]
        helpful = np.unique(first)
        for n in helpful[np.lexsort((vms[helpful], memory[vms[helpful]]))]:
            if self._park_one(int(vms[n]), vms[second[first == n]], hosts):
                return True
        return False

    def _park_one(self, vm: int, waiting: np.ndarray, wanted: np.ndarray) -> bool:
        """Move the instance ``vm`` to a third host, so that one of the instances ``waiting`` can
        move to the present host of ``vm``. Return True if the instance was moved; False if no third
        host is possible or no waiting instance could move then.

        :param vm: the instance to move to a third host
        :param waiting: the instances that wait for room on the present host of ``vm``
        :param wanted: destinations of all waiting moves
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


def find_order(state: State, moves: np.ndarray) -> list[int] | None:
    """Search an order in which every move is possible. The first search assumes that only moves to
    the same host make each other impossible. If it finds no order, a second search takes into
    account that moves to different hosts may need the same room; it has more orders to try.

    :param state: the state before the moves; if an order is found, the function changes the state
        to the state after the moves
    :param moves: intp (n, 2), instances and their destinations, each instance once
    :returns: the positions of the moves in a possible order; None if no order is found
    """
    vms, hosts = moves.T
    is_there = hosts[:, None] == hosts
    found = _order_of(state, moves, is_there)
    if found is not None:
        return found
    hinders = state.model.hinders(vms, hosts)
    return None if (hinders == is_there).all() else _order_of(state, moves, hinders)


def _order_of(state: State, moves: np.ndarray, hinders: np.ndarray) -> list[int] | None:
    """Search depth first for an order in which every move is possible.

    The order of the moves already made does not affect which moves are possible next. So each set
    of moves already made is examined only once. A move that cannot make another remaining move
    impossible is made as soon as it is possible, and no other move is tried in its place. If there
    is no such move, moves that are the only remaining ones to their destinations are tried first.

    :param state, moves: as in :func:`find_order`
    :param hinders: bool (n, n), true where the move of the row may make the move of the column
        impossible
    :returns: as :func:`find_order`
    """
    vms, hosts = moves.T
    home, waits = state.vm_host[vms], np.ones(len(moves), dtype=bool)
    hindered = hinders.sum(axis=1)    # number of remaining moves, for each move
    seen: set[bytes] = set()
    made: list[int] = []
    others: list[list[int]] = []
    dead_ends = 0
    while waits.any():
        left = np.flatnonzero(waits)
        choice: list[int] = []
        if waits.tobytes() not in seen:
            seen.add(waits.tobytes())
            possible = left[state.delta((vms[left], hosts[left])).feasible]
            arrivals = np.bincount(hosts[left], minlength=len(state.guests))[hosts[possible]]
            harmless = possible[hindered[possible] == 1]    # the move itself
            choice = harmless[:1].tolist() or possible[
                np.argsort(arrivals > 1, kind='stable')].tolist()
        if not choice:
            dead_ends += 1
        while not choice and made:
            last = made.pop()
            state.move(int(vms[last]), int(home[last]))
            waits[last] = True
            hindered += hinders[:, last]
            choice = others.pop() if dead_ends <= DEAD_ENDS else []
        if not choice:
            return None
        made.append(choice.pop(0))
        others.append(choice)
        state.move(int(vms[made[-1]]), int(hosts[made[-1]]))
        waits[made[-1]] = False
        hindered -= hinders[:, made[-1]]
    return made


def without_detours(state: State, moves: Sequence[tuple[int, int]], cost: Callable[[State], float],
                    every: bool = False) -> list[tuple[int, int]]:
    """Return the moves without needless moves of instances that move more than once. A move is
    needless if all other moves are possible without it, and the cost of the end state is no higher.
    If an instance returns to the host that it left, its two moves are needless together.

    :param state: the state before the moves
    :param moves: (instance, destination) in order
    :param cost: returns the cost of an end state
    :param every: True if needless moves of instances that move once are left out as well
    """
    kept, times = list(moves), collections.Counter(vm for vm, _host in moves)
    if not every and len(times) == len(kept):
        return kept
    most = cost(state.after(kept)) + TOLERANCE
    n = len(kept) - 1
    while n >= 0:
        vm = kept[n][0]
        if every or times[vm] > 1:
            fewer = _without(kept, n, int(state.vm_host[vm]))
            after = state_after(state, fewer)
            if after is not None and cost(after) <= most:
                times[vm] -= len(kept) - len(fewer)
                kept = fewer
        n -= 1
    return kept


def _without(moves: Sequence[tuple[int, int]], n: int, home: int) -> list[tuple[int, int]]:
    """Return the moves without the move at position ``n``, and without the next move of the same
    instance if it would then begin and end at the same host.

    :param home: the host of this instance before the moves
    """
    vm, before, after = moves[n][0], list(moves[:n]), list(moves[n + 1:])
    source = next((host for other, host in reversed(before) if other == vm), home)
    following = next((m for m, (other, _host) in enumerate(after) if other == vm), None)
    if following is not None and after[following][1] == source:
        del after[following]
    return before + after


def joined(state: State, moves: Sequence[Choice],
           cost: Callable[[State], float]) -> list[Choice]:
    """Return the moves without needless moves, as :func:`without_detours` does. A move that makes
    other moves of its instance needless has the purposes of all of them.

    :param state: the state before the moves
    :param cost: returns the cost of an end state
    """
    kept = without_detours(state, [(vm, host) for vm, host, _why in moves], cost)
    purposes: dict[int, dict[str, None]] = {}
    for vm, _host, why in moves:
        purposes.setdefault(vm, {})[why] = None
    if len(kept) == len(moves):
        return list(moves)
    whys = {(vm, host): why for vm, host, why in moves}
    alone = {vm for vm, _host in kept if sum(other == vm for other, _to in kept) == 1}
    return [(vm, host, ', and '.join(purposes[vm]) if vm in alone else whys[vm, host])
            for vm, host in kept]


def state_after(state: State, moves: Sequence[tuple[int, int]]) -> State | None:
    """Return the state after the moves; None if one of the moves is impossible."""
    after = state.copy()
    for vm, host in moves:
        if after.vm_host[vm] == host or not after.delta((vm, host)).feasible:
            return None
        after.move(vm, host)
    return after


class Prefixes:
    """A search for a better order of a plan's moves. A plan may be stopped after any move. In a
    better order, fewer moves leave the combined imbalance higher than at the start of the plan.

    The plan keeps its order if no move lifts the combined imbalance above its value at the start.
    Otherwise, the next move is always the possible move after which the combined imbalance is
    lowest. If every possible move would lift the combined imbalance above its value at the start, a
    group of moves is chosen. After the last move of the group, the combined imbalance is no longer
    above its value at the start. Moves that are not needed for this are made after the group.
    """

    def __init__(self, before: State, steps: Sequence[Step]):
        """:param before: the state before the plan, with a model whose rules have to hold after
            each move
        :param steps: the moves of the plan
        """
        self._before, self._steps = before, steps
        self._vms = np.array([step.vm for step in steps], dtype=np.intp)
        self._hosts = np.array([step.destination for step in steps], dtype=np.intp)
        self._most = before.combined() + TOLERANCE

    def order(self) -> list[int]:
        """Return the positions of the steps in a better order; in the present order if no better
        order is found."""
        present = list(range(len(self._steps)))
        worse = self._count_worse(present)
        other = self._sorted() if worse else None
        return other if other is not None and self._count_worse(other) < worse else present

    def _count_worse(self, order: list[int]) -> int:
        """Return the number of moves that help only together with other moves if the moves are made
        in ``order`` (see :meth:`joint_moves`)."""
        return sum(number is not None for number in self.joint_moves(order))

    def _sorted(self) -> list[int] | None:
        """Return the positions of the steps in the order that the search chooses; None if no
        remaining move is possible at some point."""
        state, left = self._before.copy(), list(range(len(self._steps)))
        order: list[int] = []
        while left:
            sequence = self._one(state, left) or self._sequence(state, left)
            if not sequence:
                return None
            for position in sequence:
                self._make(state, position)
                left.remove(position)
            order += sequence
        return order

    def joint_moves(self, order: Sequence[int]) -> list[int | None]:
        """Return, for each move in the given order, the number of the group to which the move
        belongs; None for a move in no group.

        A group is a series of moves that help only together: until its last move is made, the
        combined imbalance of all policies is higher than it was at the start of the plan.
        """
        state, number, found, is_above = self._before.copy(), 0, [], False
        for position in order:
            was_above = is_above
            self._make(state, position)
            is_above = state.combined() > self._most
            number += is_above and not was_above
            found.append(number if is_above or was_above else None)
        return found

    def _make(self, state: State, position: int) -> None:
        state.move(int(self._vms[position]), int(self._hosts[position]))

    def _one(self, state: State, left: list[int]) -> list[int] | None:
        """Return a list with one position: that of the possible move after which the combined
        imbalance is lowest. Return None if no move is possible, or if every possible move would
        lift the combined imbalance above its value at the start of the plan.

        :param left: positions of the moves that are not made yet
        """
        for some in batches(len(left)):
            possible, ends = self._ends(state, left[some])
            if len(ends) and ends.min() <= self._most:
                return [possible[int(ends.argmin())]]
        return None

    def _ends(self, state: State, left: list[int]) -> tuple[list[int], np.ndarray]:
        """Return two results: the positions of those moves in ``left`` that are possible now, and
        an array float64 with the combined imbalance after each of these moves."""
        here = [n for n in left if state.vm_host[self._vms[n]] == self._steps[n].source]
        delta = state.delta((self._vms[here], self._hosts[here]))
        feasible = np.flatnonzero(delta.feasible)
        return [here[n] for n in feasible], self._combined(delta)[feasible]

    def _combined(self, delta: Delta) -> np.ndarray:
        return delta.imbalances @ self._before.problem.policy_weights

    def _sequence(self, state: State, left: list[int]) -> list[int]:
        """Choose remaining moves until the combined imbalance is no higher than at the start of the
        plan. Return the positions of these moves, in order; an empty list if no remaining move is
        possible at some point.

        The next move is always the one after which the combined imbalance is lowest. Moves that are
        not needed for the result are left out.

        :param left: positions of the moves that are not made yet
        """
        there, made, rest = state.copy(), list[int](), list(left)
        while rest and (not made or there.combined() > self._most):
            possible, ends = self._ends(there, rest)
            if not possible:
                return []
            made.append(possible[int(ends.argmin())])
            rest.remove(made[-1])
            self._make(there, made[-1])
        return self._without_needless(state, made)

    def _without_needless(self, state: State, sequence: list[int]) -> list[int]:
        """Return the sequence without needless moves. A move is needless if, without it, all other
        moves of the sequence are possible, and the combined imbalance after these moves is no
        higher than at the start of the plan."""
        for position in list(sequence[:-1]):
            fewer = [n for n in sequence if n != position]
            if self._leads_back(state.copy(), fewer):
                sequence = fewer
        return sequence

    def _leads_back(self, state: State, sequence: list[int]) -> bool:
        for position in sequence:
            possible, _ends = self._ends(state, [position])
            if not possible:
                return False
            self._make(state, position)
        return state.combined() <= self._most


def carry_out(moves: list[tuple[int, int]], state: State, why: Callable[[int], str]) -> list[Step]:
    """Make ``moves`` on a state, and return the moves as steps. The reason of each step describes
    the effect of the move.

    :param why: called with the index of the host that the instance leaves; returns the purpose of
        the move
    """
    recorder, last = StepRecorder(state), {vm: n for n, (vm, _host) in enumerate(moves)}
    return [recorder.record(vm, host, why(int(state.vm_host[vm])) if n == last[vm]
                          else WAITS)
            for n, (vm, host) in enumerate(moves)]


def dependencies(moves: Sequence[Step], before: State) -> list[tuple[int, ...]]:
    """Return, for each move of a plan, the positions of the earlier moves that must end before the
    move starts. A move waits for these earlier moves:

    * the last earlier move of its own instance
    * the last earlier move of each instance that must not be moved at the same time
    * all earlier moves off the destination, and off hosts that share room with the destination;
      these moves are left out if the destination has room for the instance and all earlier arrivals
      even while no instance has left
    * all earlier moves without which a rule about all hosts together, such as that about reserved
      room, would forbid the move

    So each move has room at its start, in whatever order the other moves end.

    :param before: the state before the plan
    """
    crowded = before.copy()
    last: dict[object, int] = {}
    left: dict[int, list[int]] = {}
    needed = []
    pairs = [(move.vm, move.destination) for move in moves]
    overall = [rule.needed_before(before, pairs) for rule in before.model.rules if rule.is_overall]
    for n, (move, *by_rules) in enumerate(zip(moves, *overall, strict=True)):
        earlier = set(itertools.chain(*by_rules))
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
