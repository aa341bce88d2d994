"""The planner ``greedy``, which makes the best single move again and again (steepest descent).

The plan is the same as if all candidate moves were rated, but most candidate moves are not rated. A
move lowers the imbalance of a policy only if the move leaves the most loaded host (the top) or
enters the least loaded host (the bottom). The gain of such a move is at most the difference between
the scores of this host and the next host. So only instances on a top host and moves to a bottom
host are considered. The exact gain of a move is computed only if the upper bound of its gain is
above the best gain so far.

A policy may leave its highest and lowest hosts out of its imbalance. If a move brings the score of
a left-out host into the range of the other hosts, the next host is left out instead. So moves off
and to left-out hosts are considered as well. The upper bound is then the difference between the
scores of two hosts: the outermost host that is not left out, and the next host.
"""

from collections.abc import Callable

import numpy as np

from kronos_nova.model import TOLERANCE
from kronos_nova.model import Model
from kronos_nova.model import State
from kronos_nova.objects.plan import SPREAD
from kronos_nova.planners.base import Choice
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import Step
from kronos_nova.planners.base import batches
from kronos_nova.planners.base import one_by_one
from kronos_nova.planners.best_move import BestMove


class Greedy:
    phase = SPREAD

    def plan(self, state: State, limits: Limits) -> list[Step]:
        smallest_first = np.argsort(state.problem.memory_mb, kind='stable')
        model = state.model.with_ceiling(state, limits.overload_ceiling)

        def choose() -> Choice | None:
            pair = None if state.is_balanced else _Round(state, model, smallest_first).best_move()
            return pair and (*pair, 'evens the load')

        return one_by_one(state, limits, choose)


class _Round:
    """The search for the best single move. A class of moves is all moves off one of the most loaded
    hosts, or all moves to one of the least loaded hosts. The class with the largest upper bound of
    the gain is searched first."""

    def __init__(self, state: State, model: Model, smallest_first: np.ndarray):
        self.state, self.problem, self.vms = state, state.problem, smallest_first
        extremes = state.extremes()
        self.tops = self._gaps(extremes.tops, extremes.counting(extremes.tops))
        self.bottoms = self._gaps(extremes.bottoms, extremes.counting(extremes.bottoms))
        self.search = BestMove(state, floor=TOLERANCE, model=model)

    def best_move(self) -> tuple[int, int] | None:
        """Return (instance, destination) of the move that lowers the combined imbalance most; None
        if no move lowers the combined imbalance."""
        for bound, show, host in self._classes():
            if not self.search.could_matter(bound):
                break
            show(host)
        return self.search.found()

    def _gaps(self, ends: list[np.ndarray], counting: list[np.ndarray]) -> dict[int, float]:
        """Return {host: upper bound of the gain} for the most loaded hosts or for the least loaded
        hosts. No move off such a host, or to it, lowers the combined imbalance by more than this
        bound.

        :param ends: for each policy, some hosts at one end of the scores, the outermost host first
        :param counting: for each policy, those hosts of ``ends`` on which the imbalance depends. A
            move that neither leaves nor enters one of these hosts does not lower the imbalance
        """
        gaps: dict[int, float] = {}
        for policy, (hosts, deciding) in enumerate(zip(ends, counting, strict=True)):
            if len(hosts) > len(deciding):
                first, second = self.state.scores[hosts[len(deciding) - 1:][:2], policy]
                gain = abs(float(first - second)) * self.problem.policy_weights[policy]
                for host in deciding.tolist():
                    gaps[host] = gaps.get(host, 0.0) + gain
        return gaps

    def _classes(self) -> list[tuple[float, Callable[[int], None], int]]:
        """Return a list of (upper bound of the gain, function, host), one for each class of moves,
        the largest bound first. ``function(host)`` adds the moves of the class as candidate moves.
        """
        lift = max(self.bottoms.values(), default=0.0)
        classes: list[tuple[float, Callable[[int], None], int]] = [
            (gap + lift, self._leaving, host) for host, gap in self.tops.items()]
        classes += [(gap, self._entering, host) for host, gap in self.bottoms.items()]
        return sorted(classes, key=lambda found: -found[0])

    def _leaving(self, source: int) -> None:
        """Add candidate moves: the moves of all instances on ``source`` to every other host.
        ``source`` is one of the most loaded hosts."""
        vms = np.flatnonzero((self.state.vm_host == source) & self.problem.movable)
        self.search.to_anywhere(vms)

    def _entering(self, host: int) -> None:
        """Add candidate moves: moves of instances on other hosts to ``host``, which is one of the
        least loaded hosts.

        Of moves with equal gains, the move of the instance with the least memory is chosen. So the
        method adds the smallest instances first, and returns once a gain reaches the upper bound.
        No larger instance could then be chosen.
        """
        for some in batches(len(self.vms)):
            vms = self.vms[some]
            on = self.state.vm_host[vms]
            inside = self.problem.movable[vms] & ~np.isin(on, [host, *self.tops])
            found = self.search.to_host(vms[inside], host)
            # Where the policy leaves hosts out, several bottom hosts have this bound, and an
            # earlier one may have reached it already.
            most = self.search.best if self.problem.left_out is None else found
            if most >= self.bottoms[host] - TOLERANCE / 2:
                return
