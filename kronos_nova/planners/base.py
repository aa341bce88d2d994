"""What a planner is."""

import dataclasses
from collections.abc import Callable
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from kronos_nova.constraints.base import Constraints
from kronos_nova.simulation import State


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What a move must lower the combined imbalance by to be worth it.

    vms : float64 (V,), of moving each instance; None costs nothing
    pairs : (source, destination) to what is added between these hosts
    """

    vms: np.ndarray | None = None
    pairs: Mapping[tuple[int, int], float] = dataclasses.field(default_factory=dict)

    def of(self, vm: int, source: int, destination: int) -> float:
        own = 0.0 if self.vms is None else float(self.vms[vm])
        return own + self.pairs.get((source, destination), 0.0)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a planner may spend.

    budget : moves that may still be planned
    clock : monotonic seconds; the kernel has no clock of its own
    deadline : on that clock; a planner stops there with the best plan so far
    overload_ceiling : no host may pass this score in any policy on the way, unless it already was
        above
    prices : of moves; ``spread`` makes none that gains less
    """

    budget: int
    clock: Callable[[], float] = lambda: 0.0
    deadline: float = float('inf')
    overload_ceiling: float = 0.95
    prices: Prices = Prices()

    @property
    def is_over(self) -> bool:
        return self.clock() >= self.deadline


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A planned move in indexes of the problem. ``depends_on`` are positions of earlier steps of
    the same list."""

    vm: int
    source: int
    destination: int
    combined_after: float
    reason: str
    depends_on: tuple[int, ...] = ()


class Planner(Protocol):
    """Chooses moves. Stateless; the same input always gives the same plan."""

    phase: str

    def plan(self, state: State, constraints: Constraints, limits: Limits) -> list[Step]:
        """Choose moves and apply them to ``state``, so that the next pass starts from where this
        one ended.

        The steps are in an order in which every constraint holds after every one of them.
        """
