"""The search for the best single move, by branch and bound. The *gain* of a move is the amount by
which the move lowers the combined imbalance. An upper bound of the gain of each candidate move is
known. The exact gain is computed only if the upper bound is above the best gain found so far."""

from collections.abc import Callable
from collections.abc import Iterable

import numpy as np

from kronos_nova.model import TOLERANCE
from kronos_nova.model import Delta
from kronos_nova.model import Model
from kronos_nova.model import State


class BestMove:
    """The search for the candidate move with the largest gain. The *gain* of a move is the amount
    by which the move lowers the combined imbalance.

    Moves are tied if their gains differ by at most :data:`TOLERANCE`. Of tied moves, the move of
    the instance with the least memory is chosen. If moves are still tied, the first move by uuid of
    the instance and name of the destination is chosen.

    A candidate move is (bound, instance, host). There are two kinds:

    * ``host`` is the index of a host. Then the move is feasible, every policy accepts the move
      (unless ``is_forced`` is true), and ``bound`` is the gain of the move.
    * ``host`` is -1. Then the destination is not chosen yet, and ``bound`` is a gain that the move
      does not exceed with any destination. The best destination is searched only if ``bound`` is
      above the best gain so far.

    state : the state in which moves start
    floor : gain that the chosen move must exceed; with -inf, the best move is chosen even if the
        move raises the imbalance
    wanted : function that gets the Delta of candidate moves (the changes that these moves make),
        and returns bool (...), true for moves that may be chosen; None if all moves may be chosen
    is_forced : True if moves may be chosen even if a policy does not accept them; False if every
        policy has to accept the move. A policy does not accept a move that raises its imbalance to
        a value above its threshold
    model : the model whose rules apply. If the parameter is None, the model of the state applies;
        if ``is_forced`` is true as well, the rules of this model that may be relaxed do not apply
    best : the largest gain of a feasible move so far; ``floor`` while no gain is larger
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
        """Return bool, in the shape of ``gains``: true for candidate moves that may still be the
        best move.

        :param gains: gains of candidate moves, or upper bounds of gains
        """
        return (gains >= self.best - TOLERANCE) & (gains > self.floor)

    def could_matter(self, bound: float) -> bool:
        """Return whether a candidate move may be the best move, if nothing is known but that its
        gain is at most ``bound``."""
        # A further half of the tolerance allows for rounding errors of the bound.
        return bound >= self.best - TOLERANCE * 1.5 and bound > self.floor - TOLERANCE / 2

    def to_anywhere(self, vms: np.ndarray) -> None:
        """Add the moves of the instances ``vms`` to every host as candidate moves."""
        bounds = self.extremes.decrease(self.extremes.at_best(vms))
        gains = self._gains(self.state.delta((vms[:, None], self.extremes.low_ends)))
        bounds = np.maximum(bounds, gains.max(axis=1, initial=-np.inf))
        bounds, vms = self._near(bounds, vms)
        for bound, vm in zip(bounds, vms, strict=True):
            # Half of the tolerance allows for rounding errors of the bound.
            if bound <= self.best + TOLERANCE / 2:
                break
            self.best = max(self.best, float(self._row(int(vm)).max(initial=-np.inf)))
        self._candidates.append((bounds, vms, np.full(len(vms), -1)))

    def to_host(self, vms: np.ndarray, host: int) -> float:
        """Add the moves of the instances ``vms`` to ``host`` as candidate moves. Return the largest
        gain of these moves; -inf if none of the moves is possible."""
        gains, vms = self._near(self._gains(self.state.delta((vms, host))), vms)
        feasible = self.state.delta((vms, host), model=self.model).feasible
        gains, vms = gains[feasible], vms[feasible]
        most = float(gains.max(initial=-np.inf))
        self.best = max(self.best, most)
        self._candidates.append((gains, vms, np.full(len(vms), host)))
        return most

    def found(self) -> tuple[int, int] | None:
        """Return (instance, destination) of the best candidate move; None if no candidate move may
        be chosen."""
        if not self._candidates or not self.best > self.floor:
            return None
        bounds, vms, hosts = (np.concatenate(column)
                              for column in zip(*self._candidates, strict=True))
        tied = self._matters(bounds)
        vms, hosts = vms[tied], hosts[tied]
        for position in np.lexsort((hosts, vms, self.state.problem.memory_mb[vms])):
            vm, host = int(vms[position]), int(hosts[position])
            if host >= 0:
                return vm, host
            there = np.flatnonzero(self._matters(self._row(vm)))
            if len(there):
                return vm, int(there[0])
        raise AssertionError('the best move is one of the candidates')

    def _gains(self, delta: Delta) -> np.ndarray:
        """Return float64 (...): the gain of each move; -inf where a policy does not accept the
        move. A policy does not accept a move that raises its imbalance to a value above its
        threshold."""
        return np.where(self.is_forced | delta.accepted, delta.decrease, -np.inf)

    def _near(self, bounds: np.ndarray, vms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Select the instances of ``vms`` that may still have the best move. Return (their bounds,
        these instances), sorted by bound, the largest bound first.

        :param bounds: upper bound of the gain of each instance's moves
        """
        near = self._matters(bounds)
        order = np.argsort(-bounds[near], kind='stable')
        return bounds[near][order], vms[near][order]

    def _row(self, vm: int) -> np.ndarray:
        """Return float64 (H,): the gain of moving the instance to each host; -inf for hosts to
        which the instance may not move."""
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
    """Return (instance, destination) of the move after which the combined imbalance is lowest; None
    if no move is possible. The move is returned even if the move raises the imbalance.

    :param vms: the instances that may be moved
    :param wanted, is_forced, model: as in :class:`BestMove`
    """
    vms = np.array(vms, dtype=np.intp)
    if not (len(vms) and state.problem.available.any()):
        return None
    search = BestMove(state, floor=-np.inf, wanted=wanted, is_forced=is_forced, model=model)
    search.to_anywhere(vms)
    return search.found()
