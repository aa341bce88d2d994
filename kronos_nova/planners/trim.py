"""The same result with less: moves that the end state does not need, and smaller instances; what
scheduling texts call compaction of a solution."""

import numpy as np

from kronos_nova.planners.base import Limits
from kronos_nova.simulation import TOLERANCE
from kronos_nova.simulation import State


def trim(state: State, plan: list[tuple[int, int]], worst: np.ndarray,
         limits: Limits) -> list[tuple[int, int]]:
    """A plan that ends as well, with fewer moves if some are needless, and less memory to copy.

    :param state: before the plan
    :param plan: (instance, destination), each instance once
    :param worst: float64 (P,), the imbalance above which no policy may end
    """
    home, memory, after = state.vm_host, state.problem.memory_mb, state.after(plan)
    most = after.objective() + TOLERANCE

    def serves(*moves):
        delta = after.delta(*moves)
        return (delta.feasible & (after.objective() + delta.objective <= most)
                & (delta.imbalances <= worst).all(axis=-1))

    vms = np.array([vm for vm, _host in plan], dtype=np.intp)
    needless = vms[serves((vms, home[vms]))]
    for vm in sorted(needless.tolist(), key=lambda vm: -memory[vm]):
        if not limits.is_over and serves((vm, home[vm])):
            after.move(vm, home[vm])
    for vm, _host in plan:
        here = home[vm]
        if limits.is_over or after.vm_host[vm] == here:
            continue
        others = np.flatnonzero((after.vm_host == here) & (home == here)
                                & state.problem.movable & (memory < memory[vm]))
        others = others[serves((vm, here), (others, after.vm_host[vm]))]
        if len(others):
            after.move(int(others[memory[others].argmin()]), after.move(vm, here))
    moved = np.flatnonzero(after.vm_host != home)
    return list(zip(moved.tolist(), after.vm_host[moved].tolist(), strict=True))
