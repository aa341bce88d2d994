"""What moves cost."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from kronos_nova.model.arrays import Index
from kronos_nova.model.keys import find


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What a move must lower the combined imbalance by to be worth it.

    vms : float64 (V,), of moving each instance; None costs nothing
    pairs : (source, destination) to what is added between these hosts
    soft_group_cost : of each member of a soft server group that ends where the group does not want
        it, beyond those that are misplaced already; only of groups that the model does not forbid
        to break. None costs nothing
    """

    vms: np.ndarray | None = None
    pairs: Mapping[tuple[int, int], float] = dataclasses.field(default_factory=dict)
    soft_group_cost: float | None = None

    @property
    def are_free(self) -> bool:
        """Whether nothing costs anything."""
        return self.vms is None and not self.pairs and not self.soft_group_cost

    def of_moves(self, vms: Index, sources: Index, destinations: Index) -> np.ndarray:
        """float64 (...): of moving instances between hosts; 0 where both are the same. Arguments
        broadcast."""
        vms, sources, destinations = np.broadcast_arrays(vms, sources, destinations)
        price = np.zeros(vms.shape) if self.vms is None else self.vms[vms]
        if self.pairs:
            price = price + self._of_pairs(sources, destinations)
        return np.where(sources == destinations, 0.0, price)

    def _of_pairs(self, sources: np.ndarray, destinations: np.ndarray) -> np.ndarray:
        hosts = 1 + max(max(pair) for pair in self.pairs)
        keys = np.array(sorted(first * hosts + second for first, second in self.pairs))
        amounts = np.array([self.pairs[divmod(int(key), hosts)] for key in keys])
        wanted = np.where(np.maximum(sources, destinations) < hosts,
                          sources * hosts + destinations, -1)
        place, found = find(keys, wanted)
        return np.where(found, amounts[place], 0.0)
