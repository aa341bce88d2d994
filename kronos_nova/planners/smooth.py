"""A smooth stand-in for the combined imbalance, which tells apart what the maximum cannot.

Two hosts share the top: no single move lowers the maximum, so max − min says that none is of use.
``temperature × log Σ exp(score / temperature)`` is close to the maximum but counts every host near
it, and it falls with the first of the two moves. The same with the sign turned gives the minimum.

To first order what a move changes is a product of something of the instance and something of the
host, so one matrix product rates all pairs at once.
"""

import numpy as np

from kronos_nova.planners.arena import Arena

STEEPEST = 300.0
OVERFULL_PRICE = 0.3
"""Of a plan that leaves a host too full by all that a host can hold."""
KINDS = 8


class Smooth:
    """Rates end states and moves of an arena at one temperature.

    The T terms are the top of each policy and the bottom of each policy. A host may hold too much
    of a scarce resource class in a half-done plan, but pays for it here.
    """

    def __init__(self, arena: Arena, temperature: float):
        self.arena, self.temperature = arena, temperature
        self.middle = arena.scores.mean(axis=0)
        self.price = np.concatenate([arena.policy_weights] * 2) * temperature
        scales, self.kind = _kinds(arena.scale)
        self.arriving = [self._factors(scale, 1) for scale in scales]
        self.leaving = [self._factors(scale, -1) for scale in scales]

    def _factors(self, scale: np.ndarray, sign: int) -> np.ndarray:
        """float64 (v, T): by how much, relative to what a host contributes to each term, an
        instance changes it by arriving (1) or leaving (-1)."""
        arena = self.arena
        steps = sign * arena.weights * scale / self.temperature
        return np.expm1(np.clip(np.concatenate([steps, -steps], axis=1), -STEEPEST, STEEPEST))

    def rate(self, scores: np.ndarray, free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(n,) the values of end states float64 (n, h, P), (n, h, c), and (n, h, T) what each host
        contributes."""
        away = (scores - self.middle) / self.temperature
        terms = np.exp(np.clip(np.concatenate([away, -away], axis=2), -STEEPEST, STEEPEST))
        sums = terms.sum(axis=1)
        values = np.log(sums) @ self.price
        shares = terms * (self.price / sums)[:, None, :]
        if free.shape[2]:
            over = np.maximum(-free / self.arena.unit, 0).sum(axis=(1, 2))
            values = values + OVERFULL_PRICE * over
        return values, shares

    def changes(self, shares: np.ndarray, free: np.ndarray, hosts: np.ndarray,
                vms: np.ndarray) -> np.ndarray:
        """float64 (n, len(hosts), len(vms)): to first order, what moving each instance from its
        home to each host changes in each of n states."""
        count = len(shares)
        changed = np.empty((count, len(hosts), len(vms)))
        for kind, factors in enumerate(self.arriving):
            of_kind = np.flatnonzero(self.kind[hosts] == kind)
            if len(of_kind):
                here = shares[:, hosts[of_kind]]
                product = here.reshape(-1, here.shape[2]) @ factors[vms].T
                changed[:, of_kind] = product.reshape(count, len(of_kind), len(vms))
        home = self.arena.home[vms]
        leaving = np.stack(self.leaving)[self.kind[home], vms]
        gained = np.einsum('nvt,vt->nv', shares[:, home], leaving)
        for c, price in enumerate(OVERFULL_PRICE / self.arena.unit):
            demand, over = self.arena.demands[vms, c] * price, -free[:, :, c] * price
            gained -= np.minimum(np.maximum(over[:, home], 0), demand)
            now = np.maximum(over, 0)[:, hosts, None]
            changed += np.maximum(over[:, hosts, None] + demand, 0) - now
        changed += gained[:, None, :]
        return changed


def _kinds(scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Hosts of about the same scale: (k, P) their scales and (h,) which host is which.

    At most :data:`KINDS`; where there are more, similar ones are taken for equal, which only makes
    the first look coarser.
    """
    digits = 6
    while True:
        rounded = np.round(np.log2(np.maximum(scale, 1e-6)) * 2 ** digits) / 2 ** digits
        kinds, number = np.unique(rounded, axis=0, return_inverse=True)
        if len(kinds) <= KINDS or digits < -3:
            return 2.0 ** kinds, number.reshape(-1)
        digits -= 1
