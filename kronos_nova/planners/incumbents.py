"""The best end states that a search has met."""

import bisect
import dataclasses

from kronos_nova.model import TOLERANCE

Plan = list[tuple[int, int]]
"""(instance, destination), each instance at most once and straight from where it is now; the order
has no meaning yet."""
KEPT = 48
"""For many of the best end states there may be no order of moves that leads there. Mostly the first
has one; of a hundred tight hosts it was the fifth, of a few that are full the twentieth."""


@dataclasses.dataclass(frozen=True, slots=True)
class End:
    """Where a plan leads: ``cost`` is combined imbalance plus price, inf if it is not legal."""

    cost: float
    plan: Plan


class Incumbents:
    """The best ends, what costs as much with fewer moves first.

    :param kept: ends that are known, in that order; at least one
    """

    def __init__(self, kept: list[End]):
        self.kept = kept.copy()
        self._known = {frozenset(end.plan) for end in kept}

    @property
    def best(self) -> End:
        return self.kept[0]

    @property
    def worst(self) -> float:
        """What an end must cost less than to be kept."""
        return self.kept[-1].cost - TOLERANCE if len(self.kept) >= KEPT else float('inf')

    def add(self, end: End) -> None:
        """Remember an end that is among the best."""
        moves = frozenset(end.plan)
        if end.cost < float('inf') and moves not in self._known:
            self._known.add(moves)
            bisect.insort(self.kept, end, key=lambda end: (round(end.cost / TOLERANCE),
                                                           len(end.plan)))
            del self.kept[KEPT:]
