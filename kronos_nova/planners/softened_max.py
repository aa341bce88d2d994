"""A smooth stand-in for the combined imbalance, which tells apart what the maximum cannot.

Two hosts share the top: no single move lowers the maximum, so max − min says that none is of use.
``temperature × log Σ exp(score / temperature)`` is close to the maximum but counts every host near
it, and it falls with the first of the two moves. The same with the sign turned gives the minimum.

To first order what a move changes is a product of something of the instance and something of the
host, so one matrix product rates all pairs at once. Single precision is enough to choose by. The
log-sum-exp bound of the maximum is in Boyd and Vandenberghe, Convex Optimization, section 3.1.5.
"""

import numpy as np

from kronos_nova.planners.generation import Generation
from kronos_nova.simulation.space import SearchSpace

STEEPEST = 80.0
FAINTEST = np.float32(1e-35)
"""exp(STEEPEST) times this is still felt, and exp(STEEPEST) still a number in single precision."""
OVERFULL_PRICE = 0.3
"""Of a plan that leaves a host too full by all that a host can hold."""
AT_ONCE = 1 << 16
"""Pairs that are rated at a time: few enough to stay in the processor's cache."""


class SoftenedMax:
    """Rates end states and moves of an space at one temperature.

    The T terms are the top of each policy and the bottom of each policy. A host may hold too much
    of a scarce resource class in a half-done plan, but pays for it here.
    """

    def __init__(self, space: SearchSpace, temperature: float):
        self.space, self.temperature = space, temperature
        self.price = np.tile(space.policy_weights, 2) * temperature
        scales, self.kind = space.kinds
        self.arriving = np.stack([self._factors(scale, 1) for scale in scales])
        self.leaving = np.stack([self._factors(scale, -1) for scale in scales])

    def _factors(self, scale: np.ndarray, sign: int) -> np.ndarray:
        """float32 (T, v): by how much, relative to what a host contributes to each term, an
        instance changes it by arriving (1) or leaving (-1)."""
        space = self.space
        steps = (sign * space.weights * scale / self.temperature).T
        return np.expm1(np.clip(np.concatenate([steps, -steps]), -STEEPEST, STEEPEST),
                        dtype=np.float32)

    def rate(self, ends: Generation) -> tuple[np.ndarray, np.ndarray]:
        """float64 (n,), the values of end states, the price of the moves included; and float32
        (h, T, n), what each host contributes."""
        scores, free, top, bottom = ends.scores, ends.free, ends.top, ends.bottom
        policies = scores.shape[1]
        terms = np.empty((len(scores), 2 * policies, scores.shape[2]), dtype=np.float32)
        np.subtract(scores, top, out=terms[:, :policies], casting='same_kind')
        np.subtract(bottom, scores, out=terms[:, policies:], casting='same_kind')
        terms *= np.float32(1 / self.temperature)
        np.exp(terms, out=terms)
        sums = terms.sum(axis=0)
        values = self.price @ np.log(sums) + self.space.policy_weights @ (top - bottom)
        values += ends.price
        terms *= (self.price[:, None] / sums).astype(np.float32)
        np.maximum(terms, FAINTEST, out=terms)
        if free.shape[1]:
            over = np.maximum(-free / self.space.unit[:, None], 0).sum(axis=(0, 1))
            values = values + OVERFULL_PRICE * over
        return values, terms

    def best_changes(self, shares, free, hosts, vms, prices) -> np.ndarray:
        """float32 (n, len(vms)): to first order, what moving each instance from its home to the
        best of the hosts changes in each of n states; ``prices`` as in :meth:`changes`."""
        count = max(1, AT_ONCE // (len(hosts) * len(vms)))
        gained = self._gained(shares, free, vms)
        for start in range(0, gained.shape[0], count):
            some = slice(start, start + count)
            gained[some] += self.changes(shares[:, :, some], free[:, :, some], hosts, vms,
                                         prices).min(axis=0)
        return gained

    def changes(self, shares, free, hosts, vms, prices) -> np.ndarray:
        """float32 (len(hosts), n, len(vms)): what the arrival of each instance changes.

        :param prices: float32 (len(hosts), len(vms)), the price of a move, inf where an instance
            may not go
        """
        product = np.empty((len(hosts), shares.shape[2], len(vms)), dtype=np.float32)
        for kind in np.unique(self.kind[hosts]):
            rows = np.flatnonzero(self.kind[hosts] == kind)
            product[rows] = np.matmul(shares[hosts[rows]].transpose(0, 2, 1),
                                      self.arriving[kind][:, vms])
        for c, price in enumerate(OVERFULL_PRICE / self.space.unit):
            over = (-price * free[hosts, c]).astype(np.float32)
            demand = (price * self.space.sizes[vms, c]).astype(np.float32)
            excess = over[:, :, None] + demand
            product += np.maximum(excess, 0, out=excess)
            product -= np.maximum(over, 0)[:, :, None]
        product += prices[:, None, :]
        return product

    def to_each(self, shares, free, hosts, vms, prices) -> np.ndarray:
        """float32 (len(hosts), n): the same for one instance in each of n states."""
        factors = self.arriving[self.kind[hosts][:, None], :, vms]
        changed = np.einsum('htn,hnt->hn', shares[hosts], factors)
        for c, price in enumerate(OVERFULL_PRICE / self.space.unit):
            over = -price * free[hosts, c]
            excess = np.maximum(over + price * self.space.sizes[vms, c], 0)
            changed += excess - np.maximum(over, 0)
        return changed + prices

    def _gained(self, shares, free, vms) -> np.ndarray:
        """float32 (n, len(vms)): what the departure of each instance changes."""
        home = self.space.home[vms]
        leaving = self.leaving[self.kind[home], :, vms]
        gained = np.zeros((shares.shape[2], len(vms)), dtype=np.float32)
        for term, factor in enumerate(leaving.T):
            gained += shares[:, term].T[:, home] * factor
        for c, price in enumerate(OVERFULL_PRICE / self.space.unit):
            over = (-price * free[:, c]).astype(np.float32).T[:, home]
            demand = (price * self.space.sizes[vms, c]).astype(np.float32)
            gained -= np.clip(over, 0, demand)
        return gained
