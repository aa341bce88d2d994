"""Whether a plan gains enough for what it costs."""

import dataclasses

import numpy as np

from kronos_nova.planners.affinity import violations
from kronos_nova.planners.base import Step
from kronos_nova.simulation import TOLERANCE
from kronos_nova.simulation import State

MIB_PER_GIB = 1024


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What moves must lower the combined imbalance by: for each one, for each GiB of memory that it
    copies, and for each member of a soft server group that ends where the group does not want it.
    """

    per_move: float = 0.0
    per_gib: float = 0.0
    per_violation: float = 0.0

    def of(self, memory_mb: np.ndarray) -> np.ndarray:
        """float64 (n,): the price of moves of instances of these sizes."""
        return self.per_move + self.per_gib * memory_mb / MIB_PER_GIB


def worthwhile(before: State, after: State, steps: list[Step], price: Price) -> list[Step]:
    """The longest beginning of a plan that gains its price, and spoils no policy.

    Later steps are taken back in ``after``. A planner orders its moves by what they gain, so what
    is cut off is what gains least.
    """
    if not steps:
        return steps
    vms = np.array([step.vm for step in steps])
    costs = np.cumsum(price.of(before.problem.memory_mb[vms]))
    costs += price.per_violation * _violations_added(before, steps)
    start, keep = before.combined(), len(steps)
    while keep and not (start - after.combined() >= costs[keep - 1] - TOLERANCE
                        and (keep == len(steps) or spoils_nothing(before, after))):
        keep -= 1
        after.move(steps[keep].vm, steps[keep].source)
    return steps[:keep]


def _violations_added(before, steps):
    """intp (n,): by how much more the soft groups are violated after each step than before all."""
    soft = [group for group in before.problem.groups if not group.hard]
    state, counts = before.copy(), []
    for step in steps if soft else ():
        state.move(step.vm, step.destination)
        counts.append(sum(violations(state, group) for group in soft))
    start = sum(violations(before, group) for group in soft)
    return np.maximum(np.array(counts) - start, 0) if soft else np.zeros(len(steps))


def spoils_nothing(before: State, after: State) -> bool:
    """Whether no policy is worse than before and above its threshold."""
    old, new = before.imbalances(), after.imbalances()
    return not ((new > old + TOLERANCE) & (new > before.problem.thresholds + TOLERANCE)).any()
