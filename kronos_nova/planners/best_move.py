"""The search for the best of many single moves by branch and bound. Only moves that may still be
the best are rated in full."""

from collections.abc import Callable
from collections.abc import Iterable

import numpy as np

from kronos_nova.model import TOLERANCE
from kronos_nova.model import Delta
from kronos_nova.model import Model
from kronos_nova.model import State

ROUNDING = 1e-13
"""Largest difference of two computed gains of moves, as a fraction of a host, with which the gains
count as equal. Raised, gains of more moves are computed exactly for nothing; lowered, the best move
may be missed. Fixed by float64: some units in the last place of numbers around 1."""

EVERYWHERE = -1
"""Number (no unit) in place of the index of a destination, for the moves of an instance to all
hosts together. Fixed: no index is negative."""


class BestMove:
    """The search for the feasible move that lowers the combined imbalance most, among given
    candidates. Of moves whose gain equals the best within the tolerance, the one with the smallest
    memory is chosen; of these, the first by uuid and by name of the destination.

    A candidate is (bound, instance, host). Where it names a host, the move to this host is
    feasible, every policy accepts the move, and the bound is its gain. Where it has
    :data:`EVERYWHERE` in place of a host, the bound is the most that a move of the instance to any
    host could gain, and the best host is searched only if this bound is above the best gain so far.

    state : the state in which moves start
    floor : gain that the chosen move must exceed; with -inf, the best move is chosen even if it
        makes the imbalance worse
    wanted : function of a Delta that returns bool (...), the moves that may be chosen; None for all
        moves
    is_forced : whether moves may be chosen that policies do not accept
    model : the model whose rules apply; None for the model of the state, which is used without the
        rules that yield where moves are forced
    best : the largest gain of a feasible move so far, or the floor
    """

    _candidates: list[tuple[np.ndarray, np.ndarray, np.ndarray]]
    _rows: dict[int, np.ndarray]

    def __init__(self, state: State, floor: float,
                 wanted: Callable[[Delta], np.ndarray] | None = None, is_forced: bool = False,
                 model: Model | None = None):
        self.state, self.wanted = state, wanted
        self.is_forced = is_forced
        self.model = model or (state.model.for_emptying if is_forced else state.model)
        self.extremes = state.extremes()
        self.floor = self.best = floor
        self._candidates, self._rows = [], {}

    def _matters(self, gains: np.ndarray) -> np.ndarray:
        """Return bool, in the shape of ``gains``: whether a move with this gain, or with this upper
        bound of its gain, may be chosen."""
        return (gains >= self.best - TOLERANCE) & (gains > self.floor)

    def could_matter(self, bound: float) -> bool:
        """Return whether moves that gain at most ``bound`` may be the best, so that they have to be
        considered."""
        # A further half of the tolerance allows for rounding errors of the bound.
        return bound >= self.best - TOLERANCE * 1.5 and bound > self.floor - TOLERANCE / 2

    def to_anywhere(self, vms: np.ndarray) -> None:
        """Consider the moves of these instances to every host."""
        bounds = self.extremes.decrease(self.extremes.at_best(vms))
        gains = self._gains(self.state.delta((vms[:, None], self.extremes.low_ends)))
        bounds = np.maximum(bounds, gains.max(axis=1, initial=-np.inf))
        bounds, vms = self._near(bounds, vms)
        for bound, vm in zip(bounds, vms, strict=True):
            if bound <= self.best + ROUNDING:
                break
            self.best = max(self.best, float(self._row(int(vm)).max(initial=-np.inf)))
        self._candidates.append((bounds, vms, np.full(len(vms), EVERYWHERE)))

    def to_host(self, vms: np.ndarray, host: int) -> float:
        """Consider the moves of these instances to ``host``. Returns the gain of the best of them,
        -inf if none may be chosen."""
        gains, vms = self._near(self._gains(self.state.delta((vms, host))), vms)
        feasible = self.state.delta((vms, host), model=self.model).feasible
        gains, vms = gains[feasible], vms[feasible]
        most = float(gains.max(initial=-np.inf))
        self.best = max(self.best, most)
        self._candidates.append((gains, vms, np.full(len(vms), host)))
        return most

    def found(self) -> tuple[int, int] | None:
        """Return the best of all considered moves, as (instance, destination); None where none may
        be chosen."""
        if not self._candidates or not self.best > self.floor:
            return None
        bounds, vms, hosts = (np.concatenate(column)
                              for column in zip(*self._candidates, strict=True))
        tied = self._matters(bounds)
        vms, hosts = vms[tied], hosts[tied]
        for position in np.lexsort((hosts, vms, self.state.problem.memory_mb[vms])):
            vm, host = int(vms[position]), int(hosts[position])
            if host != EVERYWHERE:
                return vm, host
            there = np.flatnonzero(self._matters(self._row(vm)))
            if len(there):
                return vm, int(there[0])
        raise AssertionError('the best move is one of the candidates')

    def _gains(self, delta: Delta) -> np.ndarray:
        """Return float64 (...): the gains of moves, -inf where a policy does not accept them."""
        return np.where(self.is_forced | delta.accepted, delta.decrease, -np.inf)

    def _near(self, bounds: np.ndarray, vms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (bounds, instances), the largest bound first. Instances whose bound shows that
        none of their moves may be chosen are left out."""
        near = self._matters(bounds)
        order = np.argsort(-bounds[near], kind='stable')
        return bounds[near][order], vms[near][order]

    def _row(self, vm: int) -> np.ndarray:
        """Return float64 (H,): the gain of moving the instance to each host, -inf where it may not
        go."""
        if vm not in self._rows:
            delta = self.state.delta((vm, np.arange(len(self.state.guests))), model=self.model)
            permitted = delta.feasible & self.state.problem.available
            if self.wanted is not None:
                permitted &= self.wanted(delta)
            self._rows[vm] = np.where(permitted, self._gains(delta), -np.inf)
        return self._rows[vm]


def least_harmful(state: State, vms: Iterable[int],
                  wanted: Callable[[Delta], np.ndarray] | None = None,
                  is_forced: bool = False, model: Model | None = None) -> tuple[int, int] | None:
    """Return the accepted move of some instances after which the combined imbalance is lowest, even
    if it is higher than before, as (instance, destination). None if no move is possible.

    :param wanted, is_forced, model: as in :class:`BestMove`
    """
    vms = np.array(vms, dtype=np.intp)
    if not (len(vms) and state.problem.available.any()):
        return None
    search = BestMove(state, floor=-np.inf, wanted=wanted, is_forced=is_forced, model=model)
    search.to_anywhere(vms)
    return search.found()
