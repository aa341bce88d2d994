"""Prices of moves, and costs of instances on hosts. Both are in units of combined imbalance."""

import dataclasses
from collections.abc import Callable
from collections.abc import Mapping

import numpy as np

from kronos_nova.model.arrays import Index
from kronos_nova.model.keys import find


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Preferences:
    """The cost of having an instance on a host, for each instance and host. The cost is above 0 if
    the host violates operators' preferences for the instance.

    kind : intp (V,), row of ``cost`` for each instance
    cost : float64 (K, H), cost of the instances of each kind on each host, in units of combined
        imbalance
    names : function of (instance, host) that returns a text with the rules that prefer another host
        for the instance. Without a host, the text has all rules that apply to the instance
    """

    kind: np.ndarray
    cost: np.ndarray
    names: Callable[..., str]

    def at(self, vms: Index, hosts: Index) -> np.ndarray:
        """Return float64 (...): the cost of each instance on the host at the same position. ``vms``
        and ``hosts`` are broadcast to one shape."""
        return self.cost[self.kind[vms], hosts]

    def charges(self, hosts: np.ndarray) -> np.ndarray:
        """Return bool (V,): true for instances that have a cost on at least one of ``hosts``."""
        return np.asarray(self.cost[:, hosts].any(axis=1))[self.kind]

    def least(self, hosts: np.ndarray) -> np.ndarray:
        """Return float64 (V,): the lowest cost that each instance has on any of ``hosts``."""
        return self.cost[:, hosts].min(axis=1)[self.kind]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices of moves. A price is a cost in units of combined imbalance. A move is worth making
    only if it lowers the combined imbalance by more than its price.

    vms : float64 (V,), price of moving each instance; None if the price is 0
    pairs : {(source, destination): amount that is added to the price of each move from this source
        to this destination}
    soft_group_cost : price of each additional member that violates the policy of a soft server
        group; None if the price is 0
    preferences : costs of instances on hosts; None for no costs. If the destination has a higher
        cost than the source, the difference is added to the price of the move. A lower cost does
        not reduce the price
    """

    vms: np.ndarray | None = None
    pairs: Mapping[tuple[int, int], float] = dataclasses.field(default_factory=dict)
    soft_group_cost: float | None = None
    preferences: Preferences | None = None

    @property
    def are_free(self) -> bool:
        """Return True if no move has a price; False otherwise."""
        return (self.vms is None and not self.pairs and not self.soft_group_cost
                and self.preferences is None)

    def charges(self, vms: np.ndarray, hosts: np.ndarray) -> np.ndarray:
        """Return bool (v,): true for instances whose moves between ``hosts`` may have a price.

        :param vms: intp (v,)
        :param hosts: intp (h,)
        """
        if self.pairs or self.soft_group_cost:
            return np.ones(len(vms), dtype=bool)
        charged = np.zeros(len(vms), dtype=bool) if self.vms is None else self.vms[vms] != 0
        if self.preferences is not None:
            charged |= self.preferences.charges(hosts)[vms]
        return charged

    def of_moves(self, vms: Index, sources: Index, destinations: Index) -> np.ndarray:
        """Return float64 (...): the price of moving each instance from its source to its
        destination; 0 if both hosts are the same. The arguments are broadcast to one shape."""
        price = self.of_copies(vms, sources, destinations)
        if self.preferences is not None:
            price = price + self.of_wishes(vms, sources, destinations)
        return np.where(sources == destinations, 0.0, price)

    def of_copies(self, vms: Index, sources: Index, destinations: Index) -> np.ndarray:
        """Return the price of moving each instance from its source to its destination, without the
        part that operators' preferences add. The result is float64, and can be broadcast to the
        common shape of the arguments."""
        price = np.zeros(np.shape(vms)) if self.vms is None else self.vms[vms]
        return price + self._of_pairs(sources, destinations) if self.pairs else price

    def of_wishes(self, vms: Index, sources: Index, destinations: Index) -> np.ndarray:
        """Return float64 (...): the part of each move's price that comes from operators'
        preferences. A preference gives an instance a cost on each host, see :class:`Preferences`.
        The part is the cost on the destination minus the cost on the source, or 0 if this
        difference is negative."""
        if self.preferences is None:
            return np.zeros(np.shape(vms))
        return np.maximum(
            self.preferences.at(vms, destinations) - self.preferences.at(vms, sources), 0.0)

    def _of_pairs(self, sources: Index, destinations: Index) -> np.ndarray:
        hosts = 1 + max(max(pair) for pair in self.pairs)
        keys = np.array(sorted(first * hosts + second for first, second in self.pairs))
        amounts = np.array([self.pairs[divmod(int(key), hosts)] for key in keys])
        wanted = np.where(np.maximum(sources, destinations) < hosts,
                          sources * hosts + destinations, -1)
        place, found = find(keys, wanted)
        return np.where(found, amounts[place], 0.0)
